// SPDX-License-Identifier: Apache-2.0
// What connections of one kind want of TLS, as frontends and clusters say it, and how it becomes a
// context with what providers have at the moment.
// Thread: wants are made and freed by ctrl and immutable; making a context is any thread's, and
// takes milliseconds.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/route/san_match.h"
#include "tlshs/context.h"

#include <stdbool.h>
#include <stdint.h>

struct cert_material;

// Debian's ca-certificates (A82): read each time a context is made.
#define CREDENTIAL_SYSTEM_ROOTS "/etc/ssl/certs/ca-certificates.crt"

struct credential_want {
	enum tlshs_role role;
	const char *identity; // provider whose certificate we show; NULL = none (of clients)
	const char *ca; // provider whose CAs peers must have; NULL = see system_roots
	bool system_roots;
	bool require_peer_certificate; // of servers
	// Of clients: of which the server's certificate has one; none = any.
	const struct lb_san_matcher_conf *sans;
	uint32_t n_sans;
	bool sni_is_san; // what was sent as SNI, if it was, is compared in place of sans (A101)
	uint32_t max_sessions; // that are kept of one server and name; 0 = none is resumed
	// Of servers: "a.example", "*.example"; none = all.
	const char *const *server_names;
	uint32_t n_server_names;
};

// A copy in the arena. Returns 0 or -ENOMEM.
[[nodiscard]] int credential_want_copy(
	struct lb_arena *, const struct credential_want *, struct credential_want *ret);
// A text that is the same of wants that are; to be freed. NULL = out of memory.
char *credential_want_key(const struct credential_want *);

// What there is for it; borrowed. NULL = it is not asked for, or there is none yet.
struct credential_parts {
	const struct cert_material *identity, *ca, *crls;
	bool awaits_crls; // they are configured, and there are none yet
	const char *system_roots; // path
	struct str ticket_secret; // of servers
};

// Returns 0 with one reference, or negative with reterr: -EACCES if nobody is trusted any more
// (A87), -EINVAL if a part is not there or of no use, -EAGAIN if the same parts may do another
// time, as for lack of memory, or because of the system's CAs, which nobody watches.
[[nodiscard]] int credential_make(const struct credential_want *, const struct credential_parts *,
	struct tlshs_context **ret, struct lb_err *reterr);
