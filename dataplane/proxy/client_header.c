// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_header.h"

#include "dataplane/proxy/state.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <errno.h>

#define TIMEOUT_NS (5 * NS_PER_SECOND) // PP-08

int proxy_client_headers_init(struct proxy *p)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->conf.n_frontends && !n; i++)
		n = p->conf.frontends[i].header.n_allow ? p->conf.max_clients : 0;
	if (!n)
		return 0;
	int rc = pool_init(&p->client_headers, sizeof(struct proxy_client_header), n);
	return rc ? rc : pool_init(&p->client_tlvs, sizeof(struct proxy_client_tlvs), n);
}

bool proxy_client_header_allows(const struct proxy_listener *l, const struct tcp_conn *tcp)
{
	const struct lb_header_conf *conf = &l->proxy->frontends[l->frontend]->header;
	const struct ip_addr *from = &tcp_conn_flow(tcp)->remote;
	for (uint32_t i = 0; i < conf->n_allow; i++)
		if (ip_in_prefix(from, &conf->allow[i].ip, conf->allow[i].bits))
			return true;
	proxy_count(l->proxy, PROXY_headers_untrusted);
	return false;
}

void proxy_client_header_drop(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	twheel_cancel(p->wheel, &c->header->timer);
	pool_put(&p->client_headers, c->header);
	c->header = NULL;
}

void proxy_client_tlvs_drop(struct proxy_client *c)
{
	pool_put(&c->conn.proxy->client_tlvs, c->tlvs);
	c->tlvs = NULL;
}

// Only those stay that the Listener passes on (PP-21).
static void settle_tlvs(struct proxy_client *c)
{
	static const struct tlv_types none;
	const struct proxy_client_header *h = c->header;
	struct proxy_client_tlvs *t = c->tlvs;
	const struct str all = {(const char *)t->bytes, h->header.n_tlvs};
	t->len = (uint16_t)tlv_copy(t->bytes, all, &h->passed, &none);
	if (!t->len)
		proxy_client_tlvs_drop(c);
}

static void complete(struct proxy_client *c)
{
	const struct proxy_header *h = &c->header->header;
	proxy_count(c->conn.proxy, PROXY_headers_taken);
	if (h->has_source) { // PP-01
		c->address = h->source.ip;
		c->port = h->source.port;
		c->target = h->target;
		c->has_target = true;
	}
	if (c->tlvs)
		settle_tlvs(c);
	proxy_client_header_end(c);
}

// As if it had gone away by itself; then RST.
static void refuse(struct proxy_client *c, enum proxy_counter why)
{
	struct tcp_conn *tcp = c->conn.tcp;
	proxy_count(c->conn.proxy, why);
	c->behind_header->on_closed(tcp, c, TCP_CLOSE_RESET);
	tcp_conn_abort(tcp);
}

static void late_fire(struct twheel_timer *t)
{
	refuse(CONTAINER_OF(t, struct proxy_client_header, timer)->client, PROXY_headers_late);
}

static size_t take(struct proxy_client *c, const uint8_t *data, size_t len)
{
	struct proxy_header *h = &c->header->header;
	size_t used;
	switch (proxy_header_feed(h, data, len, &used)) {
	case PROXY_HEADER_MORE:
		return len;
	case PROXY_HEADER_DONE:
		complete(c);
		return used;
	case PROXY_HEADER_MISSING:
		refuse(c, PROXY_headers_missing);
		return len;
	case PROXY_HEADER_MALFORMED:
		refuse(c, PROXY_headers_malformed);
		return len;
	case PROXY_HEADER_TOO_LONG:
		refuse(c, PROXY_headers_too_long);
		return len;
	case PROXY_HEADER_BAD_TLVS:
		refuse(c, PROXY_headers_bad_tlvs);
		return len;
	}
	return len;
}

static size_t on_data(struct tcp_conn *tcp, void *user, const uint8_t *data, size_t len)
{
	struct proxy_client *c = user;
	size_t used = c->header ? take(c, data, len) : 0;
	if (used == len)
		return len;
	return used + c->behind_header->on_data(tcp, c, data + used, len - used);
}

static void on_send_room(struct tcp_conn *tcp, void *user)
{
	const struct proxy_client *c = user;
	c->behind_header->on_send_room(tcp, user);
}

static void on_eof(struct tcp_conn *tcp, void *user)
{
	struct proxy_client *c = user;
	if (c->header)
		refuse(c, PROXY_headers_missing);
	else
		c->behind_header->on_eof(tcp, user);
}

static void on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	const struct proxy_client *c = user;
	c->behind_header->on_closed(tcp, user, reason);
}

static const struct tcp_conn_ops header_ops = {
	.on_data = on_data, .on_send_room = on_send_room, .on_eof = on_eof, .on_closed = on_closed};

const struct tcp_conn_ops *proxy_client_header_begin(
	struct proxy_client *c, const struct tlv_types *passed, const struct tcp_conn_ops *ops)
{
	struct proxy *p = c->conn.proxy;
	const struct lb_header_conf *conf = &p->frontends[c->frontend]->header;
	c->behind_header = ops;
	c->header = pool_take(&p->client_headers);
	CHECK(c->header); // there are as many as clients
	*c->header = (struct proxy_client_header){
		.header = {.v1 = conf->v1, .v2 = conf->v2}, .timer.fire = late_fire, .client = c};
	if (passed && tlv_types_are_any(passed)) {
		c->tlvs = pool_take(&p->client_tlvs);
		CHECK(c->tlvs); // likewise
		c->tlvs->len = 0;
		c->header->passed = *passed;
		c->header->header.tlvs = c->tlvs->bytes;
	}
	twheel_arm(p->wheel, &c->header->timer, twheel_now(p->wheel) + TIMEOUT_NS);
	return &header_ops;
}
