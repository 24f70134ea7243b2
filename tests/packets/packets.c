// SPDX-License-Identifier: Apache-2.0
// Runs packet scripts: what a peer sends to our TCP and what must come back, when, in virtual time.
// docs/packet-scripts.md has the language; a script is a test, its first line the test's name.
#include "tests/packets/notation.h"
#include "tests/unit/tcp/rig.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_MS 1 // of the wheel: a timer fires up to so much later
#define MAX_SCRIPTS 512

struct script {
	char *path, *text, *name; // owned
};

static struct {
	const char *path;
	unsigned line;
	uint64_t now_ns; // the script's time
	bool has_ts_base;
	uint32_t ts_base; // what our clock of timestamps showed when the script began
} run;

#define BAD(...)                                                                                   \
	do {                                                                                       \
		print_error("%s:%u: ", run.path, run.line);                                        \
		fail_msg(__VA_ARGS__);                                                             \
	} while (0)

static struct notation notation_of(const struct out *o)
{
	struct notation n = {
		.ecn = o->ect ? NOTATION_ECT0 : NOTATION_NOECN,
		.flags = o->flags,
		.has_ack = o->flags & ACK,
		.has_wnd = true,
		.has_opts = true,
		.seq = o->seq,
		.len = (uint32_t)o->len,
		.ack = o->ack,
		.wnd = o->wnd,
		.opts = o->opts,
	};
	for (unsigned i = 0; i < n.opts.n_sack; i++) {
		n.opts.sack[i].start -= PEER_ISS;
		n.opts.sack[i].end -= PEER_ISS;
	}
	if (n.opts.has_ts)
		n.opts.ts_val -= run.ts_base;
	return n;
}

// Our timestamps are written as milliseconds of the script's time.
static void note_timestamp(const struct out *o)
{
	if (!o->opts.has_ts)
		return;
	if (!run.has_ts_base)
		run.ts_base = o->opts.ts_val - (uint32_t)rig_ms(o);
	run.has_ts_base = true;
}

static const char *told(const struct notation *n, uint64_t at_ms)
{
	static char text[256];
	int len = snprintf(text, sizeof(text), "at %" PRIu64 " ms: ", at_ms);
	notation_print(n, text + len, sizeof(text) - (size_t)len);
	return text;
}

static void expect_silence(void)
{
	struct out *o = rig_peek();
	if (!o)
		return;
	note_timestamp(o);
	struct notation sent = notation_of(o);
	BAD("nothing was to be sent, but was %s", told(&sent, rig_ms(o)));
}

static struct notation parsed(const char *args)
{
	struct notation n;
	const char *error = notation_parse(args, &n);
	if (error)
		BAD("%s: %s", error, args);
	return n;
}

// The next segment sent, with those that continue it, up to len bytes.
static struct notation take_sent(uint32_t len)
{
	struct notation all = notation_of(rig_out());
	for (struct out *o; all.len && all.len < len && (o = rig_peek());) {
		struct notation next = notation_of(o);
		if (next.seq != all.seq + all.len || !next.len)
			break;
		next.seq = all.seq;
		next.len += all.len;
		all = next;
		(void)rig_out();
	}
	return all;
}

// `>`: at this time, or a tick later.
static void expect_segment(const char *args)
{
	struct notation wanted = parsed(args);
	uint64_t at_ms = run.now_ns / NS_PER_MS;
	rig_at_ms(at_ms);
	for (unsigned i = 0; !rig_peek() && i < TICK_MS; i++)
		rig_after_ms(1);
	struct out *o = rig_peek();
	if (!o)
		BAD("nothing was sent, wanted at %" PRIu64 " ms: %s", at_ms, args);
	note_timestamp(o);
	uint64_t sent_ms = rig_ms(o);
	struct notation sent = take_sent(wanted.len);
	if (!notation_matches(&wanted, &sent) || sent_ms + TICK_MS < at_ms)
		BAD("sent %s\n  wanted at %" PRIu64 " ms: %s", told(&sent, sent_ms), at_ms, args);
	if (sent_ms > at_ms)
		run.now_ns = sent_ms * NS_PER_MS;
}

// `<`
static void segment_in(const char *args)
{
	struct notation n = parsed(args);
	for (unsigned i = 0; i < n.opts.n_sack; i++) {
		n.opts.sack[i].start += rig.iss;
		n.opts.sack[i].end += rig.iss;
	}
	if (n.opts.has_ts && (n.flags & ACK))
		n.opts.ts_ecr += run.ts_base;
	rig_in((struct in){
		.seq = n.seq,
		.ack = n.ack,
		.flags = n.flags,
		.wnd = (uint16_t)n.wnd,
		.zero_wnd = n.has_wnd && !n.wnd,
		.len = n.len,
		.opts = n.opts,
		.marked = n.ecn == NOTATION_CE,
	});
}

static uint64_t number(const char *args)
{
	char *end;
	uint64_t x = strtoull(args, &end, 10);
	if (end == args || *end)
		BAD("not a number: '%s'", args);
	return x;
}

static uint64_t take_seconds_ns(const char *text, char **ret_end)
{
	return (uint64_t)(strtod(text, ret_end) * 1e6 + 0.5) * NS_PER_US;
}

static uint64_t seconds_ns(const char *args)
{
	char *end;
	uint64_t ns = take_seconds_ns(args, &end);
	if (end == args || *end)
		BAD("not seconds: '%s'", args);
	return ns;
}

static struct tcp_opts options_of(const char *args)
{
	char text[256];
	(void)snprintf(text, sizeof(text), "S 0:0(0) %s", args);
	return parsed(text).opts;
}

// The connection that a command is about.
static struct tcp_conn *conn(void)
{
	if (!rig.conn)
		BAD("there is no connection");
	return rig.conn;
}

static void do_conf(const char *args)
{
	static const struct {
		const char *name;
		uint32_t *value;
	} options[] = {
		{"max_half_open", &rig.conf.max_half_open},
		{"max_time_wait", &rig.conf.max_time_wait},
		{"recv_window", &rig.conf.recv_window},
		{"send_limit", &rig.conf.send_limit},
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		size_t len = strlen(options[i].name);
		if (strncmp(args, options[i].name, len) || args[len] != ' ')
			continue;
		*options[i].value = (uint32_t)number(args + len + 1);
		rig_restart();
		return;
	}
	BAD("conf has no %s", args);
}

static void do_accept(const char *args)
{
	rig_accept(options_of(args));
}

static void do_connected(const char *args)
{
	rig_connect(options_of(args));
}

static void do_connect(const char *args)
{
	rig_open(seconds_ns(args));
}

static void do_write(const char *args)
{
	(void)conn();
	rig_write_n(number(args));
}

static void do_shutdown(const char *args)
{
	tcp_conn_shutdown(conn());
}

static void do_abort(const char *args)
{
	tcp_conn_abort(conn());
	rig.conn = NULL;
}

static void do_appetite(const char *args)
{
	rig.appetite = number(args);
}

static void do_resume(const char *args)
{
	rig.appetite = *args ? number(args) : SIZE_MAX;
	tcp_conn_resume(conn());
}

static void do_ecn(const char *args)
{
	rig.ecn = true;
	rig_restart();
}

static void do_ipv6(const char *args)
{
	rig_use_ipv6();
}

static void do_keepalive(const char *args)
{
	tcp_conn_set_keepalive(conn(), seconds_ns(args));
}

static void do_user_timeout(const char *args)
{
	tcp_conn_set_user_timeout(conn(), seconds_ns(args));
}

static void do_paced(const char *args)
{
	rig.conf.unpaced = false;
	rig_restart();
}

static void do_mtu(const char *args)
{
	rig.mtu = (uint16_t)number(args);
}

// What a router tells of our segment that began at SEQ: "too-big SEQ MTU".
static void do_too_big(const char *args)
{
	char *end;
	uint32_t seq = (uint32_t)strtoul(args, &end, 10);
	tcp_stack_too_big(
		rig.stack, &rig.flow, seq + rig.iss, (uint32_t)number(end + (*end == ' ')));
}

static void do_unreachable(const char *args)
{
	tcp_stack_unreachable(rig.stack, &rig.flow, rig.iss);
}

static void do_refuse(const char *args)
{
	rig.refuse = true;
}

static void do_no_buffer(const char *args)
{
	rig.no_buffer = strcmp(args, "off") != 0;
}

static void expect_number(const char *what, uint64_t is, uint64_t wanted)
{
	if (is != wanted)
		BAD("%s is %" PRIu64 ", wanted %" PRIu64, what, is, wanted);
}

static void do_told(const char *args)
{
	static const char closed[] = "closed ";
	if (!strcmp(args, "established"))
		expect_number(args, rig.n_established > 0, 1);
	else if (!strcmp(args, "eof"))
		expect_number(args, rig.n_eof, 1);
	else if (!strncmp(args, "data ", 5))
		expect_number("data", rig.n_got, number(args + 5));
	else if (!strncmp(args, "room ", 5))
		expect_number("room", rig.n_room, number(args + 5));
	else if (!strcmp(args, "nothing"))
		expect_number("closed, eof", rig.n_closed + rig.n_eof, 0);
	else if (strncmp(args, closed, sizeof(closed) - 1))
		BAD("the owner is not told '%s'", args);
	else if (!rig.n_closed ||
		 strcmp(tcp_close_reason_name(rig.reason), args + sizeof(closed) - 1))
		BAD("the owner was told '%s'",
			rig.n_closed ? tcp_close_reason_name(rig.reason) : "nothing");
}

// "count NAME N"
static void do_count(const char *args)
{
	struct counter_set set = tcp_stack_counters(rig.stack);
	for (uint32_t i = 0; i < set.n; i++) {
		size_t len = strlen(set.names[i]);
		if (strncmp(args, set.names[i], len) || args[len] != ' ')
			continue;
		expect_number(set.names[i], counter_read(&set.values[i]), number(args + len + 1));
		return;
	}
	BAD("there is no counter %s", args);
}

static void do_cwnd(const char *args)
{
	expect_number("cwnd", conn()->cc.cwnd, number(args));
}

static void do_ssthresh(const char *args)
{
	expect_number("ssthresh", conn()->cc.ssthresh, number(args));
}

static void do_nothing(const char *args)
{
	expect_silence();
}

static const struct command {
	const char *name;
	void (*run)(const char *args);
	bool looks; // at what is so, while something sent may still wait to be looked at
} commands[] = {
	{"<", segment_in, false},
	{">", expect_segment, true},
	{"abort", do_abort, false},
	{"accept", do_accept, false},
	{"appetite", do_appetite, false},
	{"conf", do_conf, false},
	{"connect", do_connect, false},
	{"connected", do_connected, false},
	{"count", do_count, true},
	{"cwnd", do_cwnd, true},
	{"ecn", do_ecn, false},
	{"ipv6", do_ipv6, false},
	{"keepalive", do_keepalive, false},
	{"mtu", do_mtu, false},
	{"no-buffer", do_no_buffer, false},
	{"nothing", do_nothing, false},
	{"paced", do_paced, false},
	{"refuse", do_refuse, false},
	{"resume", do_resume, false},
	{"shutdown", do_shutdown, false},
	{"ssthresh", do_ssthresh, true},
	{"told", do_told, true},
	{"too-big", do_too_big, false},
	{"unreachable", do_unreachable, false},
	{"user-timeout", do_user_timeout, false},
	{"write", do_write, false},
};

static const struct command *command_of(const char *line, size_t len)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strlen(commands[i].name) == len && !strncmp(line, commands[i].name, len))
			return &commands[i];
	BAD("unknown command: %s", line);
	return NULL;
}

// A line without a time belongs to the turn of the line before.
static void run_command(const char *line, bool new_turn)
{
	size_t len = strcspn(line, " ");
	const struct command *c = command_of(line, len);
	if (new_turn && c->run != expect_segment)
		rig_at_ms(run.now_ns / NS_PER_MS);
	if (new_turn && !c->looks)
		expect_silence();
	c->run(line + len + strspn(line + len, " "));
}

// "[+SECONDS] COMMAND [// comment]"
static void run_line(char *line)
{
	char *comment = strstr(line, "//");
	if (comment)
		*comment = 0;
	for (size_t len = strlen(line); len && isspace((unsigned char)line[len - 1]);)
		line[--len] = 0;
	line += strspn(line, " \t");
	bool timed = *line == '+';
	if (timed) {
		char *end;
		run.now_ns += take_seconds_ns(line + 1, &end);
		line = end + strspn(end, " \t");
	}
	if (*line)
		run_command(line, timed);
}

static void run_script(void **state)
{
	struct script *s = *state;
	memset(&run, 0, sizeof(run));
	run.path = s->path;
	assert_int_equal(rig_setup(NULL), 0);
	rig.conf.congestion = NULL; // the product's
	rig_restart();
	for (char *next, *line = s->text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		run.line++;
		run_line(line);
	}
	expect_silence();
	assert_int_equal(rig_teardown(NULL), 0);
}

static void load(struct script *ret, const char *folder, const char *file)
{
	size_t size = 0;
	assert_true(asprintf(&ret->path, "%s/%s", folder, file) > 0);
	FILE *f = fopen(ret->path, "r");
	assert_non_null(f);
	assert_true(getdelim(&ret->text, &size, 0, f) > 0);
	(void)fclose(f);
	const char *sentence = ret->text + strspn(ret->text, "/ ");
	ret->name = strndup(sentence, strcspn(sentence, "\n"));
	assert_non_null(ret->name);
}

static int is_script(const struct dirent *e)
{
	const char *dot = strrchr(e->d_name, '.');
	return dot && !strcmp(dot, ".pkt");
}

// packets FOLDER…
int main(int argc, char **argv)
{
	static struct script scripts[MAX_SCRIPTS];
	static struct CMUnitTest tests[MAX_SCRIPTS];
	size_t n = 0;
	for (int i = 1; i < argc; i++) {
		struct dirent **files;
		int n_files = scandir(argv[i], &files, is_script, alphasort);
		for (int k = 0; k < n_files; k++) {
			assert_true(n < MAX_SCRIPTS);
			load(&scripts[n], argv[i], files[k]->d_name);
			tests[n] = (struct CMUnitTest){
				scripts[n].name, run_script, NULL, NULL, &scripts[n]};
			n++;
			free(files[k]);
		}
		assert_true(n_files > 0);
		free(files);
	}
	int n_failed = _cmocka_run_group_tests("packets", tests, n, NULL, NULL);
	while (n--) {
		free(scripts[n].path);
		free(scripts[n].text);
		free(scripts[n].name);
	}
	return n_failed;
}
