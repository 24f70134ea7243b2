// SPDX-License-Identifier: Apache-2.0
// A worker without DPDK: the network layer, TCP, HTTP/2 and the proxy on a fake device, in virtual
// time, with a control thread in small. What it sends goes to a function; what it is to receive
// waits for its next turn.
// Thread: one.
#pragma once

#include "dataplane/net/net.h"
#include "dataplane/proxy/proxy.h"
#include "dataplane/vlan.h"
#include "tests/sim/proxy/books.h"
#include "tests/sim/proxy/control.h"

#include <stdbool.h>
#include <stdint.h>

// Everything is small, so that little input runs out of it.
#define PATH_CLIENTS 8
#define PATH_REQUESTS 48
#define PATH_QUEUED 32
#define PATH_CHUNKS 256
#define PATH_STREAMS 16 // of a connection
#define PATH_FRAMES 64 // that wait for a turn
#define PATH_FRAME_MAX 1600
#define PATH_VLAN 7
#define PATH_FRONTENDS 2 // the second one is pinned to an authority

// What an input may ask for at its beginning.
struct path_mode {
	bool clients_v6, backends_v6;
	bool vlan; // all frames have a tag on the wire
};

struct path_frame {
	uint32_t len;
	uint8_t *bytes; // of exactly this length, from malloc
};

struct path_worker {
	struct path_mode mode;
	struct wire wire; // time and random numbers; nobody is on it
	struct twheel *wheel;
	struct pool chunks;
	struct net *net;
	struct tcp_stack *tcp;
	struct lb_shared *shared;
	struct lb_link *link;
	struct proxy *proxy;
	struct control control;
	struct lb_frontend_conf frontends[PATH_FRONTENDS];
	struct path_frame in[PATH_FRAMES];
	uint32_t n_in;
	bool open; // a frame of the device is reserved
	size_t open_len;
	uint8_t out[VLAN_TAG + PATH_FRAME_MAX]; // behind the room for a tag
	// Of each frame that it sends.
	void (*on_frame)(void *ctx, const uint8_t *frame, size_t len);
	void *ctx;
};

extern const uint8_t path_mac[6];

void path_worker_init(struct path_worker *, struct path_mode);
// Checks that nothing is left: no client has a connection any more, and no endpoint is configured.
void path_worker_fini(struct path_worker *);
// Of the clients' family.
struct ip_addr path_frontend_address(const struct path_worker *, uint32_t frontend);
// Where backends are, for control_set_endpoints().
uint32_t path_backends(const struct path_worker *);
// Puts a frame as it is on the wire before the next turn. One too many is lost.
void path_worker_receive(struct path_worker *, const uint8_t *frame, size_t len);
// Turns until nothing waits; some at most.
void path_worker_settle(struct path_worker *);
// Time goes by, with a turn wherever a timer is due; at some of them, if they are many.
void path_worker_wait(struct path_worker *, uint64_t ns);
