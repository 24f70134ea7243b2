// SPDX-License-Identifier: Apache-2.0
// The published vectors of the hash, a device that is followed or not, and where frames belong.
#include "dataplane/net/csum.h"
#include "dataplane/net/steer.h"
#include "dataplane/net/tunnel_list.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/unit/net/world6.h"

#include <stdlib.h>
#include <string.h>

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

// Microsoft, "Verifying the RSS hash calculation"
static const uint8_t microsoft_key[STEER_KEY_MAX] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2,
	0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30,
	0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
	0x01, 0xfa};

static void published_vectors_hold(void **state)
{
	static const struct {
		uint32_t dst, src;
		uint16_t dst_port, src_port;
		uint32_t hash;
	} vectors[] = {
		{IP(161, 142, 100, 80), IP(66, 9, 149, 187), 1766, 2794, 0x51ccc178},
		{IP(65, 69, 140, 83), IP(199, 92, 111, 2), 4739, 14230, 0xc626b0ea},
		{IP(12, 22, 207, 184), IP(24, 19, 198, 95), 38024, 12898, 0x5c2b394a},
		{IP(209, 142, 163, 6), IP(38, 27, 205, 30), 2217, 48228, 0xafc7327f},
		{IP(202, 188, 127, 2), IP(153, 39, 163, 191), 1303, 44251, 0x10e828a2},
	};
	struct toeplitz t;
	toeplitz_init(&t, microsoft_key);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		assert_int_equal(toeplitz_hash(&t, vectors[i].src, vectors[i].dst,
					 vectors[i].src_port, vectors[i].dst_port),
			vectors[i].hash);
}

// The same suite's, of IPv6.
static void published_ipv6_vectors_hold(void **state)
{
	static const struct {
		const char *src, *dst;
		uint16_t src_port, dst_port;
		uint32_t hash;
	} vectors[] = {
		{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x40207d3d},
		{"3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0xdde51bbf},
		{"3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024,
			0x02d1feef},
	};
	struct toeplitz t;
	toeplitz_init(&t, microsoft_key);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct ip_addr src = ip6_of(vectors[i].src), dst = ip6_of(vectors[i].dst);
		assert_int_equal(
			toeplitz_hash6(&t, src.b, dst.b, vectors[i].src_port, vectors[i].dst_port),
			vectors[i].hash);
	}
}

static void random_bytes(struct rand *r, uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)rand_u64(r);
}

// Bit by bit, as the definition has it.
static uint32_t naive_hash(const uint8_t *key, const uint8_t *in, size_t len)
{
	uint32_t hash = 0;
	for (size_t bit = 0; bit < 8 * len; bit++) {
		if (!(in[bit / 8] >> (7 - bit % 8) & 1))
			continue;
		uint32_t window = 0;
		for (size_t i = bit; i < bit + 32; i++)
			window = window << 1 | (key[i / 8] >> (7 - i % 8) & 1);
		hash ^= window;
	}
	return hash;
}

// NET-30
static void hash_equals_its_definition(void **state)
{
	struct rand r;
	rand_init(&r, 4711);
	for (int i = 0; i < 2000; i++) {
		uint8_t key[TOEPLITZ_KEY_MIN], in[12];
		random_bytes(&r, key, sizeof(key));
		random_bytes(&r, in, sizeof(in));
		struct toeplitz t;
		toeplitz_init(&t, key);
		assert_int_equal(toeplitz_hash(&t, load32(in), load32(in + 4), load16(in + 8),
					 load16(in + 10)),
			naive_hash(key, in, sizeof(in)));
	}
}

static struct tcp_flow random_flow(struct rand *r)
{
	return (struct tcp_flow){
		.local = ip_from_v4((uint32_t)rand_u64(r)),
		.remote = ip_from_v4((uint32_t)rand_u64(r)),
		.local_port = (uint16_t)rand_u64(r),
		.remote_port = (uint16_t)rand_u64(r),
	};
}

// NET-30
static void every_worker_gets_its_share(void **state)
{
	struct rand r;
	rand_init(&r, 17);
	for (uint32_t n = 1; n <= LB_MAX_WORKERS; n += n < 8 ? 1 : 7) {
		uint8_t key[STEER_KEY_MAX];
		random_bytes(&r, key, sizeof(key));
		struct steer s;
		steer_init(&s, n, key);
		uint32_t counts[LB_MAX_WORKERS] = {0};
		for (uint32_t i = 0; i < 2000 * n; i++) {
			struct tcp_flow f = random_flow(&r);
			uint32_t owner = steer_owner(&s, &f);
			assert_true(owner < n);
			counts[owner]++;
		}
		for (uint32_t w = 0; w < n; w++) // 512 places among 63 differ by an eighth
			assert_in_range(counts[w], 1700, 2400);
	}
}

// Linux gives one client's connections to an address ports two apart.
static void connections_with_ports_in_a_row_hardly_ever_come_to_one_worker(void **state)
{
	struct rand r;
	rand_init(&r, 4);
	uint32_t n_lopsided = 0;
	for (int i = 0; i < 1000; i++) {
		uint8_t key[STEER_KEY_MAX];
		for (size_t k = 0; k < sizeof(key); k++)
			key[k] = (uint8_t)rand_u64(&r);
		struct steer s;
		steer_init(&s, 2, key);
		struct tcp_flow f = random_flow(&r);
		uint32_t n_first = 0;
		for (int k = 0; k < 16; k++, f.remote_port += 2)
			n_first += steer_owner(&s, &f) == 0;
		n_lopsided += n_first == 0 || n_first == 16;
	}
	assert_true(n_lopsided <= 4); // a table of i modulo n: 62
}

struct table {
	uint8_t key[40];
	uint16_t queues[STEER_ENTRIES_MAX];
	struct steer_device device;
};

static void make_table(struct table *t, uint32_t n_entries, uint32_t n_queues)
{
	memcpy(t->key, microsoft_key, sizeof(t->key));
	for (uint32_t i = 0; i < n_entries; i++)
		t->queues[i] = (uint16_t)(i % n_queues);
	t->device = (struct steer_device){t->key, sizeof(t->key), t->queues, n_entries};
}

// NET-31
static void first_device_decides_and_is_followed(void **state)
{
	static const uint8_t ours[STEER_KEY_MAX] = {1, 2, 3};
	struct steer s;
	struct table t;
	struct rand r;
	rand_init(&r, 3);
	steer_init(&s, 3, ours);
	make_table(&t, 128, 3);
	for (uint32_t i = 0; i < 128; i++) // its own idea of a table
		t.queues[i] = (uint16_t)((i / 5) % 3);
	assert_true(steer_try_device(&s, 1, &t.device));
	assert_true(steer_by_device(&s, 1));
	assert_false(steer_by_device(&s, 0));
	for (int i = 0; i < 1000; i++) {
		struct tcp_flow f = random_flow(&r);
		uint8_t in[12];
		store32(in, ip_to_v4(&f.remote));
		store32(in + 4, ip_to_v4(&f.local));
		store16(in + 8, f.remote_port);
		store16(in + 10, f.local_port);
		uint32_t hash = naive_hash(t.key, in, sizeof(in));
		assert_int_equal(steer_owner(&s, &f), t.queues[hash % 128]);
	}
}

// NET-31
static void second_device_must_agree(void **state)
{
	struct steer s;
	struct table a, b;
	steer_init(&s, 2, microsoft_key);
	make_table(&a, 128, 2);
	make_table(&b, 512, 2); // repeats the first one's
	assert_true(steer_try_device(&s, 0, &a.device));
	assert_true(steer_try_device(&s, 1, &b.device));
	b.queues[511] = 0;
	assert_false(steer_try_device(&s, 2, &b.device));
	make_table(&b, 64, 2);
	assert_true(steer_try_device(&s, 3, &b.device));
	b.key[15] ^= 1;
	assert_false(steer_try_device(&s, 4, &b.device));
	b.key[15] ^= 1;
	b.key[39] ^= 1; // the last one that an IPv6 flow meets
	assert_false(steer_try_device(&s, 5, &b.device));
	assert_int_equal(s.by_device, 1 | 2 | 8);
}

// Connections stand on what was decided.
static void once_settled_no_device_decides_any_more(void **state)
{
	static const uint8_t ours[STEER_KEY_MAX] = {1, 2, 3};
	struct steer s, before;
	struct table t;
	steer_init(&s, 2, ours);
	steer_settle(&s);
	before = s;
	make_table(&t, STEER_ENTRIES_MAX, 2); // with its own key
	assert_false(steer_try_device(&s, 0, &t.device));
	assert_memory_equal(&s, &before, sizeof(s));
	memcpy(t.key, s.key, sizeof(t.key)); // it listened
	for (uint32_t i = 0; i < STEER_ENTRIES_MAX; i++)
		t.queues[i] = s.owners[i];
	assert_true(steer_try_device(&s, 0, &t.device));
	assert_true(steer_by_device(&s, 0));
}

static void device_that_cannot_be_followed_changes_nothing(void **state)
{
	struct steer s, before;
	struct table t;
	steer_init(&s, 2, microsoft_key);
	before = s;
	make_table(&t, 128, 3); // a queue that has no worker
	assert_false(steer_try_device(&s, 0, &t.device));
	make_table(&t, 96, 2);
	assert_false(steer_try_device(&s, 0, &t.device));
	t.device.n_entries = 0;
	assert_false(steer_try_device(&s, 0, &t.device));
	make_table(&t, 128, 2);
	t.device.key_len = TOEPLITZ_KEY_MIN - 1;
	assert_false(steer_try_device(&s, 0, &t.device));
	make_table(&t, 128, 1); // nothing comes to the second worker
	assert_false(steer_try_device(&s, 0, &t.device));
	make_table(&t, 128, 2);
	memset(t.key, 0, sizeof(t.key)); // not told
	assert_false(steer_try_device(&s, 0, &t.device));
	assert_memory_equal(&s, &before, sizeof(s));
}

// NET-40
static void another_port_of_a_device_is_trusted_as_that_is(void **state)
{
	struct steer s;
	struct table t;
	steer_init(&s, 2, microsoft_key);
	make_table(&t, 128, 2);
	steer_follow_port(&s, 2, 0);
	assert_false(steer_by_device(&s, 2));
	assert_true(steer_try_device(&s, 0, &t.device));
	steer_follow_port(&s, 2, 0);
	assert_true(steer_by_device(&s, 2));
	steer_distrust(&s, 2);
	assert_true(steer_by_device(&s, 0));
	assert_false(steer_by_device(&s, 2));
}

// NET-31
static void distrust_is_for_one_port_and_for_good(void **state)
{
	struct steer s;
	struct table t;
	steer_init(&s, 2, microsoft_key);
	make_table(&t, 128, 2);
	assert_true(steer_try_device(&s, 0, &t.device));
	assert_true(steer_try_device(&s, 1, &t.device));
	steer_distrust(&s, 0);
	assert_false(steer_by_device(&s, 0));
	assert_true(steer_by_device(&s, 1));
}

// Frames

#define CLIENT IP(10, 0, 0, 7)
#define OURS IP(10, 0, 0, 1)

// One after the other, without room between.
struct frame {
	uint8_t bytes[256];
	size_t len;
};

static void add_ip(struct frame *f, uint32_t src, uint32_t dst, uint8_t protocol, unsigned options)
{
	uint8_t *ip = f->bytes + f->len;
	memset(ip, 0, 20 + options);
	ip[0] = (uint8_t)(0x45 + options / 4);
	ip[9] = protocol;
	store32(ip + 12, src);
	store32(ip + 16, dst);
	f->len += 20 + options;
}

static void add_tcp(struct frame *f, uint16_t src_port, uint16_t dst_port, uint8_t flags)
{
	uint8_t *tcp = f->bytes + f->len;
	memset(tcp, 0, 20);
	store16(tcp, src_port);
	store16(tcp + 2, dst_port);
	tcp[13] = flags;
	f->len += 20;
}

static void start_frame(struct frame *f, uint16_t type)
{
	memset(f, 0, sizeof(*f));
	store16(f->bytes + 12, type);
	f->len = 14;
}

// The checksum of the first IP header.
static void seal(struct frame *f)
{
	uint8_t *ip = f->bytes + 14;
	memset(ip + 10, 0, 2);
	uint16_t sum = csum(ip, (size_t)(ip[0] & 15) * 4);
	memcpy(ip + 10, &sum, sizeof(sum));
}

static void make_segment(struct frame *f, uint16_t src_port, uint8_t flags, unsigned options)
{
	start_frame(f, 0x0800);
	add_ip(f, CLIENT, OURS, 6, options);
	add_tcp(f, src_port, 80, flags);
	store16(f->bytes + 14 + 2, (uint16_t)(f->len - 14));
	seal(f);
}

static struct steer make_steer(void)
{
	struct steer s;
	steer_init(&s, 7, microsoft_key);
	return s;
}

static int owner(const struct steer *s, uint16_t remote_port)
{
	struct tcp_flow f = {.local = ip_from_v4(OURS),
		.remote = ip_from_v4(CLIENT),
		.local_port = 80,
		.remote_port = remote_port};
	return (int)steer_owner(s, &f);
}

static void segments_belong_to_their_flow(void **state)
{
	struct steer s = make_steer();
	struct frame f;
	for (uint16_t port = 1000; port < 1100; port++) {
		make_segment(&f, port, 0x10, 4 * (port % 3));
		assert_int_equal(steer_frame(&s, f.bytes, f.len, false), owner(&s, port));
	}
}

static void only_handshakes_are_looked_at_behind_a_device(void **state)
{
	struct steer s = make_steer();
	struct frame f;
	make_segment(&f, 1001, 0x10, 0);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_HERE);
	make_segment(&f, 1001, 0x12, 8);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), owner(&s, 1001));
}

// What a device may take for something else than TCP comes by its first queue, whoever sent it:
// it belongs to its flow as far as it goes, but is no reason to give up the device's hash.
static void only_sound_segments_speak_against_a_device(void **state)
{
	struct steer s = make_steer();
	struct frame f;
	make_segment(&f, 1001, 0x02, 0);
	assert_true(steer_is_evidence(f.bytes, f.len));
	assert_true(steer_is_evidence(f.bytes, f.len + 6)); // padded
	assert_false(steer_is_evidence(f.bytes, f.len - 1));
	f.bytes[14 + 10] ^= 1; // the checksum
	assert_false(steer_is_evidence(f.bytes, f.len));
	make_segment(&f, 1001, 0x02, 0);
	store16(f.bytes + 14 + 2, 39);
	seal(&f);
	assert_false(steer_is_evidence(f.bytes, f.len));
	make_segment(&f, 1001, 0x02, 4);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), owner(&s, 1001));
	assert_false(steer_is_evidence(f.bytes, f.len));
	static const uint16_t fragments[] = {0x2000, 0x2001, 0x0001};
	for (size_t i = 0; i < sizeof(fragments) / sizeof(fragments[0]); i++) {
		make_segment(&f, 1001, 0x02, 0);
		store16(f.bytes + 14 + 6, fragments[i]);
		seal(&f);
		assert_false(steer_is_evidence(f.bytes, f.len));
	}
	make_segment(&f, 1001, 0x02, 0);
	store16(f.bytes + 14 + 6, 0x4000); // may not be cut
	seal(&f);
	assert_true(steer_is_evidence(f.bytes, f.len));
}

// NET-32, RFC 792: the quoted packet is ours, its source is our side.
static void errors_belong_to_the_flow_that_they_quote(void **state)
{
	static const uint8_t errors[] = {3, 4, 5, 11, 12};
	struct steer s = make_steer();
	for (size_t i = 0; i < sizeof(errors); i++)
		for (uint16_t port = 1000; port < 1050; port++) {
			struct frame f;
			start_frame(&f, 0x0800);
			add_ip(&f, IP(10, 0, 0, 254), OURS, 1, 4 * (port % 2));
			f.bytes[f.len] = errors[i];
			f.len += 8;
			add_ip(&f, OURS, CLIENT, 6, 0);
			add_tcp(&f, 80, port, 0);
			f.len -= 12; // RFC 792: 64 bits of it
			assert_int_equal(steer_frame(&s, f.bytes, f.len, true), owner(&s, port));
			assert_false(steer_is_evidence(f.bytes, f.len));
			assert_int_equal(steer_frame(&s, f.bytes, f.len - 5, true), STEER_HERE);
		}
}

// NET-32: what they quote went on to another host, by a way that others take as well.
static void errors_that_say_that_the_way_of_what_went_on_is_narrow_are_for_all(void **state)
{
	static const struct net_tunnels tunnels = {.n = 2,
		.list = {{.kind = NET_TUNNEL_IPIP},
			{.kind = NET_TUNNEL_GUE,
				.port = 6080,
				.hops = {{{{[10] = 0xff, 0xff, 10, 0, 6}}, IP_V4_BITS + 24}},
				.n_hops = 1}}};
	struct steer s = make_steer();
	struct frame f;
	start_frame(&f, 0x0800);
	add_ip(&f, IP(10, 0, 0, 254), OURS, 1, 0);
	uint8_t *message = f.bytes + f.len;
	store16(message, 0x0304);
	f.len += 8;
	add_ip(&f, OURS, IP(10, 0, 6, 7), 17, 0);
	uint8_t *udp = f.bytes + f.len;
	store16(udp + 2, 6080);
	f.len += 8;
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_HERE);
	s.tunnels = &tunnels;
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_ALL);
	assert_int_equal(steer_frame(&s, f.bytes, f.len - 5, true), STEER_HERE);
	// Anybody may send what is of no use to others.
	store16(message, 0x0301);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_HERE);
	store16(message, 0x0304);
	store16(udp + 2, 53);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_HERE);
	store16(udp + 2, 6080);
	store32(message + 8 + 16, CLIENT);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_HERE);
}

// NET-32
static void the_rest_stays_and_arp_is_for_all(void **state)
{
	struct steer s = make_steer();
	struct frame f;
	start_frame(&f, 0x0806);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, false), STEER_ALL);
	assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_ALL);
	start_frame(&f, 0x86dd);
	assert_int_equal(steer_frame(&s, f.bytes, 60, false), STEER_HERE);
	start_frame(&f, 0x0800);
	add_ip(&f, CLIENT, OURS, 1, 0);
	f.bytes[f.len] = 8; // echo
	assert_int_equal(steer_frame(&s, f.bytes, f.len + 8, false), STEER_HERE);
}

// NET-36
static void a_priority_tag_is_looked_through(void **state)
{
	struct steer s = make_steer();
	struct frame f;
	start_frame(&f, 0x8100);
	memcpy(f.bytes + 14, "\xe0\0\x08\x06", 4);
	assert_int_equal(steer_frame(&s, f.bytes, 18, false), STEER_ALL);
	assert_int_equal(steer_frame(&s, f.bytes, 17, false), STEER_HERE);
	memcpy(f.bytes + 14, "\0\0\x81\0\0\0\x08\x06", 8); // another one within: net/ drops it
	assert_int_equal(steer_frame(&s, f.bytes, 60, false), STEER_HERE);
	memcpy(f.bytes + 14, "\xe0\0\x08\x06", 4);
	f.bytes[15] = 1; // of a VLAN
	assert_int_equal(steer_frame(&s, f.bytes, 18, false), STEER_HERE);
}

struct six_case {
	uint8_t protocol;
	uint8_t payload[64];
	size_t len;
	bool only_begins;
	int wanted; // STEER_HERE, STEER_ALL; 0 = the flow's owner
};

// NET-32
static void ipv6_frames_go_where_their_flow_belongs(void **state)
{
	static const struct six_case cases[] = {
		{6, {1, 2, 3, 4, [13] = 2}, 20, true, 0},
		{6, {1, 2, 3, 4, [13] = 16}, 20, false, 0},
		{6, {1, 2, 3, 4, [13] = 16}, 20, true, STEER_HERE},
		{60, {6, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4, [21] = 2}, 28, true, 0},
		{44, {6, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4}, 28, false, STEER_HERE}, // a fragment
		{6, {1, 2, 3}, 3, false, STEER_HERE},
		{58, {135}, 24, false, STEER_ALL},
		{58, {136}, 24, false, STEER_ALL},
		{58, {134}, 24, false, STEER_ALL}, // a router
		{58, {133}, 24, false, STEER_HERE},
		{58, {128}, 8, false, STEER_HERE},
		{58, {1}, 8, false, STEER_HERE}, // quotes nothing
		{17, {1, 2, 3, 4}, 8, false, STEER_HERE},
	};
	struct steer s;
	steer_init(&s, 64, microsoft_key);
	struct tcp_flow flow = {.local = ip6_of(OURS6),
		.remote = ip6_of(PEER6),
		.remote_port = 0x0102,
		.local_port = 0x0304};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct six_case *c = &cases[i];
		uint8_t f[256];
		size_t len = make_ip6(f, PEER6, OURS6, c->protocol, c->payload, c->len);
		int wanted = c->wanted ? c->wanted : (int)steer_owner(&s, &flow);
		if (steer_frame(&s, f, len, c->only_begins) != wanted)
			fail_msg("case %zu", i);
	}
}

// NET-32
static void ipv6_errors_belong_to_the_flow_that_they_quote(void **state)
{
	struct steer s;
	steer_init(&s, 64, microsoft_key);
	struct tcp_flow flow = {.local = ip6_of(OURS6),
		.remote = ip6_of("2a00::80"),
		.local_port = 1000,
		.remote_port = 2000};
	uint8_t message[8 + 48] = {1, [8] = 0x60, [14] = 6}, f[256];
	memcpy(message + 16, flow.local.b, 16);
	memcpy(message + 32, flow.remote.b, 16);
	store16(message + 48, 1000);
	store16(message + 50, 2000);
	size_t len = make_ip6(f, PEER6, OURS6, 58, message, sizeof(message));
	assert_int_equal(steer_frame(&s, f, len, false), steer_owner(&s, &flow));
	assert_int_equal(steer_frame(&s, f, 54 + 51, false), STEER_HERE); // ports cut off
}

// FL-35: the device hashes what it sees, the outer addresses, whatever else it can.
static void what_a_tunnel_brings_belongs_to_the_flow_within(void **state)
{
	static const struct net_tunnels tunnels = {.n = 2,
		.list = {{.kind = NET_TUNNEL_IPIP,
				 .from = {{{{[10] = 0xff, 0xff, 10, 0, 5}}, IP_V4_BITS + 24},
					 {{{0xfd, 5}}, 16}},
				 .n_from = 2},
			{.kind = NET_TUNNEL_GUE,
				.port = 6080,
				.from = {{{{[10] = 0xff, 0xff, 10, 0, 5}}, IP_V4_BITS + 24}},
				.n_from = 1}}};
	struct steer s = make_steer();
	for (uint16_t port = 1000; port < 1100; port++) {
		struct frame inner, f;
		make_segment(&inner, port, 0x10, 4 * (port % 3));
		const uint8_t *packet = inner.bytes + 14;
		size_t len = inner.len - 14;
		start_frame(&f, 0x0800);
		add_ip(&f, IP(10, 0, 5, port & 0xff), OURS, port % 2 ? 4 : 17, 4 * (port % 2));
		if (port % 2 == 0) { // variant 1
			const uint8_t udp[8] = {
				0, 0, 6080 >> 8, 6080 & 0xff, 0, (uint8_t)(8 + len)};
			memcpy(f.bytes + f.len, udp, sizeof(udp));
			f.len += sizeof(udp);
		}
		memcpy(f.bytes + f.len, packet, len);
		f.len += len;
		s.tunnels = NULL;
		assert_int_equal(steer_frame(&s, f.bytes, f.len, false), STEER_HERE);
		s.tunnels = &tunnels;
		assert_int_equal(steer_frame(&s, f.bytes, f.len, true), owner(&s, port));
		assert_false(steer_is_evidence(f.bytes, f.len));
		store32(f.bytes + 26, IP(10, 0, 6, 1)); // forged
		assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_HERE);
		f.len = make_ip6(f.bytes, "fd05::7", OURS6, 4, packet, len);
		assert_int_equal(steer_frame(&s, f.bytes, f.len, true), owner(&s, port));
	}
	// What all learn from comes through no tunnel.
	uint8_t f[256], advertisement[24] = {136};
	size_t len = make_ip6(f, PEER6, OURS6, 58, advertisement, sizeof(advertisement));
	len = make_ip6(
		f, "fd05::7", OURS6, 41, memcpy((uint8_t[128]){0}, f + 14, len - 14), len - 14);
	assert_int_equal(steer_frame(&s, f, len, false), STEER_HERE);
}

// NET-32: Fragments are dropped by whoever gets them, and no device hashes the first one by its
// ports.
static void fragments_stay(void **state)
{
	static const uint16_t fragments[] = {0x2000, 0x2001, 0x0001};
	struct steer s = make_steer();
	for (size_t i = 0; i < sizeof(fragments) / sizeof(fragments[0]); i++)
		for (uint16_t port = 1000; port < 1020; port++) {
			struct frame f;
			make_segment(&f, port, 0x02, 0);
			store16(f.bytes + 14 + 6, fragments[i]);
			assert_int_equal(steer_frame(&s, f.bytes, f.len, false), STEER_HERE);
			assert_int_equal(steer_frame(&s, f.bytes, f.len, true), STEER_HERE);
		}
}

static void any_bytes_get_an_answer(void **state)
{
	struct steer s = make_steer();
	struct rand r;
	rand_init(&r, 99);
	for (int i = 0; i < 200000; i++) {
		size_t len = rand_below(&r, 90);
		uint8_t *bytes = malloc(len ? len : 1); // so that a sanitizer sees its end
		random_bytes(&r, bytes, len);
		if (len >= 24 && i % 8) {
			store16(bytes + 12, 0x0800);
			bytes[14] = (uint8_t)(0x40 | (bytes[14] & 15));
			bytes[23] = i % 2 ? 6 : 1;
		}
		int to = steer_frame(&s, bytes, len, i % 3 == 0);
		assert_true(to >= STEER_ALL && to < 7);
		steer_is_evidence(bytes, len);
		free(bytes);
	}
}

RUN_SUITE("net/steer", cmocka_unit_test(published_vectors_hold),
	cmocka_unit_test(published_ipv6_vectors_hold),
	cmocka_unit_test(a_priority_tag_is_looked_through),
	cmocka_unit_test(ipv6_frames_go_where_their_flow_belongs),
	cmocka_unit_test(ipv6_errors_belong_to_the_flow_that_they_quote),
	cmocka_unit_test(hash_equals_its_definition), cmocka_unit_test(every_worker_gets_its_share),
	cmocka_unit_test(connections_with_ports_in_a_row_hardly_ever_come_to_one_worker),
	cmocka_unit_test(first_device_decides_and_is_followed),
	cmocka_unit_test(second_device_must_agree),
	cmocka_unit_test(once_settled_no_device_decides_any_more),
	cmocka_unit_test(device_that_cannot_be_followed_changes_nothing),
	cmocka_unit_test(distrust_is_for_one_port_and_for_good),
	cmocka_unit_test(another_port_of_a_device_is_trusted_as_that_is),
	cmocka_unit_test(segments_belong_to_their_flow),
	cmocka_unit_test(only_handshakes_are_looked_at_behind_a_device),
	cmocka_unit_test(only_sound_segments_speak_against_a_device),
	cmocka_unit_test(errors_belong_to_the_flow_that_they_quote),
	cmocka_unit_test(errors_that_say_that_the_way_of_what_went_on_is_narrow_are_for_all),
	cmocka_unit_test(the_rest_stays_and_arp_is_for_all), cmocka_unit_test(fragments_stay),
	cmocka_unit_test(what_a_tunnel_brings_belongs_to_the_flow_within),
	cmocka_unit_test(any_bytes_get_an_answer))
