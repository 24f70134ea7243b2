// SPDX-License-Identifier: Apache-2.0
// The decoder of ClusterLoadAssignment against the plain one by protobuf-c, on random messages in
// random encodings (WF-01): same verdict, same content. Seeds are fixed.
#include "ctrl/res/endpoints.h"
#include "ctrl/res/endpoints_wire.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/support/eds_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_MESSAGES 1200 // of each seed
#define ROOM (16 << 10)

struct writer {
	struct rand rand;
	unsigned oddness; // of 1000: how often something unusual is written
	bool is_lean; // hardly more than addresses, as endpoints of large clusters are
	uint8_t *at, *end;
};

static bool once_in(struct writer *w, unsigned n)
{
	return rand_below(&w->rand, n) == 0;
}

static bool odd(struct writer *w)
{
	return rand_below(&w->rand, 1000) < w->oddness;
}

static void put(struct writer *w, const void *bytes, size_t n)
{
	assert_true(n <= (size_t)(w->end - w->at));
	memcpy(w->at, bytes, n);
	w->at += n;
}

static void put_varint(struct writer *w, uint64_t v)
{
	unsigned n_more = odd(w) ? (unsigned)rand_below(&w->rand, 6) : 0; // longer than needed
	for (; v > 0x7f; v >>= 7)
		put(w, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
	for (; n_more; n_more--, v = 0)
		put(w, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
	put(w, &(uint8_t){(uint8_t)v}, 1);
}

static void put_tag(struct writer *w, unsigned number, unsigned type)
{
	put_varint(w, (uint64_t)number << 3 | type);
}

static void put_text(struct writer *w, const char *text)
{
	put_varint(w, strlen(text));
	put(w, text, strlen(text));
}

static const char *pick_text(struct writer *w, const char *field)
{
	static char text[64];
	static const char *const ODD_TEXTS[] = {"", "10.0.0.256", "10.0.0.01", "1.2.3", "1.2.3.4.5",
		"1.2.3.4 ", "::ffff:10.0.0.3", "fd00::1%eth0", "fe80::1", "febf::2", "name",
		"h\xc3\xa4", "\xff", "\xed\xa0\x80", "0.0.0.0", "::", "a b", "x/y", "envoy.lb",
		"hash_key", "eight by 8 bytes: \xe2\x82\xac"};
	unsigned n = (unsigned)rand_below(&w->rand, 30);
	if (odd(w))
		return ODD_TEXTS[rand_below(&w->rand, sizeof(ODD_TEXTS) / sizeof(char *))];
	if (strcmp(field, "address") == 0)
		snprintf(text, sizeof(text), once_in(w, 4) ? "fd00::%x" : "10.7.0.%u",
			(unsigned)rand_below(&w->rand, 256));
	else if (strcmp(field, "key") == 0)
		return (const char *[]){"envoy.lb", "hash_key", "istio", EDS_PROXY_KEY}[n % 4];
	else if (strcmp(field, "type_url") == 0)
		snprintf(text, sizeof(text), "x/envoy.config.core.v3.%s",
			n % 8 ? "Address" : "Locality");
	else
		snprintf(text, sizeof(text), "%.1s%u", field, n);
	return text;
}

static uint64_t pick_number(struct writer *w, const char *field)
{
	static const uint64_t ODD_NUMBERS[] = {0, 1, 2, 3, 65535, 65536, 1000000, UINT32_MAX,
		UINT32_MAX - 1ull, 1ull << 32, UINT64_MAX, 256, 257, INT32_MAX};
	if (odd(w))
		return ODD_NUMBERS[rand_below(&w->rand, sizeof(ODD_NUMBERS) / sizeof(uint64_t))];
	if (strcmp(field, "priority") == 0)
		return once_in(w, 6);
	if (strcmp(field, "health_status") == 0)
		return rand_below(&w->rand, 7);
	if (strcmp(field, "denominator") == 0)
		return rand_below(&w->rand, 3);
	return 1 + rand_below(&w->rand, 200);
}

static void write_message(struct writer *w, const ProtobufCMessageDescriptor *, unsigned depth);

static void write_inside(struct writer *w, const ProtobufCMessageDescriptor *type, unsigned depth)
{
	uint8_t *inside = malloc(ROOM);
	assert_non_null(inside);
	struct writer in = {w->rand, w->oddness, w->is_lean, inside, inside + ROOM};
	write_message(&in, type, depth + 1);
	w->rand = in.rand;
	put_varint(w, (uint64_t)(in.at - inside));
	put(w, inside, (size_t)(in.at - inside));
	free(inside);
}

static void write_field(struct writer *w, const ProtobufCFieldDescriptor *f, unsigned depth)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		put_tag(w, f->id, 2);
		write_inside(w, f->descriptor, depth);
		break;
	case PROTOBUF_C_TYPE_STRING:
		put_tag(w, f->id, 2);
		put_text(w, pick_text(w, f->name));
		break;
	case PROTOBUF_C_TYPE_BYTES: // of an Any
		put_tag(w, f->id, 2);
		write_inside(w, &envoy__config__core__v3__address__descriptor, depth);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		put_tag(w, f->id, 1);
		put(w, "12345678", 8);
		break;
	default:
		put_tag(w, f->id, 0);
		put_varint(w, pick_number(w, f->name));
	}
}

// A field that no message has, or a known number with another wire type.
static void write_stranger(struct writer *w)
{
	unsigned number = (unsigned)rand_below(&w->rand, once_in(w, 2) ? 12 : 1 << 29);
	unsigned type = (unsigned)rand_below(&w->rand, 6);
	put_tag(w, number, type);
	if (type == 0)
		put_varint(w, rand_u64(&w->rand));
	else if (type == 2)
		put_text(w, "stranger");
	else
		put(w, "12345678", type == 1 ? 8 : 4);
}

static bool is_usual_member(const char *name)
{
	static const char *const NAMES[] = {
		"socket_address", "endpoint", "port_value", "string_value"};
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (strcmp(NAMES[i], name) == 0)
			return true;
	return false;
}

static bool is_lean_field(const char *name)
{
	static const char *const NAMES[] = {"cluster_name", "endpoints", "locality", "region",
		"lb_endpoints", "endpoint", "address", "socket_address", "port_value", "value"};
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		if (strcmp(NAMES[i], name) == 0)
			return true;
	return false;
}

static unsigned pick_count(struct writer *w, const ProtobufCFieldDescriptor *f, unsigned depth)
{
	bool is_other = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && !is_usual_member(f->name);
	if (odd(w))
		return (unsigned)rand_below(&w->rand, 3);
	if (w->is_lean && strcmp(f->name, "health_status") == 0)
		return !once_in(w, 3);
	if (w->is_lean && strcmp(f->name, "load_balancing_weight") == 0)
		return depth == 1 || !once_in(w, 3);
	if (w->is_lean && !is_lean_field(f->name))
		return 0;
	if (depth > 14 || is_other || strcmp(f->name, "path") == 0)
		return 0;
	if (strstr(f->name, "metadata") || strstr(f->name, "additional") ||
		strcmp(f->name, "hostname") == 0)
		return once_in(w, 8) ? 1 : 0;
	return f->label == PROTOBUF_C_LABEL_REPEATED ? 1 + (unsigned)rand_below(&w->rand, 3) : 1;
}

static void write_message(struct writer *w, const ProtobufCMessageDescriptor *type, unsigned depth)
{
	uint8_t *from = w->at;
	unsigned skip = type->n_fields ? (unsigned)rand_below(&w->rand, type->n_fields) : 0;
	if (!odd(w))
		skip = 0;
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[(i + skip) % type->n_fields];
		for (unsigned n = pick_count(w, f, depth); n && w->at - from < ROOM / 8; n--)
			write_field(w, f, depth);
		if (odd(w))
			write_stranger(w);
	}
}

static void damage(struct writer *w, uint8_t *bytes, size_t *len)
{
	if (*len == 0)
		return;
	size_t at = rand_below(&w->rand, *len);
	switch (rand_below(&w->rand, 4)) {
	case 0:
		bytes[at] ^= (uint8_t)(1u << rand_below(&w->rand, 8));
		break;
	case 1:
		bytes[at] = (uint8_t)rand_u64(&w->rand);
		break;
	case 2:
		*len = at;
		break;
	default:
		memmove(bytes + at, bytes + at + 1, *len - at - 1);
		--*len;
	}
}

struct tally {
	unsigned accepted, refused, endpoints;
};

static void compare(const uint8_t *bytes, size_t len, uint64_t seed, struct tally *t)
{
	uint8_t *copy = malloc(len ? len : 1); // of its size, for sanitizers
	assert_non_null(copy);
	memcpy(copy, bytes, len);
	struct xds_decoded d = {0};
	res_type_endpoints.decode(copy, len, &d);
	struct xds_res *twin = eds_oracle_decode(copy, len);
	if (!d.res != !twin)
		fail_msg("seed %llu: %s, the twin %s", (unsigned long long)seed,
			d.res ? "accepted" : d.err.text, twin ? "accepts" : "refuses");
	assert_int_equal(!d.res, !!*d.err.text);
	if (d.res) {
		const struct res_endpoints *e = res_endpoints_from(d.res);
		if (!eds_oracle_same(e, res_endpoints_from(twin)))
			fail_msg("seed %llu: other content", (unsigned long long)seed);
		t->endpoints += e->list->n_all;
	}
	*(d.res ? &t->accepted : &t->refused) += 1;
	xds_res_put(twin);
	xds_res_put(d.res);
	free(d.name);
	free(copy);
}

static struct tally run_form(uint64_t first_seed, unsigned oddness, bool is_lean, bool damaged)
{
	struct tally t = {0};
	uint8_t *bytes = malloc(ROOM);
	assert_non_null(bytes);
	for (uint64_t seed = first_seed; seed < first_seed + N_MESSAGES; seed++) {
		struct writer w = {
			.oddness = oddness, .is_lean = is_lean, .at = bytes, .end = bytes + ROOM};
		rand_init(&w.rand, seed);
		write_message(
			&w, &envoy__config__endpoint__v3__cluster_load_assignment__descriptor, 0);
		size_t len = (size_t)(w.at - bytes);
		if (damaged)
			damage(&w, bytes, &len);
		compare(bytes, len, seed, &t);
	}
	free(bytes);
	return t;
}

static struct tally run(uint64_t first_seed, unsigned oddness, bool damaged)
{
	return run_form(first_seed, oddness, false, damaged);
}

static void usual_messages_are_read_alike(void **state)
{
	struct tally t = run(1, 0, false);
	assert_true(t.accepted > N_MESSAGES / 4 && t.endpoints > N_MESSAGES / 4);
}

static void odd_encodings_are_read_alike(void **state)
{
	struct tally t = run(100000, 4, false);
	assert_true(t.accepted > N_MESSAGES / 10 && t.refused > N_MESSAGES / 10);
	t = run(200000, 30, false);
	assert_true(t.accepted > N_MESSAGES / 100 && t.refused > N_MESSAGES / 10);
}

static void damaged_messages_are_read_alike(void **state)
{
	struct tally t = run(300000, 0, true);
	assert_true(t.accepted > N_MESSAGES / 100 && t.refused > N_MESSAGES / 4);
}

static void endpoints_of_just_an_address_are_read_alike(void **state)
{
	struct tally t = run_form(400000, 0, true, false);
	assert_true(t.accepted > N_MESSAGES / 4 && t.endpoints > N_MESSAGES / 4);
	t = run_form(500000, 4, true, false);
	assert_true(t.accepted > N_MESSAGES / 4 && t.refused > N_MESSAGES / 10);
	for (uint64_t seed = 600000; seed < 605000; seed += N_MESSAGES) {
		t = run_form(seed, 0, true, true);
		assert_true(t.accepted > N_MESSAGES / 20 && t.refused > N_MESSAGES / 4);
	}
}

RUN_SUITE("res/endpoints_twin", cmocka_unit_test(usual_messages_are_read_alike),
	cmocka_unit_test(odd_encodings_are_read_alike),
	cmocka_unit_test(damaged_messages_are_read_alike),
	cmocka_unit_test(endpoints_of_just_an_address_are_read_alike))
