// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of what serves, and as the body of one whose head is right: it is refused
// with a reason, or each of its sections is read as a response is. What was read can be written
// again, and is the same then.
#include "ctrl/base/slice.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/response.h"
#include "ctrl/xds/state/state_file.h"
#include "lb/base/check.h"

#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SUM_AT = 24, HEAD_LEN = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_section(const struct xds_state_section *s)
{
	struct xds_response r;
	struct lb_err err = {""};
	struct slice slice = {0};
	slice_begin(&slice);
	for (size_t i = 0; i < s->n_absent; i++)
		CHECK(xds_state_lacks(s, s->absent[i]));
	xds_response_init(&r, &xds_protocol_delta.response, s->response);
	struct xds_part part;
	int rc = xds_response_read_head(&r, &slice, &err);
	CHECK(rc != -EINVAL || *err.text);
	while (!rc && xds_response_next(&r, &part)) {
		struct xds_open_part open;
		CHECK(xds_part_open(&r, &part, &open) == 0);
		xds_part_close(&open);
	}
	xds_response_fini(&r);
}

static void write_again(const struct xds_state *s)
{
	struct xds_state_part *parts = calloc(s->n_sections + 1, sizeof(*parts));
	char *node = strndup(s->node_id.p ? s->node_id.p : "", s->node_id.len);
	struct xds_state again;
	struct lb_err err;
	uint8_t *bytes;
	size_t len;
	CHECK(parts && node);
	char *server = s->n_sections
	                       ? strndup(s->sections[0].server.p ? s->sections[0].server.p : "",
					 s->sections[0].server.len)
	                       : strdup("");
	CHECK(server);
	parts[0].server = server;
	struct xds_state_image image = {node, s->written_s, parts, 1};
	CHECK(xds_state_encode(&image, s, &bytes, &len) == 0);
	CHECK(xds_state_parse(bytes, len, &again, &err) == 0);
	CHECK(str_eq(again.node_id, s->node_id) && again.written_s == s->written_s);
	CHECK(again.n_sections <= s->n_sections && (again.n_sections > 0) == (s->n_sections > 0));
	xds_state_fini(&again);
	free(server);
	free(node);
	free(parts);
}

static void parse(uint8_t *bytes, size_t len)
{
	struct xds_state s;
	struct lb_err err = {""};
	if (xds_state_parse(bytes, len, &s, &err)) {
		CHECK(*err.text && !s.bytes);
		return;
	}
	for (size_t i = 0; i < s.n_sections; i++)
		read_section(&s.sections[i]);
	write_again(&s);
	xds_state_fini(&s);
}

static void put_number(uint8_t *at, uint64_t v)
{
	for (int i = 0; i < 8; i++, v >>= 8)
		at[i] = (uint8_t)v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *plain = malloc(size ? size : 1), *whole = calloc(1, HEAD_LEN + size);
	CHECK(plain && whole);
	if (size) {
		memcpy(plain, data, size);
		memcpy(whole + HEAD_LEN, data, size);
	}
	memcpy(whole, "SHUNTXDS\x01", 9);
	put_number(whole + 16, size);
	put_number(whole + SUM_AT, XXH64(whole + HEAD_LEN, size, XXH64(whole, SUM_AT, 0)));
	parse(plain, size);
	parse(whole, HEAD_LEN + size);
	return 0;
}
