// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/net/world.h"

#include "dataplane/net/csum.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

const uint8_t world_mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0xaa};
const uint8_t broadcast_mac[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static uint8_t *device_reserve(void *ctx, size_t len)
{
	struct world_port *port = ctx;
	assert_false(port->open); // net.h: at most one at a time
	assert_true(len <= WORLD_FRAME_MAX);
	if (port->starved)
		return NULL;
	port->open = true;
	port->open_len = len;
	memset(port->open_bytes, 0xee, len);
	return port->open_bytes;
}

static void device_send(void *ctx, size_t len)
{
	struct world_port *port = ctx;
	struct world *w = port->world;
	assert_true(port->open);
	assert_int_equal(len, port->open_len);
	assert_true(w->n_sent < WORLD_FRAMES);
	port->open = false;
	struct world_frame *frame = &w->sent[w->n_sent++];
	frame->port = port->index;
	frame->len = len;
	memcpy(frame->bytes, port->open_bytes, len);
}

static void device_cancel(void *ctx)
{
	struct world_port *port = ctx;
	assert_true(port->open);
	port->open = false;
}

static void on_segment(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	struct world *w = ctx;
	w->n_segments++;
	w->segment_local = flow->local;
	w->segment_remote = flow->remote;
	w->segment_overhead = w->overhead;
	w->segment_len = len;
	memcpy(w->segment, segment, len);
}

static void on_unreachable(void *ctx, const struct tcp_flow *flow, uint32_t seq)
{
	struct world *w = ctx;
	w->n_unreachable++;
	w->unreachable = *flow;
	w->unreachable_seq = seq;
	if (w->on_unreachable)
		w->on_unreachable(w);
}

static void on_marked(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	((struct world *)ctx)->n_marked++;
	on_segment(ctx, flow, segment, len);
}

static void on_too_big(void *ctx, const struct tcp_flow *flow, uint32_t seq, uint32_t mtu)
{
	struct world *w = ctx;
	w->n_too_big++;
	w->too_big = *flow;
	w->too_big_seq = seq;
	w->too_big_mtu = mtu;
}

static void on_through(void *ctx, uint32_t overhead)
{
	((struct world *)ctx)->overhead = overhead;
}

static bool knows(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	return !((struct world *)ctx)->knows_none || len < 20 || segment[13] & 2;
}

struct net_device world_device(struct world *w, uint32_t port)
{
	return (struct net_device){device_reserve, device_send, device_cancel, &w->ports[port]};
}

int world_setup_ports(void **state, struct net_port_conf ports[2])
{
	struct world *w = calloc(1, sizeof(*w));
	for (uint32_t i = 0; i < 2; i++) {
		w->ports[i] = (struct world_port){.world = w, .index = i};
		memcpy(ports[i].mac, world_mac[i], 6);
		ports[i].device = world_device(w, i);
	}
	w->wheel = twheel_new(5 * NS_PER_SECOND);
	w->net = net_new(ports, 2, WORLD_NEIGHBORS, w->wheel, 42);
	w->io = net_tcp_io(w->net);
	net_set_tcp(w->net, &(struct net_tcp){on_segment, on_unreachable, on_too_big, w, on_marked,
				    on_through, knows});
	*state = w;
	return 0;
}

int world_setup(void **state)
{
	struct net_port_conf ports[2] = {
		{
			.mtu = 1500,
			.addresses = {{ip_from_v4(IP(10, 0, 0, 1)), 24},
				{ip_from_v4(IP(10, 0, 0, 9)), 32}},
			.n_addresses = 2,
			.gateways = {ip_from_v4(IP(10, 0, 0, 254))},
		},
		{
			.mtu = 1400,
			.addresses = {{ip_from_v4(IP(10, 1, 0, 1)), 16},
				{ip_from_v4(IP(10, 1, 2, 1)), 24}},
			.n_addresses = 2,
		},
	};
	return world_setup_ports(state, ports);
}

int world_teardown(void **state)
{
	struct world *w = *state;
	net_free(w->net);
	twheel_free(w->wheel);
	free(w);
	return 0;
}

void world_advance(struct world *w, uint64_t ns)
{
	twheel_advance(w->wheel, twheel_now(w->wheel) + ns);
}

uint64_t world_count(const struct world *w, const char *counter)
{
	struct counter_set set = net_counters(w->net);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], counter) == 0)
			return counter_read(&set.values[i]);
	fail_msg("no counter %s", counter);
	return 0;
}

void world_forget(struct world *w)
{
	w->n_sent = 0;
	w->n_segments = 0;
	w->n_unreachable = 0;
}

void world_in(struct world *w, uint32_t port, const uint8_t *frame, size_t len)
{
	// A copy of exact size, so that a sanitizer sees each byte read beyond it.
	uint8_t *copy = malloc(len ? len : 1);
	memcpy(copy, frame, len);
	net_input(w->net, port, copy, len);
	free(copy);
}

void world_arp_in(struct world *w, uint32_t port, const struct arp_text *arp)
{
	uint8_t f[60] = {0};
	const uint8_t *ours = arp->to_mac ? arp->to_mac : world_mac[port];
	memcpy(f, arp->op == 2 ? ours : broadcast_mac, 6);
	memcpy(f + 6, arp->from_mac, 6);
	store16(f + 12, 0x0806);
	store16(f + 14, 1);
	store16(f + 16, 0x0800);
	f[18] = 6;
	f[19] = 4;
	store16(f + 20, arp->op);
	memcpy(f + 22, arp->from_mac, 6);
	store32(f + 28, arp->from);
	store32(f + 38, arp->to);
	world_in(w, port, f, sizeof(f));
}

void world_resolve(struct world *w, uint32_t port, uint32_t ip, const uint8_t mac[6])
{
	uint32_t ours = port == 0 ? IP(10, 0, 0, 1) : IP(10, 1, 0, 1);
	world_arp_in(w, port, &(struct arp_text){2, mac, ip, ours});
}

bool is_arp_request(const struct world_frame *f, uint32_t for_ip)
{
	return f->len == 42 && load16(f->bytes + 12) == 0x0806 && load16(f->bytes + 20) == 1 &&
	       load32(f->bytes + 38) == for_ip;
}

void fix_ip_checksum(uint8_t *frame)
{
	uint8_t *ip = frame + 14;
	memset(ip + 10, 0, 2);
	uint16_t sum = csum(ip, (size_t)(ip[0] & 0xf) * 4);
	memcpy(ip + 10, &sum, 2);
}

size_t make_ip(
	uint8_t *f, uint32_t src, uint32_t dst, uint8_t protocol, const void *payload, size_t len)
{
	memset(f, 0, 34);
	memcpy(f, world_mac[0], 6);
	memcpy(f + 6, peer_mac, 6);
	store16(f + 12, 0x0800);
	f[14] = 0x45;
	store16(f + 16, (uint16_t)(20 + len));
	f[22] = 64;
	f[23] = protocol;
	store32(f + 26, src);
	store32(f + 30, dst);
	memcpy(f + 34, payload, len);
	fix_ip_checksum(f);
	return 34 + len;
}

static uint64_t n_lost(const struct world *w)
{
	return world_count(w, "neigh_full") + world_count(w, "hold_full") +
	       world_count(w, "tx_no_route");
}

bool world_send_flow(struct world *w, const struct ip_addr *local, const struct ip_addr *remote,
	const char *payload)
{
	struct tcp_flow flow = {
		.local = *local, .remote = *remote, .local_port = 1000, .remote_port = 2000};
	size_t len = 20 + strlen(payload);
	uint64_t before = n_lost(w);
	uint8_t *segment = w->io.reserve(w->io.ctx, &flow, len);
	if (!segment)
		return false;
	memset(segment, 0, 20);
	store16(segment, 1000);
	store16(segment + 2, 2000);
	store32(segment + 4, WORLD_SEQ);
	memcpy(segment + 20, payload, strlen(payload));
	w->io.emit(w->io.ctx, &flow, segment, len);
	return n_lost(w) == before;
}

bool world_send(struct world *w, uint32_t local, uint32_t remote, const char *payload)
{
	struct ip_addr from = ip_from_v4(local), to = ip_from_v4(remote);
	return world_send_flow(w, &from, &to, payload);
}
