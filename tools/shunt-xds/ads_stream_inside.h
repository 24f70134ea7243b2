// SPDX-License-Identifier: Apache-2.0
// What ads_stream.c (requests) and ads_due.c (responses) share. Private to them.
// Thread: one owner.
#pragma once

#include "tools/shunt-xds/ads_stream.h"

enum ads_due { ADS_DUE_NOTHING, ADS_DUE_REMOVAL, ADS_DUE_CHANGE };

struct ads_type {
	struct subscription sub;
	bool is_open; // counted in the catalog
	bool is_started; // a request has arrived
	bool asked; // a response is due, even an empty one
	bool answered; // the last response was ACKed or NACKed
	bool refused; // the last answer was a NACK
	uint64_t nonce; // of the last response; 0 = none sent
	uint64_t version; // of the last response
	// when the client announced resources from an earlier stream; 0 = it did not
	uint64_t resume_ns;
	uint64_t exchange_ns; // of the last response, or its answer
	// The result of comparing with the catalog; valid until catalog or subscription change.
	bool is_compared;
	uint64_t compared; // generation
	size_t n_pending; // requested names about which nothing is known yet
	bool wild_is_pending; // likewise, for a wildcard
	bool wild_is_open; // the wildcard's list is never reported as complete (SW-14)
	enum ads_due due;
	uint64_t change_ns; // when a change became due
};

struct ads_items {
	struct ads_item *list;
	size_t n, room;
};

struct ads_stream {
	enum ads_protocol protocol;
	struct catalog *catalog;
	bool wraps; // the client reads wrapped resources (SotW)
	struct ads_type *types; // as the catalog's, as far as they were asked for
	uint32_t n_types; // at least N_RESOURCE_TYPES
	uint32_t n_made; // open types in addition to those
	uint64_t last_nonce; // one sequence for all types
	struct ads_items resources, removed; // of the last response
	struct ads_items scratch;
	struct ads_error *errors; // of the last response
	size_t n_errors, errors_room;
};

void ads_items_clear(struct ads_items *);
