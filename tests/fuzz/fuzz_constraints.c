// SPDX-License-Identifier: Apache-2.0
// Any two pieces of bytes as dynamic parameter constraints: refused with a reason, or decoded into
// what survives encoding, JSON and comparison, is matched by what is found to overlap, and can be
// shown. The first byte says where the first piece ends.
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/overlap.h"
#include "ctrl/xds/variants/params.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/check.h"
#include "proto/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef Envoy__Service__Discovery__V3__DynamicParameterConstraints Message;

static void try_encoding(const struct xds_constraints *c)
{
	struct xds_constraints *back = NULL;
	struct lb_err err = {""};
	size_t len;
	const uint8_t *bytes = xds_constraints_bytes(c, &len);
	CHECK(xds_constraints_decode(bytes, len, &back, &err) == 0);
	CHECK(xds_constraints_eq(c, back) && xds_constraints_cmp(c, back) == 0);
	CHECK(xds_constraints_hash(c) == xds_constraints_hash(back));
	CHECK(!xds_constraints_odd_key(c, back));
	xds_constraints_put(back);
}

static void try_json(const struct xds_constraints *c)
{
	if (!c)
		return;
	json_t *json = proto_json_encode((const ProtobufCMessage *)xds_constraints_message(c));
	CHECK(json);
	ProtobufCMessage *m = NULL;
	struct lb_err err = {""};
	CHECK(proto_json_decode(
		      &envoy__service__discovery__v3__dynamic_parameter_constraints__descriptor,
		      json, &m, &err) == 0);
	struct xds_constraints *back = NULL;
	CHECK(xds_constraints_read((const Message *)m, &back, &err) == 0);
	CHECK(xds_constraints_eq(c, back));
	xds_constraints_put(back);
	protobuf_c_message_free_unpacked(m, NULL);
	json_decref(json);
}

static void try_text(const struct xds_constraints *c)
{
	for (size_t room = 4; room < 300; room *= 2) {
		char *out = malloc(room);
		CHECK(out);
		xds_constraints_print(c, out, room);
		CHECK(*out && strlen(out) < room);
		free(out);
	}
}

static void try_overlap(const struct xds_constraints *a, const struct xds_constraints *b)
{
	struct xds_params *witness = NULL;
	struct lb_err err = {""};
	int rc = xds_overlap_find(a, b, &witness, &err);
	CHECK(rc == 0 || rc == 1 || (rc == -E2BIG && *err.text));
	if (rc == 1)
		CHECK(xds_constraints_match(a, witness) && xds_constraints_match(b, witness));
	else if (rc == 0) // what no set satisfies, the empty one does not either
		CHECK(!xds_constraints_match(a, NULL) || !xds_constraints_match(b, NULL));
	xds_params_put(witness);
}

static bool decode(const uint8_t *bytes, size_t len, struct xds_constraints **ret)
{
	struct lb_err err = {""};
	*ret = NULL;
	if (xds_constraints_decode(bytes, len, ret, &err)) {
		CHECK(!*ret && *err.text);
		return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	size_t first = data[0] < size ? data[0] : size - 1;
	struct xds_constraints *a, *b;
	bool is_a = decode(data + 1, first, &a);
	bool is_b = decode(data + 1 + first, size - 1 - first, &b);
	if (is_a) {
		try_encoding(a);
		try_json(a);
		try_text(a);
		try_overlap(a, a);
	}
	if (is_a && is_b) {
		CHECK(xds_constraints_eq(a, b) == (xds_constraints_cmp(a, b) == 0));
		try_overlap(a, b);
	}
	xds_constraints_put(a);
	xds_constraints_put(b);
	return 0;
}
