// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/local_reply.h"

#include "lb/base/grpc_status.h"

#include <stdint.h>
#include <stdio.h>

struct proxy_reply proxy_reply_for(enum lb_cause cause, struct str text)
{
	const struct lb_cause_info *info = lb_cause_info(cause);
	return (struct proxy_reply){.cause = cause,
		.http_status = (uint16_t)info->http_status,
		.grpc_status = info->grpc_status,
		.text = text};
}

struct proxy_reply proxy_reply_for_bad(uint16_t status, struct str text)
{
	bool is_ours = status == 503; // out of memory
	struct proxy_reply r =
		proxy_reply_for(is_ours ? LB_CAUSE_OVERLOAD : LB_CAUSE_CLIENT_PROTOCOL, text);
	r.http_status = status;
	return r;
}

struct proxy_reply proxy_reply_for_reset(enum h2_error code)
{
	struct proxy_reply r =
		proxy_reply_for(LB_CAUSE_UPSTREAM_RESET, STR("the backend reset the stream"));
	switch (code) {
	case H2_REFUSED_STREAM:
		r.grpc_status = GRPC_UNAVAILABLE;
		r.text = STR("the backend refused the stream");
		break;
	case H2_CANCEL:
		r.grpc_status = GRPC_CANCELLED;
		r.text = STR("the backend cancelled the stream");
		break;
	case H2_ENHANCE_YOUR_CALM:
		r.grpc_status = GRPC_RESOURCE_EXHAUSTED;
		r.text = STR("the backend asks for less (ENHANCE_YOUR_CALM)");
		break;
	case H2_INADEQUATE_SECURITY:
		r.grpc_status = GRPC_PERMISSION_DENIED;
		r.text = STR("the backend requires better transport security");
		break;
	default:
		r.grpc_status = GRPC_INTERNAL;
		break;
	}
	return r;
}

int proxy_grpc_of_http(uint16_t status)
{
	switch (status) {
	case 400:
	case 431:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

size_t proxy_grpc_message(struct str text, char *out)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t n = 0;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = (uint8_t)text.p[i];
		if (c >= 0x20 && c <= 0x7e && c != '%') {
			if (n + 1 > PROXY_GRPC_MESSAGE_MAX)
				break;
			out[n++] = (char)c;
		} else {
			if (n + 3 > PROXY_GRPC_MESSAGE_MAX)
				break;
			out[n++] = '%';
			out[n++] = hex[c >> 4];
			out[n++] = hex[c & 15];
		}
	}
	return n;
}

static struct str text_of(const struct proxy_reply *r, bool with_details)
{
	return with_details ? r->text : str_from(lb_cause_info(r->cause)->text);
}

static struct field cause_field(const struct proxy_reply *r)
{
	return (struct field){
		.name = STR("x-shunt-cause"), .value = str_from(lb_cause_info(r->cause)->name)};
}

size_t proxy_reply_add_fields(const struct proxy_reply *r, const struct proxy_reply_form *form,
	struct field to[PROXY_REPLY_ADDED])
{
	size_t n = 0;
	if (form->with_details)
		to[n++] = cause_field(r);
	if (form->request_id.len)
		to[n++] = (struct field){.name = STR("x-request-id"), .value = form->request_id};
	return n;
}

// One HEADERS with END_STREAM, never DATA: an answer of its own, or the end of one.
static bool send_status(struct h2_stream *s, const struct proxy_reply *r,
	const struct proxy_reply_form *form, enum h2_message_kind kind)
{
	char status[12], text[PROXY_GRPC_MESSAGE_MAX];
	int status_len = snprintf(status, sizeof(status), "%d", r->grpc_status);
	size_t text_len = proxy_grpc_message(text_of(r, form->with_details), text);
	struct field fields[3 + PROXY_REPLY_ADDED] = {
		{.name = STR("content-type"), .value = STR("application/grpc")},
		{.name = STR("grpc-status"), .value = {status, (size_t)status_len}},
		{.name = STR("grpc-message"), .value = {text, text_len}},
	};
	size_t n = 3 + proxy_reply_add_fields(r, form, fields + 3);
	bool trailers = kind == H2_TRAILERS;
	struct h2_message m = {.kind = kind,
		.status = trailers ? 0 : 200,
		.is_grpc = true,
		.end_stream = true,
		.content_length = -1,
		.fields = fields + trailers,
		.n_fields = n - trailers};
	return h2_stream_send_message(s, &m);
}

bool proxy_reply_send_trailers(
	struct h2_stream *s, const struct proxy_reply *r, const struct proxy_reply_form *form)
{
	return send_status(s, r, form, H2_TRAILERS);
}

static bool send_plain(
	struct h2_stream *s, const struct proxy_reply *r, const struct proxy_reply_form *form)
{
	struct field fields[1 + PROXY_REPLY_ADDED] = {
		{.name = STR("content-type"), .value = STR("text/plain")}};
	size_t n = 1 + proxy_reply_add_fields(r, form, fields + 1);
	struct str text = text_of(r, form->with_details);
	// These have none (RFC 9110 15.3.5, 15.3.6, 15.4.5).
	bool bare = r->http_status == 204 || r->http_status == 205 || r->http_status == 304;
	// Of a client that takes nothing a chunk for each would wait, and the request with it.
	bool with_body =
		form->with_body && text.len && !bare && h2_stream_takes_at_once(s, text.len);
	struct h2_message m = {.kind = H2_RESPONSE,
		.status = r->http_status,
		.end_stream = !with_body,
		.content_length = with_body ? (int64_t)text.len : -1,
		.fields = fields,
		.n_fields = n};
	if (!h2_stream_send_message(s, &m))
		return false;
	if (with_body && form->body_len)
		*form->body_len += text.len;
	size_t sent;
	return !with_body || h2_stream_pass_data(s, (const uint8_t *)text.p, text.len, true, &sent);
}

bool proxy_reply_send(
	struct h2_stream *s, const struct proxy_reply *r, const struct proxy_reply_form *form)
{
	return form->is_grpc ? send_status(s, r, form, H2_RESPONSE) : send_plain(s, r, form);
}
