// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_tracing.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_numbers.h"
#include "lb/base/str.h"

#include <errno.h>
#include <string.h>

// HOST:PORT or [IPv6]:PORT: what libgrpc could take for another scheme is refused here, by name.
static bool is_host_port(struct str s)
{
	uint64_t port;
	size_t at = s.len;
	while (at && s.p[at - 1] != ':')
		at--;
	if (at < 2 || !str_number((struct str){s.p + at, s.len - at}, UINT16_MAX, &port) || !port)
		return false;
	struct str host = {s.p, at - 1};
	if (host.p[0] == '[')
		return host.len > 2 && host.p[host.len - 1] == ']';
	return !memchr(host.p, ':', host.len) && !memchr(host.p, '/', host.len);
}

int config_check_tracing(struct config *c, struct lb_err *reterr)
{
	const struct config_tracing none = {0}, *t = c->tracing ? c->tracing : &none;
	uint32_t per_million;
	if (config_number_check(CONFIG_TRACE_SAMPLE, t->sample_per_million, &per_million, reterr))
		return -EINVAL;
	if (t->collector && !is_host_port(str_from(t->collector)))
		return lb_err_set(reterr,
			"tracing.collector: '%s' is not a host with a port, like 127.0.0.1:4317",
			t->collector);
	c->traced = (struct lb_tracing){
		.on = c->tracing,
		.upstream_spans = t->upstream_spans,
		.path_max = LB_TRACE_PATH_MAX,
		.client = LB_TRACE_ALL,
		.random = per_million * LB_TRACE_ALL / 1000000,
		.overall = LB_TRACE_ALL,
	};
	return 0;
}
