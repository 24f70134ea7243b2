// SPDX-License-Identifier: Apache-2.0
// The control thread's event loop (libevent) and clock. A tick every few milliseconds advances the
// timing wheel and reads the workers' rings, since a worker never makes a system call to wake the
// loop.
// Thread: ctrl.
#pragma once

#include "lb/base/twheel.h"

#include <stdint.h>

struct event_base;
struct loop;

// Returns NULL if out of memory or without an event backend.
struct loop *loop_new(void);
void loop_free(struct loop *);
struct event_base *loop_base(struct loop *);
struct twheel *loop_wheel(struct loop *);
// Sets the only function that is called every tick, after the wheel has advanced.
void loop_set_tick(struct loop *, void (*fn)(void *arg), void *arg);
// Calls fn whenever fd is readable, until loop_unwatch_fd(). 0 or -ENOMEM.
[[nodiscard]] int loop_watch_fd(struct loop *, int fd, void (*fn)(void *arg), void *arg);
void loop_unwatch_fd(struct loop *, int fd); // before it is closed
// Calls fn on each such signal. 0 or -ENOMEM.
[[nodiscard]] int loop_watch_signal(struct loop *, int number, void (*fn)(void *arg), void *arg);
// Runs until loop_stop().
void loop_run(struct loop *);
void loop_stop(struct loop *);

// Monotonic nanoseconds; the loop reads the clock, everything else uses loop_wheel()'s time.
uint64_t loop_clock_ns(void);
// Nanoseconds since 1970, for what people and certificates call a time.
uint64_t loop_wall_ns(void);
