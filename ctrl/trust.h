// SPDX-License-Identifier: Apache-2.0
// Certificates and the TLS contexts that are made of them, on the event loop: what the one brings
// the other takes.
// Thread: ctrl.
#pragma once

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
	const struct xds_bootstrap *bootstrap;
	struct loop *loop;
	// As struct credentials_conf has it.
	void (*changed)(void *ctx, uint32_t id, struct lb_credential *);
	void *ctx;
};

// Reads all files once. NULL = out of memory, or no thread.
struct trust *trust_new(const struct trust_conf *);
void trust_free(struct trust *); // NULL is fine; the loop runs no more
struct certs *trust_certs(const struct trust *);
struct credentials *trust_credentials(const struct trust *);
