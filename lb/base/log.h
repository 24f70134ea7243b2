// SPDX-License-Identifier: Apache-2.0
// Log lines for operators: `ts=… level=warn msg="…" key=value …` on stderr, one write each.
// Never on the packet path: workers count, they do not log.
// Thread: any; one sets the level.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level);
// Gets each line of level info and above, whatever the level of the log, in the thread that logs.
// Set before there is another thread; NULL = nobody.
typedef void (*log_sink_fn)(
	void *ctx, uint64_t wall_ns, enum log_level, const char *msg, const char *rest);
void log_set_sink(log_sink_fn, void *ctx);
// Gets each line that is logged, with its end, in the thread that logs. Set before there is another
// thread; NULL = it is written to stderr, and whoever logs waits for who reads that.
typedef void (*log_line_fn)(const char *line, size_t n);
void log_set_line(log_line_fn);
const char *log_level_name(enum log_level);
// msg is a constant sentence; fmt (printf form) makes the key=value part, "" for none. Values that
// may contain blanks or quotes must go through log_quote().
void log_write(enum log_level, const char *msg, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

// Returns "text" with quotes and control bytes escaped, in one of eight buffers of the calling
// thread: enough for the arguments of one log_write().
const char *log_quote(const char *text);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
