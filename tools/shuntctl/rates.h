// SPDX-License-Identifier: Apache-2.0
// What happened between two answers to `show load json`: rates, and times of those requests alone
// that ended meanwhile.
// Thread: any. Pure.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

#define RATES_MAX_CAUSES 64

struct rates_row { // texts are borrowed from the newer answer
	const char *name, *state;
	// A second; errors: each end but `ok`, and answers of backends that blame them (OPS-278).
	double requests_s, errors_s;
	double p50_us, p99_us; // below 0: nothing ended
	double busy_percent; // of workers
	long long connections, active, queued, endpoints, ready;
};

struct rates_cause {
	const char *name;
	double per_s;
};

struct rates {
	struct rates_row total; // of all frontends
	struct rates_row *workers, *clusters; // owned
	size_t n_workers, n_clusters;
	// But `ok`, those that happened; of answers of a backend that blame it "answered", as `show
	// failures` has it.
	struct rates_cause causes[RATES_MAX_CAUSES];
	size_t n_causes;
};

// rows: the data of the newer answer, which outlives the rates; before: of the older one, which
// came `seconds` earlier, NULL = there is none, and all rates are 0, as they are of what has begun
// anew meanwhile. False = out of memory.
[[nodiscard]] bool rates_init(
	struct rates *, const json_t *before, const json_t *rows, double seconds);
void rates_fini(struct rates *);
