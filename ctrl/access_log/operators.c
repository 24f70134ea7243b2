// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/operators.h"

#include "ctrl/access_log/headers.h"
#include "ctrl/access_log/words.h"
#include "lb/base/time.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NO_SECOND UINT8_MAX

static void put_or_dash(struct access_line *l, struct str s)
{
	if (s.len)
		access_line_plain(l, s);
	else
		access_line_put(l, STR("-"));
}

static void put_text(struct access_line *l, const struct access_view *v, enum lb_access_text which)
{
	put_or_dash(l, lb_access_get(v->record, which));
	if (v->record->cut >> which & 1)
		access_line_put(l, STR("..."));
}

// Times.

static void put_part(struct access_line *l, uint64_t wall_ns, int digits)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%09u", (unsigned)(wall_ns % NS_PER_SECOND));
	access_line_put(l, (struct str){text, (size_t)(digits < len ? digits : len)});
}

void access_time_write(struct access_line *l, const char *form, uint64_t wall_ns)
{
	time_t s = (time_t)(wall_ns / NS_PER_SECOND);
	struct tm tm;
	gmtime_r(&s, &tm);
	while (*form) {
		size_t len = strcspn(form, "%");
		access_line_put(l, (struct str){form, len});
		form += len;
		if (!*form)
			return;
		char one[4] = {'%', form[1]}, text[64];
		size_t n;
		if (form[1] == 'f' || (form[1] >= '1' && form[1] <= '9' && form[2] == 'f')) {
			put_part(l, wall_ns, form[1] == 'f' ? 9 : form[1] - '0');
			form += form[1] == 'f' ? 2 : 3;
			continue;
		}
		if (form[1] == 's')
			n = (size_t)snprintf(text, sizeof(text), "%lld", (long long)s);
		else
			n = strftime(text, sizeof(text), one, &tm);
		access_line_put(l, (struct str){text, n});
		form += form[1] ? 2 : 1;
	}
}

static int read_time(struct access_arg *a, struct lb_err *reterr)
{
	const char *form = a->text ? a->text : "";
	for (; (form = strchr(form, '%')); form += form[1] == '%' ? 2 : 1) {
		bool part = form[1] >= '1' && form[1] <= '9' && form[2] == 'f';
		if (!part &&
			(!form[1] || !strchr("aAbBcCdDeFfgGhHIjmMnprRsStTuUVwWxXyYzZ%", form[1])))
			return lb_err_set(reterr, "'%.8s' is not a time specifier", form);
	}
	return 0;
}

static void start_time(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_time_write(l, a->text && *a->text ? a->text : ACCESS_TIME_FORM, v->began_wall_ns);
}

static void put_ms(struct access_line *l, uint64_t from_ns, uint64_t to_ns)
{
	access_line_number(l, to_ns > from_ns ? (to_ns - from_ns) / NS_PER_MS : 0);
}

static void duration(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	put_ms(l, v->record->brief.began_ns, v->record->brief.ended_ns);
}

static void request_duration(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	if (v->record->received_ns)
		put_ms(l, v->record->brief.began_ns, v->record->received_ns);
	else
		access_line_put(l, STR("-"));
}

static void response_duration(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	if (v->record->answered_ns)
		put_ms(l, v->record->brief.began_ns, v->record->answered_ns);
	else
		access_line_put(l, STR("-"));
}

static void response_tx_duration(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	if (v->record->answered_ns)
		put_ms(l, v->record->answered_ns, v->record->brief.ended_ns);
	else
		access_line_put(l, STR("-"));
}

// Headers.

// X or X?Y
static int read_headers(enum access_headers of, struct access_arg *a, struct lb_err *reterr)
{
	if (!a->text || !*a->text)
		return lb_err_set(reterr, "needs a header, as in (X) or (X?Y)");
	size_t len = strcspn(a->text, "?");
	a->second = NO_SECOND;
	int rc = access_header_find(of, (struct str){a->text, len}, &a->first, reterr);
	if (!rc && a->text[len])
		rc = access_header_find(of, str_from(a->text + len + 1), &a->second, reterr);
	return rc;
}

static int read_req(struct access_arg *a, struct lb_err *reterr)
{
	return read_headers(ACCESS_REQUEST, a, reterr);
}

static int read_resp(struct access_arg *a, struct lb_err *reterr)
{
	return read_headers(ACCESS_RESPONSE, a, reterr);
}

static int read_trailer(struct access_arg *a, struct lb_err *reterr)
{
	return read_headers(ACCESS_TRAILERS, a, reterr);
}

static void req(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	bool first = a->first != ACCESS_NEVER && lb_access_get(v->record, a->first).len;
	unsigned char which = first || a->second == NO_SECOND ? a->first : a->second;
	if (which == ACCESS_NEVER)
		access_line_put(l, STR("-"));
	else
		put_text(l, v, which);
}

// WQ or NQ, and behind : what else Envoy might take it from.
static int read_path(struct access_arg *a, struct lb_err *reterr)
{
	const char *text = a->text ? a->text : "";
	size_t len = strcspn(text, ":");
	bool whole = len == 0 || str_eq((struct str){text, len}, STR("WQ"));
	bool from_path = !text[len] || strcmp(text + len, ":PATH") == 0 ||
	                 strcmp(text + len, ":ORIG_OR_PATH") == 0;
	if (!from_path || !(whole || str_eq((struct str){text, len}, STR("NQ"))))
		return lb_err_set(reterr,
			"'%s' is not one of WQ and NQ, with :PATH or :ORIG_OR_PATH or neither",
			text);
	a->first = !whole;
	return 0;
}

static void path(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	struct str s = lb_access_get(v->record, LB_ACCESS_PATH);
	const char *query = a->first && s.len ? memchr(s.p, '?', s.len) : NULL;
	if (query)
		put_or_dash(l, (struct str){s.p, (size_t)(query - s.p)});
	else
		put_text(l, v, LB_ACCESS_PATH);
}

static void stream_id(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	put_text(l, v, LB_ACCESS_REQUEST_ID);
}

static void resp(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	unsigned n;
	if (access_header_number(v->record, a->first, &n) ||
		access_header_number(v->record, a->second, &n))
		access_line_number(l, n);
	else
		access_line_put(l, STR("-"));
}

// The answer.

static void response_code(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_number(l, v->record->brief.status);
}

static void details(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_put(l, str_from(access_details(v->record->brief.cause)));
}

static void flags(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	char room[ACCESS_FLAGS_MAX];
	access_line_put(l, str_from(access_flags(&v->record->brief, false, room)));
}

static void flags_long(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	char room[ACCESS_FLAGS_MAX];
	access_line_put(l, str_from(access_flags(&v->record->brief, true, room)));
}

enum { AS_CAMEL, AS_SNAKE, AS_NUMBER };

static int read_grpc(struct access_arg *a, struct lb_err *reterr)
{
	static const char *const words[] = {"CAMEL_STRING", "SNAKE_STRING", "NUMBER"};
	for (unsigned char i = 0; a->text && i < 3; i++)
		if (strcmp(a->text, words[i]) == 0) {
			a->first = i;
			return 0;
		}
	return a->text && *a->text
	               ? lb_err_set(reterr, "'%s' is not one of CAMEL_STRING, SNAKE_STRING, NUMBER",
				 a->text)
	               : 0;
}

static void grpc_status(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	uint8_t status = v->record->brief.grpc_status;
	const char *name = access_grpc_name(status, a->first == AS_SNAKE);
	if (!name)
		access_line_put(l, STR("-"));
	else if (a->first == AS_NUMBER)
		access_line_number(l, status);
	else
		access_line_put(l, str_from(name));
}

static void grpc_number(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	static const struct access_arg number = {.first = AS_NUMBER};
	grpc_status(l, v, &number);
}

// Bytes, addresses, names.

static void bytes_received(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_number(l, v->record->body_in);
}

static void bytes_sent(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_number(l, v->record->body_out);
}

static void put_ip_port(struct access_line *l, const struct ip_port *at)
{
	char text[IP_PORT_TEXT_MAX];
	access_line_put(l, str_from(ip_port_print(at, text)));
}

static void put_ip(struct access_line *l, const struct ip_port *at)
{
	char text[IP_PORT_TEXT_MAX];
	access_line_put(l, str_from(ip_print(&at->ip, text)));
}

#define ADDRESS(name, place, there)                                                                \
	static void name(                                                                          \
		struct access_line *l, const struct access_view *v, const struct access_arg *a)    \
	{                                                                                          \
		if (there)                                                                         \
			put_ip_port(l, &(place));                                                  \
		else                                                                               \
			access_line_put(l, STR("-"));                                              \
	}                                                                                          \
	static void name##_ip(                                                                     \
		struct access_line *l, const struct access_view *v, const struct access_arg *a)    \
	{                                                                                          \
		if (there)                                                                         \
			put_ip(l, &(place));                                                       \
		else                                                                               \
			access_line_put(l, STR("-"));                                              \
	}                                                                                          \
	static void name##_port(                                                                   \
		struct access_line *l, const struct access_view *v, const struct access_arg *a)    \
	{                                                                                          \
		if (there)                                                                         \
			access_line_number(l, (place).port);                                       \
		else                                                                               \
			access_line_put(l, STR("-"));                                              \
	}
ADDRESS(backend, v->record->backend, v->record->n_attempts)
ADDRESS(client, v->record->client, true)
ADDRESS(local, v->local, true)

static void upstream_cluster(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	put_text(l, v, LB_ACCESS_CLUSTER);
}

static void route_name(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	put_text(l, v, LB_ACCESS_ROUTE);
}

// Virtual hosts have none here.
static void virtual_cluster(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_put(l, STR("-"));
}

static void upstream_protocol(
	struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_put(l, v->record->n_attempts ? STR("HTTP/2") : STR("-"));
}

static void attempts(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_number(l, v->record->n_attempts);
}

static void protocol(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	uint8_t p = v->record->protocol;
	access_line_put(l, p == 20 ? STR("HTTP/2") : p == 11 ? STR("HTTP/1.1") : STR("HTTP/1.0"));
}

static void hostname(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	char text[256] = "";
	if (gethostname(text, sizeof(text) - 1))
		text[0] = 0;
	put_or_dash(l, str_from(text));
}

static void cause(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_put(l, str_from(lb_cause_info(v->record->brief.cause)->name));
}

static void frontend(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	put_or_dash(l, str_from(v->frontend));
}

static void worker(struct access_line *l, const struct access_view *v, const struct access_arg *a)
{
	access_line_number(l, v->worker);
}

const struct access_operator access_operators[] = {
	{"BYTES_RECEIVED", NULL, bytes_received, true},
	{"BYTES_SENT", NULL, bytes_sent, true},
	{"DOWNSTREAM_DIRECT_LOCAL_ADDRESS", NULL, local, false},
	{"DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT", NULL, local_ip, false},
	{"DOWNSTREAM_DIRECT_LOCAL_PORT", NULL, local_port, true},
	{"DOWNSTREAM_DIRECT_REMOTE_ADDRESS", NULL, client, false},
	{"DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT", NULL, client_ip, false},
	{"DOWNSTREAM_DIRECT_REMOTE_PORT", NULL, client_port, true},
	{"DOWNSTREAM_LOCAL_ADDRESS", NULL, local, false},
	{"DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", NULL, local_ip, false},
	{"DOWNSTREAM_LOCAL_PORT", NULL, local_port, true},
	{"DOWNSTREAM_REMOTE_ADDRESS", NULL, client, false},
	{"DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", NULL, client_ip, false},
	{"DOWNSTREAM_REMOTE_PORT", NULL, client_port, true},
	{"DURATION", NULL, duration, true},
	{"GRPC_STATUS", read_grpc, grpc_status, false},
	{"GRPC_STATUS_NUMBER", NULL, grpc_number, true},
	{"HOSTNAME", NULL, hostname, false},
	{"PATH", read_path, path, false},
	{"PROTOCOL", NULL, protocol, false},
	{"REQ", read_req, req, false},
	{"REQUEST_DURATION", NULL, request_duration, true},
	{"RESP", read_resp, resp, false},
	{"RESPONSE_CODE", NULL, response_code, true},
	{"RESPONSE_CODE_DETAILS", NULL, details, false},
	{"RESPONSE_DURATION", NULL, response_duration, true},
	{"RESPONSE_FLAGS", NULL, flags, false},
	{"RESPONSE_FLAGS_LONG", NULL, flags_long, false},
	{"RESPONSE_TX_DURATION", NULL, response_tx_duration, true},
	{"ROUTE_NAME", NULL, route_name, false},
	{"SHUNT_CAUSE", NULL, cause, false},
	{"SHUNT_FRONTEND", NULL, frontend, false},
	{"SHUNT_WORKER", NULL, worker, true},
	{"START_TIME", read_time, start_time, false},
	{"STREAM_ID", NULL, stream_id, false},
	{"TRAILER", read_trailer, resp, false},
	{"UPSTREAM_CLUSTER", NULL, upstream_cluster, false},
	{"UPSTREAM_CLUSTER_RAW", NULL, upstream_cluster, false},
	{"UPSTREAM_HOST", NULL, backend, false},
	{"UPSTREAM_PROTOCOL", NULL, upstream_protocol, false},
	{"UPSTREAM_REMOTE_ADDRESS", NULL, backend, false},
	{"UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", NULL, backend_ip, false},
	{"UPSTREAM_REMOTE_PORT", NULL, backend_port, true},
	{"UPSTREAM_REQUEST_ATTEMPT_COUNT", NULL, attempts, true},
	{"VIRTUAL_CLUSTER_NAME", NULL, virtual_cluster, false},
};
const size_t access_n_operators = sizeof(access_operators) / sizeof(access_operators[0]);
