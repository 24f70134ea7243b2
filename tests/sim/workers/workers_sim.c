// SPDX-License-Identifier: Apache-2.0
// Workers in threads of their own, each with a network layer and a TCP stack, behind one device
// with a queue for each of them; outside a client and a backend. Each worker relays its clients'
// bytes to the backend and back, over connections of its own. Whatever the device does with its
// queues, every byte must come back, no segment may meet a worker that doesn't know its connection,
// and frames are handed over only where they must be. In real time, for the sanitizers as much as
// for the outcome. Usage: workers_sim [seed].
#include "dataplane/handover.h"
#include "dataplane/net/csum.h"
#include "dataplane/net/steer.h"
#include "lb/base/check.h"
#include "lb/base/rand.h"
#include "tests/sim/workers/host.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_WORKERS 3
#define N_CLIENTS 96
#define PORTS_EACH 512 // a client draws one of them
#define N_ROUNDS 40 // messages of one client
#define MESSAGE_LEN 600
#define RING_FRAMES 8192
#define VIP 0x0a000001
#define OUTSIDE 0x0a000002
#define LIMIT_S 50

enum device {
	DEVICE_HASHES, // as it says
	DEVICE_SPREADS, // by something that nobody knows, flow by flow
	DEVICE_SCATTERS, // each frame anywhere
	DEVICE_LIES, // it hashes, but not as it says
	N_DEVICES,
};
static const char *const device_names[] = {"hashes", "spreads", "scatters", "lies"};

// Two connections that are one for those at their ends.
struct relay {
	struct worker *worker;
	struct tcp_conn *ends[2]; // client, backend; NULL = gone
};

struct worker {
	struct world *world;
	uint32_t index;
	struct host host;
	struct handover_end *peers;
	struct spsc rx, tx; // its queue of the device
	uint32_t n_accepted;
	struct relay relays[N_CLIENTS];
	_Alignas(64) pthread_t thread;
};

struct client {
	struct world *world;
	struct tcp_conn *conn;
	uint32_t number, n_sent, n_received; // messages; bytes
	bool done;
};

struct world {
	enum device device;
	struct rand rand;
	struct steer steer;
	struct handover *handover;
	bool stop; // w: outside (relaxed), r: workers (relaxed)
	struct worker workers[N_WORKERS];
	struct host outside;
	struct spsc sent; // by the outside, to the device
	uint8_t key[40]; // by which it hashes
	struct client clients[N_CLIENTS];
	uint32_t n_done;
};

static void forward(struct tcp_conn *to, const uint8_t *data, size_t len, struct pool *chunks)
{
	CHECK(len <= tcp_conn_send_room(to));
	CHECK(buf_append(tcp_conn_sendq(to), chunks, data, len));
	tcp_conn_push(to);
}

static void relay_end(struct relay *r, struct tcp_conn *conn)
{
	int side = r->ends[1] == conn;
	struct tcp_conn *other = r->ends[!side];
	r->ends[side] = r->ends[!side] = NULL;
	if (other)
		tcp_conn_abort(other);
}

static size_t on_backend_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	const struct relay *r = user;
	forward(r->ends[0], data, len, &r->worker->host.chunks);
	return len;
}

static size_t on_client_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	const struct relay *r = user;
	forward(r->ends[1], data, len, &r->worker->host.chunks);
	return len;
}

static void on_nothing(struct tcp_conn *c, void *user)
{
}

static void on_eof(struct tcp_conn *c, void *user)
{
	relay_end(user, c);
	tcp_conn_abort(c);
}

static void on_relay_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	relay_end(user, c);
}

static const struct tcp_conn_ops backend_ops = {.on_established = on_nothing,
	.on_data = on_backend_data,
	.on_send_room = on_nothing,
	.on_eof = on_eof,
	.on_closed = on_relay_closed};
static const struct tcp_conn_ops client_ops = {.on_established = on_nothing,
	.on_data = on_client_data,
	.on_send_room = on_nothing,
	.on_eof = on_eof,
	.on_closed = on_relay_closed};

static const struct tcp_conn_ops *accept_client(void *arg, struct tcp_conn *c, void **ret_user)
{
	struct worker *w = arg;
	CHECK(steer_owner(&w->world->steer, tcp_conn_flow(c)) == w->index);
	CHECK(w->n_accepted < N_CLIENTS);
	struct relay *r = &w->relays[w->n_accepted++];
	struct tcp_flow flow = {
		.local = ip_from_v4(VIP), .remote = ip_from_v4(OUTSIDE), .remote_port = 9000};
	*r = (struct relay){.worker = w, .ends = {c}};
	r->ends[1] = tcp_connect(w->host.tcp, &flow, 20000000000, &backend_ops, r);
	CHECK(r->ends[1]);
	*ret_user = r;
	return &client_ops;
}

// The worker's loop, as dataplane/worker.c has it for mbufs.

static void drop(void *frame)
{
	free(frame);
}

static void give_copies(struct worker *w, const struct frame *f)
{
	for (uint32_t to = 0; to < N_WORKERS; to++) {
		if (to == w->index)
			continue;
		struct frame *copy = malloc(sizeof(*copy));
		CHECK(copy);
		*copy = *f;
		if (!handover_give(
			    w->peers, to, &(struct handover_item){.frame = copy, .is_copy = true}))
			free(copy);
	}
}

static void sort(struct worker *w, struct frame *f)
{
	struct steer *steer = &w->world->steer;
	bool by_device = steer_by_device(steer, 0);
	int to = steer_frame(steer, f->bytes, f->len, by_device);
	if (to == STEER_ALL)
		give_copies(w, f);
	if (to < 0 || (uint32_t)to == w->index) {
		net_input(w->host.net, 0, f->bytes, f->len);
		free(f);
		return;
	}
	if (by_device && steer_is_evidence(f->bytes, f->len))
		steer_distrust(steer, 0);
	if (!handover_give(w->peers, (uint32_t)to, &(struct handover_item){.frame = f}))
		free(f);
}

static bool receive(struct worker *w)
{
	struct frame *frames[32];
	struct handover_item items[HANDOVER_BATCH];
	uint32_t n = spsc_read_many(&w->rx, frames, 32);
	for (uint32_t i = 0; i < n; i++)
		sort(w, frames[i]);
	handover_flush(w->peers);
	uint32_t n_taken = handover_take(w->peers, items, HANDOVER_BATCH);
	for (uint32_t i = 0; i < n_taken; i++) {
		const struct frame *f = items[i].frame;
		if (items[i].is_copy)
			net_hear(w->host.net, 0, f->bytes, f->len);
		else
			net_input(w->host.net, 0, f->bytes, f->len);
		free(items[i].frame);
	}
	return n + n_taken > 0;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	while (!__atomic_load_n(&w->world->stop, __ATOMIC_RELAXED)) {
		host_turn_begins(&w->host);
		bool busy = receive(w);
		host_turn_ends(&w->host);
		if (!busy)
			sched_yield();
	}
	return NULL;
}

// Outside

static size_t on_echo_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	struct world *world = user;
	forward(c, data, len, &world->outside.chunks);
	return len;
}

static void on_echo_eof(struct tcp_conn *c, void *user)
{
	tcp_conn_shutdown(c);
}

static void on_echo_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
}

static const struct tcp_conn_ops echo_ops = {.on_established = on_nothing,
	.on_data = on_echo_data,
	.on_send_room = on_nothing,
	.on_eof = on_echo_eof,
	.on_closed = on_echo_closed};

static const struct tcp_conn_ops *accept_echo(void *arg, struct tcp_conn *c, void **ret_user)
{
	*ret_user = arg;
	return &echo_ops;
}

static uint8_t byte_of(const struct client *c, uint32_t at)
{
	return (uint8_t)(c->number * 31 + at * 7 + at / 256);
}

static void say(struct client *c)
{
	uint8_t message[MESSAGE_LEN];
	for (uint32_t i = 0; i < MESSAGE_LEN; i++)
		message[i] = byte_of(c, c->n_sent * MESSAGE_LEN + i);
	c->n_sent++;
	forward(c->conn, message, sizeof(message), &c->world->outside.chunks);
}

static size_t on_answer(struct tcp_conn *conn, void *user, const uint8_t *data, size_t len)
{
	struct client *c = user;
	for (size_t i = 0; i < len; i++)
		CHECK(data[i] == byte_of(c, c->n_received + (uint32_t)i));
	c->n_received += (uint32_t)len;
	if (c->n_received < c->n_sent * MESSAGE_LEN)
		return len;
	if (c->n_sent < N_ROUNDS) {
		say(c);
	} else if (!c->done) {
		c->done = true;
		c->world->n_done++;
	}
	return len;
}

static void on_connected(struct tcp_conn *conn, void *user)
{
	say(user);
}

static void on_client_end(struct tcp_conn *conn, void *user)
{
	CHECK(!"a client's connection ends by itself");
}

static void on_client_closed(struct tcp_conn *conn, void *user, enum tcp_close_reason reason)
{
	on_client_end(conn, user);
}

static const struct tcp_conn_ops asker_ops = {.on_established = on_connected,
	.on_data = on_answer,
	.on_send_room = on_nothing,
	.on_eof = on_client_end,
	.on_closed = on_client_closed};

// The device: frames of the outside go to a queue, those of all queues go outside.

// As its definition has it, bit by bit.
static uint32_t device_hash(const uint8_t *key, const uint8_t *in, size_t len)
{
	uint32_t hash = 0;
	for (size_t bit = 0; bit < 8 * len; bit++)
		if (in[bit / 8] >> (7 - bit % 8) & 1)
			for (size_t i = 0; i < 32; i++)
				hash ^= (uint32_t)(key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1)
				        << (31 - i);
	return hash;
}

static uint32_t queue_of(struct world *w, const struct frame *f)
{
	if (load16(f->bytes + 12) != 0x0800)
		return 0;
	if (w->device == DEVICE_SCATTERS)
		return (uint32_t)rand_below(&w->rand, N_WORKERS);
	if (w->device == DEVICE_SPREADS)
		return (f->bytes[35] + f->bytes[37]) % N_WORKERS;
	uint8_t in[12];
	memcpy(in, f->bytes + 26, 8);
	memcpy(in + 8, f->bytes + 34, 4);
	return device_hash(w->key, in, sizeof(in)) % 128 % N_WORKERS;
}

static void move_frames(struct world *w)
{
	struct frame *f;
	while (spsc_read(&w->sent, &f)) {
		struct worker *to = &w->workers[queue_of(w, f)];
		if (!spsc_write(&to->rx, &f))
			free(f);
	}
	for (uint32_t i = 0; i < N_WORKERS; i++)
		while (spsc_read(&w->workers[i].tx, &f)) {
			net_input(w->outside.net, 0, f->bytes, f->len);
			free(f);
		}
}

static void offer_device(struct world *w)
{
	uint16_t queues[128];
	for (uint32_t i = 0; i < 128; i++)
		queues[i] = (uint16_t)(i % N_WORKERS);
	struct steer_device d = {w->key, sizeof(w->key), queues, 128};
	if (w->device == DEVICE_HASHES || w->device == DEVICE_LIES)
		CHECK(steer_try_device(&w->steer, 0, &d));
	if (w->device == DEVICE_LIES)
		w->key[3] ^= 0x55;
}

static void begin(struct world *w, enum device device, uint64_t seed)
{
	*w = (struct world){.device = device};
	rand_init(&w->rand, seed);
	uint8_t key[STEER_KEY_MAX];
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)rand_u64(&w->rand);
	for (size_t i = 0; i < sizeof(w->key); i++)
		w->key[i] = (uint8_t)rand_u64(&w->rand);
	steer_init(&w->steer, N_WORKERS, key);
	offer_device(w);
	w->handover = handover_new(N_WORKERS, false);
	CHECK(w->handover);
}

static bool is_ours(void *ctx, const struct tcp_flow *flow)
{
	const struct worker *w = ctx;
	return steer_owner(&w->world->steer, flow) == w->index;
}

static void make_worker(struct world *world, uint32_t index)
{
	struct worker *w = &world->workers[index];
	w->world = world;
	w->index = index;
	w->peers = handover_end(world->handover, index);
	CHECK(spsc_init(&w->rx, sizeof(struct frame *), RING_FRAMES) == 0 &&
		spsc_init(&w->tx, sizeof(struct frame *), RING_FRAMES) == 0);
	struct host_conf conf = {.ip = VIP,
		.mac = 1,
		.out = &w->tx,
		.seed = rand_u64(&world->rand),
		.is_ours = is_ours,
		.is_ours_ctx = w};
	CHECK(host_init(&w->host, &conf));
	struct ip_addr vip = ip_from_v4(VIP);
	CHECK(tcp_listen(w->host.tcp, &vip, 80, accept_client, w) == 0);
	CHECK(pthread_create(&w->thread, NULL, run_worker, w) == 0);
}

static void make_outside(struct world *w)
{
	CHECK(spsc_init(&w->sent, sizeof(struct frame *), RING_FRAMES) == 0);
	struct host_conf conf = {
		.ip = OUTSIDE, .mac = 2, .out = &w->sent, .seed = rand_u64(&w->rand)};
	CHECK(host_init(&w->outside, &conf));
	struct ip_addr outside = ip_from_v4(OUTSIDE);
	CHECK(tcp_listen(w->outside.tcp, &outside, 9000, accept_echo, w) == 0);
	struct tcp_flow flow = {.local = outside, .remote = ip_from_v4(VIP), .remote_port = 80};
	for (uint32_t i = 0; i < N_CLIENTS; i++) {
		struct client *c = &w->clients[i];
		// Ports in a row differ in few bits, and by a linear hash with a key of chance all
		// of them can miss a worker; a crowd of clients has ports from everywhere.
		flow.local_port =
			(uint16_t)(8192 + PORTS_EACH * i + rand_below(&w->rand, PORTS_EACH));
		*c = (struct client){.world = w, .number = i};
		c->conn = tcp_connect(w->outside.tcp, &flow, 20000000000, &asker_ops, c);
		CHECK(c->conn);
	}
}

static void run(struct world *w)
{
	time_t end = time(NULL) + LIMIT_S;
	while (w->n_done < N_CLIENTS && time(NULL) < end) {
		host_turn_begins(&w->outside);
		move_frames(w);
		host_turn_ends(&w->outside);
		sched_yield();
	}
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < N_WORKERS; i++)
		CHECK(pthread_join(w->workers[i].thread, NULL) == 0);
}

static uint64_t sum_of(const struct world *w, const char *name)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		struct counter_set set = handover_counters(w->workers[i].peers);
		for (uint32_t k = 0; k < set.n; k++)
			if (strcmp(set.names[k], name) == 0)
				sum += counter_read(&set.values[k]);
	}
	return sum;
}

static void check(const struct world *w)
{
	CHECK(w->n_done == N_CLIENTS);
	uint64_t n_accepted = 0;
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		const struct worker *one = &w->workers[i];
		CHECK(one->n_accepted > N_CLIENTS / N_WORKERS / 4); // none is idle
		n_accepted += one->n_accepted;
		CHECK(host_count(&one->host, "drop_no_connection") == 0);
		CHECK(host_count(&one->host, "rsts_out") == 0);
	}
	CHECK(n_accepted == N_CLIENTS);
	CHECK(sum_of(w, "copies_given") > 0); // of ARP
	CHECK(steer_by_device(&w->steer, 0) == (w->device == DEVICE_HASHES));
	CHECK((sum_of(w, "given") == 0) == (w->device == DEVICE_HASHES));
	CHECK(sum_of(w, "ring_full") == 0);
}

static void drain(struct spsc *ring)
{
	struct frame *f;
	while (spsc_read(ring, &f))
		free(f);
	spsc_fini(ring);
}

static void end(struct world *w)
{
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		struct worker *one = &w->workers[i];
		host_fini(&one->host);
		drain(&one->rx);
		drain(&one->tx);
	}
	host_fini(&w->outside);
	drain(&w->sent);
	handover_free(w->handover, drop);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	static struct world world;
	printf("seed %" PRIu64 "\n", seed);
	for (int device = 0; device < N_DEVICES; device++) {
		begin(&world, device, seed + (uint64_t)device);
		for (uint32_t i = 0; i < N_WORKERS; i++)
			make_worker(&world, i);
		make_outside(&world);
		run(&world);
		printf("a device that %s: %u of %d clients served, %" PRIu64
		       " frames handed over, %" PRIu64 " copied\n",
			device_names[device], world.n_done, N_CLIENTS, sum_of(&world, "given"),
			sum_of(&world, "copies_given"));
		check(&world);
		end(&world);
	}
	return 0;
}
