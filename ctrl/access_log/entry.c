// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/entry.h"

#include "ctrl/access_log/words.h"
#include "envoy/data/accesslog/v3/accesslog.pb-c.h"
#include "lb/base/arena.h"
#include "lb/base/time.h"
#include "proto/scan.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
#define ENTRY(x) Envoy__Data__Accesslog__V3__##x
#define CORE(x) Envoy__Config__Core__V3__##x
typedef ENTRY(HTTPAccessLogEntry) Entry;
typedef ENTRY(AccessLogCommon) Common;
typedef ENTRY(HTTPRequestProperties) Request;
typedef ENTRY(HTTPResponseProperties) Response;
typedef ENTRY(ResponseFlags) Flags;
typedef Google__Protobuf__Duration Duration;
#define METHODS (&envoy__config__core__v3__request_method__descriptor)
#define VERSION(x) ENVOY__DATA__ACCESSLOG__V3__HTTPACCESS_LOG_ENTRY__HTTPVERSION__##x
#define IS_SOCKET ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS
#define IS_PORT ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE
#define DOWNSTREAM_END ENVOY__DATA__ACCESSLOG__V3__ACCESS_LOG_TYPE__DownstreamEnd
// An entry of a map<string, string>, which all maps have.
typedef ENTRY(HTTPRequestProperties__RequestHeadersEntry) Pair;
_Static_assert(sizeof(Pair) == sizeof(ENTRY(HTTPResponseProperties__ResponseHeadersEntry)) &&
		       sizeof(Pair) == sizeof(ENTRY(HTTPResponseProperties__ResponseTrailersEntry)),
	"pairs are the same");

#define HEADERS_MAX 16 // of a form: more than are kept
#define FIELD 1 // of an entry in HTTPAccessLogEntries

struct access_entry_form {
	size_t n;
	struct asked {
		enum access_headers of;
		unsigned char what;
		char name[40];
	} headers[HEADERS_MAX];
};

// The form.

static int read_header(struct access_entry_form *f, struct str line, struct lb_err *reterr)
{
	struct str word = str_until(line, ' ');
	size_t taken = word.len + (word.len < line.len);
	struct str name = {line.p + taken, line.len - taken};
	struct asked *h = &f->headers[f->n];
	int of = ACCESS_REQUEST;
	while (of <= ACCESS_TRAILERS && !str_eq(word, str_from(access_header_word(of))))
		of++;
	if (of > ACCESS_TRAILERS || f->n == HEADERS_MAX || name.len >= sizeof(h->name))
		return lb_err_set(reterr, "'%.*s' is no header of an entry", (int)line.len, line.p);
	h->of = of;
	snprintf(h->name, sizeof(h->name), "%.*s", (int)name.len, name.p);
	f->n++;
	return access_header_find(of, name, &h->what, reterr);
}

int access_entry_form_new(const char *text, struct access_entry_form **ret, struct lb_err *reterr)
{
	struct access_entry_form *f = calloc(1, sizeof(*f));
	if (!f) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	for (struct str line, rest = str_from(text); rest.len;) {
		line = str_until(rest, '\n');
		size_t taken = line.len + (line.len < rest.len);
		rest = (struct str){rest.p + taken, rest.len - taken};
		if (read_header(f, line, reterr)) {
			free(f);
			return -EINVAL;
		}
	}
	*ret = f;
	return 0;
}

void access_entry_form_free(struct access_entry_form *f)
{
	free(f);
}

// The entry.

struct made {
	const struct access_view *v;
	struct lb_arena arena;
	bool full; // out of memory
	Entry entry;
	Common common;
	Request request;
	Response response;
	Flags flags;
	Google__Protobuf__UInt32Value code;
	Google__Protobuf__Timestamp start;
	Duration durations[5];
	CORE(Address) addresses[3];
	CORE(SocketAddress) sockets[3];
	unsigned n_durations, n_addresses;
	Pair pairs[HEADERS_MAX];
	Pair *maps[ACCESS_TRAILERS + 1][HEADERS_MAX];
	size_t n_pairs[ACCESS_TRAILERS + 1];
};

// As lines have it.
static char *text(struct made *m, enum lb_access_text which)
{
	struct str s = lb_access_get(m->v->record, which);
	char *made = proto_text(&m->arena, s);
	if (made && m->v->record->cut >> which & 1) {
		struct str cut = {made, strlen(made)};
		char *more = lb_arena_alloc(&m->arena, cut.len + sizeof("..."), 1);
		if (more)
			strcpy(mempcpy(more, cut.p, cut.len), "...");
		made = more;
	}
	m->full |= !made;
	return made;
}

static Duration *duration(struct made *m, uint64_t from_ns, uint64_t to_ns)
{
	Duration *d = &m->durations[m->n_durations++];
	uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;
	google__protobuf__duration__init(d);
	d->seconds = (int64_t)(ns / NS_PER_SECOND);
	d->nanos = (int32_t)(ns % NS_PER_SECOND);
	return d;
}

static CORE(Address) * address(struct made *m, const struct ip_port *at)
{
	CORE(Address) *a = &m->addresses[m->n_addresses];
	CORE(SocketAddress) *s = &m->sockets[m->n_addresses++];
	char printed[IP_PORT_TEXT_MAX];
	envoy__config__core__v3__address__init(a);
	envoy__config__core__v3__socket_address__init(s);
	s->address = proto_text(&m->arena, str_from(ip_print(&at->ip, printed)));
	m->full |= !s->address;
	s->port_specifier_case = IS_PORT;
	s->port_value = at->port;
	a->address_case = IS_SOCKET;
	a->socket_address = s;
	return a;
}

// A cause has at most one flag; those that Envoy has none for are told by the details alone. False
// = none is set.
static bool set_flags(Flags *f, const struct lb_access_brief *a)
{
#define FLAG(name) offsetof(Flags, name)
	static const size_t flags[LB_N_CAUSES] = {
		[LB_CAUSE_NO_ROUTE] = FLAG(no_route_found),
		[LB_CAUSE_NO_CONFIG] = FLAG(no_cluster_found),
		[LB_CAUSE_NO_HEALTHY] = FLAG(no_healthy_upstream),
		[LB_CAUSE_UPSTREAM_RESET] = FLAG(upstream_remote_reset),
		[LB_CAUSE_UPSTREAM_LOST] = FLAG(upstream_connection_termination),
		[LB_CAUSE_UPSTREAM_PROTOCOL] = FLAG(upstream_protocol_error),
		[LB_CAUSE_OVERFLOW] = FLAG(upstream_overflow),
		[LB_CAUSE_TIMEOUT] = FLAG(upstream_request_timeout),
		[LB_CAUSE_STREAM_IDLE] = FLAG(stream_idle_timeout),
		[LB_CAUSE_OVERLOAD] = FLAG(overload_manager),
		[LB_CAUSE_CLIENT_RESET] = FLAG(downstream_remote_reset),
		[LB_CAUSE_CLIENT_LOST] = FLAG(downstream_connection_termination),
		[LB_CAUSE_CLIENT_PROTOCOL] = FLAG(downstream_protocol_error),
		[LB_CAUSE_FAULT] = FLAG(fault_injected),
	};
#undef FLAG
	if (flags[a->cause])
		*(protobuf_c_boolean *)((char *)f + flags[a->cause]) = true;
	f->delay_injected = a->delayed;
	return flags[a->cause] || a->delayed;
}

static void make_times(struct made *m, Common *c)
{
	const struct lb_access_record *r = m->v->record;
	uint64_t began_ns = r->brief.began_ns;
	google__protobuf__timestamp__init(&m->start);
	m->start.seconds = (int64_t)(m->v->began_wall_ns / NS_PER_SECOND);
	m->start.nanos = (int32_t)(m->v->began_wall_ns % NS_PER_SECOND);
	c->start_time = &m->start;
	c->duration = duration(m, began_ns, r->brief.ended_ns);
	if (r->received_ns)
		c->time_to_last_rx_byte = duration(m, began_ns, r->received_ns);
	if (r->answered_ns) {
		c->time_to_first_upstream_rx_byte = duration(m, began_ns, r->answered_ns);
		// It goes on in the turn that it comes in.
		c->time_to_first_downstream_tx_byte = duration(m, began_ns, r->answered_ns);
	}
	if (r->brief.status)
		c->time_to_last_downstream_tx_byte = duration(m, began_ns, r->brief.ended_ns);
}

static void make_common(struct made *m)
{
	const struct lb_access_record *r = m->v->record;
	Common *c = &m->common;
	envoy__data__accesslog__v3__access_log_common__init(c);
	make_times(m, c);
	c->downstream_remote_address = address(m, &r->client);
	c->downstream_direct_remote_address = c->downstream_remote_address;
	c->downstream_local_address = address(m, &m->v->local);
	if (r->n_attempts)
		c->upstream_remote_address = address(m, &r->backend);
	c->upstream_cluster = text(m, LB_ACCESS_CLUSTER);
	c->route_name = text(m, LB_ACCESS_ROUTE);
	c->stream_id = text(m, LB_ACCESS_REQUEST_ID);
	c->upstream_request_attempt_count = r->n_attempts;
	c->access_log_type = DOWNSTREAM_END;
	envoy__data__accesslog__v3__response_flags__init(&m->flags);
	if (set_flags(&m->flags, &r->brief))
		c->response_flags = &m->flags;
	m->entry.common_properties = c;
}

static CORE(RequestMethod) method_of(const char *name)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(METHODS, name);
	return v ? (CORE(RequestMethod))v->value : 0;
}

static void make_request(struct made *m)
{
	const struct lb_access_record *r = m->v->record;
	Request *q = &m->request;
	envoy__data__accesslog__v3__httprequest_properties__init(q);
	const char *method = text(m, LB_ACCESS_METHOD);
	q->request_method = method ? method_of(method) : 0;
	q->scheme = (char *)(uintptr_t)(r->is_tls ? "https" : "http");
	q->authority = text(m, LB_ACCESS_AUTHORITY);
	q->path = text(m, LB_ACCESS_PATH);
	q->user_agent = text(m, LB_ACCESS_USER_AGENT);
	q->forwarded_for = text(m, LB_ACCESS_FORWARDED_FOR);
	q->request_id = text(m, LB_ACCESS_REQUEST_ID);
	q->request_headers_bytes = r->head_in;
	q->request_body_bytes = r->body_in;
	q->n_request_headers = m->n_pairs[ACCESS_REQUEST];
	q->request_headers = m->maps[ACCESS_REQUEST];
	m->entry.request = q;
}

static void make_response(struct made *m)
{
	const struct lb_access_record *r = m->v->record;
	Response *a = &m->response;
	envoy__data__accesslog__v3__httpresponse_properties__init(a);
	google__protobuf__uint32_value__init(&m->code);
	m->code.value = r->brief.status;
	if (r->brief.status)
		a->response_code = &m->code;
	a->response_body_bytes = r->body_out;
	a->response_code_details = (char *)(uintptr_t)access_details(r->brief.cause);
	a->n_response_headers = m->n_pairs[ACCESS_RESPONSE];
	a->response_headers = (void *)m->maps[ACCESS_RESPONSE];
	a->n_response_trailers = m->n_pairs[ACCESS_TRAILERS];
	a->response_trailers = (void *)m->maps[ACCESS_TRAILERS];
	m->entry.response = a;
}

// NULL = it is not there, or there is no memory.
static char *header_of(struct made *m, const struct asked *h)
{
	const struct lb_access_record *r = m->v->record;
	char number[12];
	unsigned n;
	if (h->what < LB_ACCESS_N_TEXTS)
		return lb_access_get(r, h->what).len ? text(m, h->what) : NULL;
	if (!access_header_number(r, h->what, &n))
		return NULL;
	snprintf(number, sizeof(number), "%u", n);
	char *made = proto_text(&m->arena, str_from(number));
	m->full |= !made;
	return made;
}

static void make_pairs(struct made *m, const struct access_entry_form *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct asked *h = &f->headers[i];
		Pair *p = &m->pairs[i];
		char *value = header_of(m, h);
		if (!value)
			continue;
		switch (h->of) {
		case ACCESS_REQUEST:
			envoy__data__accesslog__v3__httprequest_properties__request_headers_entry__init(
				p);
			break;
		case ACCESS_RESPONSE:
			envoy__data__accesslog__v3__httpresponse_properties__response_headers_entry__init(
				(void *)p);
			break;
		case ACCESS_TRAILERS:
			envoy__data__accesslog__v3__httpresponse_properties__response_trailers_entry__init(
				(void *)p);
			break;
		}
		p->key = (char *)(uintptr_t)h->name;
		p->value = value;
		m->maps[h->of][m->n_pairs[h->of]++] = p;
	}
}

static void put(struct access_line *l, const Entry *e)
{
	size_t len = protobuf_c_message_get_packed_size(&e->base);
	const struct proto_head head = proto_head_of(FIELD, len);
	// Texts have a bound, and three bytes at most for each of theirs: it is never too long.
	if (head.len + len > l->size - l->len)
		return;
	access_line_put(l, (struct str){(const char *)head.bytes, head.len});
	l->len += protobuf_c_message_pack(&e->base, (uint8_t *)l->p + l->len);
}

void access_entry_write(
	const struct access_entry_form *f, const struct access_view *v, struct access_line *l)
{
	struct made m = {.v = v};
	envoy__data__accesslog__v3__httpaccess_log_entry__init(&m.entry);
	uint8_t protocol = v->record->protocol;
	m.entry.protocol_version = protocol == 20   ? VERSION(HTTP2)
	                           : protocol == 11 ? VERSION(HTTP11)
	                                            : VERSION(HTTP10);
	make_pairs(&m, f);
	make_common(&m);
	make_request(&m);
	make_response(&m);
	if (!m.full)
		put(l, &m.entry);
	lb_arena_fini(&m.arena);
}

uint64_t access_entry_count(const char *bytes, size_t len)
{
	struct proto_scan at = proto_scan_of((struct str){bytes, len});
	struct proto_item item;
	uint64_t n = 0;
	while (proto_scan_next(&at, &item))
		n++;
	return n;
}
