// SPDX-License-Identifier: Apache-2.0
// The frontends of shunt.yaml: each has a dependency manager that gathers what its target needs,
// and what that delivers goes to the assembler.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdint.h>

struct access_log;
struct assembler;
struct config;
struct config_rows_plan;
struct dns_resolver;
struct drains;
struct frontends;
struct show_listener;
struct traces;
struct twheel;
struct xds_bootstrap;
struct xds_federation;

// Returns the resource names of their targets, to be freed with free_names(). Returns 0, -EINVAL
// with reterr, or -ENOMEM.
[[nodiscard]] int frontends_name_listeners(
	const struct config *, const struct xds_bootstrap *, char ***ret, struct lb_err *reterr);
void frontends_free_names(const struct config *, char **names); // NULL is fine

// Whoever is named as a provider of certificates is one of the bootstrap's: 0, or -EINVAL with
// field and name (TLS-162).
[[nodiscard]] int frontends_check_providers(
	const struct config *, const struct xds_bootstrap *, struct lb_err *reterr);

struct frontends_conf { // all borrowed, outlive it
	struct config *config; // whose frontends change with it
	const struct xds_bootstrap *bootstrap;
	char **listener_names; // [n_frontends], each of which changes with it
	const char *node_id;
	struct xds_federation *xds;
	struct dns_resolver *dns;
	struct twheel *wheel;
	struct assembler *assembler;
	// Who knows frontends by name or number, and hears of changes; each may be NULL.
	struct access_log *access_log;
	struct traces *traces;
	struct drains *drains;
};

// Starts their watches. Returns NULL if out of memory.
struct frontends *frontends_new(const struct frontends_conf *);
void frontends_free(struct frontends *); // NULL is fine
// A reload of shunt.yaml changes them. The first makes what may fail, beside what serves; returns
// 0, or -EINVAL with reterr, which names the field, and nothing is made. Then the second, which
// takes them out of the new configuration, or the third.
[[nodiscard]] int frontends_prepare(struct frontends *, const struct config *new,
	const struct config_rows_plan *, struct lb_err *reterr);
void frontends_apply(struct frontends *, struct config *new, const struct config_rows_plan *);
void frontends_abandon(struct frontends *);
void frontends_follow_vips(struct frontends *); // the configuration has others now
// DNS names of clusters may have other addresses now (A74-C06).
void frontends_reresolve(struct frontends *);
// For display, as depmgr_waiting() and depmgr_refused(). The first argument is the frontends, as
// for struct show_conf.
const char *frontends_waiting(void *frontends, uint32_t index);
const char *frontends_refused(void *frontends, uint32_t index);
// As listeners_each(); none without `listeners: wildcard`.
void frontends_each_listener(
	void *frontends, void (*fn)(void *ctx, const struct show_listener *), void *ctx);
