// SPDX-License-Identifier: Apache-2.0
// What workers say of requests and connections in flight, of neighbors and of addresses, as rows of
// JSON: those of `show requests` and its kin, among which `kill` chooses, too.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"
#include "lb/pick/inflight.h"

#include <jansson.h>

struct inflight_sum;
struct inflight_told;
struct row_query;
struct show;

enum inflight_form {
	INFLIGHT_OF_REQUESTS,
	INFLIGHT_OF_CONNS,
	INFLIGHT_OF_TCP,
	INFLIGHT_OF_NEIGHBORS,
	INFLIGHT_OF_ADDRESSES,
};

enum lb_inflight_kind inflight_rows_kind(enum inflight_form); // that workers are asked for
const char *inflight_rows_key(enum inflight_form); // the name of the table
const char *inflight_rows_all_key(enum inflight_form); // the name of how many there are
// An array in the order of the sum. NULL = out of memory.
json_t *inflight_rows_build(const struct show *, enum inflight_form, const struct inflight_sum *);
struct lb_inflight_handle inflight_rows_handle(enum lb_inflight_kind, const struct inflight_told *);
// Before anybody is asked, since all rows have the columns of any: 0, or -EINVAL with reterr.
[[nodiscard]] int inflight_rows_check(
	const struct show *, enum inflight_form, struct row_query *, struct lb_err *reterr);

#define INFLIGHT_MAC_MAX 18
const char *inflight_rows_mac(const uint8_t mac[6], char text[INFLIGHT_MAC_MAX]); // returns text

// show_addresses.c: one row, and those of all workers as one list.
json_t *inflight_rows_address(const struct show *, const struct lb_inflight_row *);
json_t *inflight_rows_addresses(const struct show *, const struct inflight_sum *);
