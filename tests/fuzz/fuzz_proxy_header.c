// SPDX-License-Identifier: Apache-2.0
// The first byte says which versions are taken and how the rest is cut into pieces: a header is
// found to be the same in any pieces, within its bounds, and takes nothing behind it. What is kept
// of its TLVs is written again as it was.
#include "dataplane/proxy/proxy_header.h"
#include "lb/base/check.h"
#include "lb/base/min.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Returns how many bytes were taken.
static size_t feed(struct proxy_header *h, const uint8_t *data, size_t size, size_t piece)
{
	size_t used = 0;
	while (used < size && h->state == PROXY_HEADER_MORE) {
		size_t n = min_size(piece, size - used), taken;
		enum proxy_header_state state = proxy_header_feed(h, data + used, n, &taken);
		CHECK(state == (enum proxy_header_state)h->state && taken <= n);
		CHECK(state != PROXY_HEADER_MORE || taken == n);
		used += taken;
	}
	return used;
}

static void check_written(const struct proxy_header *h)
{
	uint8_t bytes[PROXY_HEADER_WRITTEN_MAX], room[PROXY_HEADER_TLVS_MAX];
	const struct str tlvs = {(const char *)h->tlvs, h->n_tlvs};
	const struct proxy_header_text text = {.source = &h->source,
		.target = &h->target,
		.clients_tlvs = tlvs,
		.passed = tlv_types_of(tlvs),
		.version = 2};
	struct proxy_header again = {.v2 = true, .tlvs = room};
	size_t n = proxy_header_write(&text, bytes);
	CHECK(feed(&again, bytes, n, n) == n && again.state == PROXY_HEADER_DONE);
	CHECK(str_eq((struct str){(const char *)room, again.n_tlvs}, tlvs));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	const struct proxy_header as = {.v1 = !(data[0] & 1), .v2 = !(data[0] & 2)};
	uint8_t room[2][PROXY_HEADER_TLVS_MAX];
	struct proxy_header whole = as, cut = as, passing = as;
	whole.tlvs = room[0];
	cut.tlvs = room[1];
	size_t n = feed(&whole, data + 1, size - 1, size);
	CHECK(feed(&cut, data + 1, size - 1, (data[0] >> 2) + 1u) == n);
	CHECK(whole.state == cut.state && whole.has_source == cut.has_source);
	CHECK(n <= PROXY_HEADER_V2_MAX);
	CHECK(whole.n_tlvs == cut.n_tlvs && memcmp(room[0], room[1], cut.n_tlvs) == 0);
	CHECK(feed(&passing, data + 1, size - 1, size) == n && !passing.n_tlvs);
	CHECK(passing.state == whole.state ||
		(passing.state == PROXY_HEADER_DONE && whole.state == PROXY_HEADER_BAD_TLVS));
	if (whole.state == PROXY_HEADER_DONE && whole.has_source)
		check_written(&whole);
	if (whole.state == PROXY_HEADER_DONE)
		CHECK(ip_port_eq(&whole.source, &cut.source));
	if (whole.state == PROXY_HEADER_DONE && data[1] == 'P')
		CHECK(n <= PROXY_HEADER_V1_MAX && data[n] == '\n');
	return 0;
}
