// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/output.h"

#include "lb/base/log.h"
#include "lb/base/time.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_NS NS_PER_SECOND // between tries

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

static int open_place(const struct access_output *o)
{
	return access_place_open(&o->place, o->own ? o->own->fd : -1);
}

static int open_first(struct access_output *o, struct lb_err *reterr)
{
	int fd = open_place(o), error = errno;
	if (fd >= 0)
		use(o, fd);
	else if (error == ENXIO)
		set_error(o, ENXIO);
	else
		return lb_err_set(reterr, "%s: %s", access_place_name(&o->place), strerror(error));
	return 0;
}

int access_output_new(const struct access_place *place, bool is_late, struct access_output **ret,
	struct lb_err *reterr)
{
	struct access_output *o = calloc(1, sizeof(*o));
	if (o)
		o->path = place->kind == ACCESS_FILE ? strdup(place->path) : NULL;
	if (!o || (place->kind == ACCESS_FILE && !o->path)) {
		free(o);
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	o->place = (struct access_place){place->kind, o->path, place->below};
	o->is_late = is_late;
	o->fd = -1;
	int rc = is_late ? 0 : open_first(o, reterr);
	if (rc)
		access_output_free(o);
	else
		*ret = o;
	return rc;
}

static void shut(struct access_output *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

void access_output_free(struct access_output *o)
{
	if (!o)
		return;
	shut(o);
	free(o->path);
	free(o);
}

// The rest of a line whose beginning somebody else has.
static void drop_rest_of_line(struct access_output *o)
{
	if (!o->mid_line)
		return;
	const char *end = memchr(o->buf + o->sent, '\n', o->len - o->sent);
	o->sent = end ? (size_t)(end - o->buf) + 1 : o->len;
	o->mid_line = false;
	counter_add(&o->n_cut, 1);
}

void access_output_open(struct access_output *o, uint64_t now_ns)
{
	if (o->fd >= 0 || (o->is_late ? now_ns < o->open_ns : !access_output_waits(o)))
		return;
	int fd = open_place(o);
	set_error(o, fd < 0 ? errno : 0);
	o->open_ns = now_ns + OPEN_NS;
	if (fd >= 0)
		use(o, fd);
}

void access_output_close(struct access_output *o)
{
	shut(o);
	counter_add(&o->n_cut, access_output_n_waiting(o));
	o->sent = o->len = 0;
	o->mid_line = false;
	o->open_ns = 0;
	set_error(o, 0);
}

void access_output_reopen(struct access_output *o)
{
	if (!o->path)
		return;
	if (o->is_late && o->fd < 0) {
		o->open_ns = 0;
		return;
	}
	if (o->fd >= 0)
		access_output_flush(o); // to the end of a line, at least
	int fd = open_place(o);
	if (fd < 0) {
		log_error("access log", "file=%s error=%s text=\"reopening failed\"",
			log_quote(o->path), log_quote(access_place_error(errno)));
		return;
	}
	shut(o);
	drop_rest_of_line(o);
	use(o, fd);
	log_info("access log", "file=%s text=\"reopened\"", log_quote(o->path));
}

static uint64_t count_lines(const char *at, const char *end)
{
	uint64_t n = 0;
	for (const char *p = at; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
		n++;
	return n;
}

uint64_t access_output_n_waiting(const struct access_output *o)
{
	return count_lines(o->buf + o->sent, o->buf + o->len);
}

static void note_written(struct access_output *o, size_t n)
{
	const char *at = o->buf + o->sent, *end = at + n;
	uint64_t n_lines = count_lines(at, end);
	o->mid_line = end[-1] != '\n';
	o->sent += n;
	counter_add(&o->n_lines, n_lines);
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
	if (o->fd < 0)
		return false;
	while (access_output_waits(o)) {
		ssize_t n = write_some(o);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int error = n < 0 ? errno : EIO;
			if (error != EAGAIN)
				set_error(o, error);
			if (error == EPIPE && o->path) {
				shut(o);
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
