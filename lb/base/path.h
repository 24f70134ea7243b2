// SPDX-License-Identifier: Apache-2.0
// Files of a host whose root may be another folder, as tests have it.
// Thread: any.
#pragma once

#include <limits.h>

// root, and what fmt prints behind it; cut at PATH_MAX. Returns ret.
const char *path_under(const char *root, char ret[PATH_MAX], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
