// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/trace.h"

#include "dataplane/proxy/access_log.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/min.h"
#include "lb/base/time.h"
#include "lb/pick/access.h"
#include "lb/pick/link.h"
#include "lb/route/header_value.h"

#include <stddef.h>
#include <string.h>

static bool chance(struct rand *rand, uint64_t of)
{
	return rand_u32(rand) < of;
}

bool proxy_trace_wants(
	struct rand *rand, const struct lb_tracing *t, const struct proxy_trace_parent *parent)
{
	if (parent->word == PROXY_TRACE_NO)
		return false;
	bool wanted = parent->word == PROXY_TRACE_YES;
	wanted = wanted || (parent->is_asked && chance(rand, t->client)) || parent->is_forced ||
	         chance(rand, t->random);
	return wanted && chance(rand, t->overall);
}

static uint64_t make_id(struct rand *rand)
{
	uint64_t id = rand_u64(rand);
	return id ? id : 1;
}

// The first one, as an access log has it. Empty = it is not there.
static struct str header_of(const struct h2_message *m, struct str name)
{
	switch (lb_header_source(name)) {
	case LB_HEADER_METHOD:
		return m->method;
	case LB_HEADER_PATH:
		return m->path;
	case LB_HEADER_AUTHORITY:
		return m->authority;
	case LB_HEADER_SCHEME:
		return m->scheme;
	default:
		break;
	}
	const struct field *f = field_find(m->fields, m->n_fields, name);
	return f ? f->value : (struct str){NULL, 0};
}

void proxy_trace_tags(
	const struct lb_tracing *t, const struct h2_message *m, struct lb_trace_tags *ret)
{
	ret->n_bytes = 0;
	for (uint32_t i = 0; i < t->n_tags; i++) {
		const struct lb_trace_tag *tag = &t->tags[i];
		struct str value = {NULL, 0};
		if (tag->header.len)
			value = header_of(m, tag->header);
		lb_trace_tags_add(ret, tag->key, value.len ? value : tag->value);
	}
}

void proxy_trace_begin(
	struct proxy_request *r, const struct lb_tracing *t, const struct h2_message *m)
{
	struct rand *rand = &r->proxy->rand;
	struct proxy_trace_parent parent;
	proxy_trace_read(m->fields, m->n_fields, &parent);
	if (!proxy_trace_wants(rand, t, &parent))
		return;
	bool is_new = !parent.high && !parent.low;
	r->trace = (struct proxy_trace){.ids = {.high = is_new ? make_id(rand) : parent.high,
						.low = is_new ? make_id(rand) : parent.low,
						.span = make_id(rand),
						.parent = parent.span},
		.path_max = t->path_max,
		.upstream_spans = t->upstream_spans,
		.b3 = parent.has_b3,
		.b3_many = parent.has_b3_many,
		.keeps_state = parent.is_w3c};
	if (t->n_tags) {
		r->trace.tags = pool_take(&r->proxy->trace_tags); // there are as many as requests
		proxy_trace_tags(t, m, r->trace.tags);
	}
	proxy_access_trace(r, m);
}

size_t proxy_trace_fields(const struct proxy_request *r, struct field *ret)
{
	const struct proxy_trace *t = &r->trace;
	uint64_t span = t->upstream_spans ? lb_trace_attempt_span(&t->ids, t->n_sent) : t->ids.span;
	return proxy_trace_write(
		&t->ids, span, t->b3, t->b3_many, ret, r->proxy->scratch.trace_text);
}

void proxy_trace_sent(struct proxy_request *r)
{
	r->trace.n_sent++;
	r->trace.n_tries = r->trail.n_tries;
}

static uint32_t us_of(uint64_t ns)
{
	return (uint32_t)min_size(ns / NS_PER_US, UINT32_MAX);
}

// Attempts that were sent, in their order: those that came to nothing, and the one that went on to
// the request's end.
static void put_attempts(const struct proxy_request *r, struct lb_trace_record *to)
{
	const struct proxy_trace *t = &r->trace;
	const struct lb_access_brief *brief = &to->access.brief;
	uint32_t n = r->trail.n_tries, n_kept = n < LB_FAILURE_ATTEMPTS ? n : LB_FAILURE_ATTEMPTS;
	to->n_attempts = 0;
	for (uint32_t i = n - n_kept; i < n; i++) {
		const struct lb_failure_attempt *a = &r->tries[i % LB_FAILURE_ATTEMPTS];
		if (a->has_backend)
			to->attempts[to->n_attempts++] = *a;
	}
	if (t->n_sent && t->n_tries == n)
		to->attempts[to->n_attempts++] =
			(struct lb_failure_attempt){.backend = to->access.backend,
				.after_us = us_of(r->trail.sent_ns - r->began_ns),
				.took_us = us_of(r->whole_ns - r->trail.sent_ns),
				.cause = brief->cause,
				.grpc_status = brief->grpc_status,
				.has_backend = true};
	to->first = t->n_sent - to->n_attempts;
}

static void tell(const struct proxy_request *r)
{
	const struct proxy_trace *t = &r->trace;
	const struct lb_access_record *a = r->access.record;
	struct lb_trace *ring = r->proxy->link->trace;
	struct lb_trace_record *to = lb_trace_place(ring);
	if (!to)
		return;
	to->tags.n_bytes = 0;
	if (t->tags)
		lb_trace_tags_copy(&to->tags, t->tags);
	memcpy(&to->access, a, offsetof(struct lb_access_record, bytes) + a->n_bytes);
	to->ids = t->ids;
	to->path_max = t->path_max;
	to->upstream_spans = t->upstream_spans;
	to->is_grpc = r->is_grpc;
	put_attempts(r, to);
	lb_trace_told(ring);
}

void proxy_trace_over(struct proxy_request *r)
{
	tell(r);
	if (r->trace.tags)
		pool_put(&r->proxy->trace_tags, r->trace.tags);
}
