// SPDX-License-Identifier: Apache-2.0
// Any frames into the network layer, as a port and a worker hand them over, with segments of ours
// and time in between. Input: records of an operation byte, a length byte and that many bytes. On
// request IP and ICMP checksums are put right, so that the fuzzer gets behind them, and zeros are
// added, so that a frame is longer than a byte can say.
#include "dataplane/net/csum.h"
#include "dataplane/net/net.h"
#include "dataplane/net/steer.h"
#include "dataplane/net/tunnel_list.h"
#include "dataplane/vlan.h"
#include "lb/base/check.h"

#include <stdlib.h>

#define N_ZEROS 1250

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct ip_addr ours6 = {{0xfd, [15] = 1}}, router6 = {{0xfe, 0x80, [15] = 0xfe}};

static const struct net_vip vip = {{{{[10] = 0xff, 0xff, 10, 9}}, IP_V4_BITS + 16}, true};
static const struct net_vip vip6 = {{{{0xfd, 9}}, 16}, true};
// From 10.0.0.0/24 and fd00::/16.
static const struct net_tunnels tunnels = {.n = 2,
	.list = {{.kind = NET_TUNNEL_IPIP,
			 .from = {{{{[10] = 0xff, 0xff, 10}}, IP_V4_BITS + 24}, {{{0xfd}}, 16}},
			 .n_from = 2},
		{.kind = NET_TUNNEL_GUE,
			.port = 6080,
			.from = {{{{[10] = 0xff, 0xff, 10}}, IP_V4_BITS + 24}, {{{0xfd}}, 16}},
			.n_from = 2,
			.hops = {{{{[10] = 0xff, 0xff, 10}}, IP_V4_BITS + 24}},
			.n_hops = 1}}};

struct device {
	bool open;
	size_t len;
	uint8_t bytes[2048];
};

static uint8_t *device_reserve(void *ctx, size_t len)
{
	struct device *d = ctx;
	CHECK(!d->open && len <= sizeof(d->bytes));
	d->open = true;
	d->len = len;
	return d->bytes;
}

static void device_send(void *ctx, size_t len)
{
	struct device *d = ctx;
	CHECK(d->open && len == d->len && len >= 34);
	d->open = false;
}

static void device_cancel(void *ctx)
{
	struct device *d = ctx;
	d->open = false;
}

static void on_segment(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	uint8_t sum = 0;
	for (size_t i = 0; i < len; i++) // each byte is there
		sum ^= segment[i];
	*(volatile uint8_t *)ctx = sum;
	CHECK(ip_is_v4(&flow->local) == ip_is_v4(&flow->remote));
	CHECK(!ip_eq(&flow->local, &flow->remote));
}

// Any other one.
static bool knows(void *ctx, struct tcp_flow *flow, const uint8_t *segment, size_t len)
{
	CHECK(ip_is_v4(&flow->local) == ip_is_v4(&flow->remote));
	return len == 0 || segment[len - 1] & 1;
}

static void on_through(void *ctx, uint32_t overhead)
{
	CHECK(overhead < 2048);
}

static void on_unreachable(void *ctx, const struct tcp_flow *flow, uint32_t seq)
{
	CHECK(ip_is_v4(&flow->local) == ip_is_v4(&flow->remote));
}

static void on_too_big(void *ctx, const struct tcp_flow *flow, uint32_t seq, uint32_t mtu)
{
	CHECK(ip_is_v4(&flow->local) == ip_is_v4(&flow->remote));
}

// Of ICMPv6, behind at most one hop-by-hop header of 8 bytes.
static void fix_icmp6_checksum(uint8_t *f, size_t len)
{
	size_t payload = len >= 58 ? load16(f + 18) : 0, at = 54;
	if (len >= 62 && payload >= 8 && f[20] == 0 && f[54] == 58 && f[55] == 0) {
		payload -= 8;
		at += 8;
	} else if (f[20] != 58) {
		return;
	}
	if (payload < 4 || at + payload > len)
		return;
	uint8_t words[8] = {[2] = (uint8_t)(payload >> 8), [3] = (uint8_t)payload, [7] = 58};
	memset(f + at + 2, 0, 2);
	uint64_t sum = csum_add(csum_add(0, f + 22, 32), words, sizeof(words));
	uint16_t field = csum_fold(csum_add(sum, f + at, payload));
	memcpy(f + at + 2, &field, 2);
}

static void fix_ip4_checksum(uint8_t *ip, size_t len)
{
	size_t header = len >= 20 ? (size_t)(ip[0] & 0xf) * 4 : 0;
	if (header < 20 || header > len)
		return;
	memset(ip + 10, 0, 2);
	uint16_t sum = csum(ip, header);
	memcpy(ip + 10, &sum, 2);
}

static void fix_checksums(uint8_t *f, size_t len)
{
	if (len >= 18 && load16(f + 12) == 0x8100) { // what is behind a tag
		fix_checksums(f + 4, len - 4);
		return;
	}
	if (len > 21 && load16(f + 12) == 0x86dd) {
		if (len >= 54 && f[20] == 4) // IPIP
			fix_ip4_checksum(f + 54, len - 54);
		fix_icmp6_checksum(f, len);
		return;
	}
	size_t header = len >= 34 ? (size_t)(f[14] & 0xf) * 4 : 0;
	if (header < 20 || 14 + header > len)
		return;
	size_t total = load16(f + 16);
	if (f[23] == 1 && total >= header + 4 && 14 + total <= len) {
		memset(f + 14 + header + 2, 0, 2);
		uint16_t sum = csum(f + 14 + header, total - header);
		memcpy(f + 14 + header + 2, &sum, 2);
	}
	size_t more = f[23] == 4 ? 0 : f[23] == 17 ? 8 : len; // IPIP, variant 1 of GUE
	if (14 + header + more < len)
		fix_ip4_checksum(f + 14 + header + more, len - 14 - header - more);
	fix_ip4_checksum(f + 14, len - 14);
}

// Where one worker of four takes it, or learns from it, or the next does.
static void receive(struct net *net, const uint8_t *frame, size_t len, bool by_device)
{
	static const uint8_t key[STEER_KEY_MAX] = {0x6d, 0x5a, 0x56, 0xda};
	static struct steer steer;
	if (!steer.n_workers)
		steer_init(&steer, 4, key);
	steer.tunnels = &tunnels;
	int to = steer_frame(&steer, frame, len, by_device);
	CHECK(to == STEER_ALL || to == STEER_HERE || (to >= 0 && to < 4));
	(void)steer_is_evidence(frame, len);
	if (to == STEER_ALL)
		net_hear(net, 0, frame, len);
	net_input(net, 0, frame, len);
}

// As a port of VLAN 7. NULL = dropped.
static uint8_t *untag(uint8_t *frame, size_t *len)
{
	if (vlan_of(frame, (uint32_t)*len) != 7)
		return NULL;
	*len -= VLAN_TAG;
	return vlan_strip(frame);
}

static void send_segment(struct tcp_io *io, const uint8_t *bytes, size_t len)
{
	struct tcp_flow flow = {.local = ip_from_v4(0x0a000001), .local_port = 1000};
	flow.remote = ip_from_v4(len >= 4 ? load32(bytes) : 0x0a000007);
	if (len >= sizeof(flow.remote.b)) {
		flow.local = ours6;
		memcpy(flow.remote.b, bytes, sizeof(flow.remote.b));
		if (ip_is_v4(&flow.remote))
			return;
	}
	uint8_t *segment = io->reserve(io->ctx, &flow, 20 + len);
	if (!segment)
		return;
	memset(segment, 0, 20 + len);
	io->emit(io->ctx, &flow, segment, 20 + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct device device;
	static uint8_t sink;
	device.open = false;
	struct twheel *wheel = twheel_new(1);
	struct net_port_conf port = {
		.device = {device_reserve, device_send, device_cancel, &device},
		.mac = {2, 0, 0, 0, 0, 1},
		.mtu = 1500,
		.addresses = {{ip_from_v4(0x0a000001), 24}, {ours6, 64}},
		.n_addresses = 2,
		.gateways = {ip_from_v4(0x0a0000fe), router6},
	};
	struct net *net = net_new(&port, 1, 16, wheel, 1);
	struct tcp_io io = net_tcp_io(net);
	net_set_tcp(net, &(struct net_tcp){on_segment, on_unreachable, on_too_big, &sink, NULL,
				 on_through, knows});
	CHECK(net_set_vips(net, (struct net_vip[]){vip, vip6}, 2, 0) == 0);
	net_set_tunnels(net, &tunnels);
	while (size >= 2) {
		uint8_t operation = data[0];
		size_t len = data[1] < size - 2 ? data[1] : size - 2;
		bool grows = operation & 64 && !(operation & 4); // TCP sends none that is too long
		size_t all = len + (grows ? N_ZEROS : 0);
		uint8_t *frame = calloc(1, all ? all : 1); // of exact size, for the sanitizer
		CHECK(frame);
		memcpy(frame, data + 2, len);
		data += 2 + len;
		size -= 2 + len;
		len = all;
		if (operation & 1)
			fix_checksums(frame, len);
		if (operation & 2)
			twheel_advance(wheel, twheel_now(wheel) + (uint64_t)operation * 50000000);
		if (operation & 8)
			net_announce(net, 0);
		uint8_t *plain = operation & 16 ? untag(frame, &len) : frame;
		if (operation & 4)
			send_segment(&io, frame, len);
		else if (plain)
			receive(net, plain, len, operation & 32);
		CHECK(!device.open);
		free(frame);
	}
	net_free(net);
	twheel_free(wheel);
	return 0;
}
