// SPDX-License-Identifier: Apache-2.0
#include "ctrl/trace/spans.h"

#include "lb/base/arena.h"
#include "lb/base/time.h"
#include "lb/pick/answer.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Opentelemetry__Proto__Trace__V1__Span Span;
typedef Opentelemetry__Proto__Trace__V1__Status Status;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans ResourceSpans;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans ScopeSpans;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__InstrumentationScope Scope;
typedef Opentelemetry__Proto__Resource__V1__Resource Resource;
typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest Request;
#define VALUE(x) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##x
#define KIND(x) OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_##x
#define STATUS_ERROR OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR

#define MAX_ATTRIBUTES (32 + LB_TRACE_TAGS)
#define SAMPLED 1 // flag of W3C Trace Context

struct attributes {
	struct lb_arena *arena;
	KeyValue **list;
	size_t n;
	bool full; // out of memory
};

struct made {
	struct lb_arena *arena;
	const struct span_source *from;
	Span **spans;
	size_t n;
	bool full;
};

static AnyValue *add(struct attributes *a, const char *key)
{
	struct both {
		KeyValue pair;
		AnyValue value;
	} *m = a->n < MAX_ATTRIBUTES ? lb_arena_alloc(a->arena, 1, sizeof(*m)) : NULL;
	if (!m) {
		a->full = true;
		return NULL;
	}
	opentelemetry__proto__common__v1__key_value__init(&m->pair);
	opentelemetry__proto__common__v1__any_value__init(&m->value);
	m->pair.key = (char *)(uintptr_t)key;
	m->pair.value = &m->value;
	a->list[a->n++] = &m->pair;
	return &m->value;
}

static void add_text(struct attributes *a, const char *key, struct str s)
{
	AnyValue *v = s.len ? add(a, key) : NULL;
	if (!v)
		return;
	v->value_case = VALUE(STRING_VALUE);
	v->string_value = proto_text(a->arena, s);
	a->full |= !v->string_value;
}

static void add_number(struct attributes *a, const char *key, uint64_t n)
{
	AnyValue *v = add(a, key);
	if (!v)
		return;
	v->value_case = VALUE(INT_VALUE);
	v->int_value = (int64_t)n;
}

static void add_address(struct attributes *a, const char *address_key, const char *port_key,
	const struct ip_port *at)
{
	char text[IP_PORT_TEXT_MAX];
	add_text(a, address_key, str_from(ip_print(&at->ip, text)));
	add_number(a, port_key, at->port);
}

// "example.org:80", "[::1]:80", "example.org".
static void add_authority(struct attributes *a, struct str s)
{
	uint64_t port;
	size_t at = s.len;
	while (at && s.p[at - 1] >= '0' && s.p[at - 1] <= '9')
		at--;
	bool has_port = at && at < s.len && s.p[at - 1] == ':' &&
	                str_number((struct str){s.p + at, s.len - at}, UINT16_MAX, &port);
	struct str host = {s.p, has_port ? at - 1 : s.len};
	if (host.len > 1 && host.p[0] == '[' && host.p[host.len - 1] == ']')
		host = (struct str){host.p + 1, host.len - 2};
	add_text(a, "server.address", host);
	if (has_port)
		add_number(a, "server.port", port);
}

static bool is_known_method(struct str s)
{
	static const char *const known[] = {
		"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE"};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(s, str_from(known[i])))
			return true;
	return false;
}

// What both kinds of spans have: the request itself.
static void add_request(struct attributes *a, const struct lb_trace_record *r)
{
	struct str method = lb_access_get(&r->access, LB_ACCESS_METHOD);
	struct str path = lb_access_get(&r->access, LB_ACCESS_PATH);
	bool is_known = is_known_method(method);
	add_text(a, "http.request.method", is_known ? method : STR("_OTHER"));
	if (!is_known)
		add_text(a, "http.request.method_original", method);
	if (r->is_grpc && path.len && path.p[0] == '/') {
		struct str service = str_until((struct str){path.p + 1, path.len - 1}, '/');
		size_t taken = service.len + 2;
		add_text(a, "rpc.system", STR("grpc"));
		add_text(a, "rpc.service", service);
		if (path.len > taken)
			add_text(a, "rpc.method", (struct str){path.p + taken, path.len - taken});
	}
	add_text(a, "shunt.cluster", lb_access_get(&r->access, LB_ACCESS_CLUSTER));
}

struct outcome {
	uint16_t status; // HTTP's; 0 = there was none
	uint8_t grpc_status; // LB_ACCESS_NO_GRPC = none
	uint8_t cause;
	bool is_error;
};

static struct outcome outcome_of(const struct lb_trace_record *r, uint16_t status, uint8_t grpc,
	uint8_t cause, bool is_client)
{
	struct outcome o = {status, grpc, cause, false};
	if (cause != LB_CAUSE_OK && (is_client || !status))
		o.is_error = true;
	else if (r->is_grpc && grpc != LB_ACCESS_NO_GRPC)
		o.is_error = is_client ? grpc != 0 : grpc < 32 && LB_GRPC_SERVER_ERRORS >> grpc & 1;
	else
		o.is_error = status >= (is_client ? 400 : 500);
	return o;
}

static void add_outcome(struct attributes *a, const struct lb_trace_record *r,
	const struct outcome *o, Span *span, Status *status)
{
	char number[12];
	bool has_grpc = r->is_grpc && o->grpc_status != LB_ACCESS_NO_GRPC;
	if (o->status)
		add_number(a, "http.response.status_code", o->status);
	if (has_grpc)
		add_number(a, "rpc.grpc.status_code", o->grpc_status);
	const char *cause = lb_cause_info(o->cause)->name;
	add_text(a, "shunt.cause", str_from(cause));
	if (!o->is_error)
		return;
	snprintf(number, sizeof(number), "%u", has_grpc ? o->grpc_status : o->status);
	add_text(a, "error.type", str_from(o->cause != LB_CAUSE_OK ? cause : number));
	opentelemetry__proto__trace__v1__status__init(status);
	status->code = STATUS_ERROR;
	if (o->cause != LB_CAUSE_OK)
		status->message = (char *)(uintptr_t)lb_cause_info(o->cause)->text;
	span->status = status;
}

static void add_server(struct attributes *a, const struct span_source *from)
{
	const struct lb_access_record *r = &from->record->access;
	struct str path = lb_access_get(r, LB_ACCESS_PATH);
	if (path.len > from->record->path_max)
		path.len = from->record->path_max;
	struct str before = str_until(path, '?');
	add_text(a, "url.scheme", r->is_tls ? STR("https") : STR("http"));
	add_text(a, "url.path", before);
	if (before.len < path.len)
		add_text(a, "url.query",
			(struct str){path.p + before.len + 1, path.len - before.len - 1});
	add_authority(a, lb_access_get(r, LB_ACCESS_AUTHORITY));
	add_address(a, "network.peer.address", "network.peer.port", &r->client);
	add_text(a, "network.protocol.version",
		r->protocol == 20   ? STR("2")
		: r->protocol == 11 ? STR("1.1")
				    : STR("1.0"));
	add_text(a, "user_agent.original", lb_access_get(r, LB_ACCESS_USER_AGENT));
	add_number(a, "http.request.body.size", r->body_in);
	add_number(a, "http.response.body.size", r->body_out);
	add_text(a, "shunt.frontend", str_from(from->frontend));
	add_text(a, "shunt.route", lb_access_get(r, LB_ACCESS_ROUTE));
	add_text(a, "shunt.request_id", lb_access_get(r, LB_ACCESS_REQUEST_ID));
	add_number(a, "shunt.worker", from->worker);
	add_number(a, "shunt.attempts", r->n_attempts);
}

static bool has(const struct attributes *a, struct str key)
{
	for (size_t i = 0; i < a->n; i++)
		if (str_eq(key, str_from(a->list[i]->key)))
			return true;
	return false;
}

// Keys are unique: what there is already stays.
static void add_tags(struct attributes *a, const struct lb_trace_record *r)
{
	uint16_t at = 0;
	for (struct str key, value; lb_trace_tags_next(&r->tags, &at, &key, &value);) {
		if (!value.len || has(a, key))
			continue;
		const char *name = proto_text(a->arena, key);
		a->full |= !name;
		if (name)
			add_text(a, name, value);
	}
}

static void put_u64(uint8_t *p, uint64_t n)
{
	n = __builtin_bswap64(n);
	memcpy(p, &n, sizeof(n));
}

static struct str name_of(const struct lb_trace_record *r)
{
	struct str method = lb_access_get(&r->access, LB_ACCESS_METHOD);
	struct str path = lb_access_get(&r->access, LB_ACCESS_PATH);
	if (r->is_grpc && path.len > 1)
		return (struct str){path.p + 1, path.len - 1};
	return is_known_method(method) ? method : STR("HTTP");
}

struct room {
	Span span;
	Status status;
	KeyValue *list[MAX_ATTRIBUTES];
	uint8_t trace[16], id[8], parent[8];
};

// Its ids, name and times. NULL = out of memory.
static struct room *begin(
	struct made *m, uint64_t id, uint64_t parent, uint64_t began_ns, uint64_t ended_ns)
{
	const struct lb_trace_record *r = m->from->record;
	struct room *room = lb_arena_alloc(m->arena, 1, sizeof(*room));
	if (!room) {
		m->full = true;
		return NULL;
	}
	Span *s = &room->span;
	opentelemetry__proto__trace__v1__span__init(s);
	put_u64(room->trace, r->ids.high);
	put_u64(room->trace + 8, r->ids.low);
	put_u64(room->id, id);
	put_u64(room->parent, parent);
	s->trace_id = (ProtobufCBinaryData){sizeof(room->trace), room->trace};
	s->span_id = (ProtobufCBinaryData){sizeof(room->id), room->id};
	if (parent)
		s->parent_span_id = (ProtobufCBinaryData){sizeof(room->parent), room->parent};
	s->flags = SAMPLED;
	s->start_time_unix_nano = m->from->began_wall_ns + began_ns;
	s->end_time_unix_nano = m->from->began_wall_ns + ended_ns;
	s->name = proto_text(m->arena, name_of(r));
	m->full |= !s->name;
	return room;
}

static void end(struct made *m, struct room *room, const struct attributes *a)
{
	room->span.attributes = room->list;
	room->span.n_attributes = a->n;
	m->full |= a->full;
	m->spans[m->n++] = &room->span;
}

static void make_server(struct made *m)
{
	const struct lb_trace_record *r = m->from->record;
	const struct lb_access_brief *b = &r->access.brief;
	struct room *room = begin(m, r->ids.span, r->ids.parent, 0, b->ended_ns - b->began_ns);
	if (!room)
		return;
	struct attributes a = {.arena = m->arena, .list = room->list};
	room->span.kind = KIND(SERVER);
	struct outcome o = outcome_of(r, b->status, b->grpc_status, b->cause, false);
	add_request(&a, r);
	add_server(&a, m->from);
	if (r->access.n_attempts) {
		char text[IP_PORT_TEXT_MAX];
		add_text(&a, "shunt.endpoint", str_from(ip_port_print(&r->access.backend, text)));
	}
	add_outcome(&a, r, &o, &room->span, &room->status);
	add_tags(&a, r);
	end(m, room, &a);
}

static void make_attempt(struct made *m, uint32_t i)
{
	const struct lb_trace_record *r = m->from->record;
	const struct lb_failure_attempt *t = &r->attempts[i];
	uint32_t number = r->first + i;
	bool is_last = number + 1 == r->access.n_attempts;
	uint64_t began_ns = t->after_us * NS_PER_US;
	struct room *room = begin(m, lb_trace_attempt_span(&r->ids, number), r->ids.span, began_ns,
		began_ns + t->took_us * NS_PER_US);
	if (!room)
		return;
	struct attributes a = {.arena = m->arena, .list = room->list};
	room->span.kind = KIND(CLIENT);
	uint16_t status = t->cause == LB_CAUSE_OK ? is_last ? r->access.brief.status : 200 : 0;
	// What we would answer for a backend that did not is no status of that backend.
	uint8_t grpc = t->cause == LB_CAUSE_OK ? t->grpc_status : LB_ACCESS_NO_GRPC;
	struct outcome o = outcome_of(r, status, grpc, t->cause, true);
	add_request(&a, r);
	add_address(&a, "server.address", "server.port", &t->backend);
	add_address(&a, "network.peer.address", "network.peer.port", &t->backend);
	add_text(&a, "network.protocol.version", STR("2"));
	if (number)
		add_number(&a, "http.request.resend_count", number);
	add_outcome(&a, r, &o, &room->span, &room->status);
	add_tags(&a, r);
	end(m, room, &a);
}

uint32_t spans_count(const struct lb_trace_record *r)
{
	return 1 + (r->upstream_spans ? r->n_attempts : 0u);
}

static int pack(const struct span_service *service, struct made *m, uint8_t **ret, size_t *ret_len)
{
	Scope scope;
	Resource resource = OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
	ScopeSpans in_scope = OPENTELEMETRY__PROTO__TRACE__V1__SCOPE_SPANS__INIT;
	ResourceSpans of_resource = OPENTELEMETRY__PROTO__TRACE__V1__RESOURCE_SPANS__INIT;
	Request request =
		OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_REQUEST__INIT;
	KeyValue *list[MAX_ATTRIBUTES];
	struct attributes a = {.arena = m->arena, .list = list};
	opentelemetry__proto__common__v1__instrumentation_scope__init(&scope);
	add_text(&a, "service.name", str_from(service->name));
	add_text(&a, "service.version", str_from(service->version));
	add_text(&a, "host.name", str_from(service->host));
	scope.name = (char[]){"shunt"};
	scope.version = (char *)(uintptr_t)service->version;
	resource.attributes = list;
	resource.n_attributes = a.n;
	in_scope.scope = &scope;
	in_scope.spans = m->spans;
	in_scope.n_spans = m->n;
	of_resource.resource = &resource;
	of_resource.scope_spans = (ScopeSpans *[]){&in_scope};
	of_resource.n_scope_spans = 1;
	request.resource_spans = (ResourceSpans *[]){&of_resource};
	request.n_resource_spans = 1;
	return m->full || a.full ? -ENOMEM : proto_pack(&request.base, ret, ret_len);
}

int spans_pack(const struct span_service *service, const struct span_source *sources, uint32_t n,
	uint8_t **ret, size_t *ret_len)
{
	struct lb_arena arena = {0};
	struct made m = {.arena = &arena};
	size_t n_spans = 0;
	for (uint32_t i = 0; i < n; i++)
		n_spans += spans_count(sources[i].record);
	m.spans = lb_arena_alloc(&arena, n_spans, sizeof(Span *));
	for (uint32_t i = 0; m.spans && i < n; i++) {
		m.from = &sources[i];
		make_server(&m);
		for (uint32_t j = 0;
			sources[i].record->upstream_spans && j < sources[i].record->n_attempts; j++)
			make_attempt(&m, j);
	}
	int rc = m.spans ? pack(service, &m, ret, ret_len) : -ENOMEM;
	lb_arena_fini(&arena);
	return rc;
}
