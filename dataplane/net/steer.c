// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/steer.h"

#include "dataplane/net/ip6.h"
#include "dataplane/net/relay_hop.h"
#include "lb/base/check.h"
#include "lb/base/rand.h"
#include "lb/pick/ping.h"

#define TCP_PORTS 4 // bytes of a segment that hold them
#define TCP_FLAGS_AT 13
#define TCP_SYN_FLAG 0x02
#define TCP_HEADER 20
#define ICMP_HEADER 8
#define UNREACHABLE_TOO_BIG 0x0304 // type and code
#define ENTRIES_EACH 16 // at least, where the table has so many
#define PERIOD_MIN 128 // most devices have as many, or a multiple

_Static_assert(LB_MAX_WORKERS <= STEER_ENTRIES_MAX && LB_MAX_WORKERS <= UINT8_MAX, "owners");
_Static_assert(LB_MAX_WORKERS <= 64, "bits of served");
_Static_assert(NET_MAX_PORTS <= 32, "bits of by_device");

// Round by round, each worker once in each, in an order of chance. A client's connections have
// ports in a row, and the hash is linear: by a table of i modulo n all of them come to one worker
// wherever the key's bits for those ports leave the lowest of the hash alone. The table repeats, so
// that devices with tables of different lengths agree.
static void deal(struct steer *s)
{
	struct rand rand;
	uint64_t seed;
	memcpy(&seed, s->key, sizeof(seed));
	rand_init(&rand, seed);
	uint32_t period = PERIOD_MIN;
	while (period < ENTRIES_EACH * s->n_workers && period < STEER_ENTRIES_MAX)
		period *= 2;
	for (uint32_t i = 0; i < period; i++) {
		uint32_t worker = i % s->n_workers;
		uint32_t at = i - worker + (uint32_t)rand_below(&rand, worker + 1);
		s->owners[i] = s->owners[at];
		s->owners[at] = (uint8_t)worker;
	}
	for (uint32_t i = period; i < STEER_ENTRIES_MAX; i++)
		s->owners[i] = s->owners[i - period];
}

void steer_init(struct steer *s, uint32_t n_workers, const uint8_t *key)
{
	DCHECK(n_workers >= 1 && n_workers <= LB_MAX_WORKERS);
	*s = (struct steer){.n_workers = n_workers, .mask = STEER_ENTRIES_MAX - 1};
	memcpy(s->key, key, sizeof(s->key));
	toeplitz_init(&s->hash, key);
	deal(s);
}

// Some drivers leave the key's room alone when they are asked.
static bool is_key(const uint8_t *key, size_t len)
{
	uint8_t any = 0;
	for (size_t i = 0; i < len; i++)
		any |= key[i];
	return len >= TOEPLITZ_KEY_MIN && any;
}

static bool can_follow(const struct steer *s, const struct steer_device *d)
{
	uint32_t n = d->n_entries;
	if (n == 0 || n > STEER_ENTRIES_MAX || (n & (n - 1)) || !is_key(d->key, d->key_len))
		return false;
	uint64_t served = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (d->queues[i] >= s->n_workers)
			return false;
		served |= UINT64_C(1) << d->queues[i];
	}
	// A worker that no flow comes to could not connect to a backend either.
	return served == UINT64_MAX >> (64 - s->n_workers);
}

static void follow(struct steer *s, const struct steer_device *d)
{
	size_t len = d->key_len < sizeof(s->key) ? d->key_len : sizeof(s->key);
	memcpy(s->key, d->key, len);
	toeplitz_init(&s->hash, s->key);
	s->mask = d->n_entries - 1;
	for (uint32_t i = 0; i < d->n_entries; i++)
		s->owners[i] = (uint8_t)d->queues[i];
	s->settled = true;
}

// Tables of different lengths agree if the longer one repeats the shorter.
static bool agrees(const struct steer *s, const struct steer_device *d)
{
	uint32_t n = d->n_entries > s->mask + 1 ? d->n_entries : s->mask + 1;
	for (uint32_t i = 0; i < n; i++)
		if (d->queues[i & (d->n_entries - 1)] != s->owners[i & s->mask])
			return false;
	return memcmp(d->key, s->key, TOEPLITZ_KEY_MIN) == 0;
}

void steer_settle(struct steer *s)
{
	s->settled = true;
}

bool steer_try_device(struct steer *s, uint32_t port, const struct steer_device *d)
{
	DCHECK(port < NET_MAX_PORTS);
	if (!can_follow(s, d))
		return false;
	if (!s->settled)
		follow(s, d);
	if (!agrees(s, d))
		return false;
	__atomic_fetch_or(&s->by_device, UINT32_C(1) << port, __ATOMIC_RELAXED);
	return true;
}

void steer_follow_port(struct steer *s, uint32_t port, uint32_t other)
{
	DCHECK(port < NET_MAX_PORTS);
	if (steer_by_device(s, other))
		__atomic_fetch_or(&s->by_device, UINT32_C(1) << port, __ATOMIC_RELAXED);
}

void steer_distrust(struct steer *s, uint32_t port)
{
	__atomic_fetch_and(&s->by_device, ~(UINT32_C(1) << port), __ATOMIC_RELAXED);
}

static uint32_t owner_of(const struct steer *s, uint32_t remote, uint32_t local,
	uint16_t remote_port, uint16_t local_port)
{
	return s->owners[toeplitz_hash(&s->hash, remote, local, remote_port, local_port) & s->mask];
}

static uint32_t owner_of_ip6(const struct steer *s, const uint8_t *remote, const uint8_t *local,
	uint16_t remote_port, uint16_t local_port)
{
	uint32_t hash = toeplitz_hash6(&s->hash, remote, local, remote_port, local_port);
	return s->owners[hash & s->mask];
}

uint32_t steer_owner(const struct steer *s, const struct tcp_flow *f)
{
	DCHECK(ip_is_v4(&f->local) == ip_is_v4(&f->remote));
	if (!ip_is_v4(&f->remote))
		return owner_of_ip6(s, f->remote.b, f->local.b, f->remote_port, f->local_port);
	return owner_of(
		s, ip_to_v4(&f->remote), ip_to_v4(&f->local), f->remote_port, f->local_port);
}

// Length of an IPv4 header with what a decision needs behind it; 0 = nothing to decide by, as with
// any fragment: the receiver drops it. Whatever is wrong with the packet is for its receiver to
// find, whoever that is.
static size_t header_of(const uint8_t *ip, size_t len, size_t needed)
{
	size_t header = len >= IP4_HEADER ? (size_t)(ip[0] & 0xf) * 4 : 0;
	bool is_whole = header >= IP4_HEADER && !(load16(ip + 6) & MORE_OR_OFFSET);
	return is_whole && ip[0] >> 4 == 4 && header + needed <= len ? header : 0;
}

// That the way to a host is narrow which segments go on to: others may go there from any worker.
// What else is said of it is counted alone. Whoever can reach us may send this, so that no more of
// it is for all than can be of use.
static bool is_for_all(const struct steer *s, const uint8_t *icmp, const uint8_t *ip, size_t header)
{
	if (!s->tunnels || load16(icmp) != UNREACHABLE_TOO_BIG || ip[9] != IP_PROTO_UDP)
		return false;
	const struct ip_addr to = ip_from_v4(load32(ip + 16));
	return relay_hop_among(s->tunnels, load16(ip + header + 2), &to);
}

// We sent what an error quotes. len: with the error's header.
static int steer_quoted(const struct steer *s, const uint8_t *icmp, size_t len)
{
	const uint8_t *ip = icmp + ICMP_HEADER;
	size_t header = header_of(ip, len - ICMP_HEADER, TCP_PORTS);
	if (header && ip[9] == IP_PROTO_ICMP)
		return LB_PING_WORKER;
	if (header && is_for_all(s, icmp, ip, header))
		return STEER_ALL;
	if (!header || ip[9] != IP_PROTO_TCP)
		return STEER_HERE;
	return (int)owner_of(
		s, load32(ip + 16), load32(ip + 12), load16(ip + header + 2), load16(ip + header));
}

// Of what one worker asks for all.
static bool is_echo_reply(uint8_t icmp_type)
{
	return icmp_type == 0;
}

static bool is_error(uint8_t icmp_type)
{
	return icmp_type == 3 || icmp_type == 4 || icmp_type == 5 || icmp_type == 11 ||
	       icmp_type == 12;
}

static int steer_plain_ip4(const struct steer *s, const uint8_t *ip, size_t len, bool only_begins)
{
	if (len >= IP4_HEADER && ip[9] == IP_PROTO_ICMP) {
		size_t header = header_of(ip, len, ICMP_HEADER);
		if (header && is_echo_reply(ip[header]))
			return LB_PING_WORKER;
		if (!header || !is_error(ip[header]))
			return STEER_HERE;
		return steer_quoted(s, ip + header, len - header);
	}
	size_t header = header_of(ip, len, TCP_FLAGS_AT + 1);
	if (!header || ip[9] != IP_PROTO_TCP)
		return STEER_HERE;
	if (only_begins && !(ip[header + TCP_FLAGS_AT] & TCP_SYN_FLAG))
		return STEER_HERE;
	return (int)owner_of(
		s, load32(ip + 12), load32(ip + 16), load16(ip + header), load16(ip + header + 2));
}

// Where a packet's payload stands if it is sound, in *ret. len is what the frame has.
static bool find_payload(const uint8_t *ip, size_t len, struct ip6_payload *ret)
{
	return len >= IP6_HEADER && ip[0] >> 4 == 6 &&
	       ip6_find_payload(ip, len, ret) == NET_N_COUNTERS;
}

// Neighbors and routers are learned by all workers.
static bool is_about_neighbors(uint8_t icmp6_type)
{
	return icmp6_type >= 134 && icmp6_type <= 136;
}

// We sent what is quoted, without extension headers.
static int steer_quoted_ip6(const struct steer *s, const uint8_t *ip, size_t len)
{
	if (len < IP6_HEADER + TCP_PORTS || ip[0] >> 4 != 6)
		return STEER_HERE;
	if (ip[6] == IP_PROTO_ICMP6)
		return LB_PING_WORKER;
	if (ip[6] != IP_PROTO_TCP)
		return STEER_HERE;
	return (int)owner_of_ip6(
		s, ip + 24, ip + 8, load16(ip + IP6_HEADER + 2), load16(ip + IP6_HEADER));
}

static int steer_icmp6(const struct steer *s, const uint8_t *message, size_t len)
{
	if (len < ICMP_HEADER)
		return STEER_HERE;
	if (is_about_neighbors(message[0]))
		return STEER_ALL;
	if (message[0] == 129) // an echo reply
		return LB_PING_WORKER;
	if (message[0] >= 128) // no error
		return STEER_HERE;
	return steer_quoted_ip6(s, message + ICMP_HEADER, len - ICMP_HEADER);
}

static int steer_plain_ip6(const struct steer *s, const uint8_t *ip, size_t len, bool only_begins)
{
	struct ip6_payload p;
	if (!find_payload(ip, len, &p))
		return STEER_HERE;
	const uint8_t *payload = ip + p.at;
	if (p.protocol == IP_PROTO_ICMP6)
		return steer_icmp6(s, payload, len - p.at);
	if (p.protocol != IP_PROTO_TCP || len - p.at <= TCP_FLAGS_AT)
		return STEER_HERE;
	if (only_begins && !(payload[TCP_FLAGS_AT] & TCP_SYN_FLAG))
		return STEER_HERE;
	return (int)owner_of_ip6(s, ip + 8, ip + 24, load16(payload), load16(payload + 2));
}

// What a tunnel brings belongs to the flow within, whatever the device takes it for. Neighbors are
// not learned from it.
static int steer_inner(const struct steer *s, const uint8_t *ip, size_t len)
{
	struct tunnel_inner in;
	if (!tunnel_look(s->tunnels, ip, len, &in))
		return STEER_HERE;
	int to = in.v4 ? steer_plain_ip4(s, in.ip, in.len, false)
	               : steer_plain_ip6(s, in.ip, in.len, false);
	return to == STEER_ALL ? STEER_HERE : to;
}

static int steer_ip4(const struct steer *s, const uint8_t *ip, size_t len, bool only_begins)
{
	bool may_be_outer = s->tunnels && len >= IP4_HEADER && ip[9] != IP_PROTO_TCP;
	int to = may_be_outer ? steer_inner(s, ip, len) : STEER_HERE;
	return to == STEER_HERE ? steer_plain_ip4(s, ip, len, only_begins) : to;
}

static int steer_ip6(const struct steer *s, const uint8_t *ip, size_t len, bool only_begins)
{
	bool may_be_outer = s->tunnels && len >= IP6_HEADER && ip[6] != IP_PROTO_TCP;
	int to = may_be_outer ? steer_inner(s, ip, len) : STEER_HERE;
	return to == STEER_HERE ? steer_plain_ip6(s, ip, len, only_begins) : to;
}

int steer_frame(const struct steer *s, const uint8_t *frame, size_t len, bool only_begins)
{
	if (len < ETH_HEADER)
		return STEER_HERE;
	switch (load16(frame + 12)) {
	case ETH_TYPE_IP4:
		return steer_ip4(s, frame + ETH_HEADER, len - ETH_HEADER, only_begins);
	case ETH_TYPE_IP6:
		return steer_ip6(s, frame + ETH_HEADER, len - ETH_HEADER, only_begins);
	case ETH_TYPE_ARP:
		return STEER_ALL;
	case ETH_TYPE_VLAN: // one tag; of the addresses in front of it nothing is read here
		return eth_is_priority_tagged(frame, len) &&
		                       load16(frame + ETH_TAG + 12) != ETH_TYPE_VLAN
		               ? steer_frame(s, frame + ETH_TAG, len - ETH_TAG, only_begins)
		               : STEER_HERE;
	default:
		return STEER_HERE;
	}
}

static bool is_evidence_ip6(const uint8_t *ip, size_t len)
{
	if (len < IP6_HEADER + TCP_HEADER)
		return false;
	size_t payload = load16(ip + 4);
	return ip[0] >> 4 == 6 && ip[6] == IP_PROTO_TCP && payload >= TCP_HEADER &&
	       payload <= len - IP6_HEADER;
}

bool steer_is_evidence(const uint8_t *frame, size_t len)
{
	const uint8_t *ip = frame + ETH_HEADER;
	if (len >= ETH_HEADER && load16(frame + 12) == ETH_TYPE_IP6)
		return is_evidence_ip6(ip, len - ETH_HEADER);
	if (len < ETH_HEADER + IP4_HEADER + TCP_HEADER || load16(frame + 12) != ETH_TYPE_IP4)
		return false;
	size_t total = load16(ip + 2);
	return ip[0] == 0x45 && ip[9] == IP_PROTO_TCP && !(load16(ip + 6) & MORE_OR_OFFSET) &&
	       total >= IP4_HEADER + TCP_HEADER && total <= len - ETH_HEADER &&
	       csum(ip, IP4_HEADER) == 0;
}
