// SPDX-License-Identifier: Apache-2.0
// shunt-xds: an xDS management server whose resources are the files of a folder. The loop: signals,
// the folder, the clients.
#include "lb/base/check.h"
#include "lb/base/err.h"
#include "lb/base/log.h"
#include "tools/shunt-xds/ads_service.h"
#include "tools/shunt-xds/folder.h"

#include <grpc/support/log.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000u

struct options {
	const char *folder;
	const char *listen;
	bool verbose;
};

struct app {
	struct folder folder;
	struct folder_watch watch;
	struct catalog *catalog;
	struct ads_service *service;
	int signals; // signalfd
	uint64_t versions[N_RESOURCE_TYPES]; // as they were logged
};

static const char usage[] =
	"usage: shunt-xds [serve] DIR --listen ADDRESS [--verbose]\n"
	"\n"
	"Serves the resources in DIR/*.json to xDS clients (ADS, state of the world and delta) "
	"and\n"
	"follows their changes. Each file is one listener, route configuration, cluster or "
	"cluster\n"
	"load assignment in protobuf's JSON form, with \"@type\". A resource may have variants "
	"with\n"
	"dynamic parameter constraints (xRFC TP2), each a file with the resource inside of\n"
	"envoy.service.discovery.v3.Resource. A file that is wrong is named, and stays what it "
	"was.\n"
	"\n"
	"  -l, --listen ADDRESS  where clients connect, as 127.0.0.1:18000 or [::1]:18000\n"
	"  -v, --verbose         log every request\n"
	"  -h, --help            show this\n";

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// 0, or the exit code with a sign: -1 = exit well, as after --help.
static int read_options(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {{"listen", required_argument, NULL, 'l'},
		{"verbose", no_argument, NULL, 'v'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct options o = {0};
	int c;
	while ((c = getopt_long(argc, argv, "l:vh", longs, NULL)) != -1) {
		if (c == 'l')
			o.listen = optarg;
		else if (c == 'v')
			o.verbose = true;
		else if (c == 'h')
			return -1;
		else
			return EXIT_FAILURE;
	}
	if (argc - optind == 2 && strcmp(argv[optind], "serve") == 0)
		optind++;
	if (argc - optind == 1)
		o.folder = argv[optind];
	*ret = o;
	return o.folder && o.listen ? 0 : EXIT_FAILURE;
}

static void complain(void *ctx, const char *file, const char *text)
{
	log_error("bad resource", "file=%s error=%s", log_quote(file), log_quote(text));
}

// How much there is of each type, where it is not as before.
static void log_catalog(const struct catalog *c, uint64_t before[N_RESOURCE_TYPES])
{
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		const struct catalog_type *type = &c->types[t];
		if (before[t] != type->version)
			log_info("resources",
				"type=%s version=%016" PRIx64 " names=%zu variants=%zu",
				resource_type_info((enum resource_type)t)->label, type->version,
				type->n_names, type->n);
		before[t] = type->version;
	}
}

static void reload(struct app *app)
{
	int r = folder_load(&app->folder, app->catalog, complain, NULL);
	if (r == -EINVAL)
		log_warn("files are not taken, as told above; what they were is served",
			"folder=%s", log_quote(app->folder.path));
	else if (r < 0)
		log_error("cannot load the folder; what it was is served", "folder=%s error=%s",
			log_quote(app->folder.path), log_quote(strerror(-r)));
	log_catalog(app->catalog, app->versions);
	ads_service_publish(app->service, now_ns());
}

static int poll_timeout(const struct app *app)
{
	uint64_t due = folder_watch_due_ns(&app->watch), now = now_ns();
	uint64_t clients_due = ads_service_due_ns(app->service);
	due = clients_due < due ? clients_due : due;
	if (due == UINT64_MAX)
		return -1;
	return due <= now ? 0 : (int)((due - now + NS_PER_MS - 1) / NS_PER_MS);
}

static void run(struct app *app)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = app->signals, .events = POLLIN},
			{.fd = app->watch.fd, .events = POLLIN},
			{.fd = ads_service_fd(app->service), .events = POLLIN}};
		poll(fds, 3, poll_timeout(app));
		if (fds[0].revents)
			return;
		if (fds[1].revents)
			folder_watch_feed(&app->watch, now_ns());
		if (folder_watch_drain(&app->watch, now_ns()))
			reload(app);
		ads_service_dispatch(app->service, now_ns());
	}
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

static int load(struct app *app, const char *path)
{
	folder_init(&app->folder, path);
	app->catalog = catalog_new();
	int r = app->catalog ? folder_load(&app->folder, app->catalog, complain, NULL) : -ENOMEM;
	if (r < 0)
		log_error("cannot load the folder", "folder=%s error=%s", log_quote(path),
			log_quote(r == -EINVAL ? "its files are wrong, as told above"
					       : strerror(-r)));
	return r;
}

// Watches first, then loads: a change in between is seen.
static int open_all(struct app *app, const struct options *o)
{
	struct lb_err err = {""};
	int r = folder_watch_init(&app->watch, o->folder);
	if (r < 0) {
		log_error("cannot watch the folder", "folder=%s error=%s", log_quote(o->folder),
			log_quote(strerror(-r)));
		return r;
	}
	r = load(app, o->folder);
	if (r < 0)
		return r;
	r = ads_service_new(o->listen, app->catalog, &app->service, &err);
	if (r < 0) {
		log_error("cannot serve", "address=%s error=%s", log_quote(o->listen),
			log_quote(err.text[0] ? err.text : strerror(-r)));
		return r;
	}
	log_catalog(app->catalog, app->versions);
	log_info("serving", "folder=%s address=%s port=%d", log_quote(o->folder),
		log_quote(o->listen), ads_service_port(app->service));
	return 0;
}

int main(int argc, char **argv)
{
	struct options o;
	struct app app = {.watch = {.fd = -1}};
	int r = read_options(argc, argv, &o);
	if (r != 0) {
		fputs(usage, r < 0 ? stdout : stderr);
		return r < 0 ? EXIT_SUCCESS : r;
	}
	folder_init(&app.folder, o.folder);
	log_set_level(o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	gpr_set_log_function(grpc_says);
	app.signals = signals_open();
	r = app.signals < 0 ? -errno : open_all(&app, &o);
	if (r == 0) {
		run(&app);
		log_info("stopping", "%s", "");
	}
	ads_service_free(app.service);
	catalog_free(app.catalog);
	folder_fini(&app.folder);
	folder_watch_fini(&app.watch);
	close(app.signals);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
