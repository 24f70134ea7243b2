// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/frame_filter.h"
#include "dataplane/net/tunnel_list.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define MACS 0x02, 0, 0, 0, 0, 0xaa, 0x02, 0, 0, 0, 0, 0xbb
#define IP4_TYPE 0x08, 0x00
#define IP6_TYPE 0x86, 0xdd
#define ARP_TYPE 0x08, 0x06
#define TAG(vlan) 0x81, 0x00, 0x00, vlan
#define OUTER_TAG(vlan) 0x88, 0xa8, 0x00, vlan
// From 10.0.0.7 to 10.0.0.1.
#define IP4(protocol, fragment)                                                                    \
	0x45, 0, 0, 24, 0, 0, (fragment) >> 8, (fragment)&0xff, 64, protocol, 0, 0, 10, 0, 0, 7,   \
		10, 0, 0, 1
#define IP4_OPTIONS(protocol)                                                                      \
	0x46, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 7, 10, 0, 0, 1, 1, 1, 1, 0
// From fd00::7 to fd00::1.
#define IP6(protocol)                                                                              \
	0x60, 0, 0, 0, 0, 4, protocol, 64, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,      \
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
#define OPTIONS_HEADER(next) next, 0, 1, 4, 0, 0, 0, 0
#define FRAGMENT_HEADER(next, offset) next, 0, 0, offset, 0, 0, 0, 9
#define PORTS 0x1f, 0x90, 0xc3, 0x50 // 8080, 50000
#define ARP 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0xbb, 10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1
#define TCP 6
#define UDP 17
#define ICMP 1
#define OPTIONS 60
#define FRAGMENT 44

// From a director, 10.0.5.5 or 10.0.6.5, to 10.0.5.1.
#define OUTER(protocol, net)                                                                       \
	0x45, 0, 0, 80, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, net, 5, 10, 0, 5, 1
#define GUE 0, 1, 0x17, 0xc0, 0, 36, 0, 0, 0, 4, 0, 0 // UDP to port 6080, and its header

static const struct net_tunnels tunnels = {.n = 2,
	.list = {{.kind = NET_TUNNEL_IPIP,
			 .from = {{{{[10] = 0xff, 0xff, 10, 0, 5}}, IP_V4_BITS + 24}},
			 .n_from = 1},
		{.kind = NET_TUNNEL_GUE,
			.port = 6080,
			.from = {{{{[10] = 0xff, 0xff, 10, 0, 5}}, IP_V4_BITS + 24}},
			.n_from = 1}}};

static const struct row {
	const char *name;
	const char *host; // NULL = any
	uint16_t port;
	bool matches;
	uint8_t frame[96];
	size_t n;
} rows[] = {
#define ROW(name, host, port, matches, ...)                                                        \
	{                                                                                          \
		name, host, port, matches, {MACS, __VA_ARGS__},                                    \
			sizeof((uint8_t[]){MACS, __VA_ARGS__})                                     \
	}
	ROW("anything", NULL, 0, true, 0x12, 0x34),
	ROW("another type", "10.0.0.7", 0, false, 0x12, 0x34),
	ROW("from the host", "10.0.0.7", 0, true, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("to the host", "10.0.0.1", 0, true, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("of another host", "10.0.0.2", 0, false, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("of a host of IPv6", "fd00::7", 0, false, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("from the port", NULL, 8080, true, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("to the port", NULL, 50000, true, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("of another port", NULL, 80, false, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("UDP", NULL, 8080, true, IP4_TYPE, IP4(UDP, 0), PORTS),
	ROW("ICMP has no ports", NULL, 8080, false, IP4_TYPE, IP4(ICMP, 0), PORTS),
	ROW("both", "10.0.0.7", 8080, true, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("one of both", "10.0.0.7", 80, false, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("the other of both", "10.0.0.2", 8080, false, IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("behind options", NULL, 8080, true, IP4_TYPE, IP4_OPTIONS(TCP), PORTS),
	ROW("a first fragment", NULL, 8080, true, IP4_TYPE, IP4(TCP, 0x2000), PORTS),
	ROW("a later fragment has no ports", NULL, 8080, false, IP4_TYPE, IP4(TCP, 5), PORTS),
	ROW("a later fragment has a host", "10.0.0.7", 0, true, IP4_TYPE, IP4(TCP, 5), PORTS),
	ROW("cut ports", NULL, 8080, false, IP4_TYPE, IP4(TCP, 0), 0x1f, 0x90, 0xc3),
	ROW("a cut header", "10.0.0.7", 0, false, IP4_TYPE, 0x45, 0, 0, 24),
	ROW("a header beyond the frame", NULL, 8080, false, IP4_TYPE, 0x4f, 0, 0, 24, 0, 0, 0, 0,
		64, TCP, 0, 0, 10, 0, 0, 7, 10, 0, 0, 1, PORTS),
	ROW("behind a tag", "10.0.0.7", 8080, true, TAG(7), IP4_TYPE, IP4(TCP, 0), PORTS),
	ROW("behind two tags", "10.0.0.7", 8080, true, OUTER_TAG(9), TAG(7), IP4_TYPE, IP4(TCP, 0),
		PORTS),
	ROW("three tags are too many", "10.0.0.7", 0, false, TAG(1), TAG(2), TAG(3), IP4_TYPE,
		IP4(TCP, 0), PORTS),
	ROW("a cut tag", "10.0.0.7", 0, false, 0x81, 0x00, 0x00),
	ROW("IPv6 from the host", "fd00::7", 0, true, IP6_TYPE, IP6(TCP), PORTS),
	ROW("IPv6 to the host", "fd00::1", 8080, true, IP6_TYPE, IP6(TCP), PORTS),
	ROW("IPv6 of another host", "fd00::2", 0, false, IP6_TYPE, IP6(TCP), PORTS),
	ROW("IPv6 and another port", NULL, 81, false, IP6_TYPE, IP6(TCP), PORTS),
	ROW("IPv6 behind a tag", "fd00::7", 50000, true, TAG(7), IP6_TYPE, IP6(TCP), PORTS),
	ROW("behind an extension header", NULL, 8080, true, IP6_TYPE, IP6(OPTIONS),
		OPTIONS_HEADER(TCP), PORTS),
	ROW("a fragment of IPv6 has no ports", NULL, 8080, false, IP6_TYPE, IP6(FRAGMENT),
		FRAGMENT_HEADER(TCP, 9), PORTS),
	ROW("a fragment of IPv6 has a host", "fd00::7", 0, true, IP6_TYPE, IP6(FRAGMENT),
		FRAGMENT_HEADER(TCP, 9), PORTS),
	ROW("an extension header beyond the frame", NULL, 8080, false, IP6_TYPE, IP6(OPTIONS), TCP,
		200, 1, 4, PORTS),
	ROW("ARP that asks for the host", "10.0.0.1", 0, true, ARP_TYPE, ARP),
	ROW("ARP of the host", "10.0.0.7", 0, true, ARP_TYPE, ARP),
	ROW("ARP of others", "10.0.0.3", 0, false, ARP_TYPE, ARP),
	ROW("ARP has no ports", NULL, 8080, false, ARP_TYPE, ARP),
	ROW("FL-30: the host within IPv4", "10.0.0.7", 8080, true, IP4_TYPE, OUTER(4, 5),
		IP4(TCP, 0), PORTS),
	ROW("IPv6 within IPv4", "fd00::7", 50000, true, IP4_TYPE, OUTER(41, 5), IP6(TCP), PORTS),
	ROW("the host within UDP", "10.0.0.1", 8080, true, IP4_TYPE, OUTER(UDP, 5), GUE,
		IP4(TCP, 0), PORTS),
	ROW("the tier itself", "10.0.5.5", 0, true, IP4_TYPE, OUTER(4, 5), IP4(TCP, 0), PORTS),
	ROW("another host within", "10.0.0.3", 0, false, IP4_TYPE, OUTER(4, 5), IP4(TCP, 0), PORTS),
	ROW("within what no tunnel brings", "10.0.0.7", 0, false, IP4_TYPE, OUTER(4, 6),
		IP4(TCP, 0), PORTS),
	ROW("cut ARP", "10.0.0.7", 0, false, ARP_TYPE, 0, 1, 8, 0, 6, 4, 0, 1),
};

// OPS-101
static void each_row_is_chosen_or_not(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct lb_capture_ask ask = {.port = r->port};
		assert_true(!r->host || ip_parse(r->host, &ask.host));
		if (frame_filter_matches(&ask, &tunnels, r->frame, r->n) != r->matches)
			fail_msg("%s", r->name);
	}
}

// The sanitizers watch: nothing behind the end is read, and what is cut is no harm.
static void a_frame_may_be_cut_anywhere(void **state)
{
	const struct lb_capture_ask ask = {.host = {{0xfd}}, .port = 1};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t n = 0; n <= rows[i].n; n++) {
			uint8_t *exact = malloc(n ? n : 1);
			memcpy(exact, rows[i].frame, n);
			assert_false(frame_filter_matches(&ask, &tunnels, exact, n));
			free(exact);
		}
}

RUN_SUITE("net/frame_filter", cmocka_unit_test(each_row_is_chosen_or_not),
	cmocka_unit_test(a_frame_may_be_cut_anywhere))
