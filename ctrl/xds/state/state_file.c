// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/state/state_file.h"

#include "proto/scan.h"

#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "SHUNTXDS"
enum { VERSION_AT = 8, ZERO_AT = 12, LEN_AT = 16, SUM_AT = 24, HEAD_LEN = 32 };

// Numbers of fields.
enum { BODY_NODE = 1, BODY_TIME = 2, BODY_SECTION = 3 };
enum {
	SECTION_SERVER = 1,
	SECTION_TYPE = 2,
	SECTION_RESPONSE = 3,
	SECTION_WILDCARD = 4,
	SECTION_ABSENT = 5,
};
enum { RESPONSE_RESOURCE = 2, RESPONSE_TYPE = 4 };
enum { RESOURCE_VERSION = 1, RESOURCE_ANY = 2, RESOURCE_NAME = 3, RESOURCE_LONG_NAME = 8 };
enum { ANY_TYPE = 1, ANY_VALUE = 2, NAME_NAME = 1, NAME_CONSTRAINTS = 2 };

// The head

static uint64_t read_number(const uint8_t *at, size_t n)
{
	uint64_t v = 0;
	while (n-- > 0)
		v = v << 8 | at[n];
	return v;
}

static void write_number(uint8_t *at, size_t n, uint64_t v)
{
	for (size_t i = 0; i < n; i++, v >>= 8)
		at[i] = (uint8_t)v;
}

static uint64_t sum_of(const uint8_t *bytes, size_t len)
{
	return XXH64(bytes + HEAD_LEN, len - HEAD_LEN, XXH64(bytes, SUM_AT, 0));
}

static int check_head(const uint8_t *bytes, size_t len, struct lb_err *err)
{
	if (len < HEAD_LEN)
		return lb_err_set(err, "has %zu bytes, too few for a head", len);
	if (memcmp(bytes, MAGIC, VERSION_AT) != 0)
		return lb_err_set(err, "is not such a file: it begins otherwise");
	uint64_t version = read_number(bytes + VERSION_AT, ZERO_AT - VERSION_AT);
	if (version != XDS_STATE_VERSION)
		return lb_err_set(err, "is of version %u, and %u is known", (unsigned)version,
			XDS_STATE_VERSION);
	uint64_t body = read_number(bytes + LEN_AT, SUM_AT - LEN_AT);
	if (body != len - HEAD_LEN)
		return lb_err_set(err, "has %zu bytes behind its head, which says %llu",
			len - HEAD_LEN, (unsigned long long)body);
	if (read_number(bytes + SUM_AT, HEAD_LEN - SUM_AT) != sum_of(bytes, len))
		return lb_err_set(err, "does not match its checksum");
	return 0;
}

// Reading

static bool read_section(struct str all, struct xds_state_section *ret)
{
	struct proto_scan s = proto_scan_of(all);
	*ret = (struct xds_state_section){.all = all};
	for (struct proto_item f; proto_scan_next(&s, &f);) {
		if (f.tag == PROTO_TAG(SECTION_SERVER, PROTO_BYTES))
			ret->server = f.bytes;
		else if (f.tag == PROTO_TAG(SECTION_TYPE, PROTO_BYTES))
			ret->type_url = f.bytes;
		else if (f.tag == PROTO_TAG(SECTION_RESPONSE, PROTO_BYTES))
			ret->response = f.bytes;
	}
	return !s.is_malformed && proto_is_text(ret->server) && proto_is_text(ret->type_url);
}

static size_t count_fields(struct str message, uint32_t number)
{
	struct proto_scan s = proto_scan_of(message);
	size_t n = 0;
	for (struct proto_item f; proto_scan_next(&s, &f);)
		n += f.tag == PROTO_TAG(number, PROTO_BYTES);
	return n;
}

static int compare_bytes(const void *a, const void *b)
{
	const struct str *x = a, *y = b;
	size_t len = x->len < y->len ? x->len : y->len;
	int order = len ? memcmp(x->p, y->p, len) : 0;
	return order ? order : (x->len > y->len) - (x->len < y->len);
}

// False = out of memory.
static bool read_absent(struct xds_state *state)
{
	size_t n = 0, n_left;
	for (size_t i = 0; i < state->n_sections; i++)
		n += count_fields(state->sections[i].all, SECTION_ABSENT);
	n_left = n < XDS_STATE_MAX_ABSENT ? n : XDS_STATE_MAX_ABSENT;
	struct str *at = state->absent = calloc(n_left + 1, sizeof(*at));
	for (size_t i = 0; at && i < state->n_sections; i++) {
		struct xds_state_section *section = &state->sections[i];
		struct proto_scan s = proto_scan_of(section->all);
		section->absent = at;
		for (struct proto_item f; n_left && proto_scan_next(&s, &f);) {
			if (f.tag != PROTO_TAG(SECTION_ABSENT, PROTO_BYTES))
				continue;
			at[section->n_absent++] = f.bytes;
			n_left--;
		}
		qsort(at, section->n_absent, sizeof(*at), compare_bytes);
		at += section->n_absent;
		state->n_absent += section->n_absent;
	}
	return state->absent;
}

static int read_body(struct xds_state *state, struct str body, struct lb_err *err)
{
	struct proto_scan s = proto_scan_of(body);
	size_t n_sections = count_fields(body, BODY_SECTION);
	state->sections = calloc(n_sections + 1, sizeof(*state->sections));
	if (!state->sections)
		return -ENOMEM;
	for (struct proto_item f; proto_scan_next(&s, &f);) {
		if (f.tag == PROTO_TAG(BODY_NODE, PROTO_BYTES))
			state->node_id = f.bytes;
		else if (f.tag == PROTO_TAG(BODY_TIME, PROTO_VARINT))
			state->written_s = f.value;
		else if (f.tag == PROTO_TAG(BODY_SECTION, PROTO_BYTES) &&
			 !read_section(f.bytes, &state->sections[state->n_sections++]))
			return lb_err_set(err, "section %zu is malformed", state->n_sections - 1);
	}
	if (s.is_malformed || !proto_is_text(state->node_id))
		return lb_err_set(err, "is malformed");
	return read_absent(state) ? 0 : -ENOMEM;
}

int xds_state_parse(uint8_t *bytes, size_t len, struct xds_state *ret, struct lb_err *err)
{
	*ret = (struct xds_state){.bytes = bytes, .from = "disk"};
	int rc = check_head(bytes, len, err);
	struct str body = {(const char *)bytes + HEAD_LEN, len - HEAD_LEN};
	if (!rc)
		rc = read_body(ret, body, err);
	if (rc)
		xds_state_fini(ret);
	return rc;
}

void xds_state_fini(struct xds_state *s)
{
	free(s->bytes);
	free(s->sections);
	free(s->absent);
	*s = (struct xds_state){.n_sections = 0};
}

bool xds_state_lists_all(const struct xds_state_section *section, struct str locator)
{
	struct proto_scan s = proto_scan_of(section->all);
	for (struct proto_item f; proto_scan_next(&s, &f);)
		if (f.tag == PROTO_TAG(SECTION_WILDCARD, PROTO_BYTES) && str_eq(f.bytes, locator))
			return true;
	return false;
}

const struct str *xds_state_lacks(const struct xds_state_section *section, struct str locator)
{
	if (!section->n_absent)
		return NULL;
	return bsearch(
		&locator, section->absent, section->n_absent, sizeof(locator), compare_bytes);
}

// Writing: everything is put twice, first to be counted.

struct out {
	uint8_t *at; // NULL = it is only counted
	size_t len;
};

static void put(struct out *o, const void *bytes, size_t len)
{
	if (o->at && len)
		memcpy(o->at + o->len, bytes, len);
	o->len += len;
}

static void put_varint(struct out *o, uint64_t v)
{
	uint8_t bytes[PROTO_VARINT_MAX];
	put(o, bytes, proto_varint_write(v, bytes));
}

static void put_frame(struct out *o, uint32_t number, size_t len)
{
	put_varint(o, PROTO_TAG(number, PROTO_BYTES));
	put_varint(o, len);
}

static void put_field(struct out *o, uint32_t number, struct str s)
{
	put_frame(o, number, s.len);
	put(o, s.p, s.len);
}

static void put_any(struct out *o, const struct xds_state_item *it, struct str type_url)
{
	put_field(o, ANY_TYPE, type_url);
	put_field(o, ANY_VALUE, it->bytes);
}

static void put_long_name(struct out *o, const struct xds_state_item *it)
{
	put_field(o, NAME_NAME, it->name);
	put_field(o, NAME_CONSTRAINTS, it->constraints);
}

static void put_resource(struct out *o, const struct xds_state_item *it, struct str type_url)
{
	struct out any = {NULL, 0}, name = {NULL, 0};
	put_any(&any, it, type_url);
	put_long_name(&name, it);
	put_field(o, RESOURCE_VERSION, it->version);
	put_frame(o, RESOURCE_ANY, any.len);
	put_any(o, it, type_url);
	if (it->constraints.len == 0) {
		put_field(o, RESOURCE_NAME, it->name);
		return;
	}
	put_frame(o, RESOURCE_LONG_NAME, name.len);
	put_long_name(o, it);
}

static void put_response(struct out *o, const struct xds_state_part *p)
{
	struct str type_url = str_from(p->type_url);
	put_field(o, RESPONSE_TYPE, type_url);
	for (size_t i = 0; i < p->n_items; i++) {
		struct out resource = {NULL, 0};
		put_resource(&resource, &p->items[i], type_url);
		put_frame(o, RESPONSE_RESOURCE, resource.len);
		put_resource(o, &p->items[i], type_url);
	}
}

static void put_section(struct out *o, const struct xds_state_part *p)
{
	struct out response = {NULL, 0};
	put_response(&response, p);
	put_field(o, SECTION_SERVER, str_from(p->server));
	put_field(o, SECTION_TYPE, str_from(p->type_url));
	put_frame(o, SECTION_RESPONSE, response.len);
	put_response(o, p);
	for (size_t i = 0; i < p->n_wildcards; i++)
		put_field(o, SECTION_WILDCARD, p->wildcards[i]);
	for (size_t i = 0; i < p->n_absent; i++)
		put_field(o, SECTION_ABSENT, p->absent[i]);
}

static void put_before(struct out *o, const struct xds_state *before, const char *server)
{
	for (size_t i = 0; i < before->n_sections; i++)
		if (str_eq(before->sections[i].server, str_from(server)))
			put_field(o, BODY_SECTION, before->sections[i].all);
}

static void put_body(
	struct out *o, const struct xds_state_image *image, const struct xds_state *before)
{
	put_field(o, BODY_NODE, str_from(image->node_id));
	put_varint(o, PROTO_TAG(BODY_TIME, PROTO_VARINT));
	put_varint(o, image->written_s);
	for (size_t i = 0; i < image->n_parts; i++) {
		const struct xds_state_part *p = &image->parts[i];
		struct out section = {NULL, 0};
		if (!p->type_url) {
			put_before(o, before, p->server);
			continue;
		}
		put_section(&section, p);
		put_frame(o, BODY_SECTION, section.len);
		put_section(o, p);
	}
}

int xds_state_encode(const struct xds_state_image *image, const struct xds_state *before,
	uint8_t **ret, size_t *ret_len)
{
	struct out body = {NULL, 0};
	put_body(&body, image, before);
	size_t len = HEAD_LEN + body.len;
	*ret_len = len;
	if (len > XDS_STATE_MAX_LEN)
		return -EFBIG;
	uint8_t *bytes = malloc(len);
	if (!bytes)
		return -ENOMEM;
	body = (struct out){bytes + HEAD_LEN, 0};
	put_body(&body, image, before);
	memcpy(bytes, MAGIC, VERSION_AT);
	write_number(bytes + VERSION_AT, ZERO_AT - VERSION_AT, XDS_STATE_VERSION);
	write_number(bytes + ZERO_AT, LEN_AT - ZERO_AT, 0);
	write_number(bytes + LEN_AT, SUM_AT - LEN_AT, body.len);
	write_number(bytes + SUM_AT, HEAD_LEN - SUM_AT, sum_of(bytes, len));
	*ret = bytes;
	return 0;
}
