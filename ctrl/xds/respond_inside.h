// SPDX-License-Identifier: Apache-2.0
// What respond.c (reading and listing), respond_names.c (for whom it is) and respond_settle.c
// (taking effect) share. Nobody else's.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "ctrl/xds/cache.h"
#include "ctrl/xds/respond.h"
#include "ctrl/xds/response.h"
#include "ctrl/xds/type.h"

#include <stdio.h>

struct xds_decoding;

// What a response says of one variant that somebody wants, or of all variants of such a name; it is
// listed in the change, or why that is refused.
struct xds_item {
	enum xds_part_kind kind;
	bool has_ttl;
	uint64_t ttl_ns;
	const char *name; // canonical; in the round's arena, as all texts
	const char *version;
	struct xds_constraints *constraints; // counted
	struct xds_res *res; // NULL = invalid, or no resource
	const char *why; // it is invalid
	struct xds_refused *refused; // then, and what is known of it; counted
	// Of an error:
	int32_t code;
	const char *text;
};

// First all of it is listed as one change of what the server has, then that takes effect, and then
// it is seen who is concerned: in which order the response lists things makes no difference
// (TP2-T08).
struct xds_round {
	struct xds_cache *cache;
	uint32_t type;
	struct xds_response *response;
	struct xds_variants *variants;
	bool takes_all; // somebody subscribes to "*"
	bool changing; // the change has begun
	bool is_kept; // by an earlier run: not the server's word

	// The part at hand, while its resource is decoded.
	struct xds_decoding *decoding;
	struct xds_part part;
	struct xds_open_part open;

	struct xds_item *items; // owned
	size_t n_items;
	uint32_t room;
	struct lb_arena arena;
	char *name; // the last one that was looked up; owned
	size_t name_room;
	FILE *complaints; // becomes the text of the NACK
	char *text; // of the complaints; owned
	size_t text_len;
	size_t n_unnamed; // failing resources that the text has no room for
	size_t n_resources, n_heartbeats, n_unwanted; // so far
	size_t n_unbounded; // items whose number the change does not bound
	size_t n_valid, n_invalid; // of those that were wanted
	const char *twice; // is listed more than once (PC-07), the first of such names; NULL = none
	bool nack;
	bool out_of_memory; // memory ran out: the server has to say it again
	bool nameless; // an entry is there of which not even the name could be read
	bool lists_all; // what it does not list was deleted (SW-11)
};

static inline const struct xds_type *xds_round_type(const struct xds_round *r)
{
	return r->cache->conf->types[r->type];
}

// The name under which it is known here (FE-03), the caller's; NULL = out of memory. What is no
// name of this type (FE-02) stays as it is, and reterr (which may be NULL) says why.
char *xds_round_canonical(const struct xds_round *, const char *name, struct lb_err *reterr);
// Somebody subscribes to the name, as it was spelt.
bool xds_round_wants(const struct xds_round *, const char *name);
// The view as a text, until the next call; NULL = out of memory.
const char *xds_round_text(struct xds_round *, struct str);
bool xds_round_is_own_type(const struct xds_round *, struct str type_url); // WF-04
// PC-08: nobody wants the part.
bool xds_round_may_pass_over(struct xds_round *, const struct xds_part *, bool *ret_heartbeat);

// The change has taken effect: those who are concerned see it.
void xds_round_settle(struct xds_round *);
// The same of a round that is_kept.
void xds_round_settle_kept(struct xds_round *);
// Nothing of it is used, since something is listed twice.
void xds_round_refuse_all(struct xds_round *);
