// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/conn_h2.h"

#include <stdlib.h>

struct conn_h2 *conn_h2_new(const struct h2_conf *conf, enum h2_role role,
	const struct h2_events *events, struct pool *chunks)
{
	struct conn_h2 *h = malloc(sizeof(*h));
	if (!h)
		return NULL;
	*h = (struct conn_h2){
		.context = h2_context_new(conf, chunks), .role = role, .events = events};
	if (h->context)
		return h;
	free(h);
	return NULL;
}

void conn_h2_free(struct conn_h2 *h)
{
	if (!h)
		return;
	h2_context_free(h->context);
	free(h);
}

static void *begin(struct conn *c, struct buf *out)
{
	const struct conn_h2 *h = c->side->context;
	return h2_conn_new(h->context, h->role, h->events, out, c);
}

static void end(void *session)
{
	h2_conn_free(session, H2_CANCEL);
}

static size_t feed(void *session, const uint8_t *p, size_t len)
{
	return h2_conn_feed(session, p, len);
}

static bool pump(void *session, size_t room)
{
	return h2_conn_pump(session, room);
}

static const char *failed(const void *session)
{
	enum h2_error code;
	return h2_conn_failed(session, &code) ? "HTTP/2 error" : NULL;
}

const struct conn_protocol conn_h2_protocol = {
	.alpn = "h2", .begin = begin, .end = end, .feed = feed, .pump = pump, .failed = failed};
