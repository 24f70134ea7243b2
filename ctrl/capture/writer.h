// SPDX-License-Identifier: Apache-2.0
// The thread that writes the file of one packet capture, from all workers' rings: it opens it,
// turns records into blocks, ends at the bounds that were given, and closes it. If the disk is
// slow, this thread alone waits: rings fill, and workers count what they drop (OPS-103).
// Thread: ctrl, but for that thread.
#pragma once

#include "lb/base/counter.h"
#include "lb/pick/capture.h"

#include <stdbool.h>
#include <stdint.h>

struct access_place;
struct capture_writer;
struct tlshs_keylog;

struct capture_port {
	const char *name, *device; // both are copied
	uint8_t mac[6];
};

// Whatever comes first ends it.
struct capture_bounds {
	uint64_t n_frames; // that are written; UINT64_MAX = any number
	uint64_t n_bytes; // of the file
	uint64_t ns; // from when the file is open
};

struct capture_writer_conf {
	const struct access_place *place; // its texts are copied
	const char *application, *comment; // of the file; copied
	struct lb_capture *const *workers; // copied; these capture nothing yet
	uint32_t n_workers;
	const struct capture_port *ports; // copied
	uint32_t n_ports;
	struct counter_set net, tcp; // whose names are the causes of drops
	struct capture_bounds bounds;
	struct tlshs_keylog *keys; // borrowed: its lines go into the file; NULL = none do
	uint32_t snaplen;
	uint64_t (*clock_ns)(void); // the workers'
	uint64_t (*wall_ns)(void); // since 1970
};

enum capture_phase {
	CAPTURE_OPENING,
	CAPTURE_RUNS, // the file is open: workers may begin
	CAPTURE_OVER, // nothing more is written: workers may stop
	CAPTURE_DONE, // the file is closed, or could not be opened
};
enum capture_end { CAPTURE_STOPPED, CAPTURE_COUNT, CAPTURE_SIZE, CAPTURE_SECONDS, CAPTURE_FAILED };

// Starts the thread. Returns 0 or -errno: for want of memory, of descriptors (EMFILE), of a thread
// (EAGAIN).
[[nodiscard]] int capture_writer_new(
	const struct capture_writer_conf *, struct capture_writer **ret);
enum capture_phase capture_writer_phase(const struct capture_writer *);
// Workers capture no more: writes what the rings hold still, and closes the file.
void capture_writer_finish(struct capture_writer *);
// Waits for the thread, once it is DONE or is to finish: two seconds at most, since the process
// may end. NULL is fine.
void capture_writer_free(struct capture_writer *);

struct capture_numbers {
	uint64_t n_frames, n_bytes; // written
	uint64_t n_dropped; // frames that were wanted, and found the ring full
	uint64_t ns; // since the file was open, until it was over
	enum capture_end end; // of what is OVER or DONE
	int error; // errno; FAILED
};
struct capture_numbers capture_writer_numbers(const struct capture_writer *);
// Frees it likewise, and tells what it had written by its end.
struct capture_numbers capture_writer_close(struct capture_writer *);
