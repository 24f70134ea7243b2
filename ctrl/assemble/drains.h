// SPDX-License-Identifier: Apache-2.0
// Frontends that operators drain, as SIGTERM drains all, while the process goes on (OPS-72 to
// OPS-75): for lame_duck_s only readiness is gone, then workers accept nobody there and send its
// clients away, who have drain_s; and it can be taken back at any time.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct drains;
struct twheel;
struct workers;

enum drain_phase {
	DRAIN_NONE, // it serves
	DRAIN_LAME_DUCK, // clients are accepted still
	DRAIN_LEAVING, // clients are sent away
	DRAIN_DONE, // no client is left
};

struct drains_conf { // all borrowed, outlives it
	const struct config *config; // with the times: they count as they are when they begin
	struct workers *workers;
	struct twheel *wheel;
	// Whether any frontend drains may have changed.
	void (*changed)(void *ctx);
	void *ctx;
};

struct drains *drains_new(const struct drains_conf *); // NULL = out of memory
void drains_free(struct drains *); // NULL is fine

#define DRAINS_ALL UINT32_MAX // in place of a frontend of shunt.yaml
// Returns of how many frontends the drain begins, or ends: not of those that drain, or serve,
// already. -EINVAL with reterr once the process stops.
[[nodiscard]] int drains_begin(struct drains *, uint32_t frontend, struct lb_err *reterr);
[[nodiscard]] int drains_end(struct drains *, uint32_t frontend, struct lb_err *reterr);
// The frontend is gone, or is another one now: nothing drains there. NULL is fine.
void drains_forget(struct drains *, uint32_t frontend);
// The process is about to stop: from now on nothing begins and nothing is taken back. If every
// frontend drains, true, with when all have been lame ducks for long enough, and by when all
// clients are to be gone; 0 = some frontend still is a lame duck.
bool drains_stop(struct drains *, uint64_t *ret_lame_until_ns, uint64_t *ret_gone_by_ns);

struct drain_info {
	enum drain_phase phase;
	uint64_t left_ns; // of the phase; 0 = it ends by itself, or not at all
	uint64_t n_clients; // that are left; while it serves, 0
};
// NULL = nothing drains.
void drains_look(const struct drains *, uint32_t frontend, struct drain_info *ret);
bool drains_any(const struct drains *);
bool drains_stopped(const struct drains *); // drains_stop() was called; NULL = it was not
// "", "lame_duck", "draining", "drained"; a constant text.
const char *drain_phase_name(enum drain_phase);
