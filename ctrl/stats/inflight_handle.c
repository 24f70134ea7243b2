// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/inflight_handle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static char letter_of(enum lb_inflight_kind kind, bool is_backend)
{
	return kind == LB_INFLIGHT_REQUESTS ? 'r' : is_backend ? 'b' : 'c';
}

const char *inflight_handle_print(enum lb_inflight_kind kind, const struct lb_inflight_handle *h,
	char text[INFLIGHT_HANDLE_MAX])
{
	snprintf(text, INFLIGHT_HANDLE_MAX, "%" PRIu16 "-%c%" PRIx32 "-%" PRIx64, h->worker,
		letter_of(kind, h->is_backend), h->slot, h->began_ns);
	return text;
}

// What is written otherwise than print() does is none.
bool inflight_handle_parse(
	enum lb_inflight_kind kind, const char *word, struct lb_inflight_handle *ret)
{
	struct lb_inflight_handle h = {0};
	char letter, again[INFLIGHT_HANDLE_MAX];
	if (strlen(word) >= sizeof(again) || sscanf(word, "%5" SCNu16 "-%c%8" SCNx32 "-%16" SCNx64,
						     &h.worker, &letter, &h.slot, &h.began_ns) != 4)
		return false;
	h.is_backend = letter == 'b';
	if (strcmp(inflight_handle_print(kind, &h, again), word) != 0)
		return false;
	*ret = h;
	return true;
}
