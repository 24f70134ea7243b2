// SPDX-License-Identifier: Apache-2.0
// The certificates that this process knows: those of the bootstrap's certificate providers (gRFC
// A29, A87), a directory of CRLs (gRFC A69) and the secret of tickets, kept as their files change.
// What was good serves until something better comes: a bad file changes nothing but what is told of
// it (TLS-109).
// Thread: ctrl; reading is a thread's of its own (reader.h).
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct cert_material;
struct cert_source;
struct certs;
struct twheel;
struct xds_bootstrap;
struct xds_cert_provider_conf;

struct certs_conf { // all borrowed, outlives it
	const struct xds_bootstrap *bootstrap;
	const char *crl_directory; // NULL = none
	const char *ticket_secret; // a file; NULL = none
	uint64_t crl_refresh_ns; // of both
	struct twheel *wheel;
	uint64_t (*wall_ns)(void); // since 1970
	// The source has other material than before; NULL = nobody wants to know.
	void (*changed)(void *ctx, const char *name);
	void *ctx;
};

#define CERTS_CRLS "crl_directory" // the names of these sources
#define CERTS_TICKETS "ticket_secret"

// Reads all files once, before it returns; bad ones are logged, and looked at again as they
// change. NULL = out of memory, or no thread.
struct certs *certs_new(const struct certs_conf *);
void certs_free(struct certs *); // NULL is fine
// One more provider, borrowed, which the bootstrap has already. Reads its files before it returns,
// as certs_new() does, since who asks for it may name it in the same breath.
void certs_add(struct certs *, const struct xds_cert_provider_conf *);
// Readable when there is something to dispatch.
int certs_fd(const struct certs *);
void certs_dispatch(struct certs *);

// The newest good material of a provider, borrowed until the next dispatch (count it to keep it);
// NULL = there was none yet, or the provider is not known.
struct cert_material *certs_find(const struct certs *, const char *provider);
// NULL = none are configured, or the directory was never read without a bad file (TLS-190).
struct cert_material *certs_find_crls(const struct certs *);
bool certs_has_crl_directory(const struct certs *); // one is configured
struct cert_material *certs_find_tickets(const struct certs *); // NULL = none is configured, or yet
bool certs_has_ticket_secret(const struct certs *); // one is configured

// Another process has material of the source of this name.
void certs_expect(struct certs *, const char *source);
// True = of such a source there is nothing here, of which ret says which, and why. The secret of
// tickets is none of them: without the file there is one.
[[nodiscard]] bool certs_lacks(const struct certs *, struct lb_err *ret);

struct certs_info {
	const struct cert_source *source;
	const struct cert_material *material; // NULL = none was good yet
	uint64_t version; // of the material; grows with each other one, from 1 on
	uint64_t since_ns; // of the material
	const char *error; // of the last reading; "" = it was good
	uint64_t failed_ns; // when that was
	uint64_t n_changed, n_unchanged, n_failed; // readings
	bool watched; // false = it is read at the interval alone
};
void certs_each(const struct certs *, void (*fn)(void *, const struct certs_info *), void *fn_ctx);

// What a start would read, those for xDS servers, too: 0, or -EINVAL with server or provider,
// field, path and reason of the first bad one, or -ENOMEM.
[[nodiscard]] int certs_check(const struct xds_bootstrap *, const char *crl_directory,
	const char *ticket_secret, struct lb_err *reterr);
// Those of one provider.
[[nodiscard]] int certs_check_provider(
	const struct xds_cert_provider_conf *, struct lb_err *reterr);
// Those for xDS servers alone, which certs_each() does not tell of.
[[nodiscard]] int certs_check_servers(const struct xds_bootstrap *, struct lb_err *reterr);
