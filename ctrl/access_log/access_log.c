// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/access_log.h"

#include "ctrl/access_log/format.h"
#include "ctrl/access_log/logs.h"
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
#define LAST_NS NS_PER_SECOND // for what waits when the process ends
#define QUIET_NS (10 * NS_PER_SECOND)
#define BATCH 16 // records

// A frontend whose name or address has changed. The one before stays: what was told of it keeps it.
struct renamed {
	struct renamed *older;
	struct access_log_frontend is;
};

struct access_log {
	struct access_log_conf conf;
	struct access_logs *logs;
	struct access_recent *recent;
	pthread_t thread;
	bool started;
	int wake_fd; // w: ctrl, r: thread
	int done_fd; // w: thread, r: ctrl: it has ended
	atomic_bool stop, reopen; // w: ctrl, r: thread
	// [n_frontends] owned; conf's, or of `renamed`. w: ctrl (release), r: thread (acquire)
	const struct access_log_frontend *_Atomic *frontends;
	struct renamed *renamed; // owned, the newest first
	struct lb_access_record batch[BATCH]; // the thread's, as `of`: their frontends
	const struct access_log_frontend *of[BATCH];
	struct access_logs_now now; // the thread's
	uint32_t first; // the thread's: its next round begins with that worker
	uint64_t told_ns, told_ring; // the control thread's: what was told last of the rings
};

static void signal_fd(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one)); // a full counter is readable anyway
}

static struct access_view view_of(const struct access_log_frontend *f,
	const struct lb_access_record *r, uint32_t worker, uint64_t began_wall_ns)
{
	return (struct access_view){.record = r,
		.frontend = f->name,
		.local = f->local,
		.worker = worker,
		.began_wall_ns = began_wall_ns};
}

// The thread.

static void put_lines(struct access_log *l, uint32_t worker, uint32_t n, uint64_t wall_offset_ns)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_access_record *r = &l->batch[i];
		l->of[i] = atomic_load_explicit(&l->frontends[r->frontend], memory_order_acquire);
		const struct access_view v =
			view_of(l->of[i], r, worker, r->brief.began_ns + wall_offset_ns);
		access_logs_write(l->logs, &v);
	}
}

// Records stay in the rings only while no output has room: of several, one that is stuck loses
// lines and the others go on. Without any output, records are of logs that are gone.
static bool has_room(const struct access_log *l)
{
	uint32_t i = 0;
	while (i < l->now.n && access_output_room(l->now.outputs[i]) < BATCH * ACCESS_LINE_MAX)
		i++;
	return i < l->now.n || !l->now.n;
}

static void make_room(struct access_log *l)
{
	for (uint32_t i = 0; i < l->now.n; i++)
		if (access_output_room(l->now.outputs[i]) < BATCH * ACCESS_LINE_MAX)
			access_output_flush(l->now.outputs[i]);
}

// What a round through the rings came to.
struct round {
	bool some; // it had records
	bool all; // none is left of what the rings held at its beginning
	bool more; // a ring had as many as it holds, and may have others by now
};

// Takes what there is room for of a worker's ring, at most as many as that holds: a fast worker may
// fill it for as long as a slow disk takes lines.
static void take_ring(
	struct access_log *l, uint32_t w, uint64_t wall_offset_ns, struct round *round)
{
	uint32_t n = BATCH, taken = 0;
	while (n == BATCH && taken < LB_ACCESS_RECORDS && has_room(l)) {
		n = spsc_read_many(&l->conf.workers[w]->ring, l->batch, BATCH);
		put_lines(l, w, n, wall_offset_ns);
		access_recent_add(l->recent, l->batch, l->of, n, w, wall_offset_ns);
		make_room(l);
		taken += n;
	}
	if (taken) {
		round->some = true;
		l->first = w + 1;
	}
	round->more |= taken >= LB_ACCESS_RECORDS;
	round->all &= n < BATCH || taken >= LB_ACCESS_RECORDS;
}

// Where there is not room for all, the next round begins behind the last worker that had some.
static struct round take_records(struct access_log *l)
{
	struct round round = {.all = true};
	uint64_t wall_offset_ns = l->conf.wall_ns() - l->conf.clock_ns();
	uint32_t first = l->first;
	for (uint32_t i = 0; i < l->conf.n_workers; i++)
		take_ring(l, (first + i) % l->conf.n_workers, wall_offset_ns, &round);
	return round;
}

static bool flush(struct access_log *l)
{
	bool all = true;
	uint64_t now_ns = l->conf.clock_ns();
	for (uint32_t i = 0; i < l->now.n; i++) {
		struct access_output *o = l->now.outputs[i];
		access_output_open(o, now_ns);
		all &= access_output_flush(o);
	}
	return all;
}

static void finish(struct access_log *l, uint64_t *stopped_ns)
{
	if (!*stopped_ns)
		*stopped_ns = l->conf.clock_ns();
	for (uint32_t i = 0; i < l->now.n; i++)
		access_output_finish(l->now.outputs[i], true);
}

static void reopen(struct access_log *l)
{
	for (uint32_t i = 0; i < l->now.n; i++)
		access_output_reopen(l->now.outputs[i]);
}

// What fails is ready for poll(), and is to be tried again later.
static bool is_awaited(const struct access_output *o)
{
	return access_output_waits(o) && !atomic_load_explicit(&o->error, memory_order_relaxed);
}

static void wait_for(struct access_log *l, int ms)
{
	struct pollfd fds[1 + ACCESS_LOGS] = {{.fd = l->wake_fd, .events = POLLIN}};
	nfds_t n_fds = 1;
	for (uint32_t i = 0; i < l->now.n; i++)
		if (is_awaited(l->now.outputs[i]))
			fds[n_fds++] = (struct pollfd){
				.fd = l->now.outputs[i]->fd, .events = l->now.outputs[i]->events};
	if (poll(fds, n_fds, ms) > 0 && fds[0].revents) {
		uint64_t n;
		(void)!read(l->wake_fd, &n, sizeof(n));
	}
}

static void *log_main(void *arg)
{
	struct access_log *l = arg;
	int idle_ms = BUSY_MS;
	uint64_t stopped_ns = 0;
	for (;;) {
		bool stop = atomic_load_explicit(&l->stop, memory_order_acquire);
		access_logs_look(l->logs, &l->now);
		const struct round round = take_records(l);
		if (atomic_exchange_explicit(&l->reopen, false, memory_order_relaxed))
			reopen(l);
		if (stop)
			finish(l, &stopped_ns);
		bool flushed = flush(l);
		if (round.all)
			access_logs_let_go(l->logs, &l->now, l->conf.clock_ns());
		if (stop && !round.some && flushed)
			break;
		if (!flushed) {
			wait_for(l, l->now.n > 1 && !stop ? BUSY_MS : RETRY_MS); // others go on
			if (stop && l->conf.clock_ns() - stopped_ns > LAST_NS)
				break;
			continue;
		}
		idle_ms = round.some ? BUSY_MS : idle_ms < IDLE_MS ? idle_ms + BUSY_MS : IDLE_MS;
		if (!stop && !round.more)
			wait_for(l, idle_ms);
	}
	signal_fd(l->done_fd);
	return NULL;
}

// The owner's side.

// A list without entries has a byte.
static void *copy(const void *list, size_t n, size_t size)
{
	void *made = calloc(n + 1, size);
	if (made && n)
		memcpy(made, list, n * size);
	return made;
}

static int copy_conf(struct access_log *l, const struct access_log_conf *conf)
{
	const struct access_logs_conf *logs = &conf->logs;
	l->conf = *conf;
	l->conf.frontends = copy(conf->frontends, conf->n_frontends, sizeof(*conf->frontends));
	l->conf.workers = copy(conf->workers, conf->n_workers, sizeof(*conf->workers));
	l->conf.logs.node.bytes = copy(logs->node.bytes, logs->node.len, 1);
	l->conf.logs.xds_collectors =
		copy(logs->xds_collectors, logs->n_xds_collectors, sizeof(*logs->xds_collectors));
	l->frontends = calloc((size_t)conf->n_frontends + 1, sizeof(l->frontends[0]));
	for (uint32_t i = 0; l->frontends && l->conf.frontends && i < conf->n_frontends; i++)
		atomic_init(&l->frontends[i], &l->conf.frontends[i]);
	bool all = l->frontends && l->conf.frontends && l->conf.workers &&
	           l->conf.logs.node.bytes && l->conf.logs.xds_collectors;
	return all ? 0 : -ENOMEM;
}

int access_log_new(
	const struct access_log_conf *conf, struct access_log **ret, struct lb_err *reterr)
{
	struct access_log *l = calloc(1, sizeof(*l));
	if (!l)
		return lb_err_set(reterr, "out of memory");
	l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->recent = access_recent_new();
	int rc = copy_conf(l, conf);
	if (rc || !l->recent || l->wake_fd < 0 || l->done_fd < 0)
		rc = lb_err_set(reterr, "out of memory");
	if (!rc)
		rc = access_logs_new(&l->conf.logs, &l->logs, reterr);
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
	access_logs_free(l->logs);
	access_recent_free(l->recent);
	free((void *)(uintptr_t)l->frontends);
	for (struct renamed *r = l->renamed, *older; r; r = older) {
		older = r->older;
		free(r);
	}
	free((void *)(uintptr_t)l->conf.frontends);
	free((void *)(uintptr_t)l->conf.workers);
	free((void *)(uintptr_t)l->conf.logs.node.bytes);
	free((void *)(uintptr_t)l->conf.logs.xds_collectors);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->done_fd >= 0)
		close(l->done_fd);
	free(l);
}

static bool is_same(const struct access_log_frontend *a, const struct access_log_frontend *b)
{
	return strcmp(a->name, b->name) == 0 && ip_port_eq(&a->local, &b->local);
}

void access_log_rename(
	struct access_log *l, uint32_t frontend, const struct access_log_frontend *is)
{
	if (!l || is_same(atomic_load_explicit(&l->frontends[frontend], memory_order_relaxed), is))
		return;
	struct renamed *r = malloc(sizeof(*r));
	if (!r) // it goes by the name that it had
		return;
	*r = (struct renamed){l->renamed, *is};
	l->renamed = r;
	atomic_store_explicit(&l->frontends[frontend], &r->is, memory_order_release);
}

struct lb_access_set *access_log_want(struct access_log *l, const struct access_want *wants,
	uint32_t n, access_refused_fn *tell, void *ctx)
{
	for (uint32_t i = 0; !l && i < n; i++)
		tell(ctx, i, "shunt.yaml permits listeners no access log (access_log)", false);
	return l ? access_logs_want(l->logs, wants, n, tell, ctx) : NULL;
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
	const struct access_view v = view_of(e->frontend, &e->record, e->worker, e->began_wall_ns);
	const struct access_format *format = access_logs_own_format(l->logs);
	if (json || !format)
		access_json_write(line, &v);
	else
		access_format_write(format, &v, line);
}

static uint64_t n_ring(const struct access_log *l)
{
	uint64_t n = 0;
	for (uint32_t w = 0; w < l->conf.n_workers; w++)
		n += counter_read(&l->conf.workers[w]->n_dropped);
	return n;
}

struct access_log_numbers access_log_numbers(const struct access_log *l)
{
	const struct access_logs_totals t = access_logs_totals(l->logs);
	return (struct access_log_numbers){.n_lines = t.n_lines,
		.n_ring = n_ring(l),
		.n_cut = t.n_cut,
		.n_failed = t.n_failed,
		.n_unopened = t.n_unopened,
		.error = t.error,
		.reopen_error = t.reopen_error};
}

// What there is to say of one output. What the rings dropped is said once, of the first.
struct news {
	uint64_t now_ns;
	uint64_t n_ring; // more than was said so far
};

static bool is_quiet(uint64_t told_ns, uint64_t now_ns)
{
	return told_ns && now_ns < told_ns + QUIET_NS;
}

static void tell_output(void *ctx, struct access_output *o)
{
	struct news *news = ctx;
	if (is_quiet(o->told_ns, news->now_ns))
		return;
	uint64_t cut = counter_read(&o->n_cut) + counter_read(&o->n_failed);
	uint64_t dropped = cut - o->told_cut + news->n_ring;
	int error = atomic_load_explicit(&o->error, memory_order_relaxed);
	if (!dropped && error == o->told_error)
		return;
	const char *path = log_quote(access_place_name(&o->place));
	if (error)
		log_warn("access log", "path=%s dropped=%" PRIu64 " error=%s", path, dropped,
			log_quote(access_place_error(error)));
	else
		log_warn("access log", "path=%s dropped=%" PRIu64 " text=\"it is written again\"",
			path, dropped);
	o->told_ns = news->now_ns;
	o->told_cut = cut;
	o->told_error = error;
	news->n_ring = 0;
}

void access_log_look(struct access_log *l, uint64_t now_ns)
{
	if (!l)
		return;
	access_logs_sweep(l->logs);
	uint64_t ring = n_ring(l);
	struct news news = {.now_ns = now_ns};
	if (!is_quiet(l->told_ns, now_ns))
		news.n_ring = ring - l->told_ring;
	bool has_ring = news.n_ring;
	access_logs_each_output(l->logs, tell_output, &news);
	if (!has_ring || news.n_ring) // none, or nobody to say it of
		return;
	l->told_ns = now_ns;
	l->told_ring = ring;
}
