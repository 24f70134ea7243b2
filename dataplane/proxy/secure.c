// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/secure.h"

#include "dataplane/h2/h2.h"
#include "dataplane/proxy/peer.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/work_turn.h"
#include "dataplane/tcp/tcp.h"
#include "dataplane/tls/record.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/min.h"
#include "lb/base/siphash.h"
#include "lb/pick/credential.h"
#include "lb/pick/endpoint.h"
#include "lb/snapshot.h"
#include "tlshs/handshake.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

// What seal leaves free for lack of a record's worth: TCP is filled beyond its limit by that, since
// only who has filled it is told of room.
#define ROOM_SLACK 512

static enum proxy_handshake_side side_of(const struct proxy_secure *s)
{
	return s->role == TLS_SERVER ? PROXY_WITH_CLIENT : PROXY_WITH_BACKEND;
}

static void stop(struct proxy_secure *s)
{
	if (s->handshake)
		proxy_handshake_stop(&s->proxy->handshakes, s->handshake);
	s->handshake = NULL;
}

_Static_assert(LB_ENDPOINT_WHY_MAX <= TLSHS_MAX_NAME + 1, "a reason fits where a name does");

// Of a client nobody asks why: what is longer than most is a backend's alone, so that no crowd of
// clients that fail takes the places of others' names.
static __attribute__((format(printf, 2, 3))) void break_off(
	struct proxy_secure *s, const char *format, ...)
{
	char text[LB_ENDPOINT_WHY_MAX];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	s->broken = true;
	if (len >= PROXY_SHORT_NAME && s->role == TLS_CLIENT && !s->long_text)
		s->long_text = pool_take(&s->proxy->names);
	if (s->long_text)
		snprintf(s->long_text, LB_ENDPOINT_WHY_MAX, "%s", text);
	else
		snprintf(s->short_text, sizeof(s->short_text), "%s", text);
}

static void give_up(struct proxy_secure *s, enum tlshs_outcome how, const char *why)
{
	proxy_handshakes_count(&s->proxy->handshakes, side_of(s), how);
	stop(s);
	s->by_peer = tlshs_outcome_is_peers(how);
	const char *name = tlshs_outcome_name(how);
	bool says_more = why && *why && strcmp(why, name) != 0;
	break_off(s, "TLS: %s%s%s", name, says_more ? ": " : "", says_more ? why : "");
	buf_clear(&s->plain, s->proxy->chunks);
}

void proxy_secure_time_out(struct proxy_secure *s)
{
	if (proxy_secure_is_shaking(s))
		give_up(s, TLSHS_timeout, NULL);
}

static void late_fire(struct twheel_timer *);

// The deadline of a record that has begun; one that was whole in time leaves the timer as it is.
static void watch(struct proxy_secure *s)
{
	uint64_t at_ns = tls_conn_deadline_ns(s->tls);
	if (at_ns == UINT64_MAX || twheel_armed(&s->timer))
		return;
	s->timer.fire = late_fire;
	twheel_arm(s->proxy->wheel, &s->timer, at_ns);
}

static void look_at_records(struct proxy_secure *s)
{
	uint8_t alert;
	watch(s);
	if (s->broken || !tls_conn_failed(s->tls, &alert, &s->by_peer))
		return;
	break_off(s, "TLS: %s alert %s (%u)", s->by_peer ? "its" : "our", tls_alert_name(alert),
		alert);
	buf_clear(&s->back, s->proxy->chunks);
}

static void late_fire(struct twheel_timer *t)
{
	struct proxy_secure *s = CONTAINER_OF(t, struct proxy_secure, timer);
	if (s->tls) {
		tls_conn_expire(s->tls);
		look_at_records(s);
	} else {
		proxy_secure_time_out(s);
	}
	s->events->on_change(s->user);
}

static size_t on_plain(struct tls_conn *tls, void *user, const uint8_t *p, size_t len)
{
	struct proxy_secure *s = user;
	return s->events->on_plain(s->user, p, len);
}

static void on_opened(struct tls_conn *tls, void *user, bool has_data, size_t len)
{
	struct proxy_secure *s = user;
	if (s->role == TLS_SERVER) // backends have no allowance
		proxy_work_charge_record(&s->proxy->work,
			has_data ? PROXY_WORK_RECORD : PROXY_WORK_OTHER_RECORD, len);
}

static void on_eof(struct tls_conn *tls, void *user)
{
	struct proxy_secure *s = user;
	s->eof = true;
}

static void on_ticket(struct tls_conn *tls, void *user, const uint8_t *p, size_t len)
{
	struct proxy_secure *s = user;
	if (!s->tickets)
		return;
	if (!proxy_handshakes_ticket(&s->proxy->handshakes, s->tickets, p, len))
		proxy_count(s->proxy, PROXY_tickets_dropped);
	if (++s->n_tickets == TLSHS_MAX_TICKETS)
		s->tickets = 0;
}

static const struct tls_events tls_events = {
	.on_plain = on_plain, .on_eof = on_eof, .on_ticket = on_ticket, .on_opened = on_opened};

uint64_t proxy_secure_source(const struct proxy *p, const struct ip_port *a)
{
	uint64_t words[2];
	memcpy(words, a->ip.b, sizeof(words));
	return siphash13(p->sources.key, words, 2, UINT64_C(18) << 56 | a->port);
}

struct proxy_secure *proxy_secure_new(struct proxy *p, const struct proxy_secure_conf *conf)
{
	struct proxy_secure *s = pool_take(&p->secures);
	if (!s)
		return NULL;
	*s = (struct proxy_secure){.proxy = p,
		.events = conf->events,
		.user = conf->user,
		.source = conf->source,
		.server_name = conf->server_name,
		.credential = conf->credential,
		.role = (uint8_t)conf->role};
	return s;
}

void proxy_secure_free(struct proxy_secure *s)
{
	struct proxy *p = s->proxy;
	if (s->handshake && !s->tls)
		proxy_handshakes_count(&p->handshakes, side_of(s), TLSHS_lost);
	stop(s);
	if (s->tls)
		tls_conn_free(s->tls);
	if (s->peer)
		pool_put(&p->peers, s->peer);
	if (s->long_text)
		pool_put(&p->names, s->long_text);
	buf_clear(&s->plain, p->chunks);
	buf_clear(&s->back, p->chunks);
	list_remove(&s->again);
	twheel_cancel(p->wheel, &s->timer);
	pool_put(&p->secures, s);
}

void proxy_secure_again(struct proxy_secure *s)
{
	if (!list_linked(&s->again))
		list_append(&s->proxy->secures_again, &s->again);
}

// The credential is what stands at its id now: who began before it changed goes on with the old one
// (TLS-143).
static void start(struct proxy_secure *s)
{
	struct proxy *p = s->proxy;
	const struct lb_credential *credential = lb_snapshot_credential(p->snapshot, s->credential);
	if (!credential) {
		give_up(s, TLSHS_no_credential, "there is no certificate for it yet");
		return;
	}
	if (!s->handshake)
		s->handshake = proxy_handshake_take(&p->handshakes, side_of(s), s->source, s);
	if (!s->handshake) {
		give_up(s, TLSHS_over_limit, "too many handshakes of this worker or source");
		return;
	}
	struct proxy_handshake_ask ask = {.context = credential->tls,
		.server_name = s->server_name ? str_from(s->server_name) : STR(""),
		.source = s->source};
	proxy_handshake_begin(&p->handshakes, s->handshake, &ask);
}

static void on_room(void *user)
{
	struct proxy_secure *s = user;
	if (!proxy_handshake_has_begun(s->handshake))
		start(s);
	s->events->on_change(s->user);
}

void proxy_secure_begin(struct proxy_secure *s, struct tcp_conn *tcp)
{
	s->tcp = tcp;
	if (s->role == TLS_SERVER) {
		s->timer.fire = late_fire;
		twheel_arm(s->proxy->wheel, &s->timer,
			twheel_now(s->proxy->wheel) + PROXY_HANDSHAKE_NS);
		return;
	}
	start(s);
}

static bool has_whole_record(const uint8_t *data, size_t len)
{
	return len >= TLS_HEADER && len - TLS_HEADER >= tls_body_len(data);
}

// What is more than a handshake may take waits with TCP until it has ended (TLS-63).
static size_t feed_handshake(struct proxy_secure *s, const uint8_t *data, size_t len)
{
	if (!s->handshake) { // a client's first bytes
		s->proxy->work.allowance -= PROXY_WORK_HANDSHAKE;
		start(s);
	}
	if (s->broken)
		return len;
	if (s->role == TLS_SERVER && !s->owed && has_whole_record(data, len)) // TLS-260
		tcp_conn_will_answer(s->tcp);
	size_t n = proxy_handshake_send(&s->proxy->handshakes, s->handshake, data,
		min_size(len, TLSHS_MAX_FLIGHT - s->owed));
	s->owed += n;
	return n;
}

// A client's wait while its source has no part of the turn left: not all of them bring something
// that the protocol above would leave.
static size_t feed_records(struct proxy_secure *s, const uint8_t *p, size_t len)
{
	bool waits = s->role == TLS_SERVER && s->proxy->work.allowance <= 0;
	return waits ? 0 : tls_conn_feed(s->tls, p, len);
}

size_t proxy_secure_feed(struct proxy_secure *s, const uint8_t *data, size_t len)
{
	if (s->broken || s->eof)
		return len;
	if (!s->tls)
		return feed_handshake(s, data, len);
	if (s->owed || s->back.len)
		return 0;
	size_t n = feed_records(s, data, len);
	look_at_records(s);
	if (n < len && tls_conn_wants_chunks(s->tls))
		proxy_secure_again(s);
	return n;
}

bool proxy_secure_fin(struct proxy_secure *s)
{
	if (s->broken)
		return true;
	if (s->tls)
		s->fin = s->owed || s->back.len;
	else
		s->fin = s->handshake && proxy_handshake_eof(&s->proxy->handshakes, s->handshake);
	return s->fin;
}

bool proxy_secure_feed_back(struct proxy_secure *s)
{
	if (!s->tls || s->owed)
		return true; // it is not all there
	for (size_t n = 1; s->back.len && n;) {
		size_t len;
		const uint8_t *p = buf_peek(&s->back, &len);
		n = feed_records(s, p, len);
		buf_consume(&s->back, s->proxy->chunks, n);
	}
	look_at_records(s);
	if (s->back.len && tls_conn_wants_chunks(s->tls))
		proxy_secure_again(s);
	return !s->back.len;
}

// True = something moved.
static bool pump_once(struct proxy_secure *s, struct h2_conn *h2, bool *ret_more)
{
	struct buf *out = tcp_conn_sendq(s->tcp);
	size_t room = tcp_conn_send_room(s->tcp), before = out->len;
	room = room ? room + ROOM_SLACK : 0;
	size_t plain_room = tls_conn_plain_room(s->tls, room), waits = s->plain.len;
	*ret_more = h2 && h2_conn_pump(h2, plain_room > waits ? plain_room - waits : 0);
	*ret_more |= tls_conn_seal(s->tls, &s->plain, out, room);
	s->n_put += out->len - before;
	return out->len > before;
}

bool proxy_secure_pump(struct proxy_secure *s, struct h2_conn *h2)
{
	bool more = true;
	if (!s->tls)
		return false;
	while (pump_once(s, h2, &more) && more && tcp_conn_send_room(s->tcp))
		;
	look_at_records(s);
	// Nothing is on its way whose acknowledgement would wake the owner.
	if (more && !tcp_conn_sendq(s->tcp)->len)
		proxy_secure_again(s);
	return more;
}

bool proxy_secure_close(struct proxy_secure *s)
{
	twheel_cancel(s->proxy->wheel, &s->timer);
	if (!s->tls) {
		if (s->handshake)
			give_up(s, TLSHS_lost, NULL);
		buf_clear(&s->plain, s->proxy->chunks);
		return true;
	}
	stop(s);
	buf_clear(&s->back, s->proxy->chunks);
	if (tls_conn_failed(s->tls, NULL, NULL))
		buf_clear(&s->plain, s->proxy->chunks);
	tls_conn_shutdown(s->tls);
	proxy_secure_pump(s, NULL);
	return tls_conn_is_shut(s->tls);
}

static enum proxy_protocol protocol_of(const struct tlshs_result *r)
{
	struct str alpn = {r->alpn, r->alpn_len};
	if (str_eq(alpn, STR("h2")))
		return PROXY_HTTP2;
	return str_eq(alpn, STR("http/1.1")) ? PROXY_HTTP1 : PROXY_ANY_PROTOCOL;
}

// Of a client. False = no memory.
static bool know_peer(struct proxy_secure *s, const struct tlshs_result *r)
{
	if (s->role == TLS_CLIENT || !r->peer.present)
		return true;
	s->peer = pool_take(&s->proxy->peers);
	if (s->peer)
		proxy_peer_set(s->peer, r);
	return s->peer != NULL;
}

// Likewise.
static bool know_name(struct proxy_secure *s, const struct tlshs_result *r)
{
	if (s->role == TLS_CLIENT)
		return true;
	if (r->server_name_len > sizeof(s->short_text)) {
		s->long_text = pool_take(&s->proxy->names);
		if (!s->long_text)
			return false;
	}
	s->asked_len = r->server_name_len;
	memcpy(s->long_text ? s->long_text : s->short_text, r->server_name, s->asked_len);
	return true;
}

static void take_keys(struct proxy_secure *s, const struct tlshs_answer *a)
{
	struct proxy *p = s->proxy;
	s->protocol = (uint8_t)protocol_of(&a->result);
	if (s->role == TLS_CLIENT && s->protocol != PROXY_HTTP2) { // TLS-145
		give_up(s, TLSHS_no_application_protocol, "the backend does not say h2");
		return;
	}
	s->tls = tls_conn_new(p->tls, s->role, &a->result.secrets, &tls_events, s);
	if (!s->tls || !know_peer(s, &a->result) || !know_name(s, &a->result)) {
		give_up(s, TLSHS_no_memory, NULL);
		return;
	}
	proxy_handshakes_count(
		&p->handshakes, side_of(s), a->result.resumed ? TLSHS_resumed : TLSHS_ok);
	twheel_cancel(p->wheel, &s->timer);
	s->owed -= a->n_taken;
	s->tickets = proxy_handshake_tickets(&p->handshakes, s->handshake, a->promise);
	s->fresh = true;
	if (!s->owed)
		stop(s);
}

// Of a client it takes none of the last chunks (TH-70).
static void take_rest(struct proxy_secure *s, const struct tlshs_answer *a)
{
	struct pool *chunks = s->proxy->chunks;
	bool is_short = s->role == TLS_SERVER && buf_is_short(chunks);
	if (is_short || !buf_append(&s->back, chunks, a->bytes, a->len)) {
		stop(s);
		break_off(s, "TLS: out of memory");
		return;
	}
	s->owed -= a->len;
	if (!s->owed)
		stop(s);
}

static void take_output(struct proxy_secure *s, const struct tlshs_answer *a)
{
	if (!buf_append(tcp_conn_sendq(s->tcp), s->proxy->chunks, a->bytes, a->len)) {
		give_up(s, TLSHS_no_memory, NULL);
		return;
	}
	s->n_put += a->len;
	tcp_conn_push(s->tcp);
}

static void on_answer(void *user, const struct tlshs_answer *a)
{
	struct proxy_secure *s = user;
	if (a->kind == TLSHS_TO_PEER)
		take_output(s, a);
	else if (a->kind == TLSHS_REST)
		take_rest(s, a);
	else if (a->outcome == TLSHS_ok)
		take_keys(s, a);
	else
		give_up(s, a->outcome, a->why);
	if (a->kind != TLSHS_TO_PEER || s->broken)
		s->events->on_change(s->user);
}

const struct proxy_handshakes_events proxy_secure_handshake_events = {
	.on_answer = on_answer, .on_room = on_room};

bool proxy_secure_is_busy(const struct proxy *p)
{
	return proxy_handshakes_are_due(&p->handshakes) || !list_empty(&p->secures_again);
}

void proxy_secure_turn(struct proxy *p)
{
	struct list_link now; // those who come meanwhile are for the next turn
	proxy_handshakes_poll(&p->handshakes);
	list_init(&now);
	while (!list_empty(&p->secures_again)) {
		struct list_link *l = p->secures_again.next;
		list_remove(l);
		list_append(&now, l);
	}
	while (!list_empty(&now)) {
		struct proxy_secure *s = CONTAINER_OF(now.next, struct proxy_secure, again);
		list_remove(&s->again);
		s->events->on_change(s->user);
	}
}
