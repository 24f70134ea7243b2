// SPDX-License-Identifier: Apache-2.0
// A stack with a hand-played peer: segments are written down relative to both initial sequence
// numbers (0 = the SYN, 1 = the first byte), time is virtual, the owner records what it hears.
// Thread: the test's.
#pragma once

#include "dataplane/tcp/tcp_internal.h"
#include "tests/support/check.h"

#include <string.h>

#define FIN TCP_FIN
#define SYN TCP_SYN
#define RST TCP_RST
#define PSH TCP_PSH
#define ACK TCP_ACK
#define ECE TCP_ECE
#define CWR TCP_CWR

#define PEER_ISS 5000u
#define RIG_MAX_OUT 4096
#define RIG_MTU 1500
#define MSS 1460u

// A segment from the peer.
struct in {
	uint32_t seq, ack; // relative; ack only counts with the ACK flag
	uint8_t flags;
	uint16_t wnd; // 0 = 65535
	bool zero_wnd;
	const char *data; // text, or len zero bytes
	size_t len;
	struct tcp_opts opts;
	uint16_t from, to; // ports; 0 = the rig's connection
	bool marked; // by a router
};

// A segment from the stack.
struct out {
	uint32_t seq, ack; // relative
	uint8_t flags;
	uint16_t wnd;
	size_t len;
	uint8_t data[2000];
	struct tcp_opts opts;
	uint64_t at_ns;
	struct tcp_flow flow;
	bool ect; // routers may mark it
};

struct rig {
	struct tcp_conf conf;
	struct twheel *wheel;
	struct pool chunks;
	struct tcp_stack *stack;
	struct tcp_flow flow; // of the connection that in() and out() mean
	uint32_t iss; // ours, learned from the first SYN out
	struct out out[RIG_MAX_OUT];
	unsigned n_out, n_seen;
	bool no_buffer; // reserve() fails
	bool ecn; // the IP layer can mark packets as ECT; for rig_restart()
	uint8_t room[2000];
	uint16_t mtu;
	// The owner.
	struct tcp_conn *conn; // NULL before accept and after on_closed
	uint8_t got[1 << 20];
	size_t n_got;
	size_t appetite; // bytes it will still consume
	unsigned n_established, n_room, n_eof, n_closed, n_unanswered;
	enum tcp_close_reason reason;
	bool refuse; // in accept
	bool abort_in_data, abort_in_room, resume_in_data, shutdown_in_eof;
};

extern struct rig rig;

int rig_setup(void **state); // cmocka's setup: default conf, listening on port 80
int rig_teardown(void **state); // checks that all memory came back
void rig_restart(void); // with rig.conf as changed by the test
void rig_use_ipv6(void); // restarts, with addresses of IPv6

#define IN(...) rig_in((struct in){__VA_ARGS__})
void rig_in(struct in);
// Flushes, and gives the next segment that the stack sent; fails when there is none.
struct out *rig_out(void);
#define NO_OUT() assert_null(rig_peek())
struct out *rig_peek(void); // NULL = none
void rig_skip(void); // forgets what was sent
// Moves time to this instant (rig time starts at 0), flushing at every millisecond on the way.
void rig_at_ms(uint64_t ms);
void rig_after_ms(uint64_t ms);
void rig_leap_ms(uint64_t ms); // in one step, as after a pause
uint64_t rig_ms(const struct out *);

// An open connection, SYN exchange skipped; window 65535 both ways, no options but MSS 1460 unless
// the peer's SYN has some.
void rig_connect(struct tcp_opts peer);
void rig_open(uint64_t timeout_ns); // the SYN is not sent yet
void rig_begin_connect(uint64_t timeout_ns); // the SYN is out and seen
void rig_accept(struct tcp_opts peer);
void rig_write(const char *text); // one turn's writing, not flushed
void rig_write_n(size_t n);
uint64_t rig_count(enum tcp_counter);
#define PLAIN ((struct tcp_opts){.has_mss = true, .mss = MSS})

#define CASE(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
