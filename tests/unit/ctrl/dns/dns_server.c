// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/dns/dns_server.h"

#include "lb/base/check.h"
#include "lb/base/ip.h"

#include <event2/event.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER_LEN 12
#define TYPE_A 1
#define TYPE_CNAME 5
#define TYPE_AAAA 28
#define UDP_MAX 512
#define MESSAGE_MAX 16384

struct message {
	uint8_t b[MESSAGE_MAX];
	size_t len;
};

static void put8(struct message *m, unsigned v)
{
	CHECK(m->len < MESSAGE_MAX);
	m->b[m->len++] = (uint8_t)v;
}

static void put16(struct message *m, unsigned v)
{
	put8(m, v >> 8);
	put8(m, v & 0xff);
}

static void put32(struct message *m, uint32_t v)
{
	put16(m, v >> 16);
	put16(m, v & 0xffff);
}

static void put_name(struct message *m, const char *name)
{
	while (*name) {
		size_t len = strcspn(name, ".");
		put8(m, (unsigned)len);
		for (size_t i = 0; i < len; i++)
			put8(m, (uint8_t)name[i]);
		name += len + (name[len] == '.');
	}
	put8(m, 0);
}

static void put_record(struct message *m, const char *owner, unsigned type, uint32_t ttl)
{
	put_name(m, owner);
	put16(m, type);
	put16(m, 1); // IN
	put32(m, ttl);
}

// The number of records.
static unsigned put_addresses(
	struct message *m, const char *owner, const char *list, unsigned type, uint32_t ttl)
{
	char text[MESSAGE_MAX], *rest = text;
	unsigned n = 0;
	snprintf(text, sizeof(text), "%s", list ? list : "");
	for (char *word; (word = strtok_r(rest, " ", &rest)); n++) {
		struct ip_addr addr;
		CHECK(ip_parse(word, &addr));
		size_t skip = type == TYPE_A ? 12 : 0;
		put_record(m, owner, type, ttl);
		put16(m, (unsigned)(sizeof(addr.b) - skip));
		for (size_t i = skip; i < sizeof(addr.b); i++)
			put8(m, addr.b[i]);
	}
	return n;
}

struct question {
	unsigned id, type;
	char host[256];
	const uint8_t *bytes; // of the question section
	size_t len;
};

static bool read_question(const uint8_t *p, size_t len, struct question *ret)
{
	size_t at = HEADER_LEN, n = 0;
	if (len < HEADER_LEN)
		return false;
	while (at < len && p[at]) {
		size_t label = p[at++];
		if (label > 63 || at + label > len || n + label + 2 > sizeof(ret->host))
			return false;
		if (n)
			ret->host[n++] = '.';
		memcpy(ret->host + n, p + at, label);
		n += label;
		at += label;
	}
	if (at + 5 > len)
		return false;
	ret->host[n] = '\0';
	ret->id = (unsigned)(p[0] << 8 | p[1]);
	ret->type = (unsigned)(p[at + 1] << 8 | p[at + 2]);
	ret->bytes = p + HEADER_LEN;
	ret->len = at + 5 - HEADER_LEN;
	return true;
}

static void put_header(struct message *m, unsigned id, unsigned flags, unsigned n_answers)
{
	put16(m, id);
	put16(m, 0x8180 | flags);
	put16(m, 1);
	put16(m, n_answers);
	put32(m, 0);
}

static void set_n_answers(struct message *m, unsigned n)
{
	m->b[6] = (uint8_t)(n >> 8);
	m->b[7] = (uint8_t)n;
}

static void damage(struct message *m, struct rand *r)
{
	for (uint64_t n = rand_below(r, 8); n > 0; n--)
		m->b[2 + rand_below(r, m->len - 2)] = (uint8_t)rand_u64(r);
	if (rand_below(r, 3) == 0)
		m->len = rand_below(r, m->len + 1);
}

static void answer(struct dns_server *s, const struct dns_rule *rule, enum dns_way way,
	const struct question *q, struct message *m)
{
	unsigned rcode = way == DNS_NXDOMAIN ? 3 : way == DNS_SERVFAIL ? 2 : 0;
	put_header(m, q->id ^ (way == DNS_OTHER_ID), rcode, 0);
	if (way == DNS_OTHER_NAME) {
		put_name(m, "other.test");
		put16(m, q->type);
		put16(m, 1);
	} else {
		memcpy(m->b + m->len, q->bytes, q->len);
		m->len += q->len;
	}
	if (rcode)
		return;
	const char *owner = rule->cname ? rule->cname : rule->host;
	unsigned n = 0;
	if (way == DNS_LOOP) {
		put16(m, 0xc000 | (unsigned)m->len);
		put16(m, q->type);
		put16(m, 1);
		put32(m, 60);
		put16(m, 0);
		n++;
	}
	if (rule->cname) {
		put_record(m, rule->host, TYPE_CNAME, rule->cname_ttl);
		put16(m, (unsigned)strlen(rule->cname) + 2);
		put_name(m, rule->cname);
		n++;
	}
	if (q->type == TYPE_A)
		n += put_addresses(m, owner, rule->a, TYPE_A, rule->ttl);
	else if (q->type == TYPE_AAAA)
		n += put_addresses(m, owner, rule->aaaa, TYPE_AAAA, rule->ttl);
	set_n_answers(m, way == DNS_LIES ? n + 7 : n);
	if (way == DNS_CUT)
		m->len -= 3;
	if (way == DNS_SHORT)
		m->len = 5;
	if (way == DNS_RANDOM)
		damage(m, &s->rand);
}

static const struct dns_rule *rule_of(
	const struct dns_server *s, const struct question *q, enum dns_way *ret)
{
	static const struct dns_rule none = {.host = "none"};
	for (unsigned i = 0; i < s->n_rules; i++) {
		const struct dns_rule *r = &s->rules[i];
		if (strcasecmp(r->host, q->host) != 0)
			continue;
		*ret = q->type == TYPE_AAAA && r->aaaa_way != DNS_ANSWER ? r->aaaa_way : r->way;
		return r;
	}
	*ret = DNS_NXDOMAIN;
	return &none;
}

static void on_udp(evutil_socket_t fd, short what, void *arg)
{
	struct dns_server *s = arg;
	uint8_t in[UDP_MAX];
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	ssize_t len = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &from_len);
	struct question q;
	if (len < 0 || !read_question(in, (size_t)len, &q))
		return;
	s->n_udp++;
	enum dns_way way;
	const struct dns_rule *rule = rule_of(s, &q, &way);
	if (way == DNS_SILENT)
		return;
	enum dns_way turns[2] = {way, DNS_ANSWER};
	if (way == DNS_GUESSED_FIRST)
		turns[0] = DNS_OTHER_ID;
	for (int i = 0; i < (way == DNS_GUESSED_FIRST ? 2 : 1); i++) {
		struct message m = {.len = 0};
		answer(s, rule, turns[i], &q, &m);
		if (m.len > UDP_MAX) { // RFC 1035 4.2.1
			m.len = 0;
			put_header(&m, q.id, 0x0200, 0);
			memcpy(m.b + m.len, q.bytes, q.len);
			m.len += q.len;
		}
		sendto(fd, m.b, m.len, 0, (struct sockaddr *)&from, from_len);
	}
}

// One connection, which may bring several questions.
struct conn {
	struct dns_server *server;
	struct conn *next;
	struct event *event;
	int fd; // -1 = closed
	uint8_t in[4 * UDP_MAX];
	size_t have;
};

static void conn_close(struct conn *c)
{
	event_free(c->event);
	close(c->fd);
	c->fd = -1;
}

static void answer_stream(struct conn *c, const struct question *q)
{
	struct dns_server *s = c->server;
	enum dns_way way;
	const struct dns_rule *rule = rule_of(s, q, &way);
	struct message m = {.len = 0};
	answer(s, rule, way, q, &m);
	uint8_t prefix[2] = {(uint8_t)(m.len >> 8), (uint8_t)m.len};
	send(c->fd, prefix, sizeof(prefix), MSG_NOSIGNAL | MSG_MORE);
	send(c->fd, m.b, m.len, MSG_NOSIGNAL);
}

static void on_stream(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	ssize_t n = recv(fd, c->in + c->have, sizeof(c->in) - c->have, 0);
	if (n <= 0) {
		conn_close(c);
		return;
	}
	c->have += (size_t)n;
	while (c->have >= 2) {
		size_t len = (size_t)(c->in[0] << 8 | c->in[1]) + 2;
		struct question q;
		if (c->have < len)
			return;
		c->server->n_tcp++;
		if (read_question(c->in + 2, len - 2, &q))
			answer_stream(c, &q);
		memmove(c->in, c->in + len, c->have - len);
		c->have -= len;
	}
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct dns_server *s = arg;
	struct conn *c = calloc(1, sizeof(*c));
	CHECK(c);
	c->server = s;
	c->fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
	CHECK(c->fd >= 0);
	c->event = event_new(s->events, c->fd, EV_READ | EV_PERSIST, on_stream, c);
	CHECK(c->event && event_add(c->event, NULL) == 0);
	c->next = s->conns;
	s->conns = c;
}

// UDP and TCP on one port.
static bool bind_both(struct dns_server *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	s->tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(s->udp >= 0 && s->tcp >= 0);
	if (bind(s->udp, (struct sockaddr *)&at, len) ||
		getsockname(s->udp, (struct sockaddr *)&at, &len) ||
		bind(s->tcp, (struct sockaddr *)&at, len) || listen(s->tcp, 64)) {
		close(s->udp);
		close(s->tcp);
		return false;
	}
	snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", ntohs(at.sin_port));
	return true;
}

void dns_server_init(struct dns_server *s, struct event_base *events)
{
	*s = (struct dns_server){.events = events};
	rand_init(&s->rand, 3);
	int tries = 50;
	while (!bind_both(s))
		CHECK(--tries > 0);
	s->udp_event = event_new(events, s->udp, EV_READ | EV_PERSIST, on_udp, s);
	s->tcp_event = event_new(events, s->tcp, EV_READ | EV_PERSIST, on_accept, s);
	CHECK(s->udp_event && event_add(s->udp_event, NULL) == 0);
	CHECK(s->tcp_event && event_add(s->tcp_event, NULL) == 0);
}

void dns_server_fini(struct dns_server *s)
{
	event_free(s->udp_event);
	event_free(s->tcp_event);
	for (struct conn *c = s->conns, *next; c; c = next) {
		next = c->next;
		if (c->fd >= 0)
			conn_close(c);
		free(c);
	}
	close(s->udp);
	close(s->tcp);
}

void dns_server_rule(struct dns_server *s, const struct dns_rule *rule)
{
	unsigned i = 0;
	while (i < s->n_rules && strcmp(s->rules[i].host, rule->host) != 0)
		i++;
	CHECK(i < DNS_SERVER_RULES);
	s->rules[i] = *rule;
	if (i == s->n_rules)
		s->n_rules++;
}
