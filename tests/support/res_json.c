// SPDX-License-Identifier: Apache-2.0
#include "tests/support/res_json.h"

#include "ctrl/xds/type.h"
#include "lb/base/check.h"
#include "lb/base/err.h"
#include "lb/base/str.h"
#include "proto/json.h"
#include "proto/registry.h"
#include "proto/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *res_bytes_from_json(const struct xds_type *type, const char *json, size_t *ret_len)
{
	char *text = strdup(json);
	CHECK(text);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	ProtobufCMessage *m;
	struct lb_err err = {""};
	const ProtobufCMessageDescriptor *d = proto_registry_find(str_from(type->url));
	CHECK(d);
	if (proto_json_parse(d, text, strlen(text), &m, &err)) {
		fprintf(stderr, "%s\n%s\n", text, err.text);
		CHECK(!"test resource is wrong");
	}
	uint8_t *bytes = NULL;
	CHECK(proto_pack(m, &bytes, ret_len) == 0);
	protobuf_c_message_free_unpacked(m, NULL);
	free(text);
	return bytes;
}
