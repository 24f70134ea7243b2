// SPDX-License-Identifier: Apache-2.0
#include "ctrl/capture/writer.h"

#include "ctrl/access_log/place.h"
#include "ctrl/capture/pcapng.h"
#include "lb/base/time.h"
#include "lb/pick/limits.h"
#include "tlshs/keylog.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_MS 5 // until rings are looked at again
#define END_MS 2000
// With keys, frames wait for those that a handshake makes of them: readers want the keys first.
#define HOLD_NS (20 * NS_PER_MS)
#define KEYS_MOST 8192 // bytes of a block
#define BUFFER (256u << 10)
#define BLOCK_MOST (LB_CAPTURE_SNAPLEN + PCAPNG_PACKET_MORE)
_Static_assert(BUFFER >= (1 + LB_CAPTURE_PORTS) * PCAPNG_BLOCK_MAX, "a file's head");

struct capture_writer {
	struct capture_writer_conf conf; // its texts and lists are owned
	struct access_place place; // likewise
	struct lb_capture *workers[LB_MAX_WORKERS];
	struct capture_port ports[LB_CAPTURE_PORTS];
	uint64_t seen_dropped[LB_CAPTURE_PORTS]; // before
	pthread_t thread;
	bool started;
	int wake_fd; // w: ctrl, r: thread
	int done_fd; // w: thread, r: ctrl: it has ended
	atomic_bool finish; // w: ctrl, r: thread
	atomic_int phase, end, error; // w: thread, r: ctrl
	atomic_uint_fast64_t n_frames, n_bytes; // likewise: in the buffer, too
	atomic_uint_fast64_t from_ns, to_ns; // likewise; 0 = not yet
	// The thread's.
	int fd;
	uint64_t wall_offset_ns; // from the workers' clock
	uint64_t n_taken[LB_CAPTURE_PORTS]; // frames, out of the rings
	size_t len; // of buf
	uint8_t buf[BUFFER + BLOCK_MOST];
};

static void signal_fd(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one)); // a full counter is readable anyway
}

static uint64_t count_dropped(const struct capture_writer *w, uint32_t port)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < w->conf.n_workers; i++)
		n += counter_read(&w->workers[i]->n_dropped[port]);
	return n - w->seen_dropped[port];
}

// The thread.

static bool is_over(const struct capture_writer *w)
{
	return atomic_load_explicit(&w->phase, memory_order_relaxed) != CAPTURE_RUNS;
}

static void set_phase(struct capture_writer *w, enum capture_phase phase)
{
	atomic_store_explicit(&w->phase, phase, memory_order_release);
}

static void set_over(struct capture_writer *w, enum capture_end end, int error)
{
	if (is_over(w))
		return;
	atomic_store_explicit(&w->end, end, memory_order_relaxed);
	atomic_store_explicit(&w->error, error, memory_order_relaxed);
	atomic_store_explicit(&w->to_ns, w->conf.clock_ns(), memory_order_relaxed);
	set_phase(w, CAPTURE_OVER);
}

static uint32_t word_at(const struct capture_writer *w, size_t at)
{
	uint32_t x;
	memcpy(&x, w->buf + at, sizeof(x));
	return x;
}

// Of the buffer's blocks some are not on the disk whole: the file ends before them.
static void cut(struct capture_writer *w, size_t n_written, int error)
{
	size_t whole = 0;
	while (whole < w->len && whole + word_at(w, whole + 4) <= n_written)
		whole += word_at(w, whole + 4);
	uint64_t n_frames = 0;
	for (size_t at = whole; at < w->len; at += word_at(w, at + 4))
		n_frames += pcapng_is_packet(w->buf + at);
	atomic_fetch_sub_explicit(&w->n_frames, n_frames, memory_order_relaxed);
	uint64_t n_bytes =
		atomic_fetch_sub_explicit(&w->n_bytes, w->len - whole, memory_order_relaxed);
	(void)!ftruncate(w->fd, (off_t)(n_bytes - (w->len - whole)));
	set_over(w, CAPTURE_FAILED, error);
}

static void flush(struct capture_writer *w)
{
	size_t done = 0;
	while (done < w->len) {
		ssize_t n = write(w->fd, w->buf + done, w->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			cut(w, done, n < 0 ? errno : EIO);
			break;
		}
		done += (size_t)n;
	}
	w->len = 0;
}

// There is always room for one more, and for all that are no packets.
static uint8_t *place_block(struct capture_writer *w)
{
	return w->buf + w->len;
}

static void placed(struct capture_writer *w, size_t len)
{
	w->len += len;
	atomic_fetch_add_explicit(&w->n_bytes, len, memory_order_relaxed);
}

static void tell_cause(
	const struct capture_writer *w, struct lb_capture_cause cause, char *text, size_t size)
{
	const struct counter_set *set = cause.layer == LB_CAPTURE_NET   ? &w->conf.net
	                                : cause.layer == LB_CAPTURE_TCP ? &w->conf.tcp
	                                                                : NULL;
	text[0] = 0;
	if (set && cause.counter < set->n)
		snprintf(text, size, "dropped: %s.%s",
			cause.layer == LB_CAPTURE_NET ? "net" : "tcp", set->names[cause.counter]);
}

static void put_frame(struct capture_writer *w, uint32_t worker, const struct lb_capture_record *r,
	uint64_t at_ns)
{
	const struct capture_bounds *b = &w->conf.bounds;
	if (w->len >= BUFFER)
		flush(w);
	uint64_t n_frames = atomic_load_explicit(&w->n_frames, memory_order_relaxed);
	uint64_t n_bytes = atomic_load_explicit(&w->n_bytes, memory_order_relaxed);
	uint64_t at_end = (uint64_t)w->conf.n_ports * PCAPNG_BLOCK_MAX;
	if (n_bytes + r->kept + PCAPNG_PACKET_MORE + at_end > b->n_bytes)
		set_over(w, CAPTURE_SIZE, 0);
	if (at_ns >= w->from_ns + b->ns)
		set_over(w, CAPTURE_SECONDS, 0);
	if (is_over(w))
		return;
	char comment[PCAPNG_TEXT_MAX];
	tell_cause(w, r->cause, comment, sizeof(comment));
	const struct pcapng_packet p = {
		.interface = r->interface,
		.queue = worker,
		.direction = r->way == LB_CAPTURE_RX ? PCAPNG_IN : PCAPNG_OUT,
		.at_ns = at_ns + w->wall_offset_ns,
		.bytes = r->bytes,
		.kept = r->kept < LB_CAPTURE_SNAPLEN ? r->kept : LB_CAPTURE_SNAPLEN,
		.len = r->len,
		.n_lost = r->n_lost,
		.comment = comment,
	};
	placed(w, pcapng_packet(place_block(w), &p));
	atomic_store_explicit(&w->n_frames, n_frames + 1, memory_order_relaxed);
	if (n_frames + 1 == b->n_frames)
		set_over(w, CAPTURE_COUNT, 0);
}

// Those that were told before a frame left stand before it.
static void put_keys(struct capture_writer *w)
{
	uint8_t lines[KEYS_MOST];
	uint64_t at_end = (uint64_t)w->conf.n_ports * PCAPNG_BLOCK_MAX;
	size_t n;
	while (!is_over(w) && (n = tlshs_keylog_take(w->conf.keys, lines, sizeof(lines))) > 0) {
		uint64_t n_bytes = atomic_load_explicit(&w->n_bytes, memory_order_relaxed);
		if (w->len >= BUFFER)
			flush(w);
		if (n_bytes + n + PCAPNG_SECRETS_MORE + at_end > w->conf.bounds.n_bytes)
			set_over(w, CAPTURE_SIZE, 0);
		else
			placed(w, pcapng_secrets(place_block(w), lines, n));
	}
	explicit_bzero(lines, sizeof(lines));
}

static bool has_keys(const struct capture_writer *w)
{
	return w->conf.keys && tlshs_keylog_has_more(w->conf.keys);
}

// Whether what is of that time may be written by now.
static bool is_ripe(const struct capture_writer *w, uint64_t at_ns, uint64_t now_ns)
{
	return !w->conf.keys || at_ns + HOLD_NS <= now_ns;
}

// Of all rings' next records the oldest, and its worker and time. NULL = there is none.
static const struct lb_capture_record *find_oldest(
	struct capture_writer *w, uint32_t *ret_worker, uint64_t *ret_at_ns)
{
	const struct lb_capture_record *oldest = NULL;
	for (uint32_t i = 0; i < w->conf.n_workers; i++) {
		uint64_t at_ns;
		const struct lb_capture_record *r = lb_capture_peek(w->workers[i], &at_ns);
		if (!r || (oldest && at_ns >= *ret_at_ns))
			continue;
		oldest = r;
		*ret_worker = i;
		*ret_at_ns = at_ns;
	}
	return oldest;
}

// until_ns: of the clock; UINT64_MAX = all.
static void take_frames(struct capture_writer *w, uint64_t until_ns)
{
	const struct lb_capture_record *r;
	uint32_t worker;
	uint64_t at_ns;
	while ((r = find_oldest(w, &worker, &at_ns)) && is_ripe(w, at_ns, until_ns)) {
		if (has_keys(w))
			put_keys(w);
		w->n_taken[r->interface]++;
		put_frame(w, worker, r, at_ns);
		record_ring_pass(&w->workers[worker]->ring);
	}
}

static void put_head(struct capture_writer *w)
{
	placed(w, pcapng_section(place_block(w), w->conf.application, w->conf.comment));
	for (uint32_t i = 0; i < w->conf.n_ports; i++) {
		const struct capture_port *p = &w->ports[i];
		const struct pcapng_interface about = {p->name, p->device, p->mac, w->conf.snaplen};
		placed(w, pcapng_interface(place_block(w), &about));
	}
}

static void put_statistics(struct capture_writer *w)
{
	for (uint32_t i = 0; i < w->conf.n_ports; i++) {
		struct pcapng_statistics s = {.interface = i,
			.start_ns = w->from_ns + w->wall_offset_ns,
			.end_ns = w->to_ns + w->wall_offset_ns,
			.n_dropped = count_dropped(w, i)};
		s.n_received = w->n_taken[i] + s.n_dropped;
		placed(w, pcapng_statistics(place_block(w), &s));
	}
}

static void wait_a_little(struct capture_writer *w)
{
	struct pollfd fd = {.fd = w->wake_fd, .events = POLLIN};
	uint64_t n;
	if (poll(&fd, 1, LOOK_MS) > 0)
		(void)!read(w->wake_fd, &n, sizeof(n));
}

static void write_all(struct capture_writer *w)
{
	uint64_t now_ns = w->conf.clock_ns();
	w->wall_offset_ns = w->conf.wall_ns() - now_ns;
	w->from_ns = now_ns;
	set_phase(w, CAPTURE_RUNS);
	put_head(w);
	flush(w);
	for (;;) {
		bool finish = atomic_load_explicit(&w->finish, memory_order_acquire);
		if (has_keys(w))
			put_keys(w);
		take_frames(w, finish ? UINT64_MAX : w->conf.clock_ns());
		flush(w);
		if (finish)
			break;
		if (w->conf.clock_ns() - w->from_ns >=
			w->conf.bounds.ns + (w->conf.keys ? HOLD_NS : 0))
			set_over(w, CAPTURE_SECONDS, 0);
		wait_a_little(w);
	}
	set_over(w, CAPTURE_STOPPED, 0);
	if (w->end != CAPTURE_FAILED)
		put_statistics(w);
	flush(w);
}

static void *writer_main(void *arg)
{
	struct capture_writer *w = arg;
	w->fd = access_place_open(&w->place, -1);
	if (w->fd >= 0) {
		write_all(w);
		close(w->fd);
	} else {
		atomic_store_explicit(&w->error, errno, memory_order_relaxed);
		atomic_store_explicit(&w->end, CAPTURE_FAILED, memory_order_relaxed);
	}
	set_phase(w, CAPTURE_DONE);
	signal_fd(w->done_fd);
	return NULL;
}

// The owner's side.

static char *copy(const char *text, bool *ok)
{
	char *to = text ? strdup(text) : NULL;
	*ok &= !text || to;
	return to;
}

static bool copy_conf(struct capture_writer *w, const struct capture_writer_conf *conf)
{
	bool ok = true;
	w->conf = *conf;
	w->conf.application = copy(conf->application, &ok);
	w->conf.comment = copy(conf->comment, &ok);
	w->place = *conf->place;
	w->place.path = copy(conf->place->path, &ok);
	w->place.below = copy(conf->place->below, &ok);
	memcpy(w->workers, conf->workers, conf->n_workers * sizeof(w->workers[0]));
	for (uint32_t i = 0; i < conf->n_ports; i++) {
		w->ports[i] = conf->ports[i];
		w->ports[i].name = copy(conf->ports[i].name, &ok);
		w->ports[i].device = copy(conf->ports[i].device, &ok);
		w->seen_dropped[i] = count_dropped(w, i);
	}
	return ok;
}

// Signals are the control thread's.
static int start_thread(struct capture_writer *w)
{
	sigset_t all;
	pthread_attr_t attr;
	sigfillset(&all);
	int rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	rc = pthread_attr_setsigmask_np(&attr, &all);
	if (rc == 0)
		rc = pthread_create(&w->thread, &attr, writer_main, w);
	w->started = rc == 0;
	pthread_attr_destroy(&attr);
	return -rc;
}

static int open_fd(int *ret)
{
	*ret = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return *ret < 0 ? -errno : 0;
}

int capture_writer_new(const struct capture_writer_conf *conf, struct capture_writer **ret)
{
	struct capture_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->wake_fd = w->done_fd = -1;
	int rc = copy_conf(w, conf) ? open_fd(&w->wake_fd) : -ENOMEM;
	if (rc == 0)
		rc = open_fd(&w->done_fd);
	if (rc == 0)
		rc = start_thread(w);
	if (rc == 0)
		*ret = w;
	else
		capture_writer_free(w);
	return rc;
}

enum capture_phase capture_writer_phase(const struct capture_writer *w)
{
	return (enum capture_phase)atomic_load_explicit(&w->phase, memory_order_acquire);
}

void capture_writer_finish(struct capture_writer *w)
{
	atomic_store_explicit(&w->finish, true, memory_order_release);
	signal_fd(w->wake_fd);
}

static void drop_text(const char *text)
{
	free((void *)(uintptr_t)text);
}

struct capture_numbers capture_writer_numbers(const struct capture_writer *w)
{
	uint64_t from_ns = atomic_load_explicit(&w->from_ns, memory_order_relaxed);
	uint64_t to_ns = atomic_load_explicit(&w->to_ns, memory_order_relaxed);
	if (!to_ns)
		to_ns = w->conf.clock_ns();
	struct capture_numbers n = {
		.n_frames = atomic_load_explicit(&w->n_frames, memory_order_relaxed),
		.n_bytes = atomic_load_explicit(&w->n_bytes, memory_order_relaxed),
		.ns = from_ns ? to_ns - from_ns : 0,
		.end = (enum capture_end)atomic_load_explicit(&w->end, memory_order_relaxed),
		.error = atomic_load_explicit(&w->error, memory_order_relaxed),
	};
	for (uint32_t i = 0; i < w->conf.n_ports; i++)
		n.n_dropped += count_dropped(w, i);
	return n;
}

struct capture_numbers capture_writer_close(struct capture_writer *w)
{
	struct capture_numbers numbers;
	if (w->started) {
		struct pollfd done = {.fd = w->done_fd, .events = POLLIN};
		// One that hangs in a write to a dead disk keeps what it has.
		if (poll(&done, 1, END_MS) != 1) {
			pthread_detach(w->thread);
			return capture_writer_numbers(w);
		}
		pthread_join(w->thread, NULL);
	}
	numbers = capture_writer_numbers(w);
	for (uint32_t i = 0; i < w->conf.n_ports; i++) {
		drop_text(w->ports[i].name);
		drop_text(w->ports[i].device);
	}
	drop_text(w->conf.application);
	drop_text(w->conf.comment);
	drop_text(w->place.path);
	drop_text(w->place.below);
	if (w->conf.keys)
		explicit_bzero(w->buf, sizeof(w->buf));
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	if (w->done_fd >= 0)
		close(w->done_fd);
	free(w);
	return numbers;
}

void capture_writer_free(struct capture_writer *w)
{
	if (w)
		(void)capture_writer_close(w);
}
