// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/options.h"

#include "lb/base/ip.h"
#include "lb/base/time.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DAY (86400 * NS_PER_SECOND)
#define DEFAULT_ANSWER 64
#define BOTH (COMMAND_RUN | COMMAND_ECHO)

enum kind {
	KIND_FLAG,
	KIND_NUMBER32, // with k or M behind it
	KIND_NUMBER64,
	KIND_TIME,
	KIND_TEXT,
	KIND_ADDRESS,
	KIND_GATEWAY,
	KIND_TARGET,
	KIND_PATH,
	KIND_CHECK,
	KIND_FAULT,
	KIND_EAL,
	KIND_HELP,
};

struct opt {
	char letter; // 0 = none
	const char *name, *arg;
	int commands;
	enum kind kind;
	size_t at; // in struct options
	uint64_t min, max;
	const char *help;
};

#define AT(field) offsetof(struct options, field)
static const struct opt opts[] = {
	{'d', "device", "DEVARGS", COMMAND_RUN, KIND_TEXT, AT(client.device), 0, 0,
		"DPDK device of the client, as net_memif0,role=client,socket=/run/a.sock"},
	{'a', "address", "IP/LEN", COMMAND_RUN, KIND_ADDRESS, AT(client), 0, 0,
		"its address; several are used in turn"},
	{'g', "gateway", "IP", COMMAND_RUN, KIND_GATEWAY, AT(client), 0, 0,
		"its gateway for other networks"},
	{'d', "device", "DEVARGS", COMMAND_ECHO, KIND_TEXT, AT(echo.device), 0, 0, NULL},
	{'a', "address", "IP/LEN", COMMAND_ECHO, KIND_ADDRESS, AT(echo), 0, 0, NULL},
	{'g', "gateway", "IP", COMMAND_ECHO, KIND_GATEWAY, AT(echo), 0, 0, NULL},
	{'t', "to", "IP:PORT", COMMAND_RUN, KIND_TARGET, AT(to), 0, 0,
		"the address that requests are sent to"},
	{'c', "connections", "N", COMMAND_RUN, KIND_NUMBER32, AT(n_conns), 1, 1000000,
		"number of connections with requests (1)"},
	{'m', "streams", "N", COMMAND_RUN, KIND_NUMBER32, AT(n_streams), 1, 100000,
		"requests per connection at one time (1)"},
	{'n', "requests", "N", COMMAND_RUN, KIND_NUMBER64, AT(n_requests), 1, UINT64_MAX,
		"stop after this many requests in total"},
	{'D', "duration", "TIME", COMMAND_RUN, KIND_TIME, AT(duration_ns), 1, 30 * DAY,
		"how long, as 10, 0.5s, 200ms, 5m; either this or -n"},
	{'r', "rate", "N", COMMAND_RUN, KIND_NUMBER64, AT(rate), 1, 1000000000,
		"open loop: total requests per second; latency counts from the scheduled time"},
	{0, "probe", NULL, COMMAND_RUN, KIND_FLAG, AT(probe), 0, 0,
		"send uncounted requests one by one until an answer is correct, then begin"},
	{'w', "warm-up", "TIME", COMMAND_RUN, KIND_TIME, AT(warm_up_ns), 0, DAY,
		"time before the duration; answers are checked, but not in the figures"},
	{0, "hold", "TIME", COMMAND_RUN, KIND_TIME, AT(hold_ns), 0, DAY,
		"how long all connections stay open after the last answer"},
	{0, "requests-per-connection", "N", COMMAND_RUN, KIND_NUMBER32, AT(per_conn), 1, 1000000000,
		"replace a connection after this many requests"},
	{0, "idle", "N", COMMAND_RUN, KIND_NUMBER32, AT(n_idle), 1, 1000000,
		"additional connections that are only kept open"},
	{0, "grpc", NULL, COMMAND_RUN, KIND_FLAG, AT(is_grpc), 0, 0,
		"unary gRPC calls; else plain HTTP/2"},
	{0, "http1", NULL, COMMAND_RUN, KIND_FLAG, AT(is_http1), 0, 0,
		"HTTP/1.1: one request at a time on a connection (-m 1), without gRPC"},
	{0, "tls", NULL, COMMAND_RUN, KIND_FLAG, AT(tls), 0, 0,
		"speak TLS to the target, whatever certificate it shows"},
	{'b', "body", "BYTES", COMMAND_RUN, KIND_NUMBER32, AT(body_size), 0, 1u << 30,
		"body size of each request (0; a plain request without a body is a GET)"},
	{'A', "answer", "BYTES", COMMAND_RUN, KIND_NUMBER32, AT(answer_size), 0, 1u << 30,
		"size of the echo backend's answers (that of the body, or 64)"},
	{'p', "path", "[WEIGHT:]PATH", COMMAND_RUN, KIND_PATH, 0, 0, 0,
		"as /a or 3:/b; several are drawn by weight (/)"},
	{0, "authority", "TEXT", COMMAND_RUN, KIND_TEXT, AT(authority), 0, 0,
		"instead of the target's address"},
	{'H', "headers", "FILE", COMMAND_RUN, KIND_TEXT, AT(headers), 0, 0,
		"lines `name: value` for every request"},
	{0, "check", "WHAT", COMMAND_RUN, KIND_CHECK, 0, 0, 0,
		"content: each answer must match its request (the default; needs "
		"shunt-load echo as backend); same: all answers to a path are equal; status: "
		"only HTTP and gRPC status. With the last two all requests are equal, as h2load's"},
	{'T', "timeout", "TIME", COMMAND_RUN, KIND_TIME, AT(timeout_ns), 1, DAY,
		"limit for a connection, for a request, and for the end of the run (10s)"},
	{0, "seed", "N", COMMAND_RUN, KIND_NUMBER64, AT(seed), 0, UINT64_MAX,
		"seed of random draws (random)"},
	{0, "echo-device", "DEVARGS", COMMAND_RUN, KIND_TEXT, AT(echo.device), 0, 0,
		"run an echo backend, too, in the same thread, on this device"},
	{0, "echo-address", "IP/LEN", COMMAND_RUN, KIND_ADDRESS, AT(echo), 0, 0,
		"its address; it listens on all of them"},
	{0, "echo-gateway", "IP", COMMAND_RUN, KIND_GATEWAY, AT(echo), 0, 0, "its gateway"},
	{'l', "listen", "PORT", BOTH, KIND_NUMBER32, AT(listen), 1, 65535,
		"port of the echo backend (9090)"},
	{'D', "duration", "TIME", COMMAND_ECHO, KIND_TIME, AT(duration_ns), 1, 30 * DAY, NULL},
	{0, "echo-connections", "N", BOTH, KIND_NUMBER32, AT(max_conns), 1, 1000000,
		"connections that the echo backend accepts (16384)"},
	{0, "echo-streams", "N", BOTH, KIND_NUMBER32, AT(max_streams), 1, 65536,
		"streams that it allows per connection (1024)"},
	{0, "echo-answer", "BYTES", BOTH, KIND_NUMBER32, AT(echo_size), 0, 1u << 30,
		"answer size for requests without a size and without a body (64)"},
	{0, "echo-fault", "KIND:N", BOTH, KIND_FAULT, 0, 0, 0,
		"spoil each Nth answer: alter, cut, swap, status, reset, silent"},
	{0, "echo-certificate", "FILE", BOTH, KIND_TEXT, AT(certificate), 0, 0,
		"speak TLS: the echo backend's certificate, in PEM"},
	{0, "echo-key", "FILE", BOTH, KIND_TEXT, AT(key), 0, 0, "its key"},
	{0, "mtu", "BYTES", BOTH, KIND_NUMBER32, AT(mtu), 576, 9000,
		"MTU of the devices (their own, 1900 at most)"},
	{0, "core", "N", BOTH, KIND_NUMBER64, AT(core), 0, 1023,
		"CPU that it runs on (the last one that it may use)"},
	{0, "nap", NULL, BOTH, KIND_FLAG, AT(nap), 0, 0,
		"sleep when idle: leaves CPU time to others, worsens figures"},
	{0, "eal", "ARG", BOTH, KIND_EAL, 0, 0, 0,
		"an argument for DPDK; may be repeated; the default is memory without hugepages"},
	{'j', "json", NULL, BOTH, KIND_FLAG, AT(json), 0, 0, "one JSON object at the end"},
	{'q', "quiet", NULL, BOTH, KIND_FLAG, AT(quiet), 0, 0, "no progress on a terminal"},
	{'h', "help", NULL, BOTH, KIND_HELP, 0, 0, 0, "show this"},
};
#define N_OPTS (sizeof(opts) / sizeof(opts[0]))

static const char *const check_names[PLAN_N_CHECKS] = {"content", "same", "status"};

static int bad(struct lb_err *reterr, const struct opt *o, const char *text, const char *why)
{
	return lb_err_set(reterr, "--%s %s: %s", o->name, text, why);
}

static int read_number(const struct opt *o, const char *text, uint64_t *ret, struct lb_err *reterr)
{
	struct str s = str_from(text);
	uint64_t n, unit = 1;
	if (s.len > 1 && (str_ends(s, STR("k")) || str_ends(s, STR("M")))) {
		unit = str_ends(s, STR("k")) ? 1000 : 1000000;
		s.len--;
	}
	if (!str_number(s, UINT64_MAX / unit, &n))
		return bad(reterr, o, text, "no number");
	n *= unit;
	if (n < o->min || n > o->max)
		return lb_err_set(reterr, "--%s %s: not within %llu and %llu", o->name, text,
			(unsigned long long)o->min, (unsigned long long)o->max);
	*ret = n;
	return 0;
}

static int read_time(const struct opt *o, const char *text, uint64_t *ret, struct lb_err *reterr)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 60e9}, {"h", 3600e9}};
	char *end;
	double value = strtod(text, &end);
	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++) {
		double ns = value * units[i].ns;
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (!isfinite(ns) || ns < (double)o->min || ns > (double)o->max)
			return bad(reterr, o, text, "too little or too much");
		*ret = (uint64_t)ns;
		return 0;
	}
	return bad(reterr, o, text, "no time: 10, 0.5s, 200ms, 5m");
}

static int read_address(
	const struct opt *o, const char *text, struct device_options *d, struct lb_err *reterr)
{
	struct str s = str_from(text), ip = str_until(s, '/');
	struct net_prefix prefix;
	uint64_t len;
	if (ip.len == s.len || !ip_parse_str(ip, &prefix.ip) ||
		!str_number((struct str){ip.p + ip.len + 1, s.len - ip.len - 1},
			ip_is_v4(&prefix.ip) ? 32 : 128, &len))
		return bad(
			reterr, o, text, "not an IP address with a prefix length, as 10.0.0.1/24");
	if (d->n_addresses == NET_MAX_ADDRESSES)
		return bad(reterr, o, text, "too many");
	prefix.len = (uint8_t)len;
	d->addresses[d->n_addresses++] = prefix;
	return 0;
}

static int read_gateway(
	const struct opt *o, const char *text, struct device_options *d, struct lb_err *reterr)
{
	struct ip_addr ip;
	if (!ip_parse(text, &ip))
		return bad(reterr, o, text, "no address");
	*(ip_is_v4(&ip) ? &d->gateway : &d->gateway6) = ip;
	return 0;
}

static int read_target(
	const struct opt *o, const char *text, struct ip_port *ret, struct lb_err *reterr)
{
	struct str s = str_from(text);
	bool v6 = s.len > 0 && s.p[0] == '[';
	struct str ip = str_until(v6 ? (struct str){s.p + 1, s.len - 1} : s, v6 ? ']' : ':');
	struct str rest = {ip.p + ip.len + v6, s.len - ip.len - 2 * (size_t)v6};
	uint64_t port;
	if (s.len < ip.len + 2 * (size_t)v6 || rest.len < 2 || rest.p[0] != ':' ||
		!ip_parse_str(ip, &ret->ip) || ip_is_v4(&ret->ip) == v6 ||
		!str_number((struct str){rest.p + 1, rest.len - 1}, 65535, &port) || port == 0)
		return bad(reterr, o, text,
			"not an IP address with a port, as 10.0.0.1:8080 or [2001:db8::1]:8080");
	ret->port = (uint16_t)port;
	return 0;
}

static int read_check(const struct opt *o, const char *text, struct options *to, struct lb_err *err)
{
	for (int i = 0; i < PLAN_N_CHECKS; i++)
		if (strcmp(text, check_names[i]) == 0) {
			to->check = (enum plan_check)i;
			return 0;
		}
	return bad(err, o, text, "content, same or status");
}

static int read_fault(const struct opt *o, const char *text, struct options *to, struct lb_err *err)
{
	struct str s = str_from(text), kind = str_until(s, ':');
	uint64_t every;
	if (kind.len < s.len &&
		str_number((struct str){kind.p + kind.len + 1, s.len - kind.len - 1}, UINT32_MAX,
			&every) &&
		every)
		for (int i = ECHO_FAULT_NONE + 1; i < ECHO_N_FAULTS; i++)
			if (str_eq(kind, str_from(echo_fault_name((enum echo_fault)i)))) {
				to->fault = (enum echo_fault)i;
				to->fault_every = (uint32_t)every;
				return 0;
			}
	return bad(err, o, text, "KIND:N, as alter:1000");
}

static int take(const struct opt *o, const char *text, struct options *to, struct lb_err *reterr)
{
	uint8_t *at = (uint8_t *)to + o->at;
	uint64_t number = 0;
	int r = 0;
	switch (o->kind) {
	case KIND_FLAG:
		*(bool *)at = true;
		return 0;
	case KIND_NUMBER32:
		r = read_number(o, text, &number, reterr);
		if (r == 0)
			*(uint32_t *)(void *)at = (uint32_t)number;
		return r;
	case KIND_NUMBER64:
		return read_number(o, text, (uint64_t *)(void *)at, reterr);
	case KIND_TIME:
		return read_time(o, text, (uint64_t *)(void *)at, reterr);
	case KIND_TEXT:
		*(const char **)(void *)at = text;
		return 0;
	case KIND_ADDRESS:
		return read_address(o, text, (struct device_options *)(void *)at, reterr);
	case KIND_GATEWAY:
		return read_gateway(o, text, (struct device_options *)(void *)at, reterr);
	case KIND_TARGET:
		return read_target(o, text, (struct ip_port *)(void *)at, reterr);
	case KIND_PATH:
		if (to->n_paths == PLAN_MAX_PATHS)
			return bad(reterr, o, text, "too many");
		to->paths[to->n_paths++] = text;
		return 0;
	case KIND_CHECK:
		return read_check(o, text, to, reterr);
	case KIND_FAULT:
		return read_fault(o, text, to, reterr);
	case KIND_EAL:
		if (to->n_eal == OPTIONS_MAX_EAL)
			return bad(reterr, o, text, "too many");
		to->eal[to->n_eal++] = text;
		return 0;
	case KIND_HELP:
		return 1;
	}
	return 0;
}

static int need(bool there, const char *what, struct lb_err *reterr)
{
	return there ? 0 : lb_err_set(reterr, "%s", what);
}

static int check_device(const struct device_options *d, const char *prefix, struct lb_err *reterr)
{
	if (!d->device)
		return lb_err_set(reterr, "--%sdevice is needed", prefix);
	if (d->n_addresses == 0)
		return lb_err_set(reterr, "--%saddress is needed", prefix);
	return 0;
}

static int check_echo(const struct options *o, const char *prefix, struct lb_err *reterr)
{
	int r = check_device(&o->echo, prefix, reterr);
	return r ? r
	         : need(!o->certificate == !o->key,
			   "--echo-certificate and --echo-key: both or none", reterr);
}

// HTTP/1.1 has no streams, and a host is a part of its text.
static int check_http1(const struct options *o, struct lb_err *reterr)
{
	int r = need(o->n_streams == 1,
		"--http1: one request at a time on a connection: --streams 1", reterr);
	if (r == 0)
		r = need(!o->is_grpc, "--http1 and --grpc: one of them", reterr);
	for (const char *p = o->authority; r == 0 && p && *p; p++)
		r = need(*p > ' ' && *p != 0x7f, "--authority: a blank or a control character",
			reterr);
	return r;
}

static int check_run(struct options *o, struct lb_err *reterr)
{
	int r = check_device(&o->client, "", reterr);
	if (r == 0 && (o->echo.device || o->echo.n_addresses || o->certificate || o->key))
		r = check_echo(o, "echo-", reterr);
	if (r == 0)
		r = need(o->to.port, "--to is needed", reterr);
	if (r == 0)
		r = need(o->n_requests || o->duration_ns, "--requests or --duration is needed",
			reterr);
	if (r == 0)
		r = need(!(o->n_requests && o->duration_ns),
			"--requests and --duration: one of them", reterr);
	if (r == 0)
		r = need(!(o->has_answer_size && o->check != PLAN_CHECK_CONTENT),
			"--answer is asked for with --check content only", reterr);
	if (r == 0 && o->is_http1)
		r = check_http1(o, reterr);
	if (!o->has_answer_size)
		o->answer_size = o->body_size ? o->body_size : DEFAULT_ANSWER;
	return r;
}

static void set_defaults(struct options *o)
{
	*o = (struct options){.n_conns = 1,
		.n_streams = 1,
		.timeout_ns = 10 * NS_PER_SECOND,
		.listen = 9090,
		.max_conns = 16384,
		.max_streams = 1024,
		.echo_size = DEFAULT_ANSWER,
		.core = -1};
}

// What argp hands from one option to the next.
struct reading {
	struct options *to;
	struct lb_err *reterr;
	int result; // as options_read()'s
};

#define FIRST_KEY 1000 // of opts, above any letter

// By argp's key.
static const struct opt *find(enum command command, int key)
{
	if (key >= FIRST_KEY && key < FIRST_KEY + (int)N_OPTS)
		return &opts[key - FIRST_KEY];
	for (size_t i = 0; i < N_OPTS; i++)
		if (key && opts[i].letter == key && opts[i].commands & (int)command)
			return &opts[i];
	return NULL;
}

// Argp stopped at this word: an option without its argument, or none at all.
static int refuse(const struct reading *r, const char *word)
{
	bool known = false;
	for (size_t i = 0; i < N_OPTS; i++) {
		const struct opt *o = &opts[i];
		bool is_letter = o->letter && word[0] == '-' && word[1] == o->letter && !word[2];
		bool is_name = strncmp(word, "--", 2) == 0 && strcmp(word + 2, o->name) == 0;
		known |= o->commands & (int)r->to->command && (is_letter || is_name);
	}
	return lb_err_set(
		r->reterr, "%s: %s", word, known ? "needs an argument" : "no such option");
}

static error_t take_arg(int key, char *arg, struct argp_state *state)
{
	struct reading *r = state->input;
	const struct opt *o = find(r->to->command, key);
	if (o) {
		r->to->has_answer_size |= strcmp(o->name, "answer") == 0;
		r->to->has_seed |= strcmp(o->name, "seed") == 0;
		r->result = take(o, arg, r->to, r->reterr);
	} else if (key == ARGP_KEY_ARG) {
		r->result = lb_err_set(r->reterr, "unexpected argument %s", arg);
	} else if (key == ARGP_KEY_ERROR && r->result == 0) {
		r->result = refuse(r, state->argv[state->next - 1]);
	} else {
		return ARGP_ERR_UNKNOWN;
	}
	return r->result ? EINVAL : 0;
}

// Those of the commands that are told of in the help, or all.
static void make_options(int commands, bool with_help, struct argp_option ret[N_OPTS + 1])
{
	size_t n = 0;
	for (size_t i = 0; i < N_OPTS; i++)
		if (opts[i].commands & commands && (opts[i].help || !with_help))
			ret[n++] = (struct argp_option){.name = opts[i].name,
				.key = opts[i].letter ? opts[i].letter : FIRST_KEY + (int)i,
				.arg = opts[i].arg,
				.doc = opts[i].help,
				.group = (int)i + 1}; // in this order
	ret[n] = (struct argp_option){0};
}

void options_help(FILE *out)
{
	struct argp_option options[N_OPTS + 1];
	make_options(BOTH, true, options);
	const struct argp argp = {
		.options = options,
		.doc = "Loads an HTTP/2, gRPC or HTTP/1.1 server from a DPDK device and checks "
		       "every answer; "
		       "or answers requests, as the backend behind it. Both may run in one thread: "
		       "run ... --echo-device. Ctrl-C ends it, with its figures.\v"
		       "`run` takes all of them; `echo` takes -d, -a, -g and -D for itself, and "
		       "those that begin with echo- or speak of the process.\n\n"
		       "Exit status: 0 every request was answered, and rightly; 1 one was lost, "
		       "altered, doubled, refused, or the target could not be reached; 2 it could "
		       "not begin.",
	};
	fputs("Usage: shunt-load run -d DEVARGS -a IP/LEN -t IP:PORT [OPTION...]\n"
	      "  or:  shunt-load echo -d DEVARGS -a IP/LEN [-l PORT] [OPTION...]\n",
		out);
	argp_help(&argp, out, ARGP_HELP_LONG | ARGP_HELP_DOC, (char[]){"shunt-load"});
}

static int read_all(int argc, char **argv, struct options *o, struct lb_err *reterr)
{
	struct argp_option options[N_OPTS + 1];
	make_options((int)o->command, false, options);
	const struct argp argp = {.options = options, .parser = take_arg};
	struct reading r = {.to = o, .reterr = reterr};
	int error =
		argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_NO_EXIT, NULL, &r);
	return r.result || !error ? r.result : lb_err_set(reterr, "%s", strerror(error));
}

int options_read(int argc, char **argv, struct options *o, struct lb_err *reterr)
{
	set_defaults(o);
	const char *command = argc > 1 ? argv[1] : "";
	if (strcmp(command, "run") == 0)
		o->command = COMMAND_RUN;
	else if (strcmp(command, "echo") == 0)
		o->command = COMMAND_ECHO;
	else if (strcmp(command, "-h") == 0 || strcmp(command, "--help") == 0 ||
		 strcmp(command, "help") == 0)
		return 1;
	else
		return lb_err_set(reterr, "no command: run or echo (see --help)");
	int r = read_all(argc - 1, argv + 1, o, reterr);
	if (r != 0)
		return r;
	return o->command == COMMAND_RUN ? check_run(o, reterr) : check_echo(o, "", reterr);
}
