// SPDX-License-Identifier: Apache-2.0
// `shunt-xds serve`: a management server whose resources are the files of a folder. The loop:
// signals, the folder, the clients.
#include "lb/base/err.h"
#include "lb/base/log.h"
#include "proto/pool.h"
#include "tools/shunt-xds/ads_service.h"
#include "tools/shunt-xds/app.h"
#include "tools/shunt-xds/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS "envoy-api.pb"

struct app {
	struct folder folder;
	struct folder_watch watch;
	struct catalog *catalog;
	struct ads_service *service;
	struct proto_pool *pool; // NULL = no descriptors
	uint64_t versions[CATALOG_TYPES_MAX]; // as they were logged
};

static void complain(void *ctx, enum folder_fault fault, const char *file, const char *text)
{
	if (fault == FOLDER_LEFT_OUT)
		log_warn("left out of what is served: no descriptors know it, see --descriptors",
			"file=%s what=%s", log_quote(file), log_quote(text));
	else
		log_error("bad resource", "file=%s error=%s", log_quote(file), log_quote(text));
}

// How much there is of each type, where it is not as before.
static void log_catalog(struct catalog *c, uint64_t before[CATALOG_TYPES_MAX])
{
	for (uint32_t t = 0; t < c->n_types; t++) {
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
		log_warn("bad files are not loaded: their last good versions are served",
			"folder=%s", log_quote(app->folder.path));
	else if (r < 0)
		log_error("cannot load the folder: its last good version is served",
			"folder=%s error=%s", log_quote(app->folder.path), log_quote(strerror(-r)));
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

// Beside the program, where the build has put it. "" = nowhere.
static void find_descriptors(char *path, size_t room)
{
	ssize_t n = readlink("/proc/self/exe", path, room - 1);
	path[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash + 1 - path) : 0;
	if (!len || len + sizeof(DESCRIPTORS) > room)
		path[0] = '\0';
	else
		strcpy(slash + 1, DESCRIPTORS);
	if (access(path, R_OK) < 0)
		path[0] = '\0';
}

// *ret is to be unmapped, NULL where the file is empty. 0 or -errno.
static int map_file(const char *path, void **ret, size_t *ret_len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	void *bytes = NULL;
	if (r == 0 && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		r = -errno;
	close(fd);
	*ret = bytes;
	*ret_len = (size_t)st.st_size;
	return r;
}

// given: NULL = those beside the program, if they are there.
static int load_descriptors(const char *given, struct proto_pool **ret)
{
	char beside[PATH_MAX];
	struct lb_err err = {""};
	void *bytes = NULL;
	size_t len = 0;
	find_descriptors(beside, sizeof(beside));
	const char *path = given ? given : beside;
	if (!path[0]) {
		log_info("no descriptors: unknown fields and types are ignored",
			"see=--descriptors");
		return 0;
	}
	int r = map_file(path, &bytes, &len);
	if (r == 0) {
		r = proto_pool_new(bytes, len, ret, &err);
		if (bytes)
			munmap(bytes, len);
	}
	if (r < 0)
		log_error("cannot read the descriptors", "file=%s error=%s", log_quote(path),
			log_quote(err.text[0] ? err.text : strerror(-r)));
	else
		log_info("descriptors", "file=%s messages=%zu", log_quote(path),
			proto_pool_n_messages(*ret));
	return r;
}

static int load(struct app *app, const char *path)
{
	folder_init(&app->folder, path);
	app->folder.pool = app->pool;
	app->catalog = catalog_new(false);
	int r = app->catalog ? folder_load(&app->folder, app->catalog, complain, NULL) : -ENOMEM;
	if (r < 0)
		log_error("cannot load the folder", "folder=%s error=%s", log_quote(path),
			log_quote(r == -EINVAL ? "some of its files are bad" : strerror(-r)));
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
	r = load_descriptors(o->descriptors, &app->pool);
	if (r == 0)
		r = load(app, o->folder);
	if (r < 0)
		return r;
	r = ads_service_new(
		o->listen, o->tls.cert ? &o->tls : NULL, app->catalog, &app->service, &err);
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
	proto_pool_free(app.pool);
	folder_watch_fini(&app.watch);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
