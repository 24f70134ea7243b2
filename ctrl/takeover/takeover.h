// SPDX-License-Identifier: Apache-2.0
// A new process follows one that serves, at the same ports (docs/decisions/takeover.md). Each
// process may have an older one, whose place it takes, and later a newer one, to which it leaves
// it. What is done to the rest of the process is behind a table of functions.
// Thread: ctrl.
#pragma once

#include "ctrl/takeover/devices.h"
#include "lb/base/company.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct takeover;

#define TAKEOVER_MAX_BEHIND 3 // processes behind the one in front
// Source ports are chosen from one of so many parts, by generation: no two that live choose the
// same.
#define TAKEOVER_PORT_PARTS (TAKEOVER_MAX_BEHIND + 1)

#define TAKEOVER_MAX_LISTENERS 4 // that are passed on

#define TAKEOVER_LACK 128 // bytes, of a text
#define TAKEOVER_VERSION 64
// What the process that serves has told us before anything of ours began.
struct takeover_seat {
	int fd; // -1 = nobody serves: we are the first
	uint32_t generation; // ours, from 1
	uint32_t n_behind; // behind us, once we are in front
	char version[TAKEOVER_VERSION]; // of the older one
	bool passes_listeners; // it does: its ports come with the place
	int relay_fd; // what its devices come with, for the owner to close; 0 = nothing
	// What xDS servers had sent it (ctrl/xds/legacy.h), for whoever reads that to close; 0 =
	// nothing.
	int resources_fd;
	struct lb_cables cables; // by which it sends
	uint32_t n_sources; // of certificates, that it names next
};
// Asks at this path, and waits for the answer. Returns 0, or -EINVAL with reterr: it refused, say.
[[nodiscard]] int takeover_join(const char *path, const char *version, uint32_t n_workers,
	struct takeover_seat *ret, struct lb_err *reterr);

struct takeover_ops {
	// Why nobody may take the place now, since the newer one would not serve as we do;
	// NULL = one may.
	const char *(*busy)(void *ctx);
	void (*set_company)(void *ctx, enum lb_company); // of the workers, soon
	bool (*has_company)(void *ctx, enum lb_company); // all of them by now
	// The newer one is about to take names and ports of ours: what stays needs other names.
	// opens: it opens ports beside ours, as it knows of none that are passed on. Returns 0, or
	// negative with reterr: it is not to have the place. take() makes up for it.
	int (*share)(void *ctx, bool opens, struct lb_err *reterr);
	// Sockets of our ports, for the newer one: borrowed. Returns how many. Each is inherited
	// by inherit_listener(), before open(), which borrows it.
	uint32_t (*listeners)(void *ctx, int ret[TAKEOVER_MAX_LISTENERS]);
	void (*inherit_listener)(void *ctx, int fd);
	// What we know by experience, for the newer one: a descriptor, closed here; -1 = nothing.
	int (*bequeath)(void *ctx);
	void (*inherit)(void *ctx, int fd); // before open(); borrows it
	// Opens ports, without accepting yet; accepts there and takes the names of sockets, which
	// is for who serves alone. Both return 0, or negative with reterr.
	int (*open)(void *ctx, struct lb_err *reterr);
	int (*take)(void *ctx, struct lb_err *reterr);
	// The newer one serves: ports are its own, and no client is to stay here.
	void (*leave)(void *ctx);
	void (*give_up)(void *ctx, const char *why); // we have no place to take: end, at once
	void (*free_to_go)(void *ctx); // after leave(): nobody is behind us any more
	void (*follow_relays)(void *ctx); // workers are to, as devices say; not without these
	// What xDS servers have sent us, for a newer one that has just come and may find none: a
	// descriptor, closed here; -1 = nothing. NULL = alike.
	int (*resources)(void *ctx);
	// Names the sources of certificates without which the newer one would refuse whom we serve;
	// it hears of each by expect(), as takeover_wire_fit() has it, before it asks. NULL = none.
	void (*sources)(void *ctx, void (*tell)(void *to, const char *name), void *to);
	void (*expect)(void *ctx, const char *source);
};

struct takeover_conf {
	const char *path; // borrowed; of the socket
	const char *version; // borrowed
	struct takeover_seat seat; // its descriptor is taken, on failure too
	struct event_base *base;
	const struct takeover_ops *ops;
	void *ctx;
	struct takeover_devices devices;
	uint64_t now_ns;
};
// The company of workers at their start.
enum lb_company takeover_first_company(const struct takeover_seat *);
// NULL with reterr.
struct takeover *takeover_new(const struct takeover_conf *, struct lb_err *reterr);
void takeover_free(struct takeover *); // NULL is fine
// Call at each tick; could_serve: there is a configuration.
void takeover_tick(struct takeover *, uint64_t now_ns, bool could_serve);
// Whether an older one serves that we have not asked for its place yet.
bool takeover_is_waiting(const struct takeover *);
// Why we do not ask for it although there is a configuration, "" = we do: for logs, and for the
// older one to tell. Of no effect unless we are waiting.
void takeover_set_lack(struct takeover *, const char *why);
// What a newer process has said so; NULL = nothing. Borrowed until the next tick.
const char *takeover_newer_lacks(const struct takeover *);
// Whether this process takes what is new: from when the older one has given its place to when the
// newer one is given it.
bool takeover_is_in_front(const struct takeover *);
// Whether another process must go before this one, once that has left: its clients would be reset.
// So they would be, if their frames go through a device of ours, at any end of ours.
bool takeover_must_stay(const struct takeover *);

// Whether shunt.yaml may be read anew here, NULL = yes: not while another process that has read it
// as it was gets ready for our place, or we are about to take one. Returns 0, or negative with
// reterr, which says what to do (FL-183).
[[nodiscard]] int takeover_check_reload(const struct takeover *, struct lb_err *reterr);
// Whether operators may change here who serves, NULL = yes: not once the newer one has heard what
// they have changed. Likewise (FL-184).
[[nodiscard]] int takeover_check_change(const struct takeover *, struct lb_err *reterr);

struct takeover_info {
	const char *role; // "waiting", "front", "behind"
	uint32_t generation;
	uint32_t n_behind; // processes
	pid_t older, newer; // 0 = none
	char older_version[TAKEOVER_VERSION], newer_version[TAKEOVER_VERSION];
	// Why the newer of us and the other one does not ask for the place; "" = it does, or needs
	// no reason.
	char lacks[TAKEOVER_LACK];
	uint64_t gap_ns; // while nobody took what is new, when we took the place; 0 = never
	uint64_t n_given, n_failed, n_refused; // newer ones: that serve, that did not, not let in
};
void takeover_info(const struct takeover *, struct takeover_info *ret);
