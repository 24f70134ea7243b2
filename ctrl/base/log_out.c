// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/log_out.h"

#include "lb/base/log.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// One for the process, as stderr is.
static struct {
	pthread_mutex_t mutex; // so that nobody takes the room that another has found
	uint64_t n_lost; // w: who has the mutex, r: any
	uint64_t n_told; // of these
} out = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// Returns false where it would wait. A pipe, a socket or a terminal that is said to be writable
// takes a line, which is shorter than PIPE_BUF.
static bool write_line(const char *line, size_t n)
{
	struct pollfd to = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (poll(&to, 1, 0) != 1 || !(to.revents & POLLOUT))
		return false;
	return write(STDERR_FILENO, line, n) == (ssize_t)n; // one call, so that lines do not mix
}

// At the time of this line.
static bool tell_lost(const char *line)
{
	char told[128];
	int n = snprintf(told, sizeof(told),
		"%.*s level=warn msg=\"log lines lost\" lines=%" PRIu64 "\n",
		(int)strcspn(line, " "), line, out.n_lost - out.n_told);
	if (n <= 0 || n >= (int)sizeof(told) || !write_line(told, (size_t)n))
		return false;
	out.n_told = out.n_lost;
	return true;
}

static void write_or_lose(const char *line, size_t n)
{
	pthread_mutex_lock(&out.mutex);
	if ((out.n_lost != out.n_told && !tell_lost(line)) || !write_line(line, n))
		__atomic_store_n(&out.n_lost, out.n_lost + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&out.mutex);
}

void log_out_begin(void)
{
	log_set_line(write_or_lose);
}

uint64_t log_out_lost(void)
{
	return __atomic_load_n(&out.n_lost, __ATOMIC_RELAXED);
}
