// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status/status_relay.h"

#include "ctrl/base/socket_counts.h"
#include "lb/base/container_of.h"
#include "lb/base/list.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "tlshs/handshake.h"
#include "tlshs/records.h"

#include <event2/event.h>

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 16384 // bytes that are read at once
#define HANDSHAKE_NS (10 * NS_PER_SECOND)
#define LAST_NS (2 * NS_PER_SECOND) // for a client to read what is said last, and to close
#define LINGER_NS (NS_PER_SECOND / 5) // for all of them, at the end
#define TURN_NS NS_PER_MS // between work on handshakes; more, as the loop advances its wheel

struct unsent { // by one side, to the other
	size_t at, len;
	uint8_t bytes[PIECE];
};

enum stage {
	SHAKES, // hands
	TALKS,
	LEAVES // there is no server: what it has said, or an alert, is sent, and no more
};

struct pair {
	struct status_relay *relay;
	struct list_link link;
	struct list_link turn; // waits for work on its handshake
	struct twheel_timer over; // SHAKES, LEAVES: when it is ended
	struct tlshs_handshake *tls;
	struct event *of_client, *of_server; // what is waited for; of_server NULL = there is none
	int client, server; // server: our end of the pair of sockets; -1 = none
	enum stage stage;
	bool heard_all, said_all; // of the client, to it
	struct unsent to_client, to_server;
};

struct status_relay {
	struct status_relay_conf conf;
	struct list_link pairs, turns;
	size_t n_pairs;
	struct twheel_timer turn;
};

static void pair_free(struct pair *p)
{
	struct status_relay *r = p->relay;
	list_remove(&p->link);
	r->n_pairs--;
	if (list_linked(&p->turn))
		list_remove(&p->turn);
	twheel_cancel(r->conf.wheel, &p->over);
	if (p->of_client)
		event_free(p->of_client);
	if (p->of_server)
		event_free(p->of_server);
	(void)shutdown(p->client, SHUT_RDWR);
	close(p->client);
	if (p->server >= 0)
		close(p->server);
	tlshs_handshake_free(p->tls);
	free(p);
}

// Told in the log at the first one, the second, the fourth and so on.
static void count_refused(struct status_relay *r, const char *reason, const char *text)
{
	uint64_t n = ++r->conf.counts->n_refused;
	if ((n & (n - 1)) == 0)
		log_warn("status port", "connections_refused=%" PRIu64 " reason=%s text=%s", n,
			reason, log_quote(text));
}

// Bytes

// Returns 1 = all has gone, 0 = the socket takes no more now, -1 = it is over.
static int flush(int fd, struct unsent *u)
{
	while (u->len) {
		ssize_t n = send(fd, u->bytes + u->at, u->len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		u->at += (size_t)n;
		u->len -= (size_t)n;
	}
	u->at = 0;
	return 1;
}

// As recv(), but 0 = nothing is there now, and -1 = the other side is over.
static ssize_t receive(int fd, uint8_t to[PIECE])
{
	ssize_t n = recv(fd, to, PIECE, MSG_DONTWAIT);
	if (n > 0)
		return n;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static void leave(struct pair *p)
{
	struct twheel *wheel = p->relay->conf.wheel;
	p->stage = LEAVES;
	p->to_server.len = 0;
	if (p->of_server)
		event_free(p->of_server);
	if (p->server >= 0)
		close(p->server);
	p->of_server = NULL;
	p->server = -1;
	twheel_arm(wheel, &p->over, twheel_now(wheel) + LAST_NS);
}

// To the server, with what the client said before: at most one piece of the wire's is read, once
// all of those before has gone. False = the client is over.
static bool carry_in(struct pair *p)
{
	struct unsent *u = &p->to_server;
	uint8_t wire[PIECE];
	bool has_read = false;
	int gone;
	while (p->stage == TALKS && !p->heard_all && (gone = flush(p->server, u)) != 0) {
		if (gone < 0) { // what it said last may be there to be read
			u->len = 0;
			p->heard_all = true;
			break;
		}
		ssize_t n = tlshs_records_read(p->tls, u->bytes, sizeof(u->bytes));
		if (n > 0) {
			u->len = (size_t)n;
		} else if (n == -EPIPE) {
			p->heard_all = true;
			(void)shutdown(p->server, SHUT_WR);
		} else if (n < 0) {
			leave(p);
		} else {
			n = has_read ? 0 : receive(p->client, wire);
			if (n <= 0)
				return n == 0;
			has_read = true;
			tlshs_handshake_gather(p->tls, wire, (size_t)n);
		}
	}
	return true;
}

// To the client, likewise. False = the client is over, or there is no memory.
static bool carry_out(struct pair *p)
{
	struct unsent *u = &p->to_client;
	uint8_t text[PIECE];
	bool has_read = false;
	for (;;) {
		int gone = flush(p->client, u);
		if (gone != 1)
			return gone == 0;
		u->len = tlshs_handshake_drain(p->tls, u->bytes, sizeof(u->bytes));
		if (u->len)
			continue;
		if (p->stage != TALKS || has_read)
			return true;
		has_read = true;
		ssize_t n = receive(p->server, text);
		if (n == 0)
			return true;
		if (n > 0 && !tlshs_records_write(p->tls, text, (size_t)n))
			return false;
		if (n < 0) {
			tlshs_records_end(p->tls);
			leave(p);
		}
	}
}

// Nobody hears it, but a socket with bytes unread would be reset, and what the client has not read
// yet would be lost. False = the client is over.
static bool drop(struct pair *p)
{
	uint8_t wire[PIECE];
	return receive(p->client, wire) >= 0;
}

// Handshakes

static void on_turn(struct twheel_timer *timer);

static void want_turn(struct status_relay *r)
{
	if (!list_empty(&r->turns) && !twheel_armed(&r->turn))
		twheel_arm(r->conf.wheel, &r->turn, twheel_now(r->conf.wheel) + TURN_NS);
}

static bool hear_handshake(struct pair *p)
{
	uint8_t wire[PIECE];
	ssize_t n = list_linked(&p->turn) ? 0 : receive(p->client, wire);
	if (n < 0)
		count_refused(p->relay, "lost", "the client closed");
	if (n <= 0)
		return n == 0;
	tlshs_handshake_gather(p->tls, wire, (size_t)n);
	list_append(&p->relay->turns, &p->turn);
	want_turn(p->relay);
	return true;
}

// What is waited for, as poll() says it

static short events_of_client(const struct pair *p)
{
	bool hears = !list_linked(&p->turn) && !p->to_server.len;
	return (short)((hears ? POLLIN : 0) | (p->to_client.len ? POLLOUT : 0));
}

static short events_of_server(const struct pair *p)
{
	return (short)((p->to_client.len ? 0 : POLLIN) | (p->to_server.len ? POLLOUT : 0));
}

static bool watch(struct event *e, short events)
{
	short what = (short)(EV_PERSIST | (events & POLLIN ? EV_READ : 0) |
			     (events & POLLOUT ? EV_WRITE : 0));
	if (what == event_get_events(e) && event_pending(e, what, NULL))
		return true;
	event_del(e);
	event_assign(e, event_get_base(e), event_get_fd(e), what, event_get_callback(e),
		event_get_callback_arg(e));
	return what == EV_PERSIST || event_add(e, NULL) == 0;
}

static bool hear(struct pair *p)
{
	if (p->stage == SHAKES)
		return hear_handshake(p);
	return p->stage == TALKS && !p->heard_all ? carry_in(p) : drop(p);
}

// Whatever there is to do for it; the pair may be gone then.
static void serve(struct pair *p)
{
	bool goes_on = hear(p) && carry_out(p);
	if (goes_on && p->stage == LEAVES && !p->to_client.len && !p->said_all) {
		p->said_all = true;
		goes_on = shutdown(p->client, SHUT_WR) == 0;
	}
	if (goes_on && p->of_server)
		goes_on = watch(p->of_server, events_of_server(p));
	if (!goes_on || !watch(p->of_client, events_of_client(p)))
		pair_free(p);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	serve(arg);
}

// It gets one end of two sockets, and we have the other.
static bool connect_server(struct pair *p)
{
	const struct status_relay_conf *c = &p->relay->conf;
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	p->of_server = event_new(c->base, ends[0], EV_PERSIST, on_ready, p);
	if (!p->of_server) {
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	p->server = ends[0];
	c->connect(c->ctx, p->client, ends[1]);
	return true;
}

static void refuse(struct pair *p, const char *reason, const char *text)
{
	count_refused(p->relay, reason, text);
	leave(p); // what there is for the client is its alert
}

// The handshake has ended.
static void let_in(struct pair *p)
{
	enum tlshs_outcome outcome = tlshs_handshake_outcome(p->tls);
	struct tlshs_result result;
	if (outcome != TLSHS_ok) {
		refuse(p, tlshs_outcome_name(outcome), tlshs_handshake_why(p->tls));
		return;
	}
	tlshs_handshake_take(p->tls, &result);
	bool speaks_h2 = result.alpn_len == 2 && memcmp(result.alpn, "h2", 2) == 0;
	tlshs_result_wipe(&result);
	if (!speaks_h2) {
		refuse(p, tlshs_outcome_name(TLSHS_no_application_protocol), "no h2 by ALPN");
	} else if (!connect_server(p)) {
		refuse(p, "no_descriptor", strerror(errno));
	} else {
		twheel_cancel(p->relay->conf.wheel, &p->over);
		p->stage = TALKS;
	}
}

static void on_turn(struct twheel_timer *timer)
{
	struct status_relay *r = CONTAINER_OF(timer, struct status_relay, turn);
	struct list_link *first = list_first(&r->turns);
	if (!first)
		return; // who waited has gone
	struct pair *p = CONTAINER_OF(first, struct pair, turn);
	list_remove(first);
	want_turn(r);
	tlshs_handshake_run(p->tls);
	if (tlshs_handshake_ended(p->tls))
		let_in(p);
	serve(p);
}

static void on_over(struct twheel_timer *timer)
{
	struct pair *p = CONTAINER_OF(timer, struct pair, over);
	if (p->stage == SHAKES)
		count_refused(p->relay, tlshs_outcome_name(TLSHS_timeout), "no handshake in 10 s");
	pair_free(p);
}

// The owner's side

struct status_relay *status_relay_new(const struct status_relay_conf *conf)
{
	struct status_relay *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->conf = *conf;
	r->turn.fire = on_turn;
	list_init(&r->pairs);
	list_init(&r->turns);
	return r;
}

void status_relay_add(struct status_relay *r, int fd)
{
	static const int yes = 1;
	struct tlshs_context *context = r->conf.context(r->conf.ctx);
	struct pair *p = context ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		count_refused(r, context ? "no_memory" : "no_credential", "");
		(void)shutdown(fd, SHUT_RDWR);
		close(fd);
		return;
	}
	p->relay = r;
	p->client = fd;
	p->server = -1;
	p->over.fire = on_over;
	list_append(&r->pairs, &p->link);
	r->n_pairs++;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	p->tls = tlshs_handshake_new(context, STR(""), 0);
	p->of_client = event_new(r->conf.base, fd, EV_PERSIST, on_ready, p);
	if (!p->tls || !p->of_client || !watch(p->of_client, events_of_client(p))) {
		count_refused(r, "no_memory", "");
		pair_free(p);
		return;
	}
	twheel_arm(r->conf.wheel, &p->over, twheel_now(r->conf.wheel) + HANDSHAKE_NS);
}

// Only those who were let in are left.
static void drop_handshakes(struct status_relay *r)
{
	for (struct list_link *l = list_first(&r->pairs), *next; l; l = next) {
		struct pair *p = CONTAINER_OF(l, struct pair, link);
		next = list_after(&r->pairs, l);
		if (p->stage == SHAKES)
			pair_free(p);
	}
}

// One of which nothing is waited for would be told of when it is over, again and again.
static struct pollfd poll_of(int fd, short events)
{
	return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static struct pollfd *list_descriptors(const struct status_relay *r, int fd)
{
	struct pollfd *list = calloc(1 + 2 * r->n_pairs, sizeof(*list)), *at = list;
	if (!list)
		return NULL;
	*at++ = (struct pollfd){.fd = fd, .events = POLLIN};
	for (struct list_link *l = list_first(&r->pairs); l; l = list_after(&r->pairs, l)) {
		const struct pair *p = CONTAINER_OF(l, struct pair, link);
		*at++ = poll_of(p->client, events_of_client(p));
		*at++ = poll_of(p->server, events_of_server(p));
	}
	return list;
}

void status_relay_wait(struct status_relay *r, int fd, int timeout_ms)
{
	drop_handshakes(r);
	struct pollfd *list = list_descriptors(r, fd), *at = list;
	if (!list) {
		struct pollfd alone = {.fd = fd, .events = POLLIN};
		(void)poll(&alone, 1, timeout_ms);
		return;
	}
	bool any = poll(list, 1 + 2 * r->n_pairs, timeout_ms) > 0;
	for (struct list_link *l = list_first(&r->pairs), *next; any && l; l = next) {
		struct pair *p = CONTAINER_OF(l, struct pair, link);
		next = list_after(&r->pairs, l);
		short of_client = (++at)->revents, of_server = (++at)->revents;
		if (of_client || of_server)
			serve(p);
	}
	free(list);
}

void status_relay_free(struct status_relay *r)
{
	if (!r)
		return;
	uint64_t until = r->conf.clock_ns() + LINGER_NS;
	for (uint64_t now; r->n_pairs && (now = r->conf.clock_ns()) < until;)
		status_relay_wait(r, -1, (int)((until - now + NS_PER_MS - 1) / NS_PER_MS));
	while (!list_empty(&r->pairs))
		pair_free(CONTAINER_OF(list_first(&r->pairs), struct pair, link));
	twheel_cancel(r->conf.wheel, &r->turn);
	free(r);
}
