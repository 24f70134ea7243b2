// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shunt-xds/proxy_world.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/err.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tools/shunt-xds/ads_stream_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BOOTSTRAP[] = "{\"xds_servers\":[{\"server_uri\":\"above:1\",\"channel_creds\":"
				"[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"proxy\"}}";

void proxy_init(struct proxy_world *w, const struct xds_protocol *protocol)
{
	struct lb_err err;
	*w = (struct proxy_world){.is_delta = protocol == &xds_protocol_delta};
	server_init(&w->above, false);
	server_init(&w->below, protocol->newest_wins);
	assert_int_equal(
		xds_bootstrap_parse(BOOTSTRAP, strlen(BOOTSTRAP), "test", &w->bootstrap, &err), 0);
	w->wheel = twheel_new(w->below.now_ns);
	rand_init(&w->rand, 1);
	w->upstream = upstream_new(
		&(struct upstream_conf){
			.bootstrap = w->bootstrap,
			.protocol = protocol,
			.transport = fake_ads_factory(&w->fake),
			.wheel = w->wheel,
			.rand = &w->rand,
			.user_agent_version = "1",
			.grace_ns = GRACE,
			.names_max = NAMES_MAX,
		},
		w->below.catalog);
	assert_true(w->wheel && w->upstream);
}

void proxy_fini(struct proxy_world *w)
{
	upstream_free(w->upstream);
	ads_stream_free(w->stream);
	server_fini(&w->below);
	server_fini(&w->above);
	twheel_free(w->wheel);
	xds_bootstrap_free(w->bootstrap);
	fake_ads_fini(&w->fake);
}

static void hang_up(struct proxy_world *w)
{
	ads_stream_free(w->stream);
	w->stream = NULL;
	if (w->fake.stream)
		fake_ads_close(&w->fake, "gone");
	while (fake_ads_arrived(&w->fake)) {
	}
	fake_ads_forget(&w->fake);
}

static void open_stream(struct proxy_world *w)
{
	if (!w->stream)
		w->stream = ads_stream_new(w->is_delta ? ADS_DELTA : ADS_SOTW, w->above.catalog);
	assert_non_null(w->stream);
}

static bool take_sotw(struct proxy_world *w)
{
	const Envoy__Service__Discovery__V3__DiscoveryRequest *m;
	bool any = false;
	while (w->fake.stream && (m = fake_ads_next(&w->fake))) {
		struct ads_request_result result;
		open_stream(w);
		assert_int_equal(ads_stream_feed_sotw(w->stream, m, w->above.now_ns, &result), 0);
		any = true;
	}
	return any;
}

static bool take_delta(struct proxy_world *w)
{
	const Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *m;
	bool any = false;
	while (w->fake.stream && (m = fake_ads_next_delta(&w->fake))) {
		struct ads_request_result result;
		open_stream(w);
		w->n_asked += m->n_resource_names_subscribe + m->n_resource_names_unsubscribe +
		                      m->n_resource_locators_subscribe +
		                      m->n_resource_locators_unsubscribe >
		              0;
		assert_int_equal(ads_stream_feed_delta(w->stream, m, w->above.now_ns, &result), 0);
		any = true;
	}
	return any;
}

static bool take_requests(struct proxy_world *w)
{
	bool any = w->is_delta ? take_delta(w) : take_sotw(w);
	fake_ads_forget(&w->fake);
	return any;
}

static bool respond(struct proxy_world *w)
{
	struct ads_response r;
	uint8_t *bytes;
	size_t len;
	if (!w->fake.stream || !w->stream || !w->fake.reading || w->is_mute)
		return false;
	int due = ads_stream_drain(w->stream, w->above.now_ns, &r);
	assert_true(due >= 0);
	if (due == 0)
		return false;
	assert_int_equal(ads_response_encode(&r, &bytes, &len), 0);
	fake_ads_say(&w->fake, bytes, len);
	free(bytes);
	return true;
}

void proxy_run(struct proxy_world *w)
{
	bool any = true;
	while (any) {
		if (w->is_down)
			hang_up(w);
		any = take_requests(w);
		any |= respond(w);
		if (w->fails)
			alloc_fail_arm(w->fail_nth);
		any |= !w->is_unsettled && upstream_settle(w->upstream);
		if (w->fails)
			w->has_failed |= alloc_fail_disarm();
	}
}

void proxy_pass(struct proxy_world *w, uint64_t ns)
{
	w->below.now_ns += ns;
	w->above.now_ns += ns;
	twheel_advance(w->wheel, w->below.now_ns);
	proxy_run(w);
}

void proxy_publish(struct proxy_world *w, const char *words)
{
	server_publish(&w->above, words);
	proxy_run(w);
}

void proxy_cut(struct proxy_world *w)
{
	w->is_down = true;
	proxy_run(w);
}

void proxy_mend(struct proxy_world *w)
{
	w->is_down = false;
	proxy_pass(w, 200 * NS_PER_SECOND); // longer than any backoff
}

static void add(struct proxy_world *w, char letter, const struct xds_sub *sub)
{
	char params[96] = "";
	size_t n = strlen(w->text);
	if (sub->params)
		xds_params_print(sub->params, params, sizeof(params));
	snprintf(w->text + n, sizeof(w->text) - n, "%s%c:%s%s", n ? " " : "", letter, sub->name,
		params);
}

const char *proxy_asked(struct proxy_world *w)
{
	static const char letters[] = "CELR";
	proxy_run(w);
	w->text[0] = '\0';
	for (uint32_t t = 0; w->stream && t < N_RESOURCE_TYPES; t++) {
		const struct subscription *s = &w->stream->types[t].sub;
		for (size_t i = 0; i < s->n_wild; i++)
			add(w, letters[t], s->wild[i]);
		for (size_t i = 0; i < s->n; i++)
			if (s->entries[i].named)
				add(w, letters[t], s->entries[i].sub);
	}
	return w->text;
}
