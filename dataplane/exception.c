// SPDX-License-Identifier: Apache-2.0
#include "dataplane/exception.h"

#include "dataplane/tun.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/gcra.h"
#include "lb/base/record_ring.h"
#include "lb/base/time.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RING_BYTES (256u * 1024) // each way, of one port; to the kernel of each worker
#define MAX_FRAME (14u + 9216)
#define SENDER 0u // the worker that sends the kernel's frames
#define BURST 32 // frames from one ring in one go
#define REST_NS NS_PER_MS // workers wake nobody: a frame to the kernel waits that long
#define DEPTH_NS (NS_PER_SECOND / 10) // of frames may come at once
#define NEAR_SHARE 4 // a quarter of the rate is for frames of the link itself alone

// over_rate, near_over_rate, ring_full: given to nobody. refused: the kernel does not take it, as
// when the interface is down. tx_dropped: the port had no buffer, or the frame is too long for it.
#define EXCEPTION_COUNTERS(X)                                                                      \
	X(kernel_rx_tcp)                                                                           \
	X(kernel_rx_icmp)                                                                          \
	X(kernel_rx_neighbors)                                                                     \
	X(kernel_rx_group)                                                                         \
	X(kernel_rx_other)                                                                         \
	X(kernel_rx_over_rate)                                                                     \
	X(kernel_rx_near_over_rate)                                                                \
	X(kernel_rx_ring_full)                                                                     \
	X(kernel_rx_refused)                                                                       \
	X(kernel_tx_frames)                                                                        \
	X(kernel_tx_dropped)

#define X(name) EXCEPTION_##name,
enum exception_counter { EXCEPTION_COUNTERS(X) EXCEPTION_N_COUNTERS };
#undef X
_Static_assert(EXCEPTION_kernel_rx_tcp == (int)NET_FOREIGN_TCP &&
		       EXCEPTION_kernel_rx_other == (int)NET_FOREIGN_OTHER,
	"causes");

struct exception_end {
	int wake_fd; // borrowed; -1 = none
	uint32_t given; // bits: ports whose ring has unpublished frames
	struct way {
		bool is_on;
		struct record_ring to_kernel; // w: worker, r: thread
		struct record_ring *from_kernel; // borrowed, of the sender alone
		struct budget {
			struct gcra used;
			struct gcra_limit limit;
		} all, near; // near: beside all, for frames of the link itself
		uint64_t counters
			[EXCEPTION_N_COUNTERS]; // refused: the thread's; the rest: the worker's
	} ways[NET_MAX_PORTS];
};

struct exception {
	uint32_t n_ports, n_workers;
	struct exception_end *ends; // owned [n_workers]
	struct kernel_port {
		int fd; // -1 = no kernel
		struct record_ring from_kernel; // w: thread, r: the sender
		uint32_t n_pending; // bytes of a frame that found no room; 0 = none
		uint8_t pending[MAX_FRAME];
		uint8_t mac[6]; // ctrl's, as both below
		bool is_followed, is_up;
	} ports[NET_MAX_PORTS];
	int wake_fd; // the sender's
	pthread_t thread;
	bool runs;
	bool stop; // w: ctrl (relaxed), r: thread (relaxed)
};

// The worker's end.

bool exception_end_has(const struct exception_end *e, uint32_t port)
{
	return e && e->ways[port].is_on;
}

static bool take(struct budget *b, uint64_t now_ns)
{
	return !gcra_is_spent(&b->used, &b->limit, now_ns) &&
	       gcra_charge(&b->used, &b->limit, now_ns);
}

void exception_end_give(struct exception_end *e, uint32_t port, enum net_foreign why,
	const uint8_t *frame, size_t len, bool is_unmade, uint64_t now_ns)
{
	struct way *w = &e->ways[port];
	DCHECK(w->is_on && why < NET_N_FOREIGN);
	bool is_near = net_foreign_is_near(frame, len);
	if (!(is_near && take(&w->near, now_ns)) && !take(&w->all, now_ns)) {
		counter_add(&w->counters[is_near ? EXCEPTION_kernel_rx_near_over_rate
						 : EXCEPTION_kernel_rx_over_rate],
			1);
		return;
	}
	uint8_t *room = record_ring_place(&w->to_kernel, (uint32_t)len);
	if (!room) {
		counter_add(&w->counters[EXCEPTION_kernel_rx_ring_full], 1);
		return;
	}
	memcpy(room, frame, len);
	if (is_unmade)
		net_foreign_make_checksum(room, len);
	counter_add(&w->counters[why], 1);
	e->given |= UINT32_C(1) << port;
}

void exception_end_flush(struct exception_end *e)
{
	for (; e && e->given; e->given &= e->given - 1)
		record_ring_publish(&e->ways[__builtin_ctz(e->given)].to_kernel);
}

bool exception_end_send(struct exception_end *e, uint32_t port, struct net *net)
{
	struct way *w = &e->ways[port];
	const uint8_t *frame;
	uint32_t n = 0, len;
	if (!w->from_kernel)
		return false;
	for (; n < BURST && (frame = record_ring_peek(w->from_kernel, &len)); n++) {
		bool sent = net_foreign_send(net, port, frame, len);
		counter_add(&w->counters[sent ? EXCEPTION_kernel_tx_frames
					      : EXCEPTION_kernel_tx_dropped],
			1);
		record_ring_pass(w->from_kernel);
	}
	return n > 0;
}

int exception_end_wait_fd(const struct exception_end *e)
{
	return e ? e->wake_fd : -1;
}

struct counter_set exception_end_counters(const struct exception_end *e, uint32_t port)
{
	static const char *const names[] = {EXCEPTION_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){
		.names = names, .values = e->ways[port].counters, .n = EXCEPTION_N_COUNTERS};
}

// The thread between rings and interfaces.

static bool to_kernel(const struct kernel_port *p, struct way *w)
{
	const uint8_t *frame;
	uint32_t n = 0, len;
	for (; n < BURST && (frame = record_ring_peek(&w->to_kernel, &len)); n++) {
		if (write(p->fd, frame, len) != (ssize_t)len)
			counter_add(&w->counters[EXCEPTION_kernel_rx_refused], 1);
		record_ring_pass(&w->to_kernel);
	}
	return n > 0;
}

// What finds no room waits here, and behind it in the interface's own queue, which drops.
static bool from_kernel(struct kernel_port *p)
{
	uint32_t n = 0;
	for (; n < BURST; n++) {
		if (!p->n_pending) {
			ssize_t len = read(p->fd, p->pending, sizeof(p->pending));
			if (len <= 0)
				break;
			p->n_pending = (uint32_t)len;
		}
		uint8_t *room = record_ring_place(&p->from_kernel, p->n_pending);
		if (!room)
			break;
		memcpy(room, p->pending, p->n_pending);
		p->n_pending = 0;
	}
	if (n > 0)
		record_ring_publish(&p->from_kernel);
	return n > 0;
}

static bool move(struct exception *e)
{
	bool any = false, any_out = false;
	for (uint32_t p = 0; p < e->n_ports; p++) {
		if (e->ports[p].fd < 0)
			continue;
		for (uint32_t i = 0; i < e->n_workers; i++)
			any |= to_kernel(&e->ports[p], &e->ends[i].ways[p]);
		any_out |= from_kernel(&e->ports[p]);
	}
	uint64_t one = 1;
	if (any_out)
		(void)!write(e->wake_fd, &one, sizeof(one));
	return any || any_out;
}

static void rest(const struct exception *e)
{
	struct pollfd fds[NET_MAX_PORTS];
	nfds_t n = 0;
	for (uint32_t p = 0; p < e->n_ports; p++)
		if (e->ports[p].fd >= 0 && !e->ports[p].n_pending)
			fds[n++] = (struct pollfd){.fd = e->ports[p].fd, .events = POLLIN};
	struct timespec most = {.tv_nsec = REST_NS};
	if (ppoll(fds, n, &most, NULL) <= 0)
		return;
	for (nfds_t i = 0; i < n; i++) // one that is down or deleted is never at rest
		if (fds[i].revents & ~POLLIN) {
			nanosleep(&most, NULL);
			return;
		}
}

static void *run(void *arg)
{
	struct exception *e = arg;
	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED))
		if (!move(e))
			rest(e);
	return NULL;
}

// The control thread's.

// Of one frame at least.
static struct gcra_limit limit_of(uint32_t per_second)
{
	uint64_t price_ns = GCRA_PRICE_NS(per_second);
	return (struct gcra_limit){price_ns, price_ns > DEPTH_NS ? price_ns : DEPTH_NS};
}

static int open_port(struct exception *e, uint32_t port, const struct exception_port *conf,
	struct lb_err *reterr)
{
	struct kernel_port *p = &e->ports[port];
	memcpy(p->mac, conf->mac, sizeof(p->mac));
	p->fd = tun_open(conf->interface, conf->mac, conf->mtu, reterr);
	if (p->fd < 0)
		return lb_err_within(reterr, "ports[%u].kernel.interface", port);
	bool ok = record_ring_init(&p->from_kernel, RING_BYTES) == 0;
	for (uint32_t i = 0; i < e->n_workers && ok; i++) {
		struct way *w = &e->ends[i].ways[port];
		ok = record_ring_init(&w->to_kernel, RING_BYTES) == 0;
		w->is_on = true;
		w->near.limit = limit_of(conf->rate / NEAR_SHARE);
		w->all.limit = limit_of(conf->rate - conf->rate / NEAR_SHARE);
		w->from_kernel = i == SENDER ? &p->from_kernel : NULL;
	}
	return ok ? 0 : lb_err_set(reterr, "ports[%u].kernel: out of memory", port);
}

static int make(struct exception *e, const struct exception_port *ports, struct lb_err *reterr)
{
	e->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	e->ends = cacheline_alloc(e->n_workers, sizeof(*e->ends));
	if (e->wake_fd < 0 || !e->ends)
		return lb_err_set(reterr, "out of memory for the exception path");
	for (uint32_t i = 0; i < e->n_workers; i++)
		e->ends[i].wake_fd = i == SENDER ? e->wake_fd : -1;
	for (uint32_t p = 0; p < e->n_ports; p++)
		if (ports[p].interface && open_port(e, p, &ports[p], reterr) != 0)
			return -EINVAL;
	return 0;
}

struct exception *exception_new(const struct exception_port *ports, uint32_t n_ports,
	uint32_t n_workers, struct lb_err *reterr)
{
	DCHECK(n_ports <= NET_MAX_PORTS && n_workers >= 1 && n_workers <= LB_MAX_WORKERS);
	struct exception *e = cacheline_alloc(1, sizeof(*e));
	if (!e) {
		lb_err_set(reterr, "out of memory for the exception path");
		return NULL;
	}
	e->n_ports = n_ports;
	e->n_workers = n_workers;
	for (uint32_t p = 0; p < NET_MAX_PORTS; p++)
		e->ports[p].fd = -1;
	if (make(e, ports, reterr) != 0) {
		exception_free(e);
		return NULL;
	}
	return e;
}

int exception_start(struct exception *e)
{
	int rc = pthread_create(&e->thread, NULL, run, e);
	e->runs = rc == 0;
	return -rc;
}

void exception_free(struct exception *e)
{
	if (!e)
		return;
	__atomic_store_n(&e->stop, true, __ATOMIC_RELAXED);
	if (e->runs)
		pthread_join(e->thread, NULL);
	for (uint32_t p = 0; p < e->n_ports; p++) {
		if (e->ports[p].fd >= 0)
			close(e->ports[p].fd);
		record_ring_fini(&e->ports[p].from_kernel);
		for (uint32_t i = 0; e->ends && i < e->n_workers; i++)
			record_ring_fini(&e->ends[i].ways[p].to_kernel);
	}
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	cacheline_free(e->ends);
	cacheline_free(e);
}

void exception_follow(struct exception *e, uint32_t port, const uint8_t mac[6], bool is_up)
{
	struct kernel_port *p = e ? &e->ports[port] : NULL;
	if (!p || p->fd < 0)
		return;
	if (memcmp(p->mac, mac, sizeof(p->mac)) != 0 && tun_set_mac(p->fd, mac))
		memcpy(p->mac, mac, sizeof(p->mac));
	if (!p->is_followed || p->is_up != is_up)
		tun_set_carrier(p->fd, is_up);
	p->is_followed = true;
	p->is_up = is_up;
}

struct exception_end *exception_end(struct exception *e, uint32_t worker)
{
	DCHECK(!e || worker < e->n_workers);
	return e ? &e->ends[worker] : NULL;
}
