// SPDX-License-Identifier: Apache-2.0
// The TLS contexts that frontends and clusters use, one for each thing that is wanted, whoever
// wants it. It has an id, and contexts come and go under it: one is made when it is first wanted,
// and anew when a file that it is made of changes. A bad one leaves what was good (TLS-163).
// Thread: ctrl; contexts are made by a thread of its own (credential_maker.h).
#pragma once

#include "ctrl/certs/credential.h"
#include "lb/pick/credential.h"

#include <stdbool.h>
#include <stdint.h>

struct certs;
struct credentials;
struct twheel;

struct credentials_conf { // all borrowed, outlives it
	const struct certs *certs;
	struct twheel *wheel;
	const char *system_roots; // CREDENTIAL_SYSTEM_ROOTS
	// What stands at the id from now on; NULL = nothing.
	void (*changed)(void *ctx, uint32_t id, struct lb_credential *);
	void *ctx;
};

// NULL = out of memory, no thread or no randomness.
struct credentials *credentials_new(const struct credentials_conf *);
void credentials_free(struct credentials *); // NULL is fine
int credentials_fd(const struct credentials *); // readable when there is something to dispatch
void credentials_dispatch(struct credentials *);
// A provider, or CERTS_CRLS or CERTS_TICKETS, has other material.
void credentials_renew(struct credentials *, const char *source);

// The secret of tickets that this process, or one before it, has made; borrowed. Empty = it counts
// for nothing, as one is configured.
struct str credentials_own_tickets(const struct credentials *);
// Another process's own takes the place of ours, and contexts of servers are made anew (TLS-219).
// Copies it. False = one is configured, or out of memory: nothing has changed.
bool credentials_inherit_tickets(struct credentials *, struct str secret);
// Waits for contexts of servers that are being made, a quarter of a second at most; what is left
// comes by dispatch().
void credentials_await(struct credentials *);

bool credentials_are_being_made(const struct credentials *); // contexts, or some of them anew

// The id of what is wanted, counted; LB_NO_CREDENTIAL = out of memory or of ids.
uint32_t credentials_take(struct credentials *, const struct credential_want *);
// The id means nothing else for a minute, while connections may still begin by it.
void credentials_give(struct credentials *, uint32_t id); // LB_PLAIN_TEXT, LB_NO_CREDENTIAL: fine
struct lb_credential *credentials_at(const struct credentials *, uint32_t id); // NULL = none
// True until the first attempt to make it has ended.
bool credentials_is_new(const struct credentials *, uint32_t id);
// Why there is none, or the newest is not served; "" = all is well.
const char *credentials_error(const struct credentials *, uint32_t id);

struct credentials_info {
	const struct credential_want *want;
	const char *error;
	uint64_t version; // 0 = there was no context yet
	uint64_t since_ns; // of the context
	uint32_t id, n_users;
	bool is_served; // there is a context
};

// "outdated": a context serves, and what it is made of has changed since, but no newer one came
// about. In the order of their words.
enum credentials_state { CREDENTIALS_REFUSING, CREDENTIALS_SERVED, CREDENTIALS_OUTDATED };
#define CREDENTIALS_N_STATES 3
extern const char *const credentials_state_names[CREDENTIALS_N_STATES];
enum credentials_state credentials_state(const struct credentials_info *);

void credentials_each(
	const struct credentials *, void (*fn)(void *, const struct credentials_info *), void *ctx);
