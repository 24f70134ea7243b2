// SPDX-License-Identifier: Apache-2.0
// A wire with faults between two interfaces of one namespace: what one receives the other sends,
// late, changed, in another order or not at all, by a seed. SIGTERM or SIGINT ends it; then it
// prints what it did as JSON. Offloads of all four ends must be off, or frames are none.
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "tests/support/faultlink/frame.h"
#include "tests/support/faultlink/line.h"

#include <argp.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64 // frames read of one side before the other one has its turn
#define SOCKET_BUFFER (64 << 20)

enum { KEY_FORTH = 'f', KEY_BACK = 'b', KEY_BOTH = 'a', KEY_SEED = 's' };

// Side i's frames go over line i to the other one.
struct faultlink {
	const char *interfaces[2];
	struct faults faults[2];
	uint64_t seed;
	int sockets[2];
	struct line *lines[2];
	uint64_t began_ns;
};

static const char *const names[2] = {"forth", "back"};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

_Noreturn static void fail(const char *what, const char *which)
{
	fprintf(stderr, "faultlink: %s %s: %s\n", what, which, strerror(errno));
	exit(1);
}

static void parse_faults(struct faults *f, const char *text, struct argp_state *state)
{
	const char *word;
	if (faults_parse(f, text, &word) != 0)
		argp_error(state, "no fault: %s", word);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct faultlink *l = state->input;
	char *end;
	switch (key) {
	case KEY_SEED:
		l->seed = strtoull(arg, &end, 10);
		if (*end || end == arg)
			argp_error(state, "no seed: %s", arg);
		return 0;
	case KEY_FORTH:
	case KEY_BOTH:
		parse_faults(&l->faults[0], arg, state);
		if (key == KEY_FORTH)
			return 0;
		[[fallthrough]];
	case KEY_BACK:
		parse_faults(&l->faults[1], arg, state);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num >= 2)
			return ARGP_ERR_UNKNOWN;
		l->interfaces[state->arg_num] = arg;
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int open_side(const char *interface)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htobe16(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	int on = 1, size = SOCKET_BUFFER;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct packet_mreq promiscuous = {
		.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
	if (!address.sll_ifindex || fd < 0 ||
		setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
		setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous,
			sizeof(promiscuous)) != 0 ||
		setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0 ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail("interface", interface);
	return fd;
}

static void receive(struct faultlink *l, unsigned side)
{
	static uint8_t frame[FRAME_MAX], answer[FRAME_MAX];
	for (unsigned n = 0; n < BATCH; n++) {
		ssize_t len = recv(l->sockets[side], frame, sizeof(frame), MSG_TRUNC);
		if (len < 0)
			return;
		if ((size_t)len > sizeof(frame)) {
			line_count(l->lines[side], LINE_missed, 1);
			continue;
		}
		uint64_t now = now_ns() - l->began_ns;
		if (line_put(l->lines[side], frame, (size_t)len, now))
			continue;
		size_t made =
			frame_too_big(frame, (size_t)len, (uint16_t)l->faults[side].mtu, answer);
		if (made)
			line_put_own(l->lines[!side], answer, made, now);
	}
}

static void send_due(struct faultlink *l, unsigned side)
{
	static uint8_t frame[FRAME_MAX];
	size_t len;
	while ((len = line_take(l->lines[side], now_ns() - l->began_ns, frame)) != 0) {
		if (send(l->sockets[!side], frame, len, 0) != (ssize_t)len)
			line_count(l->lines[side], LINE_missed, 1);
	}
}

static struct timespec until_next(const struct faultlink *l)
{
	uint64_t a = line_next_ns(l->lines[0]), b = line_next_ns(l->lines[1]);
	uint64_t next = a < b ? a : b, now = now_ns() - l->began_ns;
	uint64_t wait = next == UINT64_MAX ? NS_PER_SECOND : next > now ? next - now : 0;
	return (struct timespec){
		.tv_sec = (time_t)(wait / NS_PER_SECOND), .tv_nsec = (long)(wait % NS_PER_SECOND)};
}

static void run(struct faultlink *l)
{
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	struct pollfd polled[] = {
		{.fd = l->sockets[0], .events = POLLIN},
		{.fd = l->sockets[1], .events = POLLIN},
		{.fd = signalfd(-1, &ends, SFD_CLOEXEC), .events = POLLIN},
	};
	while (!polled[2].revents) {
		struct timespec wait = until_next(l);
		if (ppoll(polled, 3, &wait, NULL) < 0 && errno != EINTR)
			fail("ppoll", "");
		for (unsigned side = 0; side < 2; side++) {
			receive(l, side);
			send_due(l, side);
		}
	}
}

static void print_counters(const struct faultlink *l)
{
#define X(name) #name,
	static const char *const counters[] = {LINE_COUNTERS(X)};
#undef X
	for (unsigned side = 0; side < 2; side++) {
		printf("%s\"%s\": {", side ? ", " : "{", names[side]);
		for (unsigned i = 0; i < LINE_N_COUNTERS; i++)
			printf("%s\"%s\": %lu", i ? ", " : "", counters[i],
				line_counter(l->lines[side], (enum line_counter)i));
		printf("}");
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"seed", KEY_SEED, "N", 0, "Of all that is left to chance", 0},
		{"forth", KEY_FORTH, "FAULTS", 0, "From A to B: loss=1% delay=20ms …", 0},
		{"back", KEY_BACK, "FAULTS", 0, "From B to A", 0},
		{"both", KEY_BOTH, "FAULTS", 0, "Both", 0},
		{0},
	};
	static const struct argp argp = {
		options, parse_option, "A B", "A wire with faults between two interfaces.", 0};
	static struct faultlink l;
	argp_parse(&argp, argc, argv, 0, NULL, &l);
	prctl(PR_SET_TIMERSLACK, 1);
	for (unsigned side = 0; side < 2; side++) {
		l.sockets[side] = open_side(l.interfaces[side]);
		l.lines[side] = line_new(&l.faults[side], l.seed, side);
	}
	l.began_ns = now_ns();
	printf("relaying\n");
	fflush(stdout);
	run(&l);
	for (unsigned side = 0; side < 2; side++) {
		struct tpacket_stats missed;
		socklen_t len = sizeof(missed);
		if (getsockopt(l.sockets[side], SOL_PACKET, PACKET_STATISTICS, &missed, &len) == 0)
			line_count(l.lines[side], LINE_missed, missed.tp_drops);
	}
	print_counters(&l);
	for (unsigned side = 0; side < 2; side++)
		line_free(l.lines[side]);
	return 0;
}
