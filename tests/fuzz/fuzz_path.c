// SPDX-License-Identifier: Apache-2.0
// The whole path of a worker: Ethernet frames, with a VLAN's tag or without, through the network
// layer (IPv4 and IPv6), TCP and HTTP/2 into the proxy, and a backend's answers on the way back.
// Input: records of an operation byte, a byte that says who, a length byte and that many bytes.
// Peers answer as any host's TCP does, and the input says what clients and backends send in their
// connections, or as frames beside them; when time goes by; and what the control thread changes.
// Counters are held against each other after every turn (tests/sim/proxy/books.h). In the end all
// clients and endpoints go, and nothing may be left.
// Thread: one.
#include "dataplane/h2/frame.h"
#include "dataplane/net/csum.h"
#include "dataplane/tcp/wire.h"
#include "lb/base/check.h"
#include "lb/route/filter.h"
#include "tests/fuzz/path/peer.h"

#include <stdlib.h>
#include <string.h>

#define FLAG_END_STREAM 1
#define MAX_RECORDS 400
#define MAX_REPEATED 4000 // records, of one input
#define N_CONTROLLED 3 // clusters
#define GONE_NS (200 * SECOND) // until the last timer of a connection that nobody answers

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum operation {
	OP_CONNECT,
	OP_SAY,
	OP_H2_FRAME,
	OP_REQUEST,
	OP_ANSWER,
	OP_BODY,
	OP_WAIT,
	OP_END,
	OP_WINDOW,
	OP_SEGMENT,
	OP_FRAME,
	OP_ENDPOINTS,
	OP_HOSTS,
	OP_POLICY,
	OP_FILTERS,
	OP_REPEAT,
	N_OPERATIONS,
};

struct record {
	uint8_t operation, who;
	uint8_t len;
	const uint8_t *bytes;
};

struct play {
	struct path_worker worker;
	struct peers peers;
	struct record last[2]; // that can be repeated, the latest first
	uint32_t n_repeated;
	uint64_t generation; // of filters
};

// Bytes that are not there are 0.
static uint8_t byte(const struct record *r, size_t i)
{
	return i < r->len ? r->bytes[i] : 0;
}

// What follows the first n.
static const uint8_t *rest(const struct record *r, size_t n, size_t *ret_len)
{
	*ret_len = r->len > n ? r->len - n : 0;
	return r->bytes + (r->len - *ret_len);
}

static struct peer *who(struct play *p, const struct record *r)
{
	return &p->peers.list[r->who % PEERS];
}

static struct peer *client(struct play *p, const struct record *r)
{
	return &p->peers.list[r->who % PEER_CLIENTS];
}

static struct peer *backend(struct play *p, const struct record *r)
{
	return &p->peers.list[PEER_CLIENTS + r->who % PEER_BACKENDS];
}

static void say_frame(struct play *p, struct peer *peer, uint8_t type, uint8_t flags,
	uint32_t stream, const uint8_t *payload, size_t len)
{
	static uint8_t f[H2_FRAME_HEAD + H2_FRAME_MAX];
	CHECK(len <= H2_FRAME_MAX);
	store32(f, (uint32_t)len << 8 | type);
	f[4] = flags;
	store32(f + 5, stream);
	if (len)
		memcpy(f + H2_FRAME_HEAD, payload, len);
	peer_say(&p->peers, peer, f, H2_FRAME_HEAD + len);
}

#define LATEST 199

// Small numbers, the last ones of all, and that of the latest request.
static uint32_t stream_of(const struct peer *peer, uint8_t b)
{
	if (b == LATEST)
		return peer->next_stream ? peer->next_stream - 2 : peer->last_stream;
	return b < LATEST ? b : H2_ID_MAX - (255u - b);
}

static uint32_t stream_or_latest(const struct peer *peer, uint8_t b)
{
	return stream_of(peer, b ? b : LATEST);
}

static void connect_client(struct play *p, const struct record *r)
{
	size_t len;
	const uint8_t *settings = rest(r, 2, &len);
	uint32_t i = r->who % PEER_CLIENTS;
	peer_connect(&p->peers, i, byte(r, 0) % PATH_FRONTENDS, byte(r, 1));
	peer_say(&p->peers, &p->peers.list[i], (const uint8_t *)H2_PREFACE, H2_PREFACE_LEN);
	say_frame(p, &p->peers.list[i], H2_SETTINGS, 0, 0, settings, len);
}

static size_t text(uint8_t *to, const char *s)
{
	size_t n = strlen(s);
	to[0] = (uint8_t)n;
	memcpy(to + 1, s, n);
	return n + 1;
}

// A request that is well-formed, but for fields of the input behind it.
static void request(struct play *p, const struct record *r)
{
	static const char *const paths[] = {
		"/one/x", "/two/x", "/down/x", "/none", "/unsupported/"};
	uint8_t block[600], how = byte(r, 1);
	size_t n = 0, len;
	struct peer *c = client(p, r);
	block[n++] = how & 2 ? 0x83 : 0x82; // POST, GET
	block[n++] = 0x86;
	block[n++] = 0x04;
	n += text(block + n, paths[byte(r, 0) % 5]);
	block[n++] = 0x01;
	n += text(block + n, how & 8 ? "pinned.test" : "calls.test");
	if (how & 4) {
		memcpy(block + n, "\x0f\x10", 2); // content-type
		n += 2 + text(block + n + 2, "application/grpc");
		block[n++] = 0;
		n += text(block + n, "te");
		n += text(block + n, "trailers");
	}
	const uint8_t *more = rest(r, 2, &len);
	memcpy(block + n, more, len);
	say_frame(p, c, H2_HEADERS, (how & FLAG_END_STREAM) | H2_FLAG_END_HEADERS, c->next_stream,
		block, n + len);
	c->next_stream += 2;
}

// An answer's head, or its trailers, on the stream that came last or on any.
static void answer(struct play *p, const struct record *r)
{
	uint8_t block[400], how = byte(r, 1);
	size_t n = 0, len;
	struct peer *b = backend(p, r);
	uint32_t stream = stream_or_latest(b, byte(r, 0));
	if (!(how & 4))
		block[n++] = 0x88; // 200
	if (how & 2) {
		memcpy(block + n, "\x0f\x10", 2);
		n += 2 + text(block + n + 2, "application/grpc");
	}
	if (how & 8) {
		block[n++] = 0;
		n += text(block + n, "grpc-status");
		n += text(block + n, how & 16 ? "14" : "0");
	}
	const uint8_t *more = rest(r, 2, &len);
	memcpy(block + n, more, len);
	say_frame(p, b, H2_HEADERS, (how & FLAG_END_STREAM) | H2_FLAG_END_HEADERS, stream, block,
		n + len);
}

static void body(struct play *p, const struct record *r)
{
	static const uint8_t zeros[255 * 64];
	struct peer *peer = who(p, r);
	say_frame(p, peer, H2_DATA, byte(r, 2) & FLAG_END_STREAM,
		stream_or_latest(peer, byte(r, 1)), zeros, (size_t)byte(r, 0) * 64);
}

static void h2_frame(struct play *p, const struct record *r)
{
	size_t len;
	const uint8_t *payload = rest(r, 3, &len);
	struct peer *peer = who(p, r);
	say_frame(p, peer, byte(r, 0), byte(r, 1), stream_of(peer, byte(r, 2)), payload, len);
}

// Milliseconds, or by steps of a second.
static void wait_some(struct play *p, const struct record *r)
{
	path_worker_wait(&p->worker, (r->who & 1 ? SECOND : MS) * (byte(r, 0) + 1u));
}

static void end(struct play *p, const struct record *r)
{
	struct peer *peer = who(p, r);
	switch (byte(r, 0) % 3) {
	case 0:
		peer_finish(&p->peers, peer);
		break;
	case 1:
		peer_reset(&p->peers, peer);
		break;
	default:
		peer->state = PEER_SILENT;
	}
}

static void window(struct play *p, const struct record *r)
{
	struct peer *peer = who(p, r);
	peer->window = (uint16_t)(byte(r, 0) << 8 | byte(r, 1));
	peer->holds_acks = byte(r, 2) & 1;
	peer_segment(&p->peers, peer, TCP_ACK, 0, 0, NULL, 0);
}

static uint32_t offset(const struct record *r, size_t at)
{
	return (uint32_t)(int32_t)(int16_t)(byte(r, at) << 8 | byte(r, at + 1)) *
	       (byte(r, at) == 0x7f ? 70000u : 1u);
}

static void segment(struct play *p, const struct record *r)
{
	size_t len;
	const uint8_t *payload = rest(r, 5, &len);
	peer_segment(
		&p->peers, who(p, r), byte(r, 0) & 0x3f, offset(r, 1), offset(r, 3), payload, len);
}

// Any frame, to our address, with our tag, if it is to get any further.
static void frame(struct play *p, const struct record *r)
{
	uint8_t room[VLAN_TAG + 255], *f = room + VLAN_TAG;
	size_t header = r->len >= 34 ? (size_t)(r->bytes[14] & 0xf) * 4 : 0;
	memcpy(f, r->bytes, r->len);
	if (r->who & 1 && r->len >= 6)
		memcpy(f, path_mac, 6);
	if (r->who & 2 && header >= 20 && 14u + header <= r->len) {
		memset(f + 24, 0, 2);
		uint16_t sum = csum(f + 14, header);
		memcpy(f + 24, &sum, 2);
	}
	if (r->who & 4 && r->len >= VLAN_MACS)
		path_worker_receive(&p->worker, vlan_insert(f, PATH_VLAN), VLAN_TAG + r->len);
	else
		path_worker_receive(&p->worker, f, r->len);
}

static void endpoints(struct play *p, const struct record *r)
{
	static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
	static const struct lb_policy_spec specs[] = {
		{.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin},
		{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 2}},
		{.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 16, .max_size = 16}},
		{.kind = LB_POLICY_PICK_FIRST},
	};
	uint32_t cluster = r->who % N_CONTROLLED;
	struct control_leaf *l = &p->worker.control.leaves[cluster];
	l->spec = &specs[byte(r, 1) % 4];
	l->max_requests = byte(r, 1) & 0x80 ? 3 : 1024;
	control_set_endpoints(
		&p->worker.control, cluster, path_backends(&p->worker), byte(r, 0) & 0xf);
}

// Which backends are there, and whether links answer.
static void hosts(struct play *p, const struct record *r)
{
	p->peers.listening = byte(r, 0);
	p->peers.answers_arp = !(byte(r, 1) & 1);
}

static void policy(struct play *p, const struct record *r)
{
	struct lb_route_policy policy = {
		.timeouts = {.has_max = byte(r, 0) & 1, .max_ns = byte(r, 1) * 10 * MS},
		.retry = {.statuses = byte(r, 0) & 2 ? 1u << 14 | 1u << 1 : 0,
			.max_attempts = (uint8_t)(1 + byte(r, 2) % 5),
			.base_ns = 5 * MS,
			.max_ns = 50 * MS}};
	control_set_policy(&p->worker.control, (enum control_route)(r->who % N_ROUTES), &policy);
}

static void filters(struct play *p, const struct record *r)
{
	struct lb_filter list[] = {
		{.name = STR("f"),
			.kind = LB_FILTER_FAULT,
			.fault = {.delay = byte(r, 0) & 1 ? LB_DELAY_FIXED : LB_DELAY_NONE,
				.delay_ns = (byte(r, 1) + 1u) * MS,
				.delay_numerator = 50,
				.delay_denominator = 100,
				.abort = byte(r, 0) & 2 ? LB_ABORT_HTTP : LB_ABORT_NONE,
				.abort_status = 418,
				.abort_numerator = 30,
				.abort_denominator = 100,
				.max_active = 3}},
		{.name = STR("s"),
			.kind = LB_FILTER_SESSION,
			.session = {.enabled = byte(r, 0) & 4, .cookie = STR("lane"), .ttl_s = 60}},
	};
	p->generation += byte(r, 0) >> 3 & 1;
	control_set_filters(&p->worker.control, r->who % PATH_FRONTENDS, list, 2,
		byte(r, 0) & 16 ? 5 * SECOND : LB_NO_TIMEOUT, p->generation);
}

static void repeat(struct play *, const struct record *);

static void act(struct play *p, const struct record *r)
{
	static void (*const operations[N_OPERATIONS])(struct play *, const struct record *) = {
		connect_client,
		NULL,
		h2_frame,
		request,
		answer,
		body,
		wait_some,
		end,
		window,
		segment,
		frame,
		endpoints,
		hosts,
		policy,
		filters,
		repeat,
	};
	if (r->operation == OP_SAY)
		peer_say(&p->peers, who(p, r), r->bytes, r->len);
	else
		operations[r->operation](p, r);
}

static bool can_repeat(uint8_t operation)
{
	return operation != OP_WAIT && operation != OP_REPEAT && operation != OP_CONNECT;
}

static void repeat(struct play *p, const struct record *r)
{
	uint32_t n = p->last[1].bytes ? byte(r, 0) * 4u : 0;
	for (; n && p->n_repeated < MAX_REPEATED; n--, p->n_repeated++) {
		if (r->who & 1)
			act(p, &p->last[1]);
		act(p, &p->last[0]);
		if (n % 16 == 0)
			path_worker_settle(&p->worker);
	}
}

// Everybody hangs up, and what is configured goes.
static void leave(struct play *p)
{
	p->peers.answers_arp = true;
	for (uint32_t i = 0; i < PEERS; i++)
		peer_reset(&p->peers, &p->peers.list[i]);
	for (uint32_t i = 0; i < N_CONTROLLED; i++)
		control_set_endpoints(&p->worker.control, i, path_backends(&p->worker), 0);
	p->peers.listening = 0;
	path_worker_wait(&p->worker, SECOND);
	path_worker_wait(&p->worker, GONE_NS);
	path_worker_wait(&p->worker, GONE_NS);
}

// Which families there are, and whether frames have tags, is said with the hosts if these come
// first.
static struct path_mode mode_of(const uint8_t *data, size_t size)
{
	uint8_t bits = size >= 3 && data[0] % N_OPERATIONS == OP_HOSTS ? data[1] : 0;
	return (struct path_mode){
		.vlan = bits & 0x80, .clients_v6 = bits & 0x40, .backends_v6 = bits & 0x20};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct play *p = calloc(1, sizeof(*p));
	CHECK(p);
	path_worker_init(&p->worker, mode_of(data, size));
	peers_init(&p->peers, &p->worker);
	for (uint32_t i = 0; i < N_CONTROLLED - 1; i++) // the third one has an error
		control_set_endpoints(&p->worker.control, i, path_backends(&p->worker), i + 1);
	for (uint32_t i = 0; i < MAX_RECORDS && size >= 3; i++) {
		size_t len = data[2] < size - 3 ? data[2] : size - 3;
		struct record r = {data[0] % N_OPERATIONS, data[1], (uint8_t)len, data + 3};
		act(p, &r);
		if (can_repeat(r.operation)) {
			p->last[1] = p->last[0];
			p->last[0] = r;
		}
		if (!(data[0] & 0x80)) // else the next one is of the same turn
			path_worker_settle(&p->worker);
		data += 3 + len;
		size -= 3 + len;
	}
	leave(p);
	path_worker_fini(&p->worker);
	free(p);
	return 0;
}
