// SPDX-License-Identifier: Apache-2.0
// OPS-327: the vips of a newer shunt.yaml to the prefixes that workers are told of.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/own_vips.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/own_ranges.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#define TURN_NS (10 * NS_PER_MS)

struct world {
	struct config_port port; // 10.81.0.10/24
	struct ip_addr address;
	uint8_t address_len;
	struct config_tunnel tunnel; // from 10.5.0.0/16
	char *from;
	struct config config;
	struct config_vip lists[2][CONFIG_MAX_VIPS];
	unsigned current; // of these
	struct twheel *wheel;
	uint64_t now_ns;
	struct lb_slot *slot;
	struct lb_shared *shared;
	struct lb_link *link;
	struct workers *workers;
	struct assembler *assembler;
	struct own_vips vips;
	struct lb_err err;
	char told[512];
};

static void on_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
}

static void set_up(struct world *w)
{
	static char from[] = "10.5.0.0/16";
	static char text[] = "10.81.0.10/24", *addresses[] = {text};
	*w = (struct world){.address = ip_from_v4(0x0a51000a),
		.address_len = 120,
		.from = from,
		.now_ns = 1000 * NS_PER_SECOND};
	w->port = (struct config_port){.addresses = addresses,
		.address_ips = &w->address,
		.address_lens = &w->address_len,
		.n_addresses = 1};
	w->tunnel = (struct config_tunnel){.from = &w->from, .n_from = 1};
	w->tunnel.sources[0] = (struct ip_prefix){ip_from_v4(0x0a050000), 112};
	w->config = (struct config){.ports = &w->port,
		.n_ports = 1,
		.tunnels = &w->tunnel,
		.n_tunnels = 1,
		.listener_drain_s = 5,
		.vips = w->lists[0]};
	w->wheel = twheel_new(w->now_ns);
	w->slot = lb_slot_new(lb_snapshot_new(0, ""));
	w->link = lb_link_new(0, 0, w->shared = lb_shared_new());
	w->workers = workers_new(&w->link, 1, on_event, w);
	struct assembler_conf conf = {&w->config, w->slot, w->workers, w->wheel, 7};
	w->assembler = assembler_new(&conf);
	assert_non_null(w->assembler);
	own_vips_init(&w->vips, &w->config, w->assembler, w->wheel);
}

static void tear_down(struct world *w)
{
	own_vips_fini(&w->vips);
	lb_slot_free(w->slot);
	assembler_free(w->assembler);
	workers_free(w->workers);
	lb_link_free(w->link);
	lb_shared_free(w->shared);
	twheel_free(w->wheel);
}

static void pass(struct world *w, uint64_t ns)
{
	for (uint64_t t = 0; t < ns; t += TURN_NS) {
		w->now_ns += TURN_NS;
		twheel_advance(w->wheel, w->now_ns);
		assembler_tick(w->assembler);
	}
}

// "10.9.0.0/24 10.8.0.0/24-" (- = does not answer). 0, or what the check says.
static int change(struct world *w, const char *text)
{
	static bool no = false;
	static char texts[2][CONFIG_MAX_VIPS][24];
	unsigned to = !w->current, n = 0, bytes[4], bits;
	int len;
	char quiet;
	for (; sscanf(text, " %u.%u.%u.%u/%u%n", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bits,
		       &len) == 5;
		n++) {
		text += len;
		quiet = *text;
		text += quiet == '-';
		snprintf(texts[to][n], sizeof(texts[to][n]), "%u.%u.%u.%u/%u", bytes[0], bytes[1],
			bytes[2], bytes[3], bits);
		w->lists[to][n] = (struct config_vip){
			.prefix = texts[to][n], .arp = quiet == '-' ? &no : NULL};
	}
	const struct config new = {.vips = w->lists[to], .n_vips = n};
	if (own_vips_check(&w->vips, &new, &w->err))
		return -1;
	const struct config_vip *before = w->config.vips;
	unsigned n_before = w->config.n_vips;
	w->config.vips = w->lists[to];
	w->config.n_vips = n;
	w->current = to;
	own_vips_change(&w->vips, before, n_before);
	pass(w, 20 * TURN_NS); // snapshots may be held back
	return 0;
}

static const char *told(struct world *w)
{
	const struct lb_own_ranges *r = lb_slot_current(w->slot)->ranges;
	w->told[0] = 0;
	for (uint32_t i = 0; r && i < r->n; i++) {
		char ip[IP_PORT_TEXT_MAX];
		size_t len = strlen(w->told);
		snprintf(w->told + len, sizeof(w->told) - len, "%s%s/%u%s", len ? " " : "",
			ip_print(&r->list[i].prefix.ip, ip), r->list[i].prefix.bits - 96u,
			r->list[i].answers ? "" : "-");
	}
	return w->told;
}

static void ops_327_new_ones_are_there_at_once_and_old_ones_for_a_while(void **state)
{
	struct world w;
	set_up(&w);
	assert_null(lb_slot_current(w.slot)->ranges); // as workers were started
	assert_int_equal(change(&w, "10.9.0.0/24 10.8.0.0/24-"), 0);
	assert_string_equal(told(&w), "10.9.0.0/24 10.8.0.0/24-");
	assert_int_equal(change(&w, "10.7.0.0/24 10.9.0.0/24-"), 0);
	assert_string_equal(told(&w), "10.7.0.0/24 10.9.0.0/24- 10.8.0.0/24-");
	pass(&w, 6 * NS_PER_SECOND);
	assert_string_equal(told(&w), "10.7.0.0/24 10.9.0.0/24- 10.8.0.0/24-");
	assert_int_equal(change(&w, ""), 0);
	assert_string_equal(told(&w), "10.8.0.0/24- 10.7.0.0/24 10.9.0.0/24-");
	pass(&w, 2 * NS_PER_SECOND);
	assert_string_equal(told(&w), "10.7.0.0/24 10.9.0.0/24-");
	assert_int_equal(change(&w, "10.7.0.0/24"), 0); // taken back
	assert_string_equal(told(&w), "10.7.0.0/24 10.9.0.0/24-");
	pass(&w, 10 * NS_PER_SECOND);
	assert_string_equal(told(&w), "10.7.0.0/24");
	// A wider one that holds it.
	assert_int_equal(change(&w, "10.7.0.0/16"), 0);
	assert_string_equal(told(&w), "10.7.0.0/16 10.7.0.0/24");
	pass(&w, 10 * NS_PER_SECOND);
	assert_string_equal(told(&w), "10.7.0.0/16");
	tear_down(&w);
}

static void ops_327_a_shorter_time_ends_before_a_longer_one_that_began_earlier(void **state)
{
	struct world w;
	set_up(&w);
	w.config.listener_drain_s = 600;
	assert_int_equal(change(&w, "10.9.0.0/24 10.8.0.0/24 10.7.0.0/24"), 0);
	assert_int_equal(change(&w, "10.8.0.0/24 10.7.0.0/24"), 0);
	w.config.listener_drain_s = 5;
	assert_int_equal(change(&w, "10.7.0.0/24"), 0);
	assert_string_equal(told(&w), "10.7.0.0/24 10.8.0.0/24 10.9.0.0/24");
	w.config.listener_drain_s = 60;
	assert_int_equal(change(&w, ""), 0);
	pass(&w, 8 * NS_PER_SECOND);
	assert_string_equal(told(&w), "10.7.0.0/24 10.9.0.0/24");
	pass(&w, 60 * NS_PER_SECOND);
	assert_string_equal(told(&w), "10.9.0.0/24");
	pass(&w, 600 * NS_PER_SECOND);
	assert_string_equal(told(&w), "");
	tear_down(&w);
}

// OPS-326: by the ports and tunnels that there are, not by those of the file.
static void ops_326_what_would_take_a_ports_address_or_a_tunnels_is_refused(void **state)
{
	struct world w;
	set_up(&w);
	assert_int_equal(change(&w, "10.81.0.0/24"), -1);
	assert_non_null(strstr(w.err.text, "vips[0].prefix: 10.81.0.0/24 contains ports[0]"));
	assert_int_equal(change(&w, "10.9.0.0/24 10.5.1.0/24"), -1);
	assert_non_null(strstr(w.err.text, "vips[1].prefix: 10.5.1.0/24 overlaps 10.5.0.0/16"));
	assert_null(lb_slot_current(w.slot)->ranges);
	tear_down(&w);
}

RUN_SUITE("ctrl/own_vips",
	cmocka_unit_test(ops_327_new_ones_are_there_at_once_and_old_ones_for_a_while),
	cmocka_unit_test(ops_327_a_shorter_time_ends_before_a_longer_one_that_began_earlier),
	cmocka_unit_test(ops_326_what_would_take_a_ports_address_or_a_tunnels_is_refused))
