// SPDX-License-Identifier: Apache-2.0
// A thread that writes the file of state_dir.h, one job at a time: whoever gives one does not wait
// for the disk.
// Thread: one owner. A job is the writer's from give() until take() returns it.
#pragma once

#include "ctrl/xds/state/state_file.h"

struct xds_state_writer;

struct xds_state_job {
	struct xds_state_image image; // what it points to must not change meanwhile
	// Of the result:
	int rc; // 0, -EFBIG, -ENOMEM or another negative errno; err says why
	size_t len; // of the file that is, or would have been, written
	struct lb_err err;
};

// Copies the path. Returns NULL if out of memory.
struct xds_state_writer *xds_state_writer_new(const char *directory);
// There is no other job.
void xds_state_writer_give(struct xds_state_writer *, struct xds_state_job *);
// The job, if it is done; else NULL.
struct xds_state_job *xds_state_writer_take(struct xds_state_writer *);
// The same, after up to this long. NULL = it is not done, or there is none.
struct xds_state_job *xds_state_writer_wait(struct xds_state_writer *, int max_ms);
// False = it hangs in the disk, and is left behind with its job: the process ends. Else a job that
// was not taken back is the owner's again. NULL is fine.
bool xds_state_writer_free(struct xds_state_writer *);
