// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/net/world_tunnel.h"

#include "dataplane/net/csum.h"
#include "tests/support/check.h"

#include <string.h>

static struct ip_prefix prefix(const char *text, uint8_t len)
{
	struct ip_addr ip = ip6_of(text);
	return (struct ip_prefix){ip, (uint8_t)(len + (ip_is_v4(&ip) ? IP_V4_BITS : 0))};
}

struct net_tunnels world_tunnels;

int world_tunnel_setup(void **state)
{
	const struct net_vip list[] = {
		{prefix("10.9.0.0", 24), true}, {prefix("2001:db8:9::", 64), true}};
	struct net_port_conf ports[2] = {
		{.mtu = 1500,
			.addresses = {{ip6_of(OURS6), 64}, {ip6_of(OURS), 24}},
			.n_addresses = 2,
			.gateways = {ip6_of(GATEWAY6), ip6_of(GATEWAY)}},
		{.mtu = 1400, .addresses = {{ip6_of("10.1.0.1"), 16}}, .n_addresses = 1},
	};
	world_setup_ports(state, ports);
	struct world *w = *state;
	assert_int_equal(net_set_vips(w->net, list, 2, 1), 0);
	world_tunnels = (struct net_tunnels){.n = 2,
		.list = {{.kind = NET_TUNNEL_IPIP,
				 .from = {prefix("10.0.5.0", 24), prefix("fd05::", 64)},
				 .n_from = 2},
			{.kind = NET_TUNNEL_GUE,
				.port = GUE_PORT,
				.from = {prefix("10.0.5.0", 24), prefix("fd05::", 64)},
				.n_from = 2,
				.hops = {prefix("10.0.0.32", 27), prefix("10.1.0.40", 32)},
				.n_hops = 2}}};
	net_set_tunnels(w->net, &world_tunnels);
	return 0;
}

static bool is_ip4(const struct packet *p)
{
	return p->bytes[0] >> 4 == 4;
}

struct packet make_packet(
	const char *src, const char *dst, uint8_t protocol, const void *payload, size_t len)
{
	uint8_t f[2048];
	struct packet p;
	struct ip_addr from = ip6_of(src), to = ip6_of(dst);
	size_t n = ip_is_v4(&from)
	                   ? make_ip(f, ip_to_v4(&from), ip_to_v4(&to), protocol, payload, len)
	                   : make_ip6(f, src, dst, protocol, payload, len);
	p.len = n - 14;
	memcpy(p.bytes, f + 14, p.len);
	return p;
}

struct packet make_segment(const char *src, const char *dst, uint8_t flags)
{
	const uint8_t tcp[24] = {0x10, 0, 0, 80, [12] = 0x50, flags, [20] = 'd', 'a', 't', 'a'};
	return make_packet(src, dst, 6, tcp, sizeof(tcp));
}

void fix_packet(struct packet *p)
{
	uint8_t f[2048];
	memcpy(f + 14, p->bytes, p->len);
	fix_ip_checksum(f);
	memcpy(p->bytes, f + 14, p->len);
}

void world_packet_in(struct world *w, const struct packet *p)
{
	uint8_t f[2048] = {0};
	memcpy(f, world_mac[0], 6);
	memcpy(f + 6, peer_mac, 6);
	store16(f + 12, is_ip4(p) ? 0x0800 : 0x86dd);
	memcpy(f + 14, p->bytes, p->len);
	world_in(w, 0, f, 14 + p->len);
}

struct packet in_ip(const char *src, const struct packet *inner)
{
	return make_packet(src, strchr(src, ':') ? OURS6 : OURS, is_ip4(inner) ? 4 : 41,
		inner->bytes, inner->len);
}

struct packet in_gue(const char *src, const uint8_t *gue, size_t n, const struct packet *inner)
{
	uint8_t udp[1500] = {0x12, 0x34, GUE_PORT >> 8, GUE_PORT & 0xff};
	size_t len = 8 + n + inner->len;
	store16(udp + 4, (uint16_t)len);
	if (n)
		memcpy(udp + 8, gue, n);
	memcpy(udp + 8 + n, inner->bytes, inner->len);
	return make_packet(src, strchr(src, ':') ? OURS6 : OURS, 17, udp, len);
}

void assert_taken(struct world *w, const struct packet *p, const char *src, const char *dst)
{
	struct ip_addr remote = ip6_of(src), local = ip6_of(dst);
	uint32_t before = w->n_segments;
	uint64_t taken = world_count(w, "tunnel_packets");
	world_packet_in(w, p);
	assert_int_equal(w->n_segments, before + 1);
	assert_int_equal(world_count(w, "tunnel_packets"), taken + 1);
	assert_true(ip_eq(&w->segment_remote, &remote) && ip_eq(&w->segment_local, &local));
	assert_int_equal(w->segment_len, 24);
	assert_memory_equal(w->segment + 20, "data", 4);
	assert_int_equal(w->overhead, 0); // told to be over
}

void assert_dropped(struct world *w, const struct packet *p, const char *counter)
{
	uint64_t before = world_count(w, counter);
	uint32_t heard = w->n_segments;
	world_packet_in(w, p);
	if (world_count(w, counter) != before + 1)
		fail_msg("not counted as %s", counter);
	assert_int_equal(w->n_segments, heard);
	assert_string_equal(net_counters(w->net).names[net_take_drop(w->net)], counter);
}
