// SPDX-License-Identifier: Apache-2.0
// The inside of the frontends, for their files: frontends.c (what they are made of),
// frontends_prepare.c and frontends_change.c (what a reload makes of them).
// Thread: ctrl.
#pragma once

#include "ctrl/conf/config.h"
#include "ctrl/frontends.h"
#include "lb/base/twheel.h"

#include <stdbool.h>

struct chain_places;
struct chains;
struct depmgr;
struct frontend;
struct lb_live_frontend;
struct listeners;

// Where a frontend with a target has its configurations from.
struct frontend_source {
	struct frontend *of;
	struct depmgr *depmgr; // owned
};

// What one is to be. It serves as it was until this has all that it needs, which the assembler
// makes meanwhile of what the source delivers.
struct frontend_change {
	uint32_t row, entry; // of the running configuration, and of the new one
	char *listener_name; // owned
	struct lb_live_frontend *live; // counted
	uint32_t credential; // taken
	bool has_source; // it gets one of its own
	bool has_tls; // it gets other TLS than it has
	bool sends_away; // clients came to something else
	struct frontend_source *source; // owned; NULL = not yet, or none is needed
};

struct frontend {
	struct frontends *all;
	uint32_t index;
	struct frontend_source *source; // owned; NULL = it has chains, Listeners, or nothing
	struct chains *chains; // owned; NULL = it has a target, Listeners, or nothing
	struct frontend_change *next; // owned; NULL = it is as shunt.yaml says
	uint64_t owner; // lb/live_frontend.h; 0 = since the start
	uint64_t left_by, gone_ns; // once it goes: the snapshot that says so, and the earliest end
	// While a reload is prepared: it is to be as it is, or has to wait for what it is to be.
	bool stays, waits;
};

struct frontends {
	struct frontends_conf conf;
	struct chain_places *places; // owned
	struct listeners *listeners; // owned, of the last frontend; NULL = none by wildcard
	uint64_t n_live; // numbers that were used (lb/live_frontend.h)
	struct twheel_timer look; // while one changes or is being left
	// Between prepare and apply; owned: changes, and what workers are told of those that go.
	struct frontend_change **changes;
	uint32_t n_changes;
	struct lb_live_frontend **left; // by row; NULL = it does not go
	uint32_t n;
	struct frontend list[];
};

// What serves, as shunt.yaml says it.
static inline const struct config_frontend *frontend_row(const struct frontend *f)
{
	return &f->all->conf.config->frontends[f->index];
}

// Implemented by frontends.c. Begins what the configuration's row says. False = out of memory.
[[nodiscard]] bool frontend_start(struct frontend *);
// Of what shunt.yaml says of one with a target. NULL = out of memory.
struct frontend_source *frontend_source_new(
	struct frontend *, const struct config_frontend *, const char *listener_name);
void frontend_source_free(struct frontend_source *); // NULL is fine
// 0, or -EINVAL or -ENOMEM with reterr. *ret is owned by the caller; NULL = it has none.
[[nodiscard]] int frontend_name_listener(const struct config_frontend *,
	const struct xds_bootstrap *, char **ret, struct lb_err *reterr);

// Implemented by frontends_prepare.c. What it has made is somebody else's now.
void frontends_forget_prepared(struct frontends *);

// Implemented by frontends_change.c.
void frontends_look_soon(struct frontends *);
void frontend_change_free(struct frontends *, struct frontend_change *); // NULL is fine
void frontends_look(struct twheel_timer *);
// The certificates of what it is to be are being made.
bool frontend_next_awaits_tls(const struct frontend *);
// Why what it is to be has no TLS context; "" = it has, it is being made, or none is needed.
const char *frontend_next_tls_error(const struct frontend *);
