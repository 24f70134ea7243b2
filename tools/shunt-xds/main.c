// SPDX-License-Identifier: Apache-2.0
// shunt-xds: an xDS management server, or a caching proxy of one. Options, signals, logs.
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "tools/shunt-xds/app.h"

#include <grpc/support/log.h>

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define GRACE_DEFAULT_S 60
#define GRACE_MAX_S 86400
#define REQUEST_DEFAULT_MIB 4 // what gRPC's servers receive by default
#define REQUEST_MAX_MIB 256

static const char usage[] =
	"usage: shunt-xds [serve] DIR --listen ADDRESS [--descriptors FILE] [--verbose]\n"
	"       shunt-xds proxy --upstream BOOTSTRAP --listen ADDRESS [--protocol sotw|delta]\n"
	"                       [--grace SECONDS] [--max-request MIB] [--verbose]\n"
	"\n"
	"serve: serves the resources in DIR/*.json to xDS clients (ADS, state of the world and\n"
	"delta) and follows their changes. Each file is one resource (listener, route "
	"configuration,\n"
	"cluster, cluster load assignment, secret, …) in protobuf's JSON form, with \"@type\", or "
	"its\n"
	"bytes as {\"@type\": …, \"@raw\": base64}. A resource may have\n"
	"variants with dynamic parameter constraints (xRFC TP2), each a file with the resource\n"
	"inside of envoy.service.discovery.v3.Resource. An invalid file is reported, and\n"
	"its last valid content stays in use.\n"
	"\n"
	"proxy: asks another server, the first of the bootstrap, for what its clients ask for, "
	"each\n"
	"name with the same dynamic parameters once, keeps the answers, and serves them, of any\n"
	"type and unchanged, even while that server is unreachable.\n"
	"\n"
	"  -l, --listen ADDRESS      address to listen on, as 127.0.0.1:18000 or [::1]:18000\n"
	"  -d, --descriptors FILE    serve: the types that files may use, a FileDescriptorSet "
	"(default:\n"
	"                            envoy-api.pb beside this program; what no descriptor knows "
	"is\n"
	"                            left out, with a warning)\n"
	"  -u, --upstream BOOTSTRAP  proxy: the server and our node, a file as gRPC's\n"
	"                            GRPC_XDS_BOOTSTRAP\n"
	"  -p, --protocol PROTOCOL   proxy: ADS towards the server: sotw (default) or delta\n"
	"  -g, --grace SECONDS       proxy: how long to keep a resource after its last client\n"
	"                            unsubscribed (default 60)\n"
	"  -m, --max-request MIB     proxy: longest message that the server accepts (default 4);\n"
	"                            a client with more names than fit is disconnected\n"
	"  -v, --verbose             log every request\n"
	"  -h, --help                show this\n";

uint64_t app_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

void app_wait(struct pollfd *fds, unsigned n, uint64_t due_ns)
{
	uint64_t now = app_now_ns();
	int timeout = -1;
	if (due_ns != UINT64_MAX) {
		uint64_t ms = due_ns <= now ? 0 : (due_ns - now + NS_PER_MS - 1) / NS_PER_MS;
		timeout = ms > INT_MAX ? INT_MAX : (int)ms;
	}
	poll(fds, n, timeout);
}

static bool read_number(const char *text, unsigned long min, unsigned long max, unsigned long *ret)
{
	char *end;
	errno = 0;
	*ret = strtoul(text, &end, 10);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *ret >= min &&
	       *ret <= max;
}

static bool read_request_max(const char *text, struct app_options *o)
{
	unsigned long mib;
	bool ok = read_number(text, 1, REQUEST_MAX_MIB, &mib);
	if (!ok)
		fprintf(stderr, "shunt-xds: --max-request: \"%s\" is not 1 to %d MiB\n", text,
			REQUEST_MAX_MIB);
	o->request_max = (size_t)mib << 20;
	return ok;
}

static bool read_grace(const char *text, struct app_options *o)
{
	unsigned long s;
	bool ok = read_number(text, 0, GRACE_MAX_S, &s);
	if (!ok)
		fprintf(stderr, "shunt-xds: --grace: \"%s\" is not 0 to %d seconds\n", text,
			GRACE_MAX_S);
	o->grace_ns = (uint64_t)s * NS_PER_SECOND;
	return ok;
}

static bool read_protocol(const char *text, struct app_options *o)
{
	o->is_delta = strcmp(text, "delta") == 0;
	bool ok = o->is_delta || strcmp(text, "sotw") == 0;
	if (!ok)
		fprintf(stderr, "shunt-xds: --protocol: \"%s\" is neither sotw nor delta\n", text);
	return ok;
}

// The options that only one mode has go with that mode.
static bool is_whole(const struct app_options *o, bool is_proxy, bool has_proxy_option)
{
	const char *missing = NULL;
	if (!o->listen)
		missing = "--listen is missing";
	else if (is_proxy && !o->upstream)
		missing = "proxy: --upstream is missing";
	else if (is_proxy && o->descriptors)
		missing = "--descriptors is for serve";
	else if (!is_proxy && (has_proxy_option || o->upstream))
		missing = "--upstream, --protocol, --grace and --max-request are for proxy";
	if (missing)
		fprintf(stderr, "shunt-xds: %s\n", missing);
	return !missing;
}

// 0, or the exit code with a sign: -1 = exit well, as after --help.
static int read_options(int argc, char **argv, struct app_options *ret)
{
	static const struct option longs[] = {{"listen", required_argument, NULL, 'l'},
		{"descriptors", required_argument, NULL, 'd'},
		{"upstream", required_argument, NULL, 'u'},
		{"protocol", required_argument, NULL, 'p'}, {"grace", required_argument, NULL, 'g'},
		{"max-request", required_argument, NULL, 'm'}, {"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct app_options o = {.grace_ns = (uint64_t)GRACE_DEFAULT_S * NS_PER_SECOND,
		.request_max = (size_t)REQUEST_DEFAULT_MIB << 20};
	bool ok = true, has_proxy_option = false;
	int c;
	while (ok && (c = getopt_long(argc, argv, "l:d:u:p:g:m:vh", longs, NULL)) != -1) {
		has_proxy_option |= c == 'p' || c == 'g' || c == 'm';
		if (c == 'l')
			o.listen = optarg;
		else if (c == 'd')
			o.descriptors = optarg;
		else if (c == 'u')
			o.upstream = optarg;
		else if (c == 'p')
			ok = read_protocol(optarg, &o);
		else if (c == 'g')
			ok = read_grace(optarg, &o);
		else if (c == 'm')
			ok = read_request_max(optarg, &o);
		else if (c == 'v')
			o.verbose = true;
		else if (c == 'h')
			return -1;
		else
			ok = false;
	}
	if (!ok)
		return EXIT_FAILURE;
	bool is_proxy = argc - optind == 1 && strcmp(argv[optind], "proxy") == 0;
	if (argc - optind == 2 && strcmp(argv[optind], "serve") == 0)
		optind++;
	if (!is_proxy && argc - optind == 1)
		o.folder = argv[optind];
	*ret = o;
	if (!is_proxy && !o.folder) {
		fputs(usage, stderr);
		return EXIT_FAILURE;
	}
	return is_whole(&o, is_proxy, has_proxy_option) ? 0 : EXIT_FAILURE;
}

// The threads of libgrpc inherit the mask: only the loop sees the signals.
static int signals_open(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void grpc_says(gpr_log_func_args *args)
{
	log_write(args->severity == GPR_LOG_SEVERITY_ERROR ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
		"grpc", "said=%s", log_quote(args->message));
}

int main(int argc, char **argv)
{
	struct app_options o;
	int r = read_options(argc, argv, &o);
	if (r < 0)
		fputs(usage, stdout);
	if (r != 0)
		return r < 0 ? EXIT_SUCCESS : r;
	log_set_level(o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	gpr_set_log_function(grpc_says);
	int signals = signals_open();
	if (signals < 0) {
		log_error("cannot watch for signals", "error=%s", log_quote(strerror(errno)));
		return EXIT_FAILURE;
	}
	r = o.folder ? app_serve(&o, signals) : app_proxy(&o, signals);
	close(signals);
	return r;
}
