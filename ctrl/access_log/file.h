// SPDX-License-Identifier: Apache-2.0
// An output that is a file, a FIFO or a stream of the process. What could not be written waits, and
// is written first. Only of a reader that goes in the middle of a line is the rest of that line
// lost.
// Thread: as outputs.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct access_output;
struct access_place;

// Opens the place, whose path is copied and whose directory is borrowed, unless it is late: then
// the writer opens it, and closes it when it goes. 0, -ENOMEM or -EINVAL with reterr; a FIFO that
// nobody reads is no error.
[[nodiscard]] int access_file_new(const struct access_place *, bool is_late,
	struct access_output **ret, struct lb_err *reterr);
