// SPDX-License-Identifier: Apache-2.0
// What taking over (ctrl/takeover/takeover.h) does to this process: to its workers, to where it is
// reached, to its end and to what the service manager hears. Without `takeover_socket` in
// shunt.yaml nothing of it exists, and NULL stands for it.
// Thread: ctrl.
#pragma once

#include "ctrl/takeover/takeover.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct assembler;
struct config;
struct loop;
struct reach;
struct service;
struct shutdown;
struct succession;
struct trust;
struct workers;
struct xds_live;

struct succession_conf { // all borrowed, outlives it
	const struct config *config;
	struct takeover_seat seat; // its descriptor is taken
	struct loop *loop;
	struct workers *workers;
	struct assembler *assembler;
	struct trust *trust;
	const struct xds_live *xds;
	struct reach *reach;
	struct service *service;
	struct shutdown *shutdown;
	struct takeover_devices devices;
	void (*reopened)(void *ctx); // ports: who asks there is to hear how we are
	void *ctx;
};

// *ret is NULL without takeover_socket. Returns 0, or -EINVAL with reterr.
[[nodiscard]] int succession_new(
	const struct succession_conf *, struct succession **ret, struct lb_err *reterr);
void succession_free(struct succession *);
// Call at each tick; could_serve: there is a configuration. True = clients are ours.
bool succession_tick(struct succession *, bool could_serve);
// Why a newer process does not take the place yet; NULL = there is none, or no reason.
const char *succession_newer_lacks(const struct succession *);
// Whether who is behind us lets us end.
bool succession_may_end(const struct succession *);
// Why we gave up, "" = we did not.
const char *succession_error(const struct succession *);
// For `show info`; NULL = off.
const struct takeover *succession_takeover(const struct succession *);
