// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/head.h"

#include "dataplane/proxy/grpc_timeout.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/pick/affinity_map.h"
#include "lb/route/timeouts.h"

#include <stdio.h>

#define TE STR("te")
#define TIMEOUT STR("grpc-timeout")
#define PREVIOUS_ATTEMPTS STR("grpc-previous-rpc-attempts")
#define WAIT_FOR_READY STR("x-shunt-wait-for-ready")

void proxy_head_read_wait(struct proxy_request *r, const struct h2_message *m)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		if (!str_eq(m->fields[i].name, WAIT_FOR_READY))
			continue;
		r->wait_field = true;
		r->waits_for_ready |= str_eq(m->fields[i].value, STR("true"));
	}
}

uint64_t proxy_head_read(struct proxy_request *r, const struct h2_message *m)
{
	uint64_t ns = LB_NO_TIMEOUT;
	uint32_t n_timeouts = 0;
	for (size_t i = 0; i < m->n_fields; i++) {
		struct str name = m->fields[i].name;
		if (name.len == TE.len && str_eq(name, TE)) {
			r->has_te = true; // `trailers`, or h2/ would have refused it (HX-05)
		} else if (name.len == TIMEOUT.len && str_eq(name, TIMEOUT)) {
			n_timeouts++;
			r->timeout_field = (uint16_t)i;
			if (i >= PROXY_NO_FIELD ||
				!proxy_grpc_timeout_parse(m->fields[i].value, &ns))
				n_timeouts++;
		}
	}
	if (!n_timeouts)
		return LB_NO_TIMEOUT;
	if (n_timeouts == 1)
		return ns;
	// Malformed, or there are several: nobody knows better than the backend what to do
	// (A31-T10).
	r->foreign_timeout = true;
	r->timeout_field = PROXY_NO_FIELD;
	return LB_NO_TIMEOUT;
}

// The time that is left, unless the client's own field says it still.
static bool says_timeout(const struct proxy_request *r, uint64_t left_ns)
{
	return left_ns != LB_NO_TIMEOUT && !r->foreign_timeout &&
	       (r->capped || proxy_replay_stored(&r->replay));
}

static struct str timeout_text(struct proxy_request *r, uint64_t left_ns)
{
	char *text = r->proxy->scratch.timeout_text;
	return (struct str){text, proxy_grpc_timeout_write(left_ns, text)};
}

static struct str attempts_text(struct proxy_request *r)
{
	char *text = r->proxy->scratch.attempts_text;
	int len = snprintf(text, sizeof(r->proxy->scratch.attempts_text), "%u", r->n_failed);
	return (struct str){text, (size_t)len};
}

bool proxy_head_to_backend(struct proxy_request *r, const struct h2_message *m,
	const struct lb_affinity_host *to, uint64_t left_ns, struct h2_message *ret)
{
	struct proxy *p = r->proxy;
	// gRPC over HTTP/2, "Requests": a backend may refuse a call without it.
	bool add_te = r->is_grpc && !r->has_te;
	bool timeout = r->is_grpc && says_timeout(r, left_ns); // A31-T09
	bool attempts = r->n_failed != 0; // RT-09
	*ret = *m;
	if (r->plan.auto_host_rewrite && to && to->hostname.len)
		ret->authority = to->hostname; // AR-01
	bool traced = r->access.is_traced; // OPS-162
	if (!add_te && !timeout && !attempts && !r->wait_field && !traced)
		return true;
	if (m->n_fields > p->scratch.max_fields)
		return false;
	struct field *out = p->scratch.fields; // perhaps m's too
	for (size_t i = 0; i < m->n_fields; i++) {
		struct field f = m->fields[i];
		if (attempts && str_eq(f.name, PREVIOUS_ATTEMPTS))
			continue; // of the client's own attempts
		if (r->wait_field && str_eq(f.name, WAIT_FOR_READY))
			continue;
		if (traced && proxy_trace_is_replaced(&f, r->trace.keeps_state))
			continue;
		if (timeout && i == r->timeout_field)
			f.value = timeout_text(r, left_ns);
		*out++ = f;
	}
	if (timeout && r->timeout_field == PROXY_NO_FIELD)
		*out++ = (struct field){.name = TIMEOUT, .value = timeout_text(r, left_ns)};
	if (attempts)
		*out++ = (struct field){.name = PREVIOUS_ATTEMPTS, .value = attempts_text(r)};
	if (add_te)
		*out++ = (struct field){.name = TE, .value = STR("trailers")};
	if (traced)
		out += proxy_trace_fields(r, out);
	ret->fields = p->scratch.fields;
	ret->n_fields = (size_t)(out - p->scratch.fields);
	return true;
}

bool proxy_head_to_client(struct proxy_request *r, const struct h2_message *m,
	struct str request_id, struct h2_message *ret)
{
	struct proxy *p = r->proxy;
	const struct buf *set_cookie = &r->session.set_cookie;
	*ret = *m;
	if (m->n_fields > p->scratch.max_fields)
		return !set_cookie->len;
	struct field *out = p->scratch.fields;
	for (size_t i = 0; i < m->n_fields; i++)
		*out++ = m->fields[i];
	if (set_cookie->len) {
		buf_copy_out(set_cookie, 0, p->scratch.bytes, set_cookie->len);
		*out++ = (struct field){.name = STR("set-cookie"),
			.value = {(const char *)p->scratch.bytes, set_cookie->len}};
	}
	if (request_id.len)
		*out++ = (struct field){.name = STR("x-request-id"), .value = request_id};
	ret->fields = p->scratch.fields;
	ret->n_fields = (size_t)(out - p->scratch.fields);
	return true;
}
