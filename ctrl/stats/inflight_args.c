// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/inflight_args.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FALLBACK 100 // rows, where the command says no number
#define MOST_SECONDS 1e9

struct reader {
	const struct show *show;
	struct lb_inflight_query *to;
	struct lb_err *err;
};

static void add_endpoint(void *ctx, const char *cluster, uint32_t id)
{
	struct lb_inflight_query *q = ctx;
	q->endpoints[id / 64] |= UINT64_C(1) << id % 64;
}

static int read_cluster(const struct reader *r, const char *name)
{
	struct assembler_cluster_info info;
	if (!assembler_find_cluster(r->show->conf.assembler, name, &info))
		return lb_err_set(r->err, "no cluster '%s', try show clusters", name);
	if (r->to->kind == LB_INFLIGHT_REQUESTS) {
		r->to->cluster = info.id;
	} else {
		r->to->by_endpoint = true;
		assembler_each_endpoint_id(r->show->conf.assembler, name, add_endpoint, r->to);
	}
	return 0;
}

static int read_frontend(const struct reader *r, const char *name)
{
	int i = config_find_frontend(r->show->conf.config, name, r->err);
	r->to->frontend = (uint32_t)i;
	return i < 0 ? i : 0;
}

static int read_source(const struct reader *r, const char *text)
{
	struct str address = str_until(str_from(text), '/');
	struct ip_prefix *to = &r->to->source;
	r->to->has_source = ip_parse_str(address, &to->ip);
	unsigned before = r->to->has_source && ip_is_v4(&to->ip) ? IP_V4_BITS : 0;
	uint64_t most = sizeof(to->ip.b) * 8 - before, bits = most;
	if (text[address.len] && !str_number(str_from(text + address.len + 1), most, &bits))
		r->to->has_source = false;
	if (!r->to->has_source)
		return lb_err_set(r->err, "%s: '%s' is not an address, nor ADDRESS/BITS",
			r->to->kind >= LB_INFLIGHT_NEIGHBORS ? "address" : "source", text);
	to->bits = (uint8_t)(bits + before);
	return 0;
}

static int read_state(const struct reader *r, const char *text)
{
	char all[128] = "";
	const char *name;
	for (uint32_t i = 0; (name = lb_inflight_state_name(r->to->kind, i)); i++) {
		size_t len = strlen(all);
		snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "", name);
		if (strcmp(name, text) == 0) {
			r->to->states = 1u << i;
			return 0;
		}
	}
	return lb_err_set(r->err, "state: '%s' is none of %s", text, all);
}

static int read_older(const struct reader *r, const char *text)
{
	uint64_t now_ns = twheel_now(r->show->conf.wheel);
	char *end;
	double s = strtod(text, &end);
	if (!*text || *end || !(s >= 0 && s <= MOST_SECONDS))
		return lb_err_set(r->err, "older: '%s' is not a number of seconds", text);
	uint64_t ns = (uint64_t)(s * NS_PER_SECOND);
	r->to->before_ns = ns < now_ns ? now_ns - ns : 0;
	return 0;
}

static int read_limit(const struct reader *r, const char *text)
{
	uint64_t n;
	if (!str_number(str_from(text), LB_INFLIGHT_ROWS, &n) || n == 0)
		return lb_err_set(
			r->err, "limit: '%s' is not between 1 and %d", text, LB_INFLIGHT_ROWS);
	r->to->limit = (uint32_t)n;
	return 0;
}

static const struct condition {
	const char *key;
	int (*read)(const struct reader *, const char *value);
} conditions[] = {{"cluster=", read_cluster}, {"frontend=", read_frontend},
	{"source=", read_source}, {"state=", read_state}, {"older=", read_older},
	{"limit=", read_limit}, {"address=", read_source}};
#define N_CONDITIONS (sizeof(conditions) / sizeof(conditions[0]))

static int read_word(const struct reader *r, const char *word)
{
	for (size_t i = 0; i < N_CONDITIONS; i++) {
		size_t len = strlen(conditions[i].key);
		if (strncmp(word, conditions[i].key, len) != 0)
			continue;
		return conditions[i].read(r, word + len);
	}
	return lb_err_set(r->err, "unexpected argument '%s', try help", word);
}

int inflight_args_read(const struct show *s, enum lb_inflight_kind kind, struct show_args *args,
	struct lb_inflight_query *ret)
{
	*ret = (struct lb_inflight_query){.kind = kind,
		.limit = FALLBACK,
		.before_ns = UINT64_MAX,
		.states = UINT32_MAX,
		.frontend = LB_INFLIGHT_ANY,
		.cluster = LB_INFLIGHT_ANY};
	const struct reader r = {s, ret, &args->err};
	for (unsigned i = 0; i < args->n; i++) {
		if (strcmp(args->words[i], "json") == 0 && i == args->n - 1)
			args->json = true;
		else if (show_comes_twice(args, 0, 1, i) || read_word(&r, args->words[i]))
			return -EINVAL;
	}
	return 0;
}
