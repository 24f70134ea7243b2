// SPDX-License-Identifier: Apache-2.0
// What runs where every system call kills and no memory is to be had: as workers must be able to.
// Thread: one.
#pragma once

#include <stdbool.h>

// In a child of its own. True = work() returned true, made no system call and allocated nothing.
// What cannot be found out is not asked for: in a sanitizer's build work() runs as it is, and where
// there is no seccomp the test is skipped.
bool confined_run(bool (*work)(void *user), void *user);
