// SPDX-License-Identifier: Apache-2.0
// Our TCP against the kernel's, over a TUN device in a network namespace of its own, in real time,
// by IPv4 and by IPv6: echo both ways with half-close, with and without loss, with options switched
// off in the kernel, refusals, resets, closed windows and keep-alives. Exits 77 where namespaces,
// TUN or IPv6 are missing.
// Usage: tcp_linux_peer [seed [count]]: so many echoes over random networks, each of its own seed,
// odd ones by IPv6, in place of all that
// Thread: one; the kernel's side runs in a child process.
#include "dataplane/tcp/tcp_internal.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/support/faultlink/frame.h"
#include "tests/support/faultlink/line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEVICE "shunt0"
#define ECHO_PORT 7
#define STALL_PORT 8 // reads nothing for a while
#define ABORT_PORT 9 // resets at the first byte
#define PATIENCE_NS (60 * NS_PER_SECOND)
#define ETHERNET 14 // bytes in front of IP, for a line
#define IP4 20 // bytes of the headers
#define IP6 40
#define PROTOCOL 6 // TCP
#define EXIT_SKIP 77
#define ECT0 2 // of the two bits of RFC 3168 5
#define CE 3

// Of both families.
static const struct ip_addr kernel_ips[2] = {
	{{[10] = 0xff, 0xff, 10, 99, 0, 1}}, {{0xfd, 99, [15] = 1}}};
static const struct ip_addr our_ips[2] = {
	{{[10] = 0xff, 0xff, 10, 99, 0, 2}}, {{0xfd, 99, [15] = 2}}};

static struct {
	int tun;
	unsigned v6; // 1 = connections are made by IPv6
	struct rand rand;
	unsigned loss; // of 1000 packets, each way
	unsigned mark; // likewise, of those that may be marked
	struct twheel *wheel;
	struct pool chunks;
	struct tcp_stack *stack;
	// What delays and harms packets to the kernel and from it; NULL = nothing does.
	struct line *lines[2];
	uint64_t lines_ns; // when they began
	uint8_t out[2048];
	uint16_t ip_id;
	// Our client connection, if the case has one.
	struct tcp_conn *client;
	uint64_t to_send, sent, received;
	bool echo_wrong, closed;
	enum tcp_close_reason reason;
} rig;

static void tell(const struct tcp_conn *c)
{
	fprintf(stderr,
		"connection: rare %" PRIx64 ", got %u, kept %zu, window %u; una %u, nxt %u, max %u,"
		" queued %zu, lost %u, reported %u, cwnd %u, mss %u, window %u, backoff %u, RTO"
		" %" PRIu64 " ms, deadlines (ms from now)",
		c->rare, c->rcv_nxt - c->irs, c->recvq.len, c->rcv_adv - c->rcv_nxt,
		c->snd_una - c->iss, c->snd_nxt - c->iss, c->snd_max - c->iss, c->sendq.len,
		c->lost_bytes, c->sacked_bytes, c->cc.cwnd, c->mss, c->snd_wnd, c->n_backoff,
		c->rto_ns / NS_PER_MS);
	for (unsigned i = 0; i < TCP_N_TIMERS; i++)
		fprintf(stderr, " %" PRId64,
			c->deadlines[i] ? (int64_t)(c->deadlines[i] - tcp_now(rig.stack)) /
						  (int64_t)NS_PER_MS
					: 0);
	fputc('\n', stderr);
}

static _Noreturn void fail(const char *what)
{
	static const char *const names[] = {TCP_COUNTERS(COUNTER_NAME)};
	fprintf(stderr, "tcp_linux_peer: %s\n", what);
	for (unsigned i = 0; rig.stack && i < TCP_N_COUNTERS; i++)
		if (rig.stack->counters[i])
			fprintf(stderr, "%26s %" PRIu64 "\n", names[i], rig.stack->counters[i]);
	for (uint32_t i = 0; rig.stack && i < pool_n_seen(&rig.stack->conns); i++)
		tell(pool_at(&rig.stack->conns, i));
	exit(1);
}

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)((i * 0x9e3779b97f4a7c15) >> 56);
}

// The network.

static bool lost(void)
{
	return rand_below(&rig.rand, 1000) < rig.loss;
}

static uint16_t ip_sum(const uint8_t *p)
{
	uint32_t sum = 0;
	for (unsigned i = 0; i < 20; i += 2)
		sum += get16(p + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

static void write_device(const uint8_t *packet, size_t len)
{
	unsigned version = packet[0] >> 4;
	bool is_ip = version == 4 || version == 6; // else a line changed it, and the device refuses
	if (is_ip && write(rig.tun, packet, len) < 0 && errno != EAGAIN && errno != ENOBUFS)
		fail("cannot write to the device");
}

// Into a line, which knows frames.
static void put(unsigned way, const uint8_t *packet, size_t len)
{
	uint8_t frame[ETHERNET + 2048] = {0};
	put16(frame + 12, packet[0] >> 4 == 4 ? 0x0800 : 0x86dd);
	memcpy(frame + ETHERNET, packet, len);
	(void)!line_put(rig.lines[way], frame, ETHERNET + len, clock_ns() - rig.lines_ns);
}

static void *io_reserve(void *ctx, const struct tcp_flow *flow, size_t len)
{
	return len + IP6 <= sizeof(rig.out) ? rig.out + IP6 : NULL;
}

// What a router does that would else drop it (RFC 3168 5).
static uint8_t marked(uint8_t ecn)
{
	return ecn == ECT0 && rand_below(&rig.rand, 1000) < rig.mark ? CE : ecn;
}

// The header in front of what is in rig.out; returns where it begins.
static uint8_t *put_ip4(const struct tcp_flow *flow, uint8_t ecn, size_t len)
{
	uint8_t *p = rig.out + IP6 - IP4;
	memset(p, 0, IP4);
	p[0] = 0x45;
	p[1] = ecn;
	put16(p + 2, (uint16_t)(IP4 + len));
	put16(p + 4, rig.ip_id++);
	p[8] = 64;
	p[9] = PROTOCOL;
	put32(p + 12, ip_to_v4(&flow->local));
	put32(p + 16, ip_to_v4(&flow->remote));
	put16(p + 10, ip_sum(p));
	return p;
}

static uint8_t *put_ip6(const struct tcp_flow *flow, uint8_t ecn, size_t len)
{
	uint8_t *p = rig.out;
	put32(p, 6u << 28 | (uint32_t)ecn << 20);
	put16(p + 4, (uint16_t)len);
	p[6] = PROTOCOL;
	p[7] = 64;
	memcpy(p + 8, flow->local.b, 16);
	memcpy(p + 24, flow->remote.b, 16);
	return p;
}

static void emit(const struct tcp_flow *flow, uint8_t ecn, size_t len)
{
	uint8_t *p = (ip_is_v4(&flow->local) ? put_ip4 : put_ip6)(flow, marked(ecn), len);
	size_t n = (size_t)(rig.out + IP6 - p) + len;
	if (rig.lines[0])
		put(0, p, n);
	else if (!lost())
		write_device(p, n);
}

static void io_emit(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	emit(flow, 0, len);
}

static void io_emit_ect(void *ctx, const struct tcp_flow *flow, void *segment, size_t len)
{
	emit(flow, ECT0, len);
}

static uint16_t io_mtu(void *ctx, const struct tcp_flow *flow)
{
	return 1500;
}

// A packet from the kernel, IP included, to our stack.
static void input(const uint8_t *p, size_t n)
{
	struct tcp_flow flow = {0};
	size_t header_len = p[0] == 0x45 ? IP4 : IP6, len;
	uint8_t ecn;
	if (n < header_len + TCP_HEADER_LEN)
		return;
	if (p[0] == 0x45 && p[9] == PROTOCOL && !ip_sum(p)) {
		flow.local = ip_from_v4(get32(p + 16));
		flow.remote = ip_from_v4(get32(p + 12));
		len = get16(p + 2);
		ecn = p[1] & 3;
	} else if (p[0] >> 4 == 6 && p[6] == PROTOCOL) {
		memcpy(flow.local.b, p + 24, 16);
		memcpy(flow.remote.b, p + 8, 16);
		len = IP6 + (size_t)get16(p + 4);
		ecn = p[1] >> 4 & 3;
	} else {
		return;
	}
	if (len < header_len || len > n)
		return;
	bool is_marked = marked(ecn) == CE;
	(is_marked ? tcp_stack_input_marked : tcp_stack_input)(
		rig.stack, &flow, p + header_len, len - header_len);
}

static void read_device(void)
{
	uint8_t p[2048];
	for (ssize_t n; (n = read(rig.tun, p, sizeof(p))) > 0;) {
		if (rig.lines[1])
			put(1, p, (size_t)n);
		else if (!lost())
			input(p, (size_t)n);
	}
}

// What has come out of both lines.
static void take(void)
{
	uint8_t frame[FRAME_MAX];
	uint64_t now = clock_ns() - rig.lines_ns;
	for (size_t n; rig.lines[0] && (n = line_take(rig.lines[0], now, frame));)
		write_device(frame + ETHERNET, n - ETHERNET);
	for (size_t n; rig.lines[1] && (n = line_take(rig.lines[1], now, frame));)
		input(frame + ETHERNET, n - ETHERNET);
}

// Our owners: an echo server that closes when the peer does, and one client.

static void on_established(struct tcp_conn *c, void *user)
{
}

static size_t echo_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	size_t room = tcp_conn_send_room(c);
	size_t n = len < room ? len : room;
	if (!buf_append(tcp_conn_sendq(c), &rig.chunks, data, n))
		return 0;
	tcp_conn_push(c);
	return n;
}

static void echo_room(struct tcp_conn *c, void *user)
{
	tcp_conn_resume(c);
}

static void echo_eof(struct tcp_conn *c, void *user)
{
	tcp_conn_shutdown(c);
}

static void echo_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	rig.closed = true;
	rig.reason = reason;
}

static const struct tcp_conn_ops echo_ops = {
	on_established, echo_data, echo_room, echo_eof, echo_closed};

static size_t abort_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	tcp_conn_abort(c);
	return len;
}

static const struct tcp_conn_ops abort_ops = {
	on_established, abort_data, echo_room, echo_eof, echo_closed};

static const struct tcp_conn_ops *on_accept(void *arg, struct tcp_conn *c, void **ret_user)
{
	return arg;
}

static void client_write(struct tcp_conn *c)
{
	uint8_t piece[4000];
	while (rig.sent < rig.to_send) {
		size_t n = tcp_conn_send_room(c);
		n = n < sizeof(piece) ? n : sizeof(piece);
		n = n < rig.to_send - rig.sent ? n : (size_t)(rig.to_send - rig.sent);
		for (size_t i = 0; i < n; i++)
			piece[i] = byte_at(rig.sent + i);
		if (!n || !buf_append(tcp_conn_sendq(c), &rig.chunks, piece, n))
			break;
		rig.sent += n;
	}
	tcp_conn_push(c);
	if (rig.sent == rig.to_send)
		tcp_conn_shutdown(c);
}

static void client_established(struct tcp_conn *c, void *user)
{
	client_write(c);
}

static size_t client_data(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		rig.echo_wrong |= data[i] != byte_at(rig.received + i);
	rig.received += len;
	return len;
}

static void client_room(struct tcp_conn *c, void *user)
{
	if (rig.sent < rig.to_send)
		client_write(c);
}

static void client_eof(struct tcp_conn *c, void *user)
{
}

static void client_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	rig.client = NULL;
	rig.closed = true;
	rig.reason = reason;
}

static const struct tcp_conn_ops client_ops = {
	client_established, client_data, client_room, client_eof, client_closed};

// One turn of a worker's loop.
static void turn(void)
{
	uint64_t now = clock_ns(), next = twheel_next_ns(rig.wheel);
	for (unsigned i = 0; i < 2 && rig.lines[i]; i++) {
		uint64_t out = line_next_ns(rig.lines[i]);
		if (out != UINT64_MAX && out + rig.lines_ns < next)
			next = out + rig.lines_ns;
	}
	int wait_ms = next <= now                   ? 0
	              : next - now > 20 * NS_PER_MS ? 20
	                                            : (int)((next - now) / NS_PER_MS);
	struct pollfd poll_tun = {.fd = rig.tun, .events = POLLIN};
	(void)poll(&poll_tun, 1, wait_ms);
	twheel_advance(rig.wheel, clock_ns());
	read_device();
	take();
	tcp_stack_flush(rig.stack);
}

// Runs until the child is through and our connections are closed.
static void run(pid_t child)
{
	uint64_t end = clock_ns() + PATIENCE_NS;
	int status = 0;
	while (child || tcp_stack_n_conns(rig.stack)) {
		turn();
		if (child && waitpid(child, &status, WNOHANG) == child) {
			if (status)
				fail("the kernel's side saw a failure");
			child = 0;
		}
		if (clock_ns() > end)
			fail("took too long");
	}
}

// The kernel's side, in the child: blocking sockets.

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union address address(const struct ip_addr ips[2], uint16_t port)
{
	union address a = {0};
	if (rig.v6) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
		memcpy(&a.v6.sin6_addr, ips[1].b, 16);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
		memcpy(&a.v4.sin_addr, ips[0].b + 12, 4);
	}
	return a;
}

static int dial(uint16_t port)
{
	union address to = address(our_ips, port);
	int fd = socket(to.any.sa_family, SOCK_STREAM, 0);
	if (connect(fd, &to.any, sizeof(to)))
		return -errno;
	return fd;
}

static int serve(uint16_t port)
{
	union address at = address(kernel_ips, port);
	int fd = socket(at.any.sa_family, SOCK_STREAM, 0), one = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &at.any, sizeof(at)) || listen(fd, 8))
		fail("cannot listen in the kernel");
	return fd;
}

// Writes and reads at once, closes its half after the last byte.
static int echo_through(int fd, uint64_t total)
{
	uint64_t sent = 0, received = 0;
	uint8_t piece[8192];
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN | (sent < total ? POLLOUT : 0)};
		poll(&p, 1, -1);
		size_t n = total - sent < sizeof(piece) ? (size_t)(total - sent) : sizeof(piece);
		for (size_t i = 0; i < n; i++)
			piece[i] = byte_at(sent + i);
		ssize_t done = n ? write(fd, piece, n) : 0;
		if (done > 0 && (sent += (uint64_t)done) == total)
			shutdown(fd, SHUT_WR);
		done = read(fd, piece, sizeof(piece));
		if (done == 0)
			return received == total ? 0 : 2;
		if (done < 0 && errno != EAGAIN)
			return 3;
		for (ssize_t i = 0; i < done; i++)
			if (piece[i] != byte_at(received + (uint64_t)i))
				return 4;
		received += done > 0 ? (uint64_t)done : 0;
	}
}

static int echo_once(int listener, unsigned stall_ms)
{
	uint8_t piece[8192];
	int fd = accept(listener, NULL, NULL);
	usleep(stall_ms * 1000);
	for (ssize_t n; (n = read(fd, piece, sizeof(piece))) != 0;) {
		if (n < 0)
			return 5;
		for (ssize_t at = 0, done; at < n; at += done)
			if ((done = write(fd, piece + at, (size_t)(n - at))) < 0)
				return 6;
	}
	close(fd);
	return 0;
}

// The cases.

static pid_t start(void)
{
	fflush(stdout);
	rig.closed = rig.echo_wrong = false;
	rig.sent = rig.received = rig.to_send = 0;
	pid_t child = fork();
	if (!child) // it may wait for bytes that a test that failed no longer sends
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

static void kernel_dials(const char *name, uint64_t bytes, unsigned loss)
{
	uint64_t begin = clock_ns();
	rig.loss = loss;
	pid_t child = start();
	if (!child)
		_exit(echo_through(dial(ECHO_PORT), bytes));
	run(child);
	if (rig.reason != TCP_CLOSE_DONE)
		fail("closed for another reason");
	printf("%s: ok, %" PRIu64 " ms\n", name, (clock_ns() - begin) / NS_PER_MS);
}

static void we_dial_port(uint16_t port, uint64_t bytes)
{
	struct tcp_flow flow = {our_ips[rig.v6], kernel_ips[rig.v6], 0, port};
	rig.to_send = bytes;
	rig.client = tcp_connect(rig.stack, &flow, 20 * NS_PER_SECOND, &client_ops, NULL);
	if (!rig.client)
		fail("cannot connect");
}

static void we_dial(const char *name, uint64_t bytes, unsigned loss, unsigned stall_ms)
{
	uint64_t begin = clock_ns();
	rig.loss = loss;
	int listener = serve(ECHO_PORT);
	pid_t child = start();
	if (!child)
		_exit(echo_once(listener, stall_ms));
	we_dial_port(ECHO_PORT, bytes);
	run(child);
	close(listener);
	if (rig.reason != TCP_CLOSE_DONE || rig.received != bytes || rig.echo_wrong)
		fail("our client did not get its echo");
	printf("%s: ok, %" PRIu64 " ms\n", name, (clock_ns() - begin) / NS_PER_MS);
}

static void refusals(void)
{
	rig.loss = 0;
	pid_t child = start();
	if (!child)
		_exit(dial(81) == -ECONNREFUSED ? 0 : 7);
	run(child);
	we_dial_port(81, 1);
	run(0);
	if (rig.reason != TCP_CLOSE_REFUSED)
		fail("not refused");
	printf("refusals: ok\n");
}

static void resets(void)
{
	pid_t child = start();
	if (!child) { // ours resets theirs
		char c;
		int fd = dial(ABORT_PORT);
		(void)!write(fd, "x", 1);
		_exit(read(fd, &c, 1) == -1 && errno == ECONNRESET ? 0 : 8);
	}
	run(child);
	child = start();
	if (!child) { // theirs resets ours
		struct linger now = {1, 0};
		int fd = dial(ECHO_PORT);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		usleep(50000);
		close(fd);
		_exit(0);
	}
	run(child);
	if (rig.reason != TCP_CLOSE_RESET)
		fail("not reset");
	printf("resets: ok\n");
}

static void keepalive(void)
{
	int listener = serve(STALL_PORT);
	pid_t child = start();
	if (!child) {
		char c;
		int fd = accept(listener, NULL, NULL);
		_exit(read(fd, &c, 1) == 0 ? 0 : 9); // until our FIN
	}
	uint64_t before = rig.stack->counters[TCP_keepalives];
	struct tcp_flow flow = {our_ips[rig.v6], kernel_ips[rig.v6], 0, STALL_PORT};
	rig.client = tcp_connect(rig.stack, &flow, 20 * NS_PER_SECOND, &echo_ops, NULL);
	tcp_conn_set_user_timeout(rig.client, 700 * NS_PER_MS);
	tcp_conn_set_keepalive(rig.client, 300 * NS_PER_MS);
	for (uint64_t end = clock_ns() + 2 * NS_PER_SECOND; clock_ns() < end;)
		turn();
	if (rig.closed || rig.stack->counters[TCP_keepalives] - before < 4)
		fail("keep-alives were not answered");
	tcp_conn_shutdown(rig.client);
	run(child);
	close(listener);
	printf("keepalive: ok\n");
}

static void set_kernel(const char *name, const char *value)
{
	char path[100];
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail("cannot set the kernel's options");
	close(fd);
}

static void old_kernel(void)
{
	static const char *const names[] = {"tcp_sack", "tcp_timestamps", "tcp_window_scaling"};
	for (unsigned i = 0; i < 3; i++)
		set_kernel(names[i], "0");
	kernel_dials("kernel dials, no options, 2% lost", 300000, 20);
	we_dial("we dial, no options, 2% lost", 300000, 20, 0);
	for (unsigned i = 0; i < 3; i++)
		set_kernel(names[i], "1");
}

// TCP-157 to TCP-161: marks in place of losses, which nothing is sent again for.
static void congestion(void)
{
	const uint64_t *n = rig.stack->counters;
	set_kernel("tcp_ecn", "1");
	rig.mark = 20;
	uint64_t resent = n[TCP_retransmits], on = n[TCP_ecn_on];
	uint64_t marks = n[TCP_ecn_marks_in], reductions = n[TCP_ecn_reductions];
	kernel_dials("kernel dials, 2% marked", 2000000, 0);
	we_dial("we dial, 2% marked", 2000000, 0, 0);
	rig.mark = 0;
	if (n[TCP_ecn_on] - on < 2 || n[TCP_ecn_marks_in] == marks ||
		n[TCP_ecn_reductions] == reductions)
		fail("marks were not heard of");
	if (n[TCP_retransmits] - resent > 5)
		fail("marks caused repetitions");
}

static struct line *line_of(const char *words, uint64_t seed, unsigned way)
{
	struct faults faults = {0};
	const char *wrong;
	if (faults_parse(&faults, words, &wrong))
		fail(wrong);
	return line_new(&faults, seed, way);
}

static unsigned below(unsigned n)
{
	return (unsigned)rand_below(&rig.rand, n);
}

// An echo of a random length, dialled by either side, over a random network, to a kernel that knows
// each option or not.
static void rough(uint64_t seed)
{
	static const char *const options[] = {
		"tcp_sack", "tcp_timestamps", "tcp_window_scaling", "tcp_ecn"};
	char words[200], name[250];
	rand_init(&rig.rand, seed);
	rig.v6 = seed & 1;
	int n = snprintf(words, sizeof(words), "delay=%ums jitter=%ums", below(15), below(4));
	static const char *const faults[] = {" loss=%u%%", " duplicate=%u%%", " corrupt=%u%%",
		" reorder=%u%%:8ms", " burst=1%%:%u%%"};
	static const unsigned most[] = {3, 3, 2, 10, 40};
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (below(5) < 2)
			n += snprintf(words + n, sizeof(words) - (size_t)n, faults[i],
				1 + below(most[i]) + (i == 4 ? 59 : 0));
	if (!below(3))
		snprintf(words + n, sizeof(words) - (size_t)n, " rate=%umbit queue=%u",
			5 + below(100), 10 + below(100));
	rig.mark = below(2) ? below(30) : 0;
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		set_kernel(options[i], below(4) ? "1" : "0");
	rig.lines_ns = clock_ns();
	for (unsigned i = 0; i < 2; i++)
		rig.lines[i] = line_of(words, seed, i);
	uint64_t bytes = 1 + rand_below(&rig.rand, 400000);
	snprintf(name, sizeof(name), "seed %" PRIu64 ", IPv%u, %" PRIu64 " bytes, %s", seed,
		rig.v6 ? 6 : 4, bytes, words);
	if (below(2))
		kernel_dials(name, bytes, 0);
	else
		we_dial(name, bytes, 0, below(2) ? below(500) : 0);
	for (unsigned i = 0; i < 2; i++) {
		line_free(rig.lines[i]);
		rig.lines[i] = NULL;
	}
}

static void require(bool met)
{
	if (!met)
		exit(EXIT_SKIP);
}

static void make_device(void)
{
	struct ifreq r = {0};
	union address at = address(kernel_ips, 0);
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	rig.tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	strcpy(r.ifr_name, DEVICE);
	r.ifr_flags = IFF_TUN | IFF_NO_PI;
	require(rig.tun >= 0 && !ioctl(rig.tun, TUNSETIFF, &r));
	memcpy(&r.ifr_addr, &at.any, sizeof(at.any));
	require(!ioctl(s, SIOCSIFADDR, &r));
	at.v4.sin_addr.s_addr = htonl(0xffffff00);
	memcpy(&r.ifr_netmask, &at.any, sizeof(at.any));
	require(!ioctl(s, SIOCSIFNETMASK, &r));
	r.ifr_flags = IFF_UP | IFF_RUNNING | IFF_NOARP;
	require(!ioctl(s, SIOCSIFFLAGS, &r));
	close(s);
}

// The address is there at once, and may be used a little later.
static void add_ipv6(void)
{
	struct in6_ifreq r = {.ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex(DEVICE)};
	memcpy(&r.ifr6_addr, kernel_ips[1].b, sizeof(r.ifr6_addr));
	int s = socket(AF_INET6, SOCK_DGRAM, 0);
	require(s >= 0 && !ioctl(s, SIOCSIFADDR, &r));
	rig.v6 = 1;
	union address at = address(kernel_ips, 0);
	unsigned ms = 0;
	while (bind(s, &at.any, sizeof(at)) && ms++ < 1000)
		usleep(1000);
	require(ms < 1000);
	close(s);
}

static void each(void)
{
	kernel_dials("kernel dials", 8000000, 0);
	kernel_dials("kernel dials, 2% lost", 1000000, 20);
	we_dial("we dial", 8000000, 0, 0);
	we_dial("we dial, 2% lost", 1000000, 20, 0);
	we_dial("we dial, the kernel stalls", 3000000, 0, 1000);
	old_kernel();
	congestion();
	refusals();
	resets();
	keepalive();
}

static void listen_to(uint16_t port, const struct tcp_conn_ops *ops)
{
	for (unsigned i = 0; i < 2; i++) // on_accept() only reads what it passes on
		if (tcp_listen(rig.stack, &our_ips[i], port, on_accept, (void *)(uintptr_t)ops))
			fail("out of memory");
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return EXIT_SKIP;
	make_device();
	add_ipv6();
	printf("seed %" PRIu64 "\n", seed);
	rand_init(&rig.rand, seed);
	struct tcp_conf conf = {.max_conns = 64,
		.max_half_open = 64,
		.max_time_wait = 64,
		.send_limit = 1 << 18,
		.recv_window = 1 << 18,
		.window_max = 1 << 22,
		.secret = "linux",
		.seed = seed};
	struct tcp_io io = {io_reserve, io_emit, io_mtu, NULL, io_emit_ect};
	rig.wheel = twheel_new(clock_ns());
	if (!rig.wheel || buf_pool_init(&rig.chunks, 4096))
		fail("out of memory");
	rig.stack = tcp_stack_new(&conf, &io, &rig.chunks, rig.wheel);
	if (!rig.stack)
		fail("out of memory");
	listen_to(ECHO_PORT, &echo_ops);
	listen_to(ABORT_PORT, &abort_ops);
	for (uint64_t i = 0; i < count; i++)
		rough(seed + i);
	for (rig.v6 = 0; rig.v6 < 2 && !count; rig.v6++) {
		printf("IPv%u\n", rig.v6 ? 6 : 4);
		each();
	}
	if (rig.chunks.n_used || rig.stack->conns.n_used ||
		(!count && rig.stack->counters[TCP_drop_checksum]))
		fail("something was not given back");
	tcp_stack_free(rig.stack);
	twheel_free(rig.wheel);
	pool_fini(&rig.chunks);
	return 0;
}
