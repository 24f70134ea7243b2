// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faultlink/frame.h"

#include <string.h>

#define ETH 14
#define IP4 20
#define IP6 40
#define TYPE_IP4 0x0800
#define TYPE_IP6 0x86dd
#define ICMP 1
#define TCP 6
#define ICMP6 58
#define ICMP_UNREACHABLE 3
#define ICMP_FRAGMENTATION_NEEDED 4
#define ICMP6_TOO_BIG 2
#define ICMP6_ECHO 128 // errors are below
#define TTL 64
#define QUOTED4 576 // what an answer may have (RFC 1812 4.3.2.3)
#define QUOTED6 1280 // RFC 4443 2.4

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t x)
{
	p[0] = (uint8_t)(x >> 8);
	p[1] = (uint8_t)x;
}

static uint32_t sum(const uint8_t *p, size_t len, uint32_t start)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		start += get16(p + i);
	return len % 2 ? start + (uint32_t)(p[len - 1] << 8) : start;
}

// RFC 1071: what goes into a header's field.
static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

// The link's own: neighbors and routers are looked for, and groups joined, when a kernel likes.
static bool is_link_business(const uint8_t *ip)
{
	return ip[24] == 0xff || (ip[6] == ICMP6 && ip[IP6] >= 133 && ip[IP6] <= 137);
}

size_t frame_ip_len(const uint8_t *frame, size_t len)
{
	const uint8_t *ip = frame + ETH;
	uint16_t type = len >= ETH ? get16(frame + 12) : 0;
	if (type == TYPE_IP4 && len >= ETH + IP4 && ip[0] >> 4 == 4) {
		size_t header = (size_t)(ip[0] & 15) * 4, n = get16(ip + 2);
		return header >= IP4 && n >= header && n <= len - ETH ? n : 0;
	}
	if (type == TYPE_IP6 && len > ETH + IP6 && ip[0] >> 4 == 6) {
		size_t n = IP6 + (size_t)get16(ip + 4);
		return n > IP6 && n <= len - ETH && !is_link_business(ip) ? n : 0;
	}
	return 0;
}

static void flip(uint8_t *p, size_t len, uint64_t where)
{
	uint64_t bit = where % (len * 8);
	p[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

void frame_corrupt(uint8_t *frame, size_t len, uint64_t where)
{
	flip(frame + ETH, frame_ip_len(frame, len), where);
}

// The sum over addresses, length and protocol (RFC 9293 3.1, RFC 8200 8.1).
static uint32_t pseudo_sum(const uint8_t *ip, size_t len, uint8_t protocol)
{
	bool v4 = ip[0] >> 4 == 4;
	return sum(v4 ? ip + 12 : ip + 8, v4 ? 8 : 32, (uint32_t)len + protocol);
}

bool frame_forge(uint8_t *frame, size_t len, uint64_t where)
{
	uint8_t *ip = frame + ETH;
	bool v4 = ip[0] >> 4 == 4;
	size_t header = v4 ? (size_t)(ip[0] & 15) * 4 : IP6;
	size_t n = frame_ip_len(frame, len) - header;
	uint8_t protocol = v4 ? ip[9] : ip[6], *body = ip + header;
	bool fragment = v4 && get16(ip + 6) & 0x3fff;
	bool tcp = protocol == TCP && n >= 20, icmp = protocol == (v4 ? ICMP : ICMP6) && n >= 8;
	if (fragment || !(tcp || icmp))
		return false;
	uint8_t *field = body + (tcp ? 16 : 2);
	flip(body, n, where);
	put16(field, 0);
	uint32_t start = protocol == ICMP ? 0 : pseudo_sum(ip, n, protocol);
	put16(field, folded(sum(body, n, start)));
	return true;
}

static size_t too_big4(const uint8_t *ip, size_t len, uint16_t mtu, uint8_t *ret)
{
	size_t quoted = len < QUOTED4 - IP4 - 8 ? len : QUOTED4 - IP4 - 8;
	uint8_t *icmp = ret + IP4;
	if (ip[9] == ICMP)
		return 0;
	memset(ret, 0, IP4 + 8);
	ret[0] = 0x45;
	put16(ret + 2, (uint16_t)(IP4 + 8 + quoted));
	ret[8] = TTL;
	ret[9] = ICMP;
	memcpy(ret + 12, ip + 16, 4);
	memcpy(ret + 16, ip + 12, 4);
	put16(ret + 10, folded(sum(ret, IP4, 0)));
	icmp[0] = ICMP_UNREACHABLE;
	icmp[1] = ICMP_FRAGMENTATION_NEEDED;
	put16(icmp + 6, mtu);
	memcpy(icmp + 8, ip, quoted);
	put16(icmp + 2, folded(sum(icmp, 8 + quoted, 0)));
	return IP4 + 8 + quoted;
}

static size_t too_big6(const uint8_t *ip, size_t len, uint16_t mtu, uint8_t *ret)
{
	size_t quoted = len < QUOTED6 - IP6 - 8 ? len : QUOTED6 - IP6 - 8;
	uint8_t *icmp = ret + IP6;
	if (ip[6] == ICMP6 && ip[IP6] < ICMP6_ECHO)
		return 0;
	memset(ret, 0, IP6 + 8);
	ret[0] = 0x60;
	put16(ret + 4, (uint16_t)(8 + quoted));
	ret[6] = ICMP6;
	ret[7] = TTL;
	memcpy(ret + 8, ip + 24, 16);
	memcpy(ret + 24, ip + 8, 16);
	icmp[0] = ICMP6_TOO_BIG;
	put16(icmp + 6, mtu);
	memcpy(icmp + 8, ip, quoted);
	put16(icmp + 2, folded(sum(icmp, 8 + quoted, pseudo_sum(ret, 8 + quoted, ICMP6))));
	return IP6 + 8 + quoted;
}

size_t frame_too_big(const uint8_t *frame, size_t len, uint16_t mtu, uint8_t *ret)
{
	size_t n = frame_ip_len(frame, len);
	if (!n)
		return 0;
	memcpy(ret, frame + 6, 6);
	memcpy(ret + 6, frame, 6);
	memcpy(ret + 12, frame + 12, 2);
	const uint8_t *ip = frame + ETH;
	size_t made = (ip[0] >> 4 == 4 ? too_big4 : too_big6)(ip, n, mtu, ret + ETH);
	return made ? ETH + made : 0;
}
