// SPDX-License-Identifier: Apache-2.0
// The first byte says how the rest is cut into pieces: an answer to CONNECT is found to be the same
// in any pieces, within its bound, and takes nothing behind it.
#include "dataplane/proxy/connect_answer.h"
#include "lb/base/check.h"
#include "lb/base/min.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Returns how many bytes were taken.
static size_t feed(struct proxy_connect_answer *a, const uint8_t *data, size_t size, size_t piece)
{
	size_t used = 0;
	while (used < size && a->state == PROXY_CONNECT_MORE) {
		size_t n = min_size(piece, size - used), taken;
		enum proxy_connect_state state =
			proxy_connect_answer_feed(a, data + used, n, &taken);
		CHECK(state == (enum proxy_connect_state)a->state && taken <= n);
		CHECK(state != PROXY_CONNECT_MORE || taken == n);
		used += taken;
	}
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct proxy_connect_answer whole = {0}, cut = {0};
	size_t n = feed(&whole, data + 1, size - 1, size);
	CHECK(feed(&cut, data + 1, size - 1, data[0] + 1u) == n);
	CHECK(whole.state == cut.state && whole.status == cut.status);
	CHECK(n <= PROXY_CONNECT_ANSWER_MAX);
	if (whole.state == PROXY_CONNECT_OPEN) {
		CHECK(whole.status / 100 == 2 && n >= 16);
		CHECK(memcmp(data + 1 + n - 4, "\r\n\r\n", 4) == 0);
	}
	if (whole.state == PROXY_CONNECT_REFUSED)
		CHECK(whole.status >= 100 && whole.status <= 999 && whole.status / 100 != 2);
	return 0;
}
