// SPDX-License-Identifier: Apache-2.0
// Certificates and the TLS contexts that are made of them, on the event loop: what the one brings
// the other takes.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct certs;
struct config;
struct credentials;
struct lb_credential;
struct loop;
struct trust;
struct xds_bootstrap;

struct trust_conf { // all borrowed, outlives it
	const struct config *config;
	struct xds_bootstrap *bootstrap;
	struct loop *loop;
	// As struct credentials_conf has it.
	void (*changed)(void *ctx, uint32_t id, struct lb_credential *);
	void *ctx;
};

// Reads all files once. NULL = out of memory, or no thread.
struct trust *trust_new(const struct trust_conf *);
void trust_free(struct trust *); // NULL is fine; the loop runs no more
// The bootstrap as its file has it now: providers that are new there are in force from now on, and
// come out of it. Notes certificate_providers["NAME"] of each of these, and of those that differ or
// are gone: they stay as they were until a restart. Returns 0, or negative with reterr, as for one
// whose files are bad, and nothing is new.
[[nodiscard]] int trust_learn(struct trust *, struct xds_bootstrap *now,
	void (*note)(void *, const char *field, bool needs_restart), void *note_ctx,
	struct lb_err *reterr);
struct certs *trust_certs(const struct trust *);
struct credentials *trust_credentials(const struct trust *);
