// SPDX-License-Identifier: Apache-2.0
// The JSON form of a line.
#include "ctrl/access_log/operators.h"
#include "ctrl/access_log/words.h"
#include "lb/base/time.h"

#include <stdio.h>

static void key(struct access_line *l, const char *name)
{
	access_line_put(l, l->p[l->len - 1] == '{' ? STR("\"") : STR(",\""));
	access_line_put(l, str_from(name));
	access_line_put(l, STR("\":"));
}

// null where there is none.
static void text(struct access_line *l, const char *name, struct str value)
{
	key(l, name);
	if (value.len)
		access_line_json(l, value);
	else
		access_line_put(l, STR("null"));
}

static void number(struct access_line *l, const char *name, uint64_t value, bool is_there)
{
	key(l, name);
	if (is_there)
		access_line_number(l, value);
	else
		access_line_put(l, STR("null"));
}

static void put_time(struct access_line *l, const struct access_view *v)
{
	char place[64];
	struct access_line time = {.p = place, .size = sizeof(place)};
	access_time_write(&time, ACCESS_TIME_FORM, v->began_wall_ns);
	text(l, "time", (struct str){place, time.len});
}

static void milliseconds(struct access_line *l, const char *name, uint64_t from_ns, uint64_t to_ns)
{
	char digits[32];
	key(l, name);
	if (!to_ns) {
		access_line_put(l, STR("null"));
		return;
	}
	uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
	int len = snprintf(digits, sizeof(digits), "%llu.%03u", (unsigned long long)(us / 1000),
		(unsigned)(us % 1000));
	access_line_put(l, (struct str){digits, (size_t)len});
}

static const struct {
	const char *name;
	enum lb_access_text which;
} texts[] = {
	{"method", LB_ACCESS_METHOD},
	{"authority", LB_ACCESS_AUTHORITY},
	{"path", LB_ACCESS_PATH},
	{"user_agent", LB_ACCESS_USER_AGENT},
	{"request_id", LB_ACCESS_REQUEST_ID},
	{"traceparent", LB_ACCESS_TRACEPARENT},
	{"x_forwarded_for", LB_ACCESS_FORWARDED_FOR},
	{"cluster", LB_ACCESS_CLUSTER},
	{"route", LB_ACCESS_ROUTE},
};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

// Which texts are longer than what is kept of them.
static void put_cut(struct access_line *l, const struct lb_access_record *r)
{
	if (!r->cut)
		return;
	bool is_first = true;
	key(l, "cut");
	access_line_put(l, STR("["));
	for (size_t i = 0; i < N_TEXTS; i++)
		if (r->cut >> texts[i].which & 1) {
			access_line_put(l, is_first ? STR("") : STR(","));
			access_line_json(l, str_from(texts[i].name));
			is_first = false;
		}
	access_line_put(l, STR("]"));
}

void access_json_write(struct access_line *l, const struct access_view *v)
{
	const struct lb_access_record *r = v->record;
	const struct lb_cause_info *cause = lb_cause_info(r->brief.cause);
	char address[IP_PORT_TEXT_MAX], flags[ACCESS_FLAGS_MAX];
	access_line_put(l, STR("{"));
	put_time(l, v);
	text(l, "frontend", str_from(v->frontend));
	number(l, "worker", v->worker, true);
	text(l, "client", str_from(ip_port_print(&r->client, address)));
	text(l, "protocol",
		r->protocol == 20   ? STR("HTTP/2")
		: r->protocol == 11 ? STR("HTTP/1.1")
				    : STR("HTTP/1.0"));
	for (size_t i = 0; i < N_TEXTS; i++)
		text(l, texts[i].name, lb_access_get(r, texts[i].which));
	text(l, "endpoint",
		r->n_attempts ? str_from(ip_port_print(&r->backend, address)) : STR(""));
	number(l, "attempts", r->n_attempts, true);
	number(l, "status", r->brief.status, r->brief.status != 0);
	number(l, "grpc_status", r->brief.grpc_status, r->brief.grpc_status != LB_ACCESS_NO_GRPC);
	text(l, "cause", str_from(cause->name));
	text(l, "flags", str_from(access_flags(&r->brief, false, flags)));
	number(l, "bytes_received", r->body_in, true);
	number(l, "bytes_sent", r->body_out, true);
	milliseconds(l, "duration_ms", r->brief.began_ns, r->brief.ended_ns);
	milliseconds(l, "request_ms", r->brief.began_ns, r->received_ns);
	milliseconds(l, "response_ms", r->brief.began_ns, r->answered_ns);
	put_cut(l, r);
	access_line_put(l, STR("}"));
}
