// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/payload.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Core__V3__HealthCheck__Payload Payload;
#define PAYLOAD(x) ENVOY__CONFIG__CORE__V3__HEALTH_CHECK__PAYLOAD__PAYLOAD_##x

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = str_fold(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_hex(const char *text, struct lb_arena *arena, struct str *ret, struct lb_err *err)
{
	size_t len = strlen(text);
	char *to = lb_arena_alloc(arena, len / 2, 1);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < len; i += 2) {
		int high = digit_of(text[i]), low = digit_of(text[i + 1]);
		if (high < 0 || low < 0)
			return lb_err_set(err, "text: is not hexadecimal");
		to[i / 2] = (char)(high << 4 | low);
	}
	*ret = (struct str){to, len / 2};
	return 0;
}

int res_payload_read(const Payload *m, struct lb_arena *arena, size_t most, struct str *ret,
	struct lb_err *reterr)
{
	*ret = STR("");
	int rc = 0;
	if (m->payload_case == PAYLOAD(TEXT))
		rc = read_hex(m->text, arena, ret, reterr);
	else if (m->payload_case == PAYLOAD(BINARY))
		rc = lb_arena_copy(
			     arena, (struct str){(const char *)m->binary.data, m->binary.len}, ret)
		             ? 0
		             : -ENOMEM;
	if (!rc && !ret->len)
		rc = lb_err_set(reterr, "is empty");
	if (!rc && ret->len > most)
		rc = lb_err_set(reterr, "has more than %zu bytes", most);
	return rc;
}
