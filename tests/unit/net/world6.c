// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/net/world6.h"

#include "dataplane/net/csum.h"
#include "tests/support/check.h"

#include <string.h>

struct ip_addr ip6_of(const char *text)
{
	struct ip_addr ip;
	assert_true(ip_parse(text, &ip));
	return ip;
}

int world6_setup(void **state)
{
	struct net_port_conf ports[2] = {
		{
			.mtu = 1500,
			.addresses = {{ip6_of(OURS6), 64}, {ip6_of("fd00::1"), 64},
				{ip_from_v4(IP(10, 0, 0, 1)), 24}},
			.n_addresses = 3,
			.gateways = {ip6_of("fe80::fe")},
		},
		{.mtu = 1400, .addresses = {{ip6_of("2001:db8:1::1"), 64}}, .n_addresses = 1},
	};
	return world_setup_ports(state, ports);
}

size_t make_ip6(uint8_t *f, const char *src, const char *dst, uint8_t protocol, const void *payload,
	size_t len)
{
	struct ip_addr from = ip6_of(src), to = ip6_of(dst);
	memset(f, 0, 54);
	memcpy(f, world_mac[0], 6);
	memcpy(f + 6, peer_mac, 6);
	if (to.b[0] == 0xff) {
		f[0] = f[1] = 0x33;
		memcpy(f + 2, to.b + 12, 4);
	}
	store16(f + 12, 0x86dd);
	f[14] = 0x60;
	store16(f + 18, (uint16_t)len);
	f[20] = protocol;
	f[21] = 255;
	memcpy(f + 22, from.b, 16);
	memcpy(f + 38, to.b, 16);
	memcpy(f + 54, payload, len);
	return 54 + len;
}

void fix_icmp6_checksum(uint8_t *f)
{
	size_t len = load16(f + 18);
	uint8_t words[8] = {[2] = (uint8_t)(len >> 8), [3] = (uint8_t)len, [7] = 58};
	memset(f + 56, 0, 2);
	uint64_t sum = csum_add(csum_add(0, f + 22, 32), words, sizeof(words));
	uint16_t field = csum_fold(csum_add(sum, f + 54, len));
	memcpy(f + 56, &field, 2);
}

size_t put_fragment_header(uint8_t *f, size_t len)
{
	memmove(f + 54 + 8, f + 54, len - 54);
	memcpy(f + 54, (const uint8_t[8]){f[20], [7] = 1}, 8);
	f[20] = 44;
	store16(f + 18, (uint16_t)(load16(f + 18) + 8));
	return len + 8;
}

size_t make_icmp6(uint8_t *f, const char *src, const char *dst, const void *message, size_t len)
{
	size_t frame_len = make_ip6(f, src, dst, 58, message, len);
	fix_icmp6_checksum(f);
	return frame_len;
}

static size_t make_nd(uint8_t *f, uint8_t type, const struct nd_text *nd)
{
	uint8_t message[32] = {type, [4] = nd->flags, [24] = type == 135 ? 1 : 2, [25] = 1};
	struct ip_addr target = ip6_of(nd->target);
	memcpy(message + 8, target.b, 16);
	if (nd->mac)
		memcpy(message + 26, nd->mac, 6);
	return make_icmp6(f, nd->src, nd->dst, message, nd->mac ? 32 : 24);
}

size_t make_solicitation(uint8_t *f, const struct nd_text *nd)
{
	return make_nd(f, 135, nd);
}

size_t make_advertisement(uint8_t *f, const struct nd_text *nd)
{
	return make_nd(f, 136, nd);
}

static void put_in(struct world *w, uint32_t port, uint8_t *f, size_t len)
{
	if (f[0] != 0x33)
		memcpy(f, world_mac[port], 6);
	world_in(w, port, f, len);
}

void world6_solicit(struct world *w, uint32_t port, const struct nd_text *nd)
{
	uint8_t f[128];
	size_t len = make_solicitation(f, nd);
	put_in(w, port, f, len);
}

void world6_advertise(struct world *w, uint32_t port, const struct nd_text *nd)
{
	uint8_t f[128];
	size_t len = make_advertisement(f, nd);
	put_in(w, port, f, len);
}

void world6_resolve(struct world *w, uint32_t port, const char *ip, const uint8_t mac[6])
{
	const char *ours = port == 0 ? OURS6 : "2001:db8:1::1";
	world6_advertise(w, port, &(struct nd_text){ip, ours, ip, mac, 0x60});
}

static bool is_nd(const struct world_frame *f, uint8_t type, const char *text)
{
	struct ip_addr target = ip6_of(text);
	return f->len >= 78 && load16(f->bytes + 12) == 0x86dd && f->bytes[20] == 58 &&
	       f->bytes[54] == type && memcmp(f->bytes + 62, target.b, 16) == 0;
}

bool is_solicitation(const struct world_frame *f, const char *for_ip)
{
	return is_nd(f, 135, for_ip);
}

bool is_advertisement(const struct world_frame *f, const char *of_ip)
{
	return is_nd(f, 136, of_ip);
}

bool world6_send(struct world *w, const char *local, const char *remote, const char *payload)
{
	struct ip_addr from = ip6_of(local), to = ip6_of(remote);
	return world_send_flow(w, &from, &to, payload);
}
