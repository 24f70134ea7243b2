// SPDX-License-Identifier: Apache-2.0
#include "lb/base/log.h"

#include "lb/base/time.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Process-wide by nature. w: ctrl (relaxed), r: any thread that logs.
static enum log_level threshold = LOG_LEVEL_INFO;
static struct {
	log_sink_fn put; // NULL = none
	void *ctx;
	log_line_fn line; // NULL = write(2)
} sink; // set before other threads start

void log_set_sink(log_sink_fn put, void *ctx)
{
	sink.put = put;
	sink.ctx = ctx;
}

void log_set_line(log_line_fn line)
{
	sink.line = line;
}

void log_set_level(enum log_level level)
{
	__atomic_store_n(&threshold, level, __ATOMIC_RELAXED);
}

const char *log_level_name(enum log_level level)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	return names[level];
}

const char *log_quote(const char *text)
{
	static _Thread_local char buffers[8][512];
	static _Thread_local unsigned next;
	char *out = buffers[next++ % 8];
	size_t n = 0;
	out[n++] = '"';
	for (; *text && n < sizeof(buffers[0]) - 3; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			out[n++] = '\\';
		out[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
	}
	out[n++] = '"';
	out[n] = 0;
	return out;
}

// Behind the time, level and msg, if there is room. Returns the line's length, which may be more
// than fits.
static size_t put_rest(char *line, size_t n, size_t size, const char *fmt, va_list ap)
{
	if (!fmt[0] || n >= size - 2)
		return n;
	line[n++] = ' ';
	int wanted = vsnprintf(line + n, size - n, fmt, ap);
	return wanted > 0 ? n + (size_t)wanted : n;
}

void log_write(enum log_level level, const char *msg, const char *fmt, ...)
{
	bool is_written = level <= __atomic_load_n(&threshold, __ATOMIC_RELAXED);
	bool is_event = sink.put && level <= LOG_LEVEL_INFO;
	if (!is_written && !is_event)
		return;
	struct timespec now;
	struct tm utc;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	char line[2048];
	size_t n = strftime(line, sizeof(line), "ts=%Y-%m-%dT%H:%M:%S", &utc);
	n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ level=%s msg=\"%s\"",
		now.tv_nsec / (long)NS_PER_MS, log_level_name(level), msg);
	size_t rest = n < sizeof(line) - 2 ? n : sizeof(line) - 2;
	va_list ap;
	va_start(ap, fmt);
	n = put_rest(line, n, sizeof(line), fmt, ap);
	va_end(ap);
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n] = 0;
	if (is_event)
		sink.put(sink.ctx, (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec,
			level, msg, n > rest ? line + rest + 1 : "");
	line[n++] = '\n';
	if (!is_written)
		return;
	if (sink.line) {
		sink.line(line, n);
		return;
	}
	ssize_t ignored = write(STDERR_FILENO, line, n); // one call, so that lines do not mix
	(void)ignored;
}
