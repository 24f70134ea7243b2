// SPDX-License-Identifier: Apache-2.0
// `ping`: echo requests of Shunt's own stack (OPS-197, OPS-198). The answer comes once none of them
// waits any more, five seconds later at most.
#include "ctrl/assemble/workers.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/answer.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/str.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"

#include <event2/buffer.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FALLBACK 3 // requests
#define WORKERS_PATIENCE_NS (3 * NS_PER_SECOND)
#define NS_PER_MS_F 1e6

struct ping_wait {
	struct stats_follow follow;
	const struct show *show;
	const struct lb_ping *ping; // the worker's until it is free
	uint64_t until_ns;
	bool json;
};

static const char *const results[LB_PING_N_RESULTS] = {
	[LB_PING_WAITS] = "waits",
	[LB_PING_ANSWERED] = "answered",
	[LB_PING_TIMEOUT] = "timeout",
	[LB_PING_NO_NEIGHBOR] = "no answer to ARP or neighbor discovery",
	[LB_PING_UNREACHABLE] = "unreachable",
	[LB_PING_EXPIRED] = "expired on the way",
	[LB_PING_NO_ROUTE] = "no route",
	[LB_PING_NO_ROOM] = "no room for another neighbor",
};

// RFC 792 and RFC 1812 5.2.7.1; RFC 4443 3.1.
static const char *reason(const struct lb_ping *p, const struct lb_ping_reply *r)
{
	static const char *const of_v4[] = {[0] = "net",
		[1] = "host",
		[2] = "protocol",
		[3] = "port",
		[6] = "net unknown",
		[7] = "host unknown",
		[9] = "net prohibited",
		[10] = "host prohibited",
		[13] = "prohibited"};
	static const char *const of_v6[] = {[0] = "no route",
		[1] = "prohibited",
		[2] = "beyond scope",
		[3] = "address",
		[4] = "port",
		[5] = "source refused",
		[6] = "route rejected"};
	bool v4 = ip_is_v4(&p->address);
	const char *const *names = v4 ? of_v4 : of_v6;
	size_t n = v4 ? sizeof(of_v4) / sizeof(of_v4[0]) : sizeof(of_v6) / sizeof(of_v6[0]);
	if (r->result != LB_PING_UNREACHABLE)
		return "";
	return r->code < n && names[r->code] ? names[r->code] : "another reason";
}

static void set_ip(json_t *row, const char *key, const struct ip_addr *ip)
{
	char text[IP_PORT_TEXT_MAX];
	show_set_text(row, key, ip_is_none(ip) ? "" : ip_print(ip, text));
}

static json_t *reply_row(const struct lb_ping *p, uint32_t i)
{
	const struct lb_ping_reply *r = &p->replies[i];
	bool by_hop = r->result == LB_PING_NO_NEIGHBOR;
	json_t *row = json_object();
	show_set_u64(row, "request", i + 1);
	show_set_text(row, "result", results[r->result]);
	json_object_set_new(row, "rtt_ms",
		r->result == LB_PING_ANSWERED ? json_real((double)r->rtt_ns / NS_PER_MS_F)
					      : json_null());
	set_ip(row, "from",
		r->result == LB_PING_ANSWERED ? &p->address
		: by_hop                      ? &p->hop
					      : &r->from);
	show_set_text(row, "reason", reason(p, r));
	return row;
}

static json_t *build(const struct lb_ping *p)
{
	uint64_t n_answered = 0, sum_ns = 0, least_ns = UINT64_MAX, most_ns = 0;
	json_t *o = json_object(), *rows = json_array();
	for (uint32_t i = 0; i < p->count; i++) {
		const struct lb_ping_reply *r = &p->replies[i];
		json_array_append_new(rows, reply_row(p, i));
		if (r->result != LB_PING_ANSWERED)
			continue;
		n_answered++;
		sum_ns += r->rtt_ns;
		least_ns = r->rtt_ns < least_ns ? r->rtt_ns : least_ns;
		most_ns = r->rtt_ns > most_ns ? r->rtt_ns : most_ns;
	}
	bool has_way = !ip_is_none(&p->hop);
	set_ip(o, "address", &p->address);
	json_object_set_new(o, "port", has_way ? json_integer(p->out_port) : json_null());
	set_ip(o, "source", &p->source);
	set_ip(o, "next_hop", &p->hop);
	show_set_u64(o, "requests", p->count);
	show_set_u64(o, "answered", n_answered);
	if (n_answered) {
		json_object_set_new(o, "least_ms", json_real((double)least_ns / NS_PER_MS_F));
		json_object_set_new(
			o, "mean_ms", json_real((double)sum_ns / NS_PER_MS_F / (double)n_answered));
		json_object_set_new(o, "most_ms", json_real((double)most_ns / NS_PER_MS_F));
	}
	json_object_set_new(o, "replies", rows);
	return o;
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	const struct ping_wait *w = CONTAINER_OF(f, struct ping_wait, follow);
	bool is_free = lb_ping_is_free(w->ping);
	if (!is_free && twheel_now(w->show->conf.wheel) < w->until_ns)
		return true;
	json_t *tree = is_free ? build(w->ping) : NULL;
	char *text = is_free ? answer_tree(tree, w->json, false)
	                     : answer_error("worker 0 says nothing, try %s", "show workers");
	evbuffer_add_printf(out, "%s", text ? text : STATS_ERROR "out of memory\n");
	free(text);
	json_decref(tree);
	return false;
}

static void wait_free(struct stats_follow *f)
{
	struct ping_wait *w = CONTAINER_OF(f, struct ping_wait, follow);
	if (w->show->ping->owner == w)
		w->show->ping->owner = NULL;
	free(w);
}

// The words.

struct wanted {
	struct ip_addr address;
	uint32_t count;
	uint8_t port;
};

static int read_option(const struct show *s, const char *key, const char *value, struct wanted *ret,
	struct lb_err *err)
{
	uint32_t n_ports = s->conf.config->n_ports;
	uint64_t n;
	if (strcmp(key, "count") == 0) {
		if (!str_number(str_from(value), LB_PING_MOST, &n) || n == 0)
			return lb_err_set(
				err, "count: '%s' is not between 1 and %d", value, LB_PING_MOST);
		ret->count = (uint32_t)n;
		return 0;
	}
	if (strcmp(key, "port") != 0)
		return lb_err_set(
			err, "unexpected argument '%s', 'count N' and 'port N' may follow", key);
	if (!str_number(str_from(value), n_ports - 1, &n))
		return lb_err_set(
			err, "port: '%s' is none of the %u, try show ports", value, n_ports);
	ret->port = (uint8_t)n;
	return 0;
}

// 0, or -EINVAL with args->err.
static int read_words(const struct show *s, struct show_args *args, struct wanted *ret)
{
	*ret = (struct wanted){.count = FALLBACK, .port = LB_PING_ANY_PORT};
	if (!args->n || !ip_parse(args->words[0], &ret->address) || ip_is_none(&ret->address))
		return lb_err_set(&args->err, "an IPv4 or IPv6 address must follow");
	for (unsigned i = 1; i < args->n; i += 2) {
		const char *value = i + 1 < args->n ? args->words[i + 1] : "";
		if (show_comes_twice(args, 1, 2, i) ||
			read_option(s, args->words[i], value, ret, &args->err))
			return -EINVAL;
	}
	if (!ip_is_v4(&ret->address) && ip_is_link_local(&ret->address) &&
		ret->port == LB_PING_ANY_PORT)
		return lb_err_set(
			&args->err, "a link-local address is known on one link: add port N");
	return 0;
}

// An answer stays until whoever it is for has read it, or is gone. 0, or -EINVAL with args->err.
static int ask(const struct ping_wait *w, struct show_args *args, const struct wanted *wanted)
{
	const struct show *s = w->show;
	static const struct lb_command command = {.kind = LB_COMMAND_PING};
	struct lb_ping *p = &workers_link(s->conf.workers, LB_PING_WORKER)->ping;
	if (s->ping->owner || !lb_ping_is_free(p))
		return lb_err_set(&args->err, "another ping is under way, try again");
	p->address = wanted->address;
	p->count = wanted->count;
	p->port = wanted->port;
	lb_ping_ask(p);
	if (workers_send(s->conf.workers, LB_PING_WORKER, &command)) {
		s->ping->owner = w;
		return 0;
	}
	lb_ping_take_back(p);
	return lb_err_set(&args->err, "out of memory");
}

// `ADDRESS [count N] [port N]`. NULL with args->follow: the answer is yet to come.
json_t *show_ping(const struct show *s, struct show_args *args)
{
	struct wanted wanted;
	if (read_words(s, args, &wanted))
		return NULL;
	struct ping_wait *w = malloc(sizeof(*w));
	if (!w)
		return NULL;
	uint64_t most_ns = wanted.count * LB_PING_INTERVAL_NS + LB_PING_PATIENCE_NS;
	*w = (struct ping_wait){.follow = {more, wait_free, true},
		.show = s,
		.ping = &workers_link(s->conf.workers, LB_PING_WORKER)->ping,
		.until_ns = twheel_now(s->conf.wheel) + most_ns + WORKERS_PATIENCE_NS,
		.json = args->json};
	if (ask(w, args, &wanted))
		wait_free(&w->follow);
	else
		args->follow = &w->follow;
	return NULL;
}
