// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/output.h"

#include "lb/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_path(const struct access_output *o)
{
	if (!o->path)
		return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	// O_NONBLOCK: a FIFO without a reader, or with a slow one, is not waited for.
	return open(
		o->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
}

static void use(struct access_output *o, int fd)
{
	struct stat s;
	o->fd = fd;
	o->is_file = fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

static void set_error(struct access_output *o, int error)
{
	atomic_store_explicit(&o->error, error, memory_order_relaxed);
}

int access_output_init(struct access_output *o, const char *path, struct lb_err *reterr)
{
	o->path = path;
	o->fd = -1;
	int fd = open_path(o);
	if (fd >= 0)
		use(o, fd);
	else if (errno == ENXIO)
		set_error(o, ENXIO);
	else
		return lb_err_set(reterr, "%s: %s", path ? path : "stdout", strerror(errno));
	return 0;
}

void access_output_fini(struct access_output *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

// The rest of a line whose beginning somebody else has.
static void drop_rest_of_line(struct access_output *o)
{
	if (!o->mid_line)
		return;
	const char *end = memchr(o->buf + o->sent, '\n', o->len - o->sent);
	o->sent = end ? (size_t)(end - o->buf) + 1 : o->len;
	o->mid_line = false;
	atomic_fetch_add_explicit(&o->n_cut, 1, memory_order_relaxed);
}

void access_output_reopen(struct access_output *o)
{
	if (!o->path)
		return;
	if (o->fd >= 0)
		access_output_flush(o); // to the end of a line, at least
	int fd = open_path(o);
	if (fd < 0) {
		log_error("access log", "file=%s error=%s text=\"reopening failed\"",
			log_quote(o->path), log_quote(strerror(errno)));
		return;
	}
	access_output_fini(o);
	drop_rest_of_line(o);
	use(o, fd);
	log_info("access log", "file=%s text=\"reopened\"", log_quote(o->path));
}

static void note_written(struct access_output *o, size_t n)
{
	uint64_t n_lines = 0;
	const char *at = o->buf + o->sent, *end = at + n;
	for (const char *p = at; (p = memchr(p, '\n', (size_t)(end - p))); p++)
		n_lines++;
	o->mid_line = end[-1] != '\n';
	o->sent += n;
	atomic_fetch_add_explicit(&o->n_lines, n_lines, memory_order_relaxed);
}

// What is behind stdout may block, but for so little when poll() says that there is room.
static ssize_t write_some(struct access_output *o)
{
	size_t n = o->len - o->sent;
	struct pollfd ready = {.fd = o->fd, .events = POLLOUT};
	if (!o->is_file && n > PIPE_BUF)
		n = PIPE_BUF;
	if (!o->path && !o->is_file && poll(&ready, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	return write(o->fd, o->buf + o->sent, n);
}

bool access_output_flush(struct access_output *o)
{
	bool some = false;
	if (o->fd < 0) {
		int fd = open_path(o);
		if (fd < 0) {
			set_error(o, errno);
			return false;
		}
		use(o, fd);
	}
	while (access_output_waits(o)) {
		ssize_t n = write_some(o);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int error = n < 0 ? errno : EIO;
			if (error != EAGAIN)
				set_error(o, error);
			if (error == EPIPE && o->path) {
				access_output_fini(o);
				drop_rest_of_line(o);
			}
			return some;
		}
		some = true;
		set_error(o, 0);
		note_written(o, (size_t)n);
	}
	o->sent = o->len = 0;
	return true;
}
