// SPDX-License-Identifier: Apache-2.0
#include "ctrl/ending.h"

#include "lb/base/log.h"
#include "lb/base/time.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// One for the process, whose end there is one of.
static struct {
	_Atomic(const char *) part; // w: ctrl, r: the thread
	// Set before there is a thread.
	struct timespec rest; // between looks
	void (*beat)(void); // NULL = nobody waits
} ending = {.part = "what follows the drain"};

// It counts looks and reads no clock: a host that has no time for us has none for it, either.
static void *look_on(void *arg)
{
	const char *part = NULL;
	for (unsigned n = 0, next = ENDING_LATE; n < ENDING_MOST; n++) {
		const char *now = atomic_load_explicit(&ending.part, memory_order_relaxed);
		if (now != part) {
			part = now;
			n = 0;
			next = ENDING_LATE;
		} else if (n == next) {
			log_warn("stopping", "reason=\"still waiting\" waiting_for=%s looks=%u",
				log_quote(part), n);
			next *= 2;
		}
		if (ending.beat)
			ending.beat();
		nanosleep(&ending.rest, NULL);
	}
	log_error("stopping", "reason=\"given up\" waiting_for=%s", log_quote(part));
	_exit(EXIT_FAILURE); // exit() would wait for the same
}

void ending_begin(uint32_t look_ms, void (*beat)(void))
{
	sigset_t all, before;
	pthread_t thread;
	uint64_t ns = look_ms * NS_PER_MS;
	ending.beat = beat;
	ending.rest = (struct timespec){(time_t)(ns / NS_PER_SECOND), (long)(ns % NS_PER_SECOND)};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, look_on, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void ending_part(const char *name)
{
	atomic_store_explicit(&ending.part, name, memory_order_relaxed);
}
