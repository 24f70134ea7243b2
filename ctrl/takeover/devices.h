// SPDX-License-Identifier: Apache-2.0
// Devices that one process has alone, as takeovers see them: they come to the newer process with
// the place, and what is the older one's of them goes by a relay (docs/decisions/takeover.md). Of
// those that both have they agree on the cables by which they send.
// Thread: ctrl.
#pragma once

#include "lb/base/cable.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct takeover_device_ops {
	// A newer process with so many workers has come; 0 = it can have no devices. *ret_fd: what
	// it needs for ours, owned; -1 = there are none. Returns 0, or negative with reterr.
	int (*lend)(void *ctx, uint32_t n_workers, int *ret_fd, struct lb_err *reterr);
	bool (*are_lent)(const void *ctx);
	// Whether the newer one can have them. 0, or negative with reterr: one has to stay here.
	int (*may_leave)(const void *ctx, struct lb_err *reterr);
	// The newer one is to have them: they are closed, which the second tells.
	void (*pass_on)(void *ctx);
	bool (*are_passed_on)(void *ctx, uint64_t now_ns);
	// Opens what the older one has passed on. Takes a while. 0, or negative with reterr.
	int (*take)(void *ctx, struct lb_err *reterr);
	// That process is gone; of the newer one: its devices are ours again.
	void (*drop)(void *ctx, bool newer, uint64_t now_ns);
	bool (*have_older)(const void *ctx); // an older process's frames go through us
	// By which cables ours send that both processes have; of a bond, a choice.
	void (*cables)(const void *ctx, struct lb_cables *ret);
	// Ours are to send by these, of who is in front; NULL = as they choose, as at first.
	void (*follow)(void *ctx, const struct lb_cables *);
	void (*tidy)(void *ctx); // at each tick
};
struct takeover_devices {
	const struct takeover_device_ops *ops; // NULL = there are none
	void *ctx;
};

// As the operations of that name; without any nothing is lent, and all is done at once.
[[nodiscard]] int takeover_devices_lend(
	const struct takeover_devices *, uint32_t n_workers, int *ret_fd, struct lb_err *reterr);
bool takeover_devices_are_lent(const struct takeover_devices *);
[[nodiscard]] int takeover_devices_may_leave(
	const struct takeover_devices *, struct lb_err *reterr);
void takeover_devices_pass_on(const struct takeover_devices *);
bool takeover_devices_are_passed_on(const struct takeover_devices *, uint64_t now_ns);
[[nodiscard]] int takeover_devices_take(const struct takeover_devices *, struct lb_err *reterr);
void takeover_devices_drop(const struct takeover_devices *, bool newer, uint64_t now_ns);
bool takeover_devices_have_older(const struct takeover_devices *);
void takeover_devices_cables(const struct takeover_devices *, struct lb_cables *ret);
void takeover_devices_follow(const struct takeover_devices *, const struct lb_cables *);
void takeover_devices_tidy(const struct takeover_devices *);
