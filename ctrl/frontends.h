// SPDX-License-Identifier: Apache-2.0
// The frontends of shunt.yaml: each has a dependency manager that gathers what its target needs,
// and what that delivers goes to the assembler.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdint.h>

struct assembler;
struct config;
struct dns_resolver;
struct frontends;
struct show_listener;
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
	const struct config *config;
	char *const *listener_names;
	const char *node_id;
	struct xds_federation *xds;
	struct dns_resolver *dns;
	struct twheel *wheel;
	struct assembler *assembler;
};

// Starts their watches. Returns NULL if out of memory.
struct frontends *frontends_new(const struct frontends_conf *);
void frontends_free(struct frontends *); // NULL is fine
// DNS names of clusters may have other addresses now (A74-C06).
void frontends_reresolve(struct frontends *);
// For display, as depmgr_waiting() and depmgr_refused(). The first argument is the frontends, as
// for struct show_conf.
const char *frontends_waiting(void *frontends, uint32_t index);
const char *frontends_refused(void *frontends, uint32_t index);
// As listeners_each(); none without `listeners: wildcard`.
void frontends_each_listener(
	void *frontends, void (*fn)(void *ctx, const struct show_listener *), void *ctx);
