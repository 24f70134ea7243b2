// SPDX-License-Identifier: Apache-2.0
// A connection's first bytes: whoever looks again when there are as many as were needed finds what
// who has all of them finds, and never more than a hello's bound is asked for.
#include "dataplane/tls/hello.h"
#include "lb/base/check.h"
#include "lb/base/min.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum tls_hello_state read_copy(
	const uint8_t *data, size_t len, size_t max, uint8_t *copy, struct tls_hello *ret)
{
	memcpy(copy, data, len);
	enum tls_hello_state state = tls_hello_read(copy, len, max, ret);
	const uint8_t *name = (const uint8_t *)ret->server_name.p;
	const uint8_t *list = (const uint8_t *)ret->protocols.p;
	CHECK(!ret->server_name.len || (name >= copy && name + ret->server_name.len <= copy + len));
	CHECK(!ret->protocols.len || (list >= copy && list + ret->protocols.len <= copy + len));
	return state;
}

static void check_within(const uint8_t *data, size_t size, size_t max)
{
	size_t most = min_size(size, TLS_HELLO_STREAM_MAX), len = 0;
	uint8_t *one = malloc(most + 1), *other = malloc(most + 1);
	CHECK(one && other);
	struct tls_hello whole, cut = {.need = 0};
	enum tls_hello_state wanted = read_copy(data, most, max, one, &whole),
			     state = TLS_HELLO_MORE;
	while (state == TLS_HELLO_MORE && len < most) {
		CHECK(cut.need <= max && (!len || cut.need > len));
		len = min_size(most, cut.need > len ? cut.need : len + 1);
		state = read_copy(data, len, max, other, &cut);
	}
	if (wanted == TLS_HELLO_DONE) {
		CHECK(state == wanted && str_eq(whole.server_name, cut.server_name) &&
			str_eq(whole.protocols, cut.protocols));
	}
	CHECK(wanted != TLS_HELLO_MORE || state == wanted);
	free(one);
	free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_within(data, size, TLS_HELLO_STREAM_MAX);
	check_within(data, size, 256);
	return 0;
}
