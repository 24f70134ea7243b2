// SPDX-License-Identifier: Apache-2.0
// Loading a real folder, and the watch on it with a clock of the test's own.
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/time.h"
#include "proto/pool.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/kinds.h"
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"
#include "tools/shunt-xds/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS NS_PER_MS
#define CLUSTER(name)                                                                              \
	"{\"@type\":\"type.googleapis.com/envoy.config.cluster.v3.Cluster\",\"name\":\"" name "\"" \
	"}"

struct world {
	char path[64];
	char complaints[2048]; // "file: text\n" …
	struct folder folder;
	struct catalog *catalog;
};

#define ROUTES "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
#define PROD "{\"constraint\":{\"key\":\"env\",\"value\":\"prod\"}}"
#define V1 "{\"constraint\":{\"key\":\"version\",\"value\":\"v1\"}}"
#define NOT(x) "{\"notConstraints\":" x "}"
#define AND(x, y) "{\"andConstraints\":{\"constraints\":[" x "," y "]}}"
// A variant of the routes "r"; what tells it apart is the name of its virtual host.
#define WRAP(fields)                                                                               \
	"{\"@type\":\"type.googleapis.com/envoy.service.discovery.v3.Resource\"," fields "}"
#define ROUTES_OF(host)                                                                            \
	"{\"@type\":\"" ROUTES "\",\"name\":\"r\",\"virtualHosts\":[{\"name\":\"" host "\"}]}"
#define VARIANT(constraints, host)                                                                 \
	WRAP("\"resourceName\":{\"name\":\"r\",\"dynamicParameterConstraints\":" constraints       \
	     "},\"resource\":" ROUTES_OF(host))

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	snprintf(w->path, sizeof(w->path), "/tmp/shunt-folder-XXXXXX");
	assert_non_null(mkdtemp(w->path));
	folder_init(&w->folder, w->path);
	w->catalog = catalog_new(false);
	assert_non_null(w->catalog);
	*state = w;
	return 0;
}

static const char *path_of(const struct world *w, const char *file)
{
	static char path[2][PATH_MAX];
	static int turn;
	turn = !turn;
	snprintf(path[turn], PATH_MAX, "%s/%s", w->path, file);
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
	snprintf(command, sizeof(command), "rm -rf %s", w->path);
	assert_int_equal(system(command), 0);
	folder_fini(&w->folder);
	catalog_free(w->catalog);
	free(w);
	return 0;
}

static void complain(void *ctx, enum folder_fault fault, const char *file, const char *text)
{
	struct world *w = ctx;
	size_t n = strlen(w->complaints);
	snprintf(w->complaints + n, sizeof(w->complaints) - n, "%s%s: %s\n",
		fault == FOLDER_LEFT_OUT ? "left out of " : "", file, text);
}

static int load(struct world *w)
{
	w->complaints[0] = '\0';
	return folder_load(&w->folder, w->catalog, complain, w);
}

static const struct resource *find(struct world *w, enum resource_type type, const char *name)
{
	return catalog_find(w->catalog, type, name, NULL);
}

// The virtual host of the routes "r" that these parameters get; "" = none.
static const char *host_of(struct world *w, const char *params)
{
	static char text[16];
	struct xds_params *p = params_of(params);
	const struct xds_variant *v =
		xds_variants_match(w->catalog->types[RESOURCE_ROUTES].cache, "r", p, NULL);
	xds_params_put(p);
	const struct resource *r = v ? catalog_resource(v) : NULL;
	// name 1 "r", virtual_hosts 2 {name 1}
	snprintf(text, sizeof(text), "%.*s", r && r->len > 7 ? (int)r->len - 7 : 0,
		r && r->len > 7 ? (const char *)r->bytes + 7 : "");
	return text;
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
	const struct resource *r = find(w, RESOURCE_CLUSTER, "blue");
	assert_non_null(r);
	assert_int_equal(r->len, 6);
	assert_memory_equal(r->bytes,
		"\x0a\x04"
		"blue",
		6);
	assert_non_null(find(w, RESOURCE_ENDPOINTS, "blue"));
	assert_non_null(find(w, RESOURCE_LISTENER, "web"));
	assert_non_null(find(w, RESOURCE_ROUTES, "r"));
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
		"left out of c.json: nmae: unknown field of envoy.config.cluster.v3.Cluster\n",
		"\nc.json: the resource has no name", "d.json: the resource has no name",
		"e.json: the resource has no name", "f.json: line 1", "g.json: @type: missing",
		"h.json: not a file", "i.json: No such file"};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_non_null(strstr(w->complaints, files[i]));
	assert_null(strstr(w->complaints, "a.json"));
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue")); // the last good set
}

static const struct resource *find_type(struct world *w, const char *url, const char *name)
{
	struct catalog_type *type = catalog_find_type(w->catalog, url);
	return type ? catalog_find(w->catalog, type->index, name, NULL) : NULL;
}

#define SECRET "type.googleapis.com/envoy.config.cluster.v3.Secret"

static void what_descriptors_know_is_served_whole(void **state)
{
	struct world *w = *state;
	struct proto_pool *pool;
	assert_int_equal(proto_pool_new(kinds_descriptors, kinds_descriptors_len, &pool, NULL), 0);
	w->folder.pool = pool;
	put(w, "a.json",
		"{\"@type\":\"type.googleapis.com/envoy.config.cluster.v3.Cluster\","
		"\"name\":\"a\",\"limit\":7}");
	put(w, "s.json", "{\"@type\":\"" SECRET "\",\"name\":\"s\",\"text\":\"hush\"}");
	assert_int_equal(load(w), 0);
	assert_string_equal(w->complaints, "");
	const struct resource *r = find(w, RESOURCE_CLUSTER, "a");
	assert_int_equal(r->len, 7);
	assert_memory_equal(r->bytes, "\x0a\x01\x61\x88\xfa\x01\x07", 7);
	r = find_type(w, SECRET, "s");
	assert_non_null(r);
	assert_memory_equal(r->bytes, "\x0a\x01s\x12\x04hush", 9);
	put(w, "s.json", "{\"@type\":\"" SECRET "\",\"name\":\"s\",\"txet\":\"hush\"}");
	assert_int_equal(load(w), -EINVAL);
	assert_non_null(strstr(w->complaints, "s.json: txet: unknown field of"));
	assert_ptr_equal(find_type(w, SECRET, "s"), r); // the last good one
	drop(w, "s.json");
	assert_int_equal(load(w), 0);
	assert_null(find_type(w, SECRET, "s"));
	w->folder.pool = NULL;
	proto_pool_free(pool);
}

static void what_no_descriptor_knows_is_left_out_with_a_warning(void **state)
{
	struct world *w = *state;
	put(w, "a.json",
		"{\"@type\":\"type.googleapis.com/envoy.config.cluster.v3.Cluster\","
		"\"name\":\"a\",\"limit\":7}");
	put(w, "s.json", "{\"@type\":\"" SECRET "\",\"name\":\"s\",\"text\":\"hush\"}");
	assert_int_equal(load(w), 0); // the first time, too
	assert_string_equal(w->complaints,
		"left out of a.json: limit: unknown field of envoy.config.cluster.v3.Cluster\n"
		"left out of s.json: @type: unknown type " SECRET "\n");
	assert_int_equal(find(w, RESOURCE_CLUSTER, "a")->len, 3);
	assert_null(find_type(w, SECRET, "s"));
}

static void raw_bytes_are_served_as_they_are(void **state)
{
	struct world *w = *state;
	put(w, "s.json", "{\"@type\":\"" SECRET "\",\"@raw\":\"CgFzEgRodXNo\"}");
	assert_int_equal(load(w), 0);
	const struct resource *r = find_type(w, SECRET, "s");
	assert_non_null(r);
	assert_int_equal(r->len, 9);
	assert_memory_equal(r->bytes, "\x0a\x01s\x12\x04hush", 9);
	static const struct {
		const char *text, *complaint;
	} bad[] = {
		{"{\"@type\":\"" SECRET "\",\"@raw\":\"Cg==\"}", "these bytes are no message"},
		{"{\"@type\":\"" SECRET "\",\"@raw\":\"CgH/\"}", "name is not text"},
		{"{\"@type\":\"" SECRET "\",\"@raw\":\"\"}", "the resource has no name"},
		{"{\"@type\":\"no url\",\"@raw\":\"CgFz\"}", "@type: not a type's URL"},
		{"{\"@type\":\"" ROUTES "\",\"@raw\":\"CgFzEgH/\"}", "b.json: "},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(w, "b.json", bad[i].text);
		assert_int_equal(load(w), -EINVAL);
		assert_non_null(strstr(w->complaints, bad[i].complaint));
	}
}

static void types_of_files_stay_and_have_an_end(void **state)
{
	struct world *w = *state;
	char name[16], text[128];
	for (int i = 0; i <= CATALOG_TYPES_MAX; i++) {
		snprintf(name, sizeof(name), "t%02d.json", i);
		snprintf(text, sizeof(text), "{\"@type\":\"t/x.T%02d\",\"@raw\":\"CgFz\"}", i);
		put(w, name, text);
		int r = load(w);
		assert_int_equal(r, i < CATALOG_TYPES_MAX - N_RESOURCE_TYPES ? 0 : -EINVAL);
	}
	assert_non_null(strstr(w->complaints, "one more than 32 types"));
	assert_non_null(find_type(w, "t/x.T00", "s"));
	assert_non_null(find_type(w, "t/x.T27", "s"));
}

static void files_that_are_refused_use_up_no_types(void **state)
{
	struct world *w = *state;
	static const char *const bad[] = {
		"{\"@type\":\"t/x.T%02d\",\"@raw\":\"Cg==\"}", // the name is cut off
		"{\"@type\":\"t/x.T%02d\",\"@raw\":\"\"}", // there is none
		"{\"@type\":\"t/x.T%02d\",\"@raw\":\"CgEq\"}", // it is "*"
		WRAP("\"name\":\"r\",\"resource\":{\"@type\":\"t/x.T%02d\",\"@raw\":\"CgFz\"}"),
	};
	char text[256];
	for (int i = 0; i < 4 * CATALOG_TYPES_MAX; i++) {
		snprintf(text, sizeof(text), bad[i % 4], i);
		put(w, "a.json", text);
		assert_int_equal(load(w), -EINVAL);
		assert_null(strstr(w->complaints, "types"));
	}
	put(w, "a.json", "{\"@type\":\"" SECRET "\",\"@raw\":\"CgFz\"}");
	assert_int_equal(load(w), 0);
	assert_non_null(find_type(w, SECRET, "s"));
}

static void types_that_clients_asked_for_give_way_to_those_of_files(void **state)
{
	struct world *w = *state;
	struct catalog_type *types[CATALOG_TYPES_MAX];
	char url[16];
	for (int i = 0; i < CATALOG_TYPES_MAX - N_RESOURCE_TYPES; i++) {
		snprintf(url, sizeof(url), "t/x.C%02d", i);
		assert_int_equal(catalog_open_type(w->catalog, url, 0, &types[i]), 0);
		assert_non_null(types[i]);
	}
	put(w, "s.json", "{\"@type\":\"" SECRET "\",\"@raw\":\"CgFz\"}");
	assert_int_equal(load(w), -EINVAL); // they are in use
	catalog_close_type(w->catalog, types[3]);
	assert_int_equal(load(w), 0);
	assert_non_null(find_type(w, SECRET, "s"));
	struct catalog_type *late;
	assert_int_equal(catalog_open_type(w->catalog, "t/x.Late", 0, &late), 0);
	assert_null(late);
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

static void file_that_goes_wrong_is_served_as_it_was(void **state)
{
	struct world *w = *state;
	put(w, "a.json", CLUSTER("blue"));
	put(w, "b.json", CLUSTER("green"));
	assert_int_equal(load(w), 0);
	put(w, "a.json", "{");
	put(w, "b.json", CLUSTER("red"));
	assert_int_equal(load(w), -EINVAL);
	assert_non_null(strstr(w->complaints, "a.json: line 1"));
	assert_null(strstr(w->complaints, "b.json"));
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
	assert_non_null(find(w, RESOURCE_CLUSTER, "red"));
	assert_null(find(w, RESOURCE_CLUSTER, "green"));
	assert_int_equal(load(w), -EINVAL); // still
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
	drop(w, "a.json");
	assert_int_equal(load(w), 0);
	assert_null(find(w, RESOURCE_CLUSTER, "blue"));
}

static void nothing_is_served_of_a_folder_that_was_never_right(void **state)
{
	struct world *w = *state;
	put(w, "a.json", CLUSTER("blue"));
	put(w, "b.json", "{");
	assert_int_equal(load(w), -EINVAL);
	assert_null(find(w, RESOURCE_CLUSTER, "blue"));
	put(w, "b.json", CLUSTER("green"));
	assert_int_equal(load(w), 0);
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
}

static void one_name_in_two_files_is_refused(void **state)
{
	struct world *w = *state;
	put(w, "b.json", CLUSTER("blue"));
	assert_int_equal(load(w), 0);
	put(w, "a.json", CLUSTER("blue"));
	put(w, "c.json", CLUSTER("green"));
	assert_int_equal(load(w), -EINVAL);
	assert_string_equal(w->complaints,
		"a.json: clashes with b.json: cluster \"blue\": variant any: listed twice\n");
	assert_non_null(find(w, RESOURCE_CLUSTER, "green"));
	drop(w, "b.json");
	assert_int_equal(load(w), 0);
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
}

static void resource_may_move_to_another_file(void **state)
{
	struct world *w = *state;
	put(w, "a.json", CLUSTER("blue"));
	assert_int_equal(load(w), 0);
	uint64_t generation = w->catalog->types[RESOURCE_CLUSTER].generation;
	assert_int_equal(rename(path_of(w, "a.json"), path_of(w, "b.json")), 0);
	assert_int_equal(load(w), 0);
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
	assert_int_equal(w->catalog->types[RESOURCE_CLUSTER].generation, generation);
	put(w, "b.json", CLUSTER("green"));
	assert_int_equal(load(w), 0);
	assert_true(w->catalog->types[RESOURCE_CLUSTER].generation > generation);
}

// TP2-C11: the seed's example, four files for nine pairs of parameters, and for none.
static void variants_stand_beside_each_other(void **state)
{
	struct world *w = *state;
	put(w, "r.json", VARIANT(AND(NOT(PROD), NOT(V1)), "nn"));
	put(w, "r-prod.json", VARIANT(AND(PROD, NOT(V1)), "pn"));
	put(w, "r-v1.json", VARIANT(AND(NOT(PROD), V1), "nv"));
	put(w, "r-prod-v1.json", VARIANT(AND(PROD, V1), "pv"));
	assert_int_equal(load(w), 0);
	static const char *const envs[] = {"prod", "canary", "test"}, *const versions[] = {
									      "v1", "v2", "v3"};
	for (int e = 0; e < 3; e++) {
		for (int v = 0; v < 3; v++) {
			char params[64],
				expected[3] = {e == 0 ? 'p' : 'n', v == 0 ? 'v' : 'n', '\0'};
			snprintf(params, sizeof(params), "env=%s version=%s", envs[e], versions[v]);
			assert_string_equal(host_of(w, params), expected);
		}
	}
	assert_string_equal(host_of(w, ""), "nn");
}

// TP2-S06.
static void overlap_is_refused_with_both_files_and_the_parameters(void **state)
{
	struct world *w = *state;
	put(w, "r.json", VARIANT(PROD, "a"));
	put(w, "s.json", VARIANT(NOT(PROD), "b"));
	assert_int_equal(load(w), 0);
	put(w, "t.json", VARIANT(AND(PROD, V1), "c"));
	assert_int_equal(load(w), -EINVAL);
	assert_string_equal(w->complaints,
		"t.json: clashes with r.json: routes \"r\": variants env=prod and env=prod AND "
		"version=v1 overlap: both match {env=prod, version=v1}\n");
	assert_string_equal(host_of(w, "env=prod version=v1"), "a");
	// Both changed, so both are refused; each stays what it was.
	put(w, "r.json", VARIANT(AND(PROD, NOT(V1)), "d"));
	put(w, "s.json", VARIANT(NOT(V1), "e"));
	put(w, "t.json", VARIANT(AND(PROD, V1), "f"));
	assert_int_equal(load(w), -EINVAL);
	assert_non_null(strstr(w->complaints, "r.json: clashes with s.json"));
	assert_non_null(strstr(w->complaints, "s.json: clashes with r.json"));
	assert_non_null(strstr(w->complaints, "t.json: clashes with r.json"));
	assert_string_equal(host_of(w, "env=prod version=v1"), "a");
	assert_string_equal(host_of(w, "env=test"), "b");
	put(w, "s.json", VARIANT(NOT(PROD), "b"));
	assert_int_equal(load(w), 0);
	assert_string_equal(host_of(w, "env=prod version=v1"), "f");
	assert_string_equal(host_of(w, "env=prod"), "d");
}

static void overlap_at_the_first_load_is_refused(void **state)
{
	struct world *w = *state;
	put(w, "r.json", VARIANT(PROD, "a"));
	put(w, "s.json", VARIANT(V1, "b"));
	assert_int_equal(load(w), -EINVAL);
	assert_non_null(strstr(w->complaints, "both match {env=prod, version=v1}"));
	assert_string_equal(host_of(w, "env=prod"), "");
}

// A variant split into two by one change of the folder (TP2-S05).
static void variants_are_exchanged_between_files(void **state)
{
	struct world *w = *state;
	put(w, "r.json", VARIANT(PROD, "a"));
	put(w, "s.json", VARIANT(NOT(PROD), "b"));
	assert_int_equal(load(w), 0);
	put(w, "r.json", VARIANT(NOT(PROD), "a"));
	put(w, "s.json", VARIANT(PROD, "b"));
	assert_int_equal(load(w), 0);
	assert_string_equal(host_of(w, "env=prod"), "b");
	drop(w, "s.json");
	put(w, "t.json", VARIANT(AND(PROD, V1), "c"));
	put(w, "u.json", VARIANT(AND(PROD, NOT(V1)), "d"));
	assert_int_equal(load(w), 0);
	assert_string_equal(host_of(w, "env=prod"), "d");
	assert_string_equal(host_of(w, "env=prod version=v1"), "c");
}

static void bad_wrapper_is_named_with_its_field(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *text, *complaint;
	} cases[] = {
		{WRAP("\"name\":\"r\",\"resourceName\":{\"name\":\"r\"},\"resource\":" ROUTES_OF(
			 "a")),
			"a.json: resource_name: not together with name\n"}, // RS-02
		{WRAP("\"name\":\"r\""), "a.json: resource: missing\n"},
		{WRAP("\"name\":\"s\",\"resource\":" ROUTES_OF("a")),
			"a.json: name: \"s\" is not the name of the resource, \"r\"\n"},
		{WRAP("\"resourceName\":{\"name\":\"s\"},\"resource\":" ROUTES_OF("a")),
			"a.json: resource_name.name: \"s\" is not the name of the resource, "
			"\"r\"\n"},
		{WRAP("\"version\":\"1\",\"resource\":" ROUTES_OF("a")),
			"a.json: version: is made of the content, leave it out\n"},
		{WRAP("\"ttl\":\"1s\",\"resource\":" ROUTES_OF("a")),
			"a.json: ttl: not supported\n"},
		{WRAP("\"aliases\":[\"x\"],\"resource\":" ROUTES_OF("a")),
			"a.json: aliases: not supported\n"},
		{WRAP("\"resource\":" WRAP("\"resource\":" ROUTES_OF("a"))),
			"a.json: @type: a Resource in a Resource"},
		{WRAP("\"resource\":{}"), "a.json: @type: missing"},
		{VARIANT("{\"andConstraints\":{\"constraints\":[{\"constraint\":{\"key\":\"env\"}}]"
			 "}}",
			 "a"),
			"a.json: resource_name.dynamic_parameter_constraints: and_constraints[0]: "
			"constraint on \"env\": neither value nor exists is set\n"}, // TP2-C08
		{VARIANT("{\"constraint\":{\"key\":\"env\",\"valeu\":\"x\"}}", "a"),
			"a.json: resourceName.dynamicParameterConstraints.constraint.valeu: "
			"unknown field"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(w, "a.json", cases[i].text);
		assert_int_equal(load(w), -EINVAL);
		if (!strstr(w->complaints, cases[i].complaint))
			assert_string_equal(w->complaints, cases[i].complaint);
	}
}

static void wrapper_needs_no_constraints(void **state)
{
	struct world *w = *state;
	put(w, "a.json",
		WRAP("\"resource\":" ROUTES_OF("a") ",\"cacheControl\":{\"doNotCache\":true}"));
	assert_int_equal(load(w), 0);
	assert_string_equal(host_of(w, "env=prod"), "a");
	assert_true(find(w, RESOURCE_ROUTES, "r")->do_not_cache);
}

// Bytes and constraints make the version; nothing else does.
static void version_is_that_of_the_content(void **state)
{
	struct world *w = *state;
	char before[64];
	put(w, "a.json", CLUSTER("blue"));
	put(w, "r.json", VARIANT(PROD, "a"));
	put(w, "s.json", VARIANT(NOT(PROD), "a"));
	assert_int_equal(load(w), 0);
	snprintf(before, sizeof(before), "%s", find(w, RESOURCE_CLUSTER, "blue")->version);
	assert_int_equal(strlen(before), 32);
	struct xds_constraints *prod = constraints_of(PROD), *not_prod = constraints_of(NOT(PROD));
	struct xds_variants *cache = w->catalog->types[RESOURCE_ROUTES].cache;
	const char *a = xds_variants_find(cache, "r", prod)->version;
	const char *b = xds_variants_find(cache, "r", not_prod)->version;
	assert_string_not_equal(a, b);
	assert_memory_equal(a, b, 32);
	struct xds_constraints *back = resource_version_constraints(a);
	assert_true(xds_constraints_eq(back, prod));
	xds_constraints_put(back);
	assert_null(resource_version_constraints(before));
	xds_constraints_put(prod);
	xds_constraints_put(not_prod);
	uint64_t version = w->catalog->types[RESOURCE_CLUSTER].version;
	put(w, "a.json",
		"{ \"name\": \"blue\", \"@type\": "
		"\"type.googleapis.com/envoy.config.cluster.v3.Cluster\"}");
	assert_int_equal(load(w), 0);
	assert_string_equal(find(w, RESOURCE_CLUSTER, "blue")->version, before);
	assert_int_equal(w->catalog->types[RESOURCE_CLUSTER].version, version);
	put(w, "a.json", CLUSTER("blux"));
	assert_int_equal(load(w), 0);
	assert_string_not_equal(find(w, RESOURCE_CLUSTER, "blux")->version, before);
}

static void load_without_memory_changes_nothing(void **state)
{
	struct world *w = *state;
	int r = 0;
	bool was_hit = true;
	for (size_t nth = 0; was_hit; nth++) {
		put(w, "a.json", CLUSTER("blue"));
		put(w, "r.json", VARIANT(PROD, "a"));
		put(w, "s.json", VARIANT(NOT(PROD), "b"));
		if (nth > 0 && r == 0)
			drop(w, "t.json");
		assert_int_equal(load(w), 0);
		put(w, "a.json", CLUSTER("green"));
		put(w, "s.json", VARIANT(AND(NOT(PROD), V1), "c"));
		put(w, "t.json", VARIANT(AND(NOT(PROD), NOT(V1)), "d"));
		alloc_fail_arm(nth);
		r = load(w);
		was_hit = alloc_fail_disarm();
		if (r == -ENOMEM) {
			assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
			assert_null(find(w, RESOURCE_CLUSTER, "green"));
			assert_string_equal(host_of(w, "version=v1"), "b");
		}
		// A file that its parser has no memory for is called bad, and what it was stays. A
		// table that cannot grow is a slower table.
		assert_true(r == 0 || r == -ENOMEM || r == -EINVAL);
		if (r != 0)
			drop(w, "t.json");
	}
	assert_int_equal(r, 0);
	assert_non_null(find(w, RESOURCE_CLUSTER, "green"));
	assert_string_equal(host_of(w, "version=v1"), "c");
	assert_string_equal(host_of(w, "version=v2"), "d");
}

static void file_that_did_not_change_is_not_read_again(void **state)
{
	struct world *w = *state;
	int fd = inotify_init1(IN_NONBLOCK);
	char events[4096];
	w->folder.doubt_ns = 0;
	put(w, "a.json", CLUSTER("blue"));
	put(w, "b.json", CLUSTER("green"));
	assert_int_equal(load(w), 0);
	assert_true(inotify_add_watch(fd, path_of(w, "a.json"), IN_OPEN) >= 0);
	put(w, "b.json", CLUSTER("red"));
	assert_int_equal(load(w), 0);
	assert_int_equal(read(fd, events, sizeof(events)), -1);
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
	assert_non_null(find(w, RESOURCE_CLUSTER, "red"));
	w->folder.doubt_ns = UINT64_MAX / 2; // what is young may change unseen
	put(w, "a.json", CLUSTER("blux"));
	assert_int_equal(load(w), 0);
	while (read(fd, events, sizeof(events)) > 0) {
	}
	assert_int_equal(load(w), 0);
	assert_true(read(fd, events, sizeof(events)) > 0);
	assert_non_null(find(w, RESOURCE_CLUSTER, "blux"));
	close(fd);
}

// What was refused, or was never taken, is looked at again though the file is the same.
static void refused_file_is_read_again(void **state)
{
	struct world *w = *state;
	w->folder.doubt_ns = 0;
	put(w, "a.json", CLUSTER("blue"));
	put(w, "bad.json", "{");
	assert_int_equal(load(w), -EINVAL);
	assert_int_equal(load(w), -EINVAL);
	drop(w, "bad.json");
	assert_int_equal(load(w), 0);
	put(w, "b.json", CLUSTER("blue"));
	assert_int_equal(load(w), -EINVAL);
	assert_int_equal(load(w), -EINVAL);
	drop(w, "a.json");
	assert_int_equal(load(w), 0);
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
	assert_int_equal(load(w), 0);
}

static void missing_folder_is_told(void **state)
{
	struct world *w = *state;
	struct folder_watch watch;
	put(w, "a.json", CLUSTER("blue"));
	assert_int_equal(load(w), 0);
	const char *path = w->folder.path;
	w->folder.path = "/tmp/shunt-folder-none";
	assert_int_equal(load(w), -ENOENT);
	assert_non_null(strstr(w->complaints, "No such file"));
	assert_int_equal(folder_watch_init(&watch, w->folder.path), -ENOENT);
	assert_non_null(find(w, RESOURCE_CLUSTER, "blue"));
	w->folder.path = path;
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
	assert_int_equal(folder_watch_init(&watch, w->path), 0);
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
	assert_int_equal(folder_watch_init(&watch, w->path), 0);
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
	assert_int_equal(folder_watch_init(&watch, w->path), 0);
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
	assert_int_equal(folder_watch_init(&watch, w->path), 0);
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
	snprintf(aside, sizeof(aside), "%s.aside", w->path);
	assert_int_equal(folder_watch_init(&watch, w->path), 0);
	assert_int_equal(rename(w->path, aside), 0);
	feed(&watch, 1000 * MS);
	assert_true(folder_watch_drain(&watch, 1050 * MS)); // so that the loss is told
	assert_false(folder_watch_drain(&watch, 1060 * MS));
	assert_false(folder_watch_drain(&watch, 1550 * MS));
	assert_int_equal(rename(aside, w->path), 0);
	assert_true(folder_watch_drain(&watch, 2050 * MS));
	assert_false(folder_watch_drain(&watch, 3000 * MS));
	put(w, "a.json", "1");
	feed(&watch, 3000 * MS);
	assert_true(folder_watch_drain(&watch, 3050 * MS));
	folder_watch_fini(&watch);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

RUN_SUITE("shunt-xds/folder", CASE(files_become_resources), CASE(every_bad_file_is_named),
	CASE(what_descriptors_know_is_served_whole),
	CASE(what_no_descriptor_knows_is_left_out_with_a_warning),
	CASE(raw_bytes_are_served_as_they_are), CASE(types_of_files_stay_and_have_an_end),
	CASE(files_that_are_refused_use_up_no_types),
	CASE(types_that_clients_asked_for_give_way_to_those_of_files),
	CASE(file_that_is_deeper_on_the_wire_than_in_json_is_named),
	CASE(one_name_in_two_files_is_refused), CASE(resource_may_move_to_another_file),
	CASE(file_that_did_not_change_is_not_read_again), CASE(refused_file_is_read_again),
	CASE(missing_folder_is_told), CASE(file_that_goes_wrong_is_served_as_it_was),
	CASE(nothing_is_served_of_a_folder_that_was_never_right),
	CASE(variants_stand_beside_each_other),
	CASE(overlap_is_refused_with_both_files_and_the_parameters),
	CASE(overlap_at_the_first_load_is_refused), CASE(variants_are_exchanged_between_files),
	CASE(bad_wrapper_is_named_with_its_field), CASE(wrapper_needs_no_constraints),
	CASE(version_is_that_of_the_content), CASE(load_without_memory_changes_nothing),
	CASE(changes_together_are_told_once), CASE(busy_folder_is_told_all_the_same),
	CASE(renames_links_and_removals_are_seen), CASE(file_under_construction_is_not_told),
	CASE(folder_that_goes_and_comes_is_followed))
