// SPDX-License-Identifier: Apache-2.0
// Packet captures (docs/capture.md), one at a time: what an operator asks for goes to the workers
// as commands, what they copy is written by a thread of its own (writer.h), and whatever ends it
// first is brought to both. Nothing here waits.
// Thread: ctrl.
#pragma once

#include "ctrl/capture/writer.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct capture;
struct config;
struct show_port;
struct tlshs_keylog;
struct workers;

#define CAPTURE_FRAMES_MOST UINT64_C(1000000000)
#define CAPTURE_SECONDS_FALLBACK 60
#define CAPTURE_SECONDS_MOST 86400
#define CAPTURE_MB_FALLBACK 100
#define CAPTURE_MB_MOST 100000

struct capture_conf { // all borrowed, outlives it; `capture.directory` is set
	const struct config *config;
	struct workers *workers; // whose links have captures
	const struct show_port *ports; // of the configuration
	uint64_t (*clock_ns)(void); // the workers'
	uint64_t (*wall_ns)(void); // since 1970
	struct tlshs_keylog *keys; // NULL = there are none to be had
};

struct capture_ask {
	const char *path; // of the file; from the directory on if it is not one from the root
	const char *words; // what else was asked for; goes into the file
	struct lb_capture_ask frames;
	struct capture_bounds bounds;
	bool with_keys; // of TLS: those of all handshakes meanwhile, whatever frames are wanted
};

struct capture_report {
	// "off", "opening" until all workers copy frames, "on", "ending"; static
	const char *state;
	const char *file; // of the capture at hand, or of the last one; "" = there was none
	const char *ended; // why it did; "" = it has not, or there was none; static
	struct capture_numbers numbers; // all 0 = there was none
	bool with_keys;
	uint64_t n_keys, n_keys_lost; // lines of keys: told, and without room
};

struct capture *capture_new(const struct capture_conf *); // NULL = out of memory
// Workers have stopped, and their links are still there. NULL is fine.
void capture_free(struct capture *);

// 0: it is "opening", and becomes "on", or "off" with an end of CAPTURE_FAILED. Or -EINVAL with
// reterr, also for lack of memory: there is one already, or the path is not to be had.
[[nodiscard]] int capture_start(
	struct capture *, const struct capture_ask *, struct lb_err *reterr);
// 0: it is "ending", and becomes "off" once the file is whole. Or -EINVAL with reterr.
[[nodiscard]] int capture_stop(struct capture *, struct lb_err *reterr);
// Call at every tick; NULL is fine.
void capture_tick(struct capture *);
// Texts are valid until the next call of any function.
struct capture_report capture_report(const struct capture *);
