// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/access_log.h"

#include "ctrl/access_log/format.h"
#include "ctrl/access_log/output.h"
#include "ctrl/access_log/recent.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/access.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUSY_MS 5 // until rings are looked at again: they hold what a busy worker tells meanwhile
#define IDLE_MS 50
#define RETRY_MS 200 // of what cannot be written
#define END_MS 2000
#define LAST_TRIES 5
#define QUIET_NS (10 * NS_PER_SECOND)
#define BATCH 16 // records

struct access_log {
	struct access_log_conf conf;
	struct access_format *format;
	struct access_output *out;
	struct access_recent *recent;
	pthread_t thread;
	bool started;
	int wake_fd; // w: ctrl, r: thread
	int done_fd; // w: thread, r: ctrl: it has ended
	atomic_bool stop, reopen; // w: ctrl, r: thread
	struct lb_access_record batch[BATCH]; // the thread's
	// The control thread's: what was told last.
	uint64_t told_ns, told_dropped;
	int told_error;
};

static void signal_fd(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one)); // a full counter is readable anyway
}

static struct access_view view_of(const struct access_log *l, const struct lb_access_record *r,
	uint32_t worker, uint64_t began_wall_ns)
{
	const struct access_log_frontend *f = &l->conf.frontends[r->frontend];
	return (struct access_view){.record = r,
		.frontend = f->name,
		.local = f->local,
		.worker = worker,
		.began_wall_ns = began_wall_ns};
}

// The thread.

static void put_lines(struct access_log *l, uint32_t worker, uint32_t n, uint64_t wall_offset_ns)
{
	struct access_output *o = l->out;
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_access_record *r = &l->batch[i];
		struct access_view v = view_of(l, r, worker, r->brief.began_ns + wall_offset_ns);
		struct access_line line = {.p = o->buf + o->len, .size = ACCESS_LINE_MAX};
		access_format_write(l->format, &v, &line);
		o->len += line.len;
	}
}

// Takes what there is room for. True = there was something.
static bool take_records(struct access_log *l)
{
	bool some = false;
	uint64_t wall_offset_ns = l->conf.wall_ns() - l->conf.clock_ns();
	for (uint32_t w = 0; w < l->conf.n_workers; w++) {
		uint32_t n = BATCH;
		while (n == BATCH && access_output_room(l->out) >= BATCH * ACCESS_LINE_MAX) {
			n = spsc_read_many(&l->conf.workers[w]->ring, l->batch, BATCH);
			put_lines(l, w, n, wall_offset_ns);
			access_recent_add(l->recent, l->batch, n, w, wall_offset_ns);
			some |= n != 0;
			if (access_output_room(l->out) < BATCH * ACCESS_LINE_MAX)
				access_output_flush(l->out);
		}
	}
	return some;
}

static void wait_for(struct access_log *l, bool writable, int ms)
{
	struct pollfd fds[] = {{.fd = l->wake_fd, .events = POLLIN},
		{.fd = writable ? access_output_fd(l->out) : -1, .events = POLLOUT}};
	if (poll(fds, 2, ms) > 0 && fds[0].revents) {
		uint64_t n;
		(void)!read(l->wake_fd, &n, sizeof(n));
	}
}

static void *log_main(void *arg)
{
	struct access_log *l = arg;
	int idle_ms = BUSY_MS, n_tries = 0;
	for (;;) {
		bool stop = atomic_load_explicit(&l->stop, memory_order_acquire);
		bool some = take_records(l);
		if (atomic_exchange_explicit(&l->reopen, false, memory_order_relaxed))
			access_output_reopen(l->out);
		bool flushed = !access_output_waits(l->out) || access_output_flush(l->out);
		if (stop && !some && flushed)
			break;
		if (!flushed) {
			// What fails is ready for poll(), and is to be tried again later.
			bool fails = atomic_load_explicit(&l->out->error, memory_order_relaxed);
			wait_for(l, !fails, RETRY_MS);
			if (stop && ++n_tries > LAST_TRIES)
				break;
			continue;
		}
		idle_ms = some ? BUSY_MS : idle_ms < IDLE_MS ? idle_ms + BUSY_MS : IDLE_MS;
		if (!stop)
			wait_for(l, false, idle_ms);
	}
	signal_fd(l->done_fd);
	return NULL;
}

// The owner's side.

static int copy_conf(struct access_log *l, const struct access_log_conf *conf)
{
	l->conf = *conf;
	struct access_log_frontend *frontends = calloc(conf->n_frontends, sizeof(*frontends));
	struct lb_access **workers = calloc(conf->n_workers, sizeof(*workers));
	l->conf.frontends = frontends;
	l->conf.workers = workers;
	if (!frontends || !workers)
		return -ENOMEM;
	memcpy(frontends, conf->frontends, conf->n_frontends * sizeof(*frontends));
	memcpy(workers, conf->workers, conf->n_workers * sizeof(*workers));
	return 0;
}

int access_log_new(
	const struct access_log_conf *conf, struct access_log **ret, struct lb_err *reterr)
{
	struct access_log *l = calloc(1, sizeof(*l));
	if (!l)
		return lb_err_set(reterr, "out of memory");
	l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->out = calloc(1, sizeof(*l->out));
	l->recent = access_recent_new();
	int rc = copy_conf(l, conf);
	if (rc || !l->out || !l->recent || l->wake_fd < 0 || l->done_fd < 0)
		rc = lb_err_set(reterr, "out of memory");
	if (!rc) {
		l->out->fd = -1;
		rc = access_output_init(l->out, conf->path, reterr);
	}
	if (!rc)
		rc = access_format_new(conf->text_format, &l->format, reterr);
	if (!rc && pthread_create(&l->thread, NULL, log_main, l))
		rc = lb_err_set(reterr, "no thread");
	l->started = !rc;
	if (!rc)
		*ret = l;
	else
		access_log_free(l);
	return rc;
}

void access_log_free(struct access_log *l)
{
	if (!l)
		return;
	if (l->started) {
		atomic_store_explicit(&l->stop, true, memory_order_release);
		signal_fd(l->wake_fd);
		struct pollfd done = {.fd = l->done_fd, .events = POLLIN};
		// One that hangs in a write to a dead disk keeps what it has: the process ends.
		if (poll(&done, 1, END_MS) != 1) {
			pthread_detach(l->thread);
			return;
		}
		pthread_join(l->thread, NULL);
	}
	if (l->out)
		access_output_fini(l->out);
	free(l->out);
	access_recent_free(l->recent);
	access_format_free(l->format);
	free((void *)(uintptr_t)l->conf.frontends);
	free((void *)(uintptr_t)l->conf.workers);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->done_fd >= 0)
		close(l->done_fd);
	free(l);
}

void access_log_reopen(struct access_log *l)
{
	if (!l)
		return;
	atomic_store_explicit(&l->reopen, true, memory_order_relaxed);
	signal_fd(l->wake_fd);
}

struct access_recent *access_log_recent(const struct access_log *l)
{
	return l->recent;
}

void access_log_print(const struct access_log *l, const struct access_recent_entry *e, bool json,
	struct access_line *line)
{
	const struct access_view v = view_of(l, &e->record, e->worker, e->began_wall_ns);
	if (json)
		access_json_write(line, &v);
	else
		access_format_write(l->format, &v, line);
}

struct access_log_numbers access_log_numbers(const struct access_log *l)
{
	struct access_log_numbers n = {
		.n_lines = atomic_load_explicit(&l->out->n_lines, memory_order_relaxed),
		.n_cut = atomic_load_explicit(&l->out->n_cut, memory_order_relaxed),
		.error = atomic_load_explicit(&l->out->error, memory_order_relaxed),
	};
	for (uint32_t w = 0; w < l->conf.n_workers; w++)
		n.n_ring += counter_read(&l->conf.workers[w]->n_dropped);
	return n;
}

void access_log_look(struct access_log *l, uint64_t now_ns)
{
	if (!l || (l->told_ns && now_ns < l->told_ns + QUIET_NS))
		return;
	struct access_log_numbers n = access_log_numbers(l);
	uint64_t dropped = n.n_ring + n.n_cut;
	if (dropped == l->told_dropped && n.error == l->told_error)
		return;
	const char *path = log_quote(l->conf.path ? l->conf.path : "stdout");
	if (n.error)
		log_warn("access log", "path=%s dropped=%" PRIu64 " error=%s", path,
			dropped - l->told_dropped, log_quote(strerror(n.error)));
	else
		log_warn("access log", "path=%s dropped=%" PRIu64 " text=\"it is written again\"",
			path, dropped - l->told_dropped);
	l->told_ns = now_ns;
	l->told_dropped = dropped;
	l->told_error = n.error;
}
