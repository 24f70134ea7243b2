// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/http1.h"

#include "dataplane/h1/h1.h"

static struct h2_message of_h1(const struct h1_message *m)
{
	return (struct h2_message){
		.kind = m->kind == H1_REQUEST ? H2_REQUEST : H2_TRAILERS,
		.method = m->method,
		.scheme = m->scheme,
		.authority = m->authority,
		.path = m->path,
		.end_stream = m->end_stream,
		.content_length = m->content_length,
		.fields = m->fields,
		.n_fields = m->n_fields,
	};
}

static void on_message(struct h1_conn *h1, const struct h1_message *m)
{
	struct h2_conn *c = h1_conn_user(h1);
	const struct h2_message as_h2 = of_h1(m);
	if (m->kind == H1_REQUEST)
		h2_carrier_request(c, &as_h2, m->expects_continue);
	else
		h2_carrier_trailers(c, &as_h2);
}

static void on_data(struct h1_conn *h1, const uint8_t *p, size_t len, bool end_stream)
{
	h2_carrier_data(h1_conn_user(h1), p, len, end_stream);
}

static const struct h1_events events = {.on_message = on_message, .on_data = on_data};

static void *begin(void *arg, struct h2_conn *c, struct buf *out, struct str scheme)
{
	return h1_conn_new(arg, &events, out, scheme, c);
}

static void end(void *h1)
{
	h1_conn_free(h1);
}

static size_t feed(void *h1, const uint8_t *p, size_t len, uint32_t window)
{
	h1_conn_set_window(h1, window);
	return h1_conn_step(h1, p, len);
}

static bool holds(void *h1, uint32_t window)
{
	h1_conn_set_window(h1, window);
	return h1_conn_holds(h1);
}

static bool in_head(const void *h1)
{
	return h1_conn_in_head(h1);
}

static size_t unfinished(const void *h1)
{
	return h1_conn_unfinished(h1);
}

static uint16_t failed(const void *h1, struct str *ret_why)
{
	uint16_t status;
	enum h1_malformed why = h1_conn_failed(h1, &status);
	*ret_why = h1_malformed_text(why);
	return status;
}

static void known(void *h1, struct h2_message *ret)
{
	*ret = of_h1(h1_conn_known(h1));
}

static struct h1_message of_h2(const struct h2_message *m)
{
	static const enum h1_message_kind kinds[] = {[H2_REQUEST] = H1_REQUEST,
		[H2_INFORMATIONAL] = H1_INFORMATIONAL,
		[H2_RESPONSE] = H1_RESPONSE,
		[H2_TRAILERS] = H1_TRAILERS};
	return (struct h1_message){.kind = kinds[m->kind],
		.status = m->status,
		.end_stream = m->end_stream,
		.content_length = m->content_length,
		.fields = m->fields,
		.n_fields = m->n_fields};
}

static bool put_message(void *h1, const struct h2_message *m)
{
	const struct h1_message as_h1 = of_h2(m);
	return h1_conn_send_message(h1, &as_h1);
}

static bool put_data(void *h1, const uint8_t *p, size_t len)
{
	return h1_conn_send_data(h1, p, len);
}

static bool put_buf(void *h1, struct buf *body)
{
	return h1_conn_send_buf(h1, body);
}

static bool put_end(void *h1, const struct h2_message *trailers)
{
	if (!trailers)
		return h1_conn_send_end(h1, NULL);
	const struct h1_message as_h1 = of_h2(trailers);
	return h1_conn_send_end(h1, &as_h1);
}

static void refuse(void *h1, const struct h2_message *m)
{
	// An answer has begun, or nothing can be written: the connection just ends.
	(void)!h1_conn_refuse(h1, m->status, m->fields, m->n_fields);
}

static void drain(void *h1)
{
	h1_conn_drain(h1);
}

static bool closes(const void *h1)
{
	return h1_conn_closes(h1);
}

static bool ends_with_conn(const void *h1)
{
	return h1_conn_ends_with_conn(h1);
}

static uint8_t version(const void *h1)
{
	return (uint8_t)(10 + h1_conn_minor(h1));
}

const struct h2_carrier proxy_http1_carrier = {.begin = begin,
	.free = end,
	.feed = feed,
	.holds = holds,
	.in_head = in_head,
	.unfinished = unfinished,
	.failed = failed,
	.known = known,
	.put_message = put_message,
	.put_data = put_data,
	.put_buf = put_buf,
	.put_end = put_end,
	.refuse = refuse,
	.drain = drain,
	.closes = closes,
	.ends_with_conn = ends_with_conn,
	.version = version};
