// SPDX-License-Identifier: Apache-2.0
// Loading a real folder, and the watch on it with a clock of the test's own.
#include "tests/support/check.h"
#include "tools/shunt-xds/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS 1000000ull
#define CLUSTER(name)                                                                              \
	"{\"@type\":\"type.googleapis.com/envoy.config.cluster.v3.Cluster\",\"name\":\"" name "\"" \
	"}"

struct world {
	char folder[64];
	char complaints[1024]; // "file: text\n" …
	struct resource_set *set;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	snprintf(w->folder, sizeof(w->folder), "/tmp/shunt-folder-XXXXXX");
	assert_non_null(mkdtemp(w->folder));
	*state = w;
	return 0;
}

static const char *path_of(const struct world *w, const char *file)
{
	static char path[2][PATH_MAX];
	static int turn;
	turn = !turn;
	snprintf(path[turn], PATH_MAX, "%s/%s", w->folder, file);
	return path[turn];
}

static void put(struct world *w, const char *file, const char *text)
{
	FILE *f = fopen(path_of(w, file), "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void drop(struct world *w, const char *file)
{
	assert_int_equal(unlink(path_of(w, file)), 0);
}

static int teardown(void **state)
{
	struct world *w = *state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", w->folder);
	assert_int_equal(system(command), 0);
	resource_set_free(w->set);
	free(w);
	return 0;
}

static void complain(void *ctx, const char *file, const char *text)
{
	struct world *w = ctx;
	size_t n = strlen(w->complaints);
	snprintf(w->complaints + n, sizeof(w->complaints) - n, "%s: %s\n", file, text);
}

static int load(struct world *w)
{
	struct resource_set *set;
	w->complaints[0] = '\0';
	int r = folder_load(w->folder, w->set, complain, w, &set);
	if (r < 0)
		return r;
	resource_set_free(w->set);
	w->set = set;
	return 0;
}

static void files_become_resources(void **state)
{
	struct world *w = *state;
	put(w, "a.json", CLUSTER("blue"));
	put(w, "e.json",
		"{\"@type\":\"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\","
		"\"clusterName\":\"blue\"}");
	put(w, "l.json",
		"{\"@type\":\"type.googleapis.com/envoy.config.listener.v3.Listener\","
		"\"name\":\"web\"}");
	put(w, "r.json",
		"{\"@type\":\"type.googleapis.com/envoy.config.route.v3.RouteConfiguration\","
		"\"name\":\"r\"}");
	put(w, ".hidden.json", "not read");
	put(w, "README.md", "not read");
	put(w, ".json", "not read");
	assert_int_equal(load(w), 0);
	assert_string_equal(w->complaints, "");
	struct resource *r = resource_set_find(w->set, RESOURCE_CLUSTER, "blue");
	assert_non_null(r);
	assert_int_equal(r->len, 6);
	assert_memory_equal(r->bytes,
		"\x0a\x04"
		"blue",
		6);
	assert_non_null(resource_set_find(w->set, RESOURCE_ENDPOINTS, "blue"));
	assert_non_null(resource_set_find(w->set, RESOURCE_LISTENER, "web"));
	assert_non_null(resource_set_find(w->set, RESOURCE_ROUTES, "r"));
}

static void every_bad_file_is_named(void **state)
{
	struct world *w = *state;
	put(w, "a.json", CLUSTER("blue"));
	assert_int_equal(load(w), 0);
	put(w, "b.json", "{\n \"@type\" 1}");
	put(w, "c.json",
		"{\"@type\":\"type.googleapis.com/envoy.config.cluster.v3.Cluster\","
		"\"nmae\":\"x\"}");
	put(w, "d.json", CLUSTER(""));
	put(w, "e.json", "{\"@type\":\"x/google.protobuf.Duration\",\"value\":\"1s\"}");
	put(w, "f.json", "");
	put(w, "g.json", "{}");
	assert_int_equal(mkdir(path_of(w, "h.json"), 0700), 0);
	assert_int_equal(symlink("nowhere", path_of(w, "i.json")), 0);
	assert_int_equal(load(w), -EINVAL);
	static const char *const files[] = {"b.json: line 2, column 10: ",
		"c.json: nmae: unknown field of envoy.config.cluster.v3.Cluster\n",
		"d.json: the resource has no name", "e.json: @type: not a listener",
		"f.json: line 1", "g.json: @type: not a listener", "h.json: not a file",
		"i.json: No such file"};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_non_null(strstr(w->complaints, files[i]));
	assert_null(strstr(w->complaints, "a.json"));
	assert_non_null(resource_set_find(w->set, RESOURCE_CLUSTER, "blue")); // the last good set
}

// A Struct's members are one level of JSON and two of the wire.
static void file_that_is_deeper_on_the_wire_than_in_json_is_named(void **state)
{
	struct world *w = *state;
	char text[1024];
	int len = snprintf(text, sizeof(text),
		"{\"@type\":\"type.googleapis.com/envoy.config.cluster.v3.Cluster\","
		"\"name\":\"deep\",\"metadata\":{\"filterMetadata\":{\"x\":");
	for (int i = 0; i < 40; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "{\"a\":");
	len += snprintf(text + len, sizeof(text) - (size_t)len, "1");
	for (int i = 0; i < 43; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "}");
	put(w, "deep.json", text);
	assert_int_equal(load(w), -EINVAL);
	assert_non_null(strstr(w->complaints, "deep.json: "));
	assert_non_null(strstr(w->complaints, "nested deeper than 100"));
}

static void one_name_in_two_files_is_refused(void **state)
{
	struct world *w = *state;
	put(w, "a.json", CLUSTER("blue"));
	put(w, "b.json", CLUSTER("blue"));
	assert_int_equal(load(w), -EINVAL);
	assert_non_null(strstr(w->complaints, "cluster \"blue\" stands in both a"));
	assert_non_null(strstr(w->complaints, "b.json"));
}

static void resource_may_move_to_another_file(void **state)
{
	struct world *w = *state;
	put(w, "a.json", CLUSTER("blue"));
	assert_int_equal(load(w), 0);
	assert_int_equal(rename(path_of(w, "a.json"), path_of(w, "b.json")), 0);
	assert_int_equal(load(w), 0);
	assert_int_equal(w->set->types[RESOURCE_CLUSTER].version, 1);
	assert_string_equal(resource_set_find(w->set, RESOURCE_CLUSTER, "blue")->origin, "b.json");
}

static void missing_folder_is_told(void **state)
{
	struct world *w = *state;
	struct folder_watch watch;
	snprintf(w->folder, sizeof(w->folder), "/tmp/shunt-folder-none");
	assert_int_equal(load(w), -ENOENT);
	assert_non_null(strstr(w->complaints, "No such file"));
	assert_int_equal(folder_watch_init(&watch, w->folder), -ENOENT);
}

// Waits for the kernel, then reads at the given time.
static void feed(struct folder_watch *watch, uint64_t now_ns)
{
	struct pollfd p = {.fd = watch->fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 5000), 1);
	folder_watch_feed(watch, now_ns);
}

static void changes_together_are_told_once(void **state)
{
	struct world *w = *state;
	struct folder_watch watch;
	assert_int_equal(folder_watch_init(&watch, w->folder), 0);
	assert_int_equal(folder_watch_due_ns(&watch), UINT64_MAX);
	put(w, "a.json", "1");
	feed(&watch, 1000 * MS);
	put(w, "b.json", "2");
	feed(&watch, 1030 * MS);
	assert_false(folder_watch_drain(&watch, 1079 * MS));
	assert_int_equal(folder_watch_due_ns(&watch), 1080 * MS);
	assert_true(folder_watch_drain(&watch, 1080 * MS));
	assert_false(folder_watch_drain(&watch, 2000 * MS));
	assert_int_equal(folder_watch_due_ns(&watch), UINT64_MAX);
	folder_watch_fini(&watch);
}

static void busy_folder_is_told_all_the_same(void **state)
{
	struct world *w = *state;
	struct folder_watch watch;
	assert_int_equal(folder_watch_init(&watch, w->folder), 0);
	uint64_t now = 1000 * MS;
	for (int i = 0; i < 7; i++, now += 40 * MS) {
		put(w, "a.json", "1");
		feed(&watch, now);
		assert_int_equal(folder_watch_drain(&watch, now), now >= 1250 * MS);
	}
	folder_watch_fini(&watch);
}

static void renames_links_and_removals_are_seen(void **state)
{
	struct world *w = *state;
	struct folder_watch watch;
	put(w, ".tmp", "1");
	assert_int_equal(folder_watch_init(&watch, w->folder), 0);
	uint64_t now = 1000 * MS;
	assert_int_equal(rename(path_of(w, ".tmp"), path_of(w, "a.json")), 0);
	feed(&watch, now);
	assert_true(folder_watch_drain(&watch, now += 50 * MS));
	assert_int_equal(link(path_of(w, "a.json"), path_of(w, "b.json")), 0);
	feed(&watch, now);
	assert_true(folder_watch_drain(&watch, now += 50 * MS));
	assert_int_equal(symlink("a.json", path_of(w, "c.json")), 0);
	feed(&watch, now);
	assert_true(folder_watch_drain(&watch, now += 50 * MS));
	drop(w, "c.json");
	feed(&watch, now);
	assert_true(folder_watch_drain(&watch, now += 50 * MS));
	folder_watch_fini(&watch);
}

static void file_under_construction_is_not_told(void **state)
{
	struct world *w = *state;
	struct folder_watch watch;
	assert_int_equal(folder_watch_init(&watch, w->folder), 0);
	int fd = open(path_of(w, "a.json"), O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	feed(&watch, 1000 * MS);
	assert_int_equal(folder_watch_due_ns(&watch), UINT64_MAX);
	assert_int_equal(write(fd, "1", 1), 1);
	close(fd);
	feed(&watch, 2000 * MS);
	assert_true(folder_watch_drain(&watch, 2050 * MS));
	folder_watch_fini(&watch);
}

static void folder_that_goes_and_comes_is_followed(void **state)
{
	struct world *w = *state;
	struct folder_watch watch;
	char aside[80];
	snprintf(aside, sizeof(aside), "%s.aside", w->folder);
	assert_int_equal(folder_watch_init(&watch, w->folder), 0);
	assert_int_equal(rename(w->folder, aside), 0);
	feed(&watch, 1000 * MS);
	assert_true(folder_watch_drain(&watch, 1050 * MS)); // so that the loss is told
	assert_false(folder_watch_drain(&watch, 1060 * MS));
	assert_false(folder_watch_drain(&watch, 1550 * MS));
	assert_int_equal(rename(aside, w->folder), 0);
	assert_true(folder_watch_drain(&watch, 2050 * MS));
	assert_false(folder_watch_drain(&watch, 3000 * MS));
	put(w, "a.json", "1");
	feed(&watch, 3000 * MS);
	assert_true(folder_watch_drain(&watch, 3050 * MS));
	folder_watch_fini(&watch);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

RUN_SUITE("shunt-xds/folder", CASE(files_become_resources), CASE(every_bad_file_is_named),
	CASE(file_that_is_deeper_on_the_wire_than_in_json_is_named),
	CASE(one_name_in_two_files_is_refused), CASE(resource_may_move_to_another_file),
	CASE(missing_folder_is_told), CASE(changes_together_are_told_once),
	CASE(busy_folder_is_told_all_the_same), CASE(renames_links_and_removals_are_seen),
	CASE(file_under_construction_is_not_told), CASE(folder_that_goes_and_comes_is_followed))
