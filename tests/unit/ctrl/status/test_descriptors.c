// SPDX-License-Identifier: Apache-2.0
// Questions to the descriptors of our own .proto files, checked against what protobuf-c's generator
// made of the same files.
#include "ctrl/status/descriptors.h"
#include "envoy/service/status/v3/csds.pb-c.h"
#include "google/protobuf/any.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "lb/base/rand.h"
#include "proto/descriptors.h"
#include "proto/registry.h"
#include "proto/wire.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct descriptors *types;

static int make(void **state)
{
	types = descriptors_new(proto_descriptors, proto_descriptors_len);
	return types ? 0 : -1;
}

static int drop(void **state)
{
	descriptors_free(types);
	return 0;
}

static struct str path_of(uint32_t file)
{
	struct str bytes = descriptors_file(types, file);
	const uint8_t *p = (const uint8_t *)bytes.p;
	struct proto_field f;
	while (proto_field_next(&p, (const uint8_t *)bytes.p + bytes.len, &f))
		if (f.number == 1)
			return (struct str){(const char *)f.bytes, f.len};
	return (struct str){0};
}

static void assert_declared(const char *symbol, const char *path)
{
	uint32_t file = descriptors_find_symbol(types, str_from(symbol));
	if (file == DESCRIPTORS_NONE)
		fail_msg("%s is not found", symbol);
	assert_true(str_eq(path_of(file), str_from(path)));
}

static void every_kind_of_symbol_is_found_in_its_file(void **state)
{
	assert_declared("google.protobuf.Any", "google/protobuf/any.proto");
	assert_declared("google.protobuf.Any.type_url", "google/protobuf/any.proto");
	assert_declared("grpc.health.v1.Health", "grpc/health/v1/health.proto");
	assert_declared("grpc.health.v1.Health.Watch", "grpc/health/v1/health.proto");
	assert_declared(
		"grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto");
	// An enum's values stand beside it.
	assert_declared(
		"grpc.health.v1.HealthCheckResponse.NOT_SERVING", "grpc/health/v1/health.proto");
	assert_declared("envoy.service.status.v3.STALE", "envoy/service/status/v3/csds.proto");
	assert_declared("envoy.service.status.v3.ClientConfig.GenericXdsConfig.error_state",
		"envoy/service/status/v3/csds.proto");
	assert_declared("grpc.reflection.v1alpha.ServerReflectionRequest.message_request",
		"grpc/reflection/v1alpha/reflection.proto");
}

static void what_is_not_declared_is_not_found(void **state)
{
	static const char *const names[] = {"", ".", "google", "google.protobuf",
		"google.protobuf.", "google.protobuf.An", "google.protobuf.Any.",
		"google.protobuf.Any.type_url.x", ".google.protobuf.Any",
		"google.protobuf.Anything",
		"grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING",
		"grpc.health.v1.Health.Watch.x", "Any", "google.protobuf..Any"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(
			descriptors_find_symbol(types, str_from(names[i])), DESCRIPTORS_NONE);
	assert_int_equal(descriptors_find_file(types, STR("any.proto")), DESCRIPTORS_NONE);
	assert_int_equal(descriptors_find_file(types, STR("")), DESCRIPTORS_NONE);
}

static void only_messages_are_messages(void **state)
{
	assert_true(descriptors_has_message(types, STR("google.protobuf.Any")));
	assert_true(descriptors_has_message(
		types, STR("envoy.service.status.v3.ClientConfig.GenericXdsConfig")));
	assert_false(descriptors_has_message(types, STR("google.protobuf.Any.value")));
	assert_false(descriptors_has_message(types, STR("grpc.health.v1.Health")));
	assert_false(descriptors_has_message(
		types, STR("grpc.health.v1.HealthCheckResponse.ServingStatus")));
}

// What protobuf-c knows of a message and, by its fields, of all others that it holds.
static unsigned check_message(const ProtobufCMessageDescriptor *m, unsigned depth)
{
	unsigned n = 1;
	char name[512];
	assert_true(descriptors_has_message(types, str_from(m->name)));
	uint32_t file = descriptors_find_symbol(types, str_from(m->name));
	for (unsigned i = 0; i < m->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->fields[i];
		snprintf(name, sizeof(name), "%s.%s", m->name, f->name);
		assert_int_equal(descriptors_find_symbol(types, str_from(name)), file);
		if (f->type == PROTOBUF_C_TYPE_MESSAGE && depth > 0)
			n += check_message(f->descriptor, depth - 1);
	}
	return n;
}

static void every_message_that_may_be_dumped_is_found_field_by_field(void **state)
{
	static const char *const roots[] = {"envoy.config.listener.v3.Listener",
		"envoy.config.route.v3.RouteConfiguration", "envoy.config.cluster.v3.Cluster",
		"envoy.config.endpoint.v3.ClusterLoadAssignment",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"envoy.extensions.filters.http.router.v3.Router"};
	unsigned n =
		check_message(&envoy__service__status__v3__client_status_response__descriptor, 6);
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		const ProtobufCMessageDescriptor *m = proto_registry_find(str_from(roots[i]));
		assert_non_null(m);
		n += check_message(m, 4);
	}
	assert_true(n > 200);
}

// A naive twin: all full names, written down beforehand.

struct names {
	char *list[8192];
	unsigned n;
};

// Which fields of a descriptor hold declarations, and where those of the inner ones are.
enum level { OF_FILE, OF_MESSAGE, OF_ENUM, OF_SERVICE, OF_LEAF };

static enum level level_of(enum level outer, uint32_t number)
{
	if (outer == OF_FILE)
		return number == 4   ? OF_MESSAGE
		       : number == 5 ? OF_ENUM
		       : number == 6 ? OF_SERVICE
		                     : OF_FILE;
	if (outer == OF_MESSAGE)
		return number == 3                  ? OF_MESSAGE
		       : number == 4                ? OF_ENUM
		       : number == 2 || number == 8 ? OF_LEAF
		                                    : OF_FILE;
	return number == 2 && outer != OF_LEAF ? OF_LEAF : OF_FILE;
}

static void write_down(
	struct names *names, enum level level, const uint8_t *p, size_t len, const char *scope)
{
	struct proto_field f, name;
	for (const uint8_t *end = p + len; proto_field_next(&p, end, &f);) {
		enum level inner = level_of(level, f.number);
		if (inner == OF_FILE) // no declaration
			continue;
		const uint8_t *at = f.bytes;
		do {
			assert_true(proto_field_next(&at, f.bytes + f.len, &name));
		} while (name.number != 1);
		char *full = NULL;
		assert_true(asprintf(&full, "%s.%.*s", scope, (int)name.len,
				    (const char *)name.bytes) > 0);
		assert_true(names->n < 8192);
		names->list[names->n++] = full;
		write_down(names, inner, f.bytes, f.len, inner == OF_ENUM ? scope : full);
	}
}

static bool is_written(const struct names *names, const char *name)
{
	for (unsigned i = 0; i < names->n; i++)
		if (strcmp(names->list[i], name) == 0)
			return true;
	return false;
}

static void change(char *name, struct rand *rand)
{
	size_t len = strlen(name), at = rand_below(rand, (uint32_t)len);
	switch (rand_below(rand, 5)) {
	case 0:
		name[at] = 0;
		break;
	case 1:
		name[at] = "abcxyz._A"[rand_below(rand, 9)];
		break;
	case 2: // one piece less
		memmove(name + at, name + at + 1, len - at);
		break;
	case 3: { // a scope less in the middle
		char *dot = strchr(name + at, '.'), *next = dot ? strchr(dot + 1, '.') : NULL;
		if (next)
			memmove(dot, next, strlen(next) + 1);
		break;
	}
	case 4:
		strcat(name, rand_below(rand, 2) ? "." : ".x");
		break;
	}
}

static void names_are_found_just_when_they_are_declared(void **state)
{
	static struct names names;
	struct rand rand;
	unsigned n_found = 0;
	for (uint32_t i = 0; i < descriptors_n_files(types); i++) {
		struct str bytes = descriptors_file(types, i), package = {0};
		const uint8_t *p = (const uint8_t *)bytes.p;
		struct proto_field f;
		while (proto_field_next(&p, (const uint8_t *)bytes.p + bytes.len, &f))
			if (f.number == 2)
				package = (struct str){(const char *)f.bytes, f.len};
		char scope[128];
		snprintf(scope, sizeof(scope), "%.*s", (int)package.len, package.p);
		write_down(&names, OF_FILE, (const uint8_t *)bytes.p, bytes.len, scope);
	}
	assert_true(names.n > 500);
	for (unsigned i = 0; i < names.n; i++)
		assert_int_not_equal(
			descriptors_find_symbol(types, str_from(names.list[i])), DESCRIPTORS_NONE);
	rand_init(&rand, 1);
	for (unsigned i = 0; i < 5000; i++) {
		char name[512];
		snprintf(name, sizeof(name) - 4, "%s", names.list[rand_below(&rand, names.n)]);
		change(name, &rand);
		bool found = descriptors_find_symbol(types, str_from(name)) != DESCRIPTORS_NONE;
		if (found != is_written(&names, name))
			fail_msg("%s: %d", name, found);
		n_found += found;
	}
	assert_true(n_found > 20 && n_found < 4000);
	for (unsigned i = 0; i < names.n; i++)
		free(names.list[i]);
}

static void imports_are_files_of_the_set(void **state)
{
	uint32_t n,
		status = descriptors_find_file(types, STR("envoy/service/status/v3/csds.proto"));
	assert_int_not_equal(status, DESCRIPTORS_NONE);
	const uint32_t *imports = descriptors_imports(types, status, &n);
	assert_int_equal(n, 5);
	bool any = false;
	for (uint32_t i = 0; i < n; i++)
		any |= str_eq(path_of(imports[i]), STR("google/protobuf/any.proto"));
	assert_true(any);
	for (uint32_t file = 0; file < descriptors_n_files(types); file++) {
		assert_int_equal(descriptors_find_file(types, path_of(file)), file);
		imports = descriptors_imports(types, file, &n);
		for (uint32_t i = 0; i < n; i++)
			assert_true(imports[i] < file); // so that there is no cycle
	}
}

static void without_memory_there_is_nothing(void **state)
{
	struct descriptors *d = NULL;
	ALLOC_FAIL_EACH(d = descriptors_new(proto_descriptors, proto_descriptors_len), !d,
		descriptors_free(d));
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(every_kind_of_symbol_is_found_in_its_file),
		cmocka_unit_test(what_is_not_declared_is_not_found),
		cmocka_unit_test(only_messages_are_messages),
		cmocka_unit_test(every_message_that_may_be_dumped_is_found_field_by_field),
		cmocka_unit_test(names_are_found_just_when_they_are_declared),
		cmocka_unit_test(imports_are_files_of_the_set),
		cmocka_unit_test(without_memory_there_is_nothing),
	};
	return cmocka_run_group_tests_name("status/descriptors", suite, make, drop);
}
