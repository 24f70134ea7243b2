// SPDX-License-Identifier: Apache-2.0
// `shunt-xds serve`: a management server whose resources are the files of a folder. The loop:
// signals, the folder, the clients.
#include "lb/base/err.h"
#include "lb/base/log.h"
#include "tools/shunt-xds/ads_service.h"
#include "tools/shunt-xds/app.h"
#include "tools/shunt-xds/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct app {
	struct folder folder;
	struct folder_watch watch;
	struct catalog *catalog;
	struct ads_service *service;
	uint64_t versions[N_RESOURCE_TYPES]; // as they were logged
};

static void complain(void *ctx, const char *file, const char *text)
{
	log_error("bad resource", "file=%s error=%s", log_quote(file), log_quote(text));
}

// How much there is of each type, where it is not as before.
static void log_catalog(struct catalog *c, uint64_t before[N_RESOURCE_TYPES])
{
	for (int t = 0; t < N_RESOURCE_TYPES; t++) {
		struct catalog_type *type = &c->types[t];
		if (before[t] != type->version && catalog_names(type) == 0)
			log_info("resources",
				"type=%s version=%016" PRIx64 " names=%zu variants=%zu",
				type->info.label, type->version, type->n_names, type->n);
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
	ads_service_publish(app->service, app_now_ns());
}

static void run(struct app *app, int signals)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
			{.fd = app->watch.fd, .events = POLLIN},
			{.fd = ads_service_fd(app->service), .events = POLLIN}};
		uint64_t due = folder_watch_due_ns(&app->watch);
		uint64_t clients_due = ads_service_due_ns(app->service);
		app_wait(fds, 3, clients_due < due ? clients_due : due);
		if (fds[0].revents)
			return;
		if (fds[1].revents)
			folder_watch_feed(&app->watch, app_now_ns());
		if (folder_watch_drain(&app->watch, app_now_ns()))
			reload(app);
		ads_service_dispatch(app->service, app_now_ns());
	}
}

static int load(struct app *app, const char *path)
{
	folder_init(&app->folder, path);
	app->catalog = catalog_new(false);
	int r = app->catalog ? folder_load(&app->folder, app->catalog, complain, NULL) : -ENOMEM;
	if (r < 0)
		log_error("cannot load the folder", "folder=%s error=%s", log_quote(path),
			log_quote(r == -EINVAL ? "its files are wrong, as told above"
					       : strerror(-r)));
	return r;
}

// Watches first, then loads: a change in between is seen.
static int open_all(struct app *app, const struct app_options *o)
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

int app_serve(const struct app_options *o, int signals)
{
	struct app app = {.watch = {.fd = -1}};
	folder_init(&app.folder, o->folder);
	int r = open_all(&app, o);
	if (r == 0) {
		run(&app, signals);
		log_info("stopping", "%s", "");
	}
	ads_service_free(app.service);
	catalog_free(app.catalog);
	folder_fini(&app.folder);
	folder_watch_fini(&app.watch);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
