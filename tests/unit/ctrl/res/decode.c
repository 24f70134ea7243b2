// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/res/decode.h"

#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"

#include <stdlib.h>
#include <string.h>

struct xds_res *res_decode_bytes(const struct xds_type *type, const uint8_t *bytes, size_t len)
{
	struct xds_decoded d = {0};
	type->decode(bytes, len, &d);
	if (!d.res)
		fail_msg("refused: %s", d.err.text);
	// The bytes are kept as received.
	assert_int_equal(d.res->len, len);
	assert_memory_equal(d.res->bytes, bytes, len);
	free(d.name);
	return d.res;
}

struct xds_res *res_decode(const struct xds_type *type, const char *json)
{
	size_t len;
	uint8_t *bytes = res_bytes_from_json(type, json, &len);
	struct xds_res *res = res_decode_bytes(type, bytes, len);
	free(bytes);
	return res;
}

void res_refuse_bytes(
	const struct xds_type *type, const uint8_t *bytes, size_t len, const char *why)
{
	struct xds_decoded d = {0};
	type->decode(bytes, len, &d);
	if (d.res)
		fail_msg("accepted, though \"%s\"", why);
	if (!strstr(d.err.text, why))
		fail_msg("\"%s\" does not say \"%s\"", d.err.text, why);
	free(d.name);
}
