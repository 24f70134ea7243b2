// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/file.h"

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

struct file {
	struct access_output base; // its fd is -1 for a FIFO without a reader, and for what is late
	bool is_late;
	uint64_t open_ns; // late, or moved: when to try to open it again
	bool is_moved; // its path may be another file, and is to be opened again
	bool is_file; // takes what there is at once
	bool mid_line; // what was written last is not the end of a line
	size_t sent; // of the buffer
};

static struct file *of(struct access_output *o)
{
	return (struct file *)o;
}

static void forget_move(struct file *f)
{
	f->is_moved = false;
	atomic_store_explicit(&f->base.reopen_error, 0, memory_order_relaxed);
}

static void use(struct file *f, int fd)
{
	struct stat s;
	forget_move(f);
	f->base.fd = fd;
	f->is_file = fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

static int open_place(const struct file *f)
{
	return access_place_open(&f->base.place, f->base.own ? f->base.own->fd : -1);
}

static int open_first(struct file *f, struct lb_err *reterr)
{
	int fd = open_place(f), error = errno;
	if (fd >= 0)
		use(f, fd);
	else if (error == ENXIO)
		access_output_set_error(&f->base, ENXIO);
	else
		return lb_err_set(
			reterr, "%s: %s", access_place_name(&f->base.place), strerror(error));
	return 0;
}

static void shut(struct file *f)
{
	if (f->base.fd >= 0)
		close(f->base.fd);
	f->base.fd = -1;
}

static void file_free(struct access_output *o)
{
	shut(of(o));
	access_output_fini(o);
	free(o);
}

static bool file_waits(const struct access_output *o)
{
	const struct file *f = (const struct file *)o;
	return f->sent < o->len;
}

// The rest of a line whose beginning somebody else has.
static void drop_rest_of_line(struct file *f)
{
	struct access_output *o = &f->base;
	if (!f->mid_line)
		return;
	const char *end = memchr(o->buf + f->sent, '\n', o->len - f->sent);
	f->sent = end ? (size_t)(end - o->buf) + 1 : o->len;
	f->mid_line = false;
	counter_add(&o->n_cut, 1);
}

static uint64_t count_lines(const char *at, const char *end)
{
	uint64_t n = 0;
	for (const char *p = at; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
		n++;
	return n;
}

static uint64_t file_n_waiting(const struct access_output *o)
{
	const struct file *f = (const struct file *)o;
	return count_lines(o->buf + f->sent, o->buf + o->len);
}

static void file_close(struct access_output *o)
{
	struct file *f = of(o);
	shut(f);
	counter_add(&o->n_cut, file_n_waiting(o));
	f->sent = o->len = 0;
	f->mid_line = false;
	f->open_ns = 0;
	forget_move(f);
	access_output_set_error(o, 0);
}

static void note_written(struct file *f, size_t n)
{
	const char *at = f->base.buf + f->sent, *end = at + n;
	uint64_t n_lines = count_lines(at, end);
	f->mid_line = end[-1] != '\n';
	f->sent += n;
	counter_add(&f->base.n_lines, n_lines);
}

// What is behind stdout may block, but for so little when poll() says that there is room.
static ssize_t write_some(struct file *f)
{
	const struct access_output *o = &f->base;
	size_t n = o->len - f->sent;
	struct pollfd ready = {.fd = o->fd, .events = POLLOUT};
	if (!f->is_file && n > PIPE_BUF)
		n = PIPE_BUF;
	if (!o->place.path && !f->is_file && poll(&ready, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	return write(o->fd, o->buf + f->sent, n);
}

static bool file_flush(struct access_output *o)
{
	struct file *f = of(o);
	bool some = false;
	if (o->fd < 0)
		return !file_waits(o);
	while (file_waits(o)) {
		ssize_t n = write_some(f);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int error = n < 0 ? errno : EIO;
			if (error != EAGAIN)
				access_output_set_error(o, error);
			if (error == EPIPE && o->place.path) {
				shut(f);
				drop_rest_of_line(f);
			}
			return some;
		}
		some = true;
		access_output_set_error(o, 0);
		note_written(f, (size_t)n);
	}
	f->sent = o->len = 0;
	return true;
}

static void tell_unopened(struct access_output *o, int error)
{
	counter_add(&o->n_unopened, 1);
	if (atomic_exchange_explicit(&o->reopen_error, error, memory_order_relaxed) != error)
		log_error("access log",
			"file=%s error=%s text=\"reopening failed; lines go on into the file that "
			"is open, and it is tried each second\"",
			log_quote(o->place.path), log_quote(access_place_error(error)));
}

// Until the path can be opened, the file that is open is written: nothing is lost.
static void replace(struct file *f, uint64_t now_ns)
{
	struct access_output *o = &f->base;
	file_flush(o); // to the end of a line, at least
	int fd = open_place(f);
	f->open_ns = now_ns + OPEN_NS;
	if (fd < 0) {
		tell_unopened(o, errno);
		return;
	}
	shut(f);
	drop_rest_of_line(f);
	use(f, fd);
	log_info("access log", "file=%s text=\"reopened\"", log_quote(o->place.path));
}

static void file_open(struct access_output *o, uint64_t now_ns)
{
	struct file *f = of(o);
	if (o->fd >= 0 && f->is_moved && now_ns >= f->open_ns)
		replace(f, now_ns);
	if (o->fd >= 0 || (f->is_late ? now_ns < f->open_ns : !file_waits(o)))
		return;
	int fd = open_place(f);
	access_output_set_error(o, fd < 0 ? errno : 0);
	f->open_ns = now_ns + OPEN_NS;
	if (fd >= 0)
		use(f, fd);
}

// The writer's next round opens it, if it is open, or else when it is due.
static void file_reopen(struct access_output *o)
{
	struct file *f = of(o);
	if (!o->place.path)
		return;
	f->is_moved = true;
	f->open_ns = 0;
}

static const struct access_output_kind kind = {
	.free = file_free,
	.open = file_open,
	.close = file_close,
	.reopen = file_reopen,
	.waits = file_waits,
	.flush = file_flush,
	.n_waiting = file_n_waiting,
};

int access_file_new(const struct access_place *place, bool is_late, struct access_output **ret,
	struct lb_err *reterr)
{
	struct file *f = calloc(1, sizeof(*f));
	if (!f) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	f->is_late = is_late;
	f->base.events = POLLOUT;
	int rc = access_output_init(&f->base, &kind, place, reterr);
	if (!rc && !is_late)
		rc = open_first(f, reterr);
	if (rc)
		file_free(&f->base);
	else
		*ret = &f->base;
	return rc;
}
