// SPDX-License-Identifier: Apache-2.0
// The thread that makes TLS contexts, since the event loop must not wait for certificates to be
// parsed: a system's CAs take some 300 ms, and one file may be in a thousand contexts.
// Thread: the functions are the owner's; the thread is inside.
#pragma once

#include "ctrl/certs/credential.h"

#include <stdint.h>

struct credential_maker;

struct credential_job {
	struct credential_job *next;
	uint32_t id; // the owner's
	const struct credential_want *want; // borrowed until the job is taken back
	struct credential_parts parts; // likewise
	// The outcome, as credential_make() has it.
	int rc;
	struct tlshs_context *context; // of whoever takes the job
	struct lb_err err;
};

// NULL = out of memory, or no thread.
struct credential_maker *credential_maker_new(void);
// Waits for the job under way. The jobs that are left are the caller's: stop() and take() before.
// NULL is fine.
void credential_maker_free(struct credential_maker *);
// Lets go of all jobs that were not begun and waits for the one that was: take() then has them all.
void credential_maker_stop(struct credential_maker *);
int credential_maker_fd(
	const struct credential_maker *); // readable when there is something to take
// The job is borrowed until it is taken. Jobs of servers are done before those of clients, and
// otherwise in the order in which they were given.
void credential_maker_give(struct credential_maker *, struct credential_job *);
struct credential_job *credential_maker_take(struct credential_maker *); // NULL = none is done
