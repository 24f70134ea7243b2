// SPDX-License-Identifier: Apache-2.0
// TLS contexts as snapshots carry them: opaque, counted, each under an id that stays while what
// stands there is replaced: new files give a new context. An id without a context refuses
// connections; it never means plain text (TLS-160).
// Thread: made, counted and changed by ctrl; read by workers through a snapshot (lb/snapshot.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LB_PLAIN_TEXT 0 // the id of no TLS
#define LB_MAX_CREDENTIALS 4096 // ids are below this
#define LB_NO_CREDENTIAL (LB_MAX_CREDENTIALS - 1) // the id at which nothing ever stands: refuses

struct tlshs_context; // opaque here

struct lb_credential { // immutable but for n_refs
	struct tlshs_context *tls; // never NULL
	void (*put)(struct tlshs_context *); // called once, when the last reference is dropped
	uint32_t n_refs; // ctrl only
};

// Takes the context over, also if it fails. One reference. NULL = out of memory.
struct lb_credential *lb_credential_new(
	struct tlshs_context *taken, void (*put)(struct tlshs_context *));
struct lb_credential *lb_credential_get(struct lb_credential *);
void lb_credential_put(struct lb_credential *); // NULL is fine

// What stands at each id. Snapshots share it until it changes.
struct lb_credentials {
	uint32_t n_refs; // ctrl only
	uint32_t n;
	struct lb_credential *list[]; // [n] counted; NULL = none, or none yet
};
struct lb_credentials *lb_credentials_get(struct lb_credentials *); // NULL stays NULL
void lb_credentials_put(struct lb_credentials *); // NULL is fine
// Makes *place, which the caller holds a reference to (NULL = an empty one), have this credential
// (NULL = none) at the id, without a change for others who hold it. Counts the credential. Returns
// 0, or -ENOMEM with nothing changed.
[[nodiscard]] int lb_credentials_set(
	struct lb_credentials **place, uint32_t id, struct lb_credential *);

static inline const struct lb_credential *lb_credentials_at(
	const struct lb_credentials *c, uint32_t id)
{
	return c && id < c->n ? c->list[id] : NULL;
}
