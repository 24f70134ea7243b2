// SPDX-License-Identifier: Apache-2.0
// Scripted name servers behind the vtable of lookups: a question stays open until the test answers
// it. It CHECKs the asker's side of the contract.
// Thread: the test's.
#pragma once

#include "ctrl/dns/lookup.h"

#include <stdbool.h>

#define FAKE_LOOKUPS_MAX 64

struct fake_lookups {
	struct dns_lookups base; // first member
	struct dns_query {
		char host[64]; // "" = free
		struct dns_lookup *lookup;
	} open[FAKE_LOOKUPS_MAX];
	unsigned n_started;
	bool starve; // start() has no memory
	const char *instant; // not NULL = start() answers with these addresses inside, TTL 0
};

void fake_lookups_init(struct fake_lookups *);
void fake_lookups_fini(struct fake_lookups *); // CHECKs that nothing is open
bool fake_lookups_asks(const struct fake_lookups *, const char *host);
// CHECKs that it asks. Addresses separated by blanks.
void fake_lookups_answer(
	struct fake_lookups *, const char *host, const char *addresses, uint32_t ttl_s);
void fake_lookups_fail(struct fake_lookups *, const char *host, const char *why);
