// SPDX-License-Identifier: Apache-2.0
// Each allocation of load reporting is failed once, anywhere in a life with reports, a broken
// stream and a removed cluster: nothing crashes, and in the end the reports that left hold exactly
// what was counted.
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/load/lrs_fixture.h"

#include <stdio.h>
#include <string.h>

#define MAX_CALLS 32

struct tight {
	struct lrs_fixture f;
	unsigned victim; // number of the call in which an allocation fails
	size_t nth; // of its allocations
	unsigned n_calls;
	bool hit;
	unsigned issued, dropped, metric; // that left
};

// One call into the client.
#define TIGHT(t, call)                                                                             \
	do {                                                                                       \
		bool turn = (t)->n_calls++ == (t)->victim;                                         \
		if (turn)                                                                          \
			alloc_fail_arm((t)->nth);                                                  \
		call;                                                                              \
		if (turn)                                                                          \
			(t)->hit = alloc_fail_disarm();                                            \
	} while (0)

static unsigned number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	unsigned n = 0;
	if (at)
		sscanf(at + strlen(word), "%u", &n);
	return n;
}

// The message under way leaves, and the server wants all.
static void go_on(struct tight *t)
{
	const char *last = "";
	for (const char *text; *(text = lrs_sent(&t->f));)
		last = text; // only the last can be under way
	if (t->f.sending) {
		t->issued += number_after(last, "r/z/s ");
		t->dropped += number_after(last, "drops ");
		t->metric += number_after(last, "k=");
	}
	TIGHT(t, lrs_settle(&t->f));
	if (t->f.stream && t->f.reading)
		TIGHT(t, lrs_settings(&t->f, t->n_calls % 2 ? "a b" : NULL, 10 * S));
}

// False = that call has not so many allocations.
static bool live_with_failure(unsigned victim, size_t nth)
{
	struct tight t = {.victim = victim, .nth = nth};
	struct xds_load_cluster *c;
	lrs_init(&t.f);
	TIGHT(&t, c = xds_lrs_cluster_get(t.f.lrs, "a", "x"));
	if (!c) {
		assert_true(t.hit);
		c = lrs_get(&t.f, "a", "x");
	}
	struct source *s = lrs_source(&t.f, c);
	s->requests = (struct xds_load_requests){1, 2, 3, 4};
	s->category = "lb";
	s->metric = "k";
	s->n_dropped = s->n_metric = 1;
	s->total = 1;
	go_on(&t);
	TIGHT(&t, lrs_pass_time(&t.f, 10 * S));
	go_on(&t);
	s->requests.issued += 10;
	s->n_dropped += 10;
	s->n_metric += 10;
	TIGHT(&t, lrs_pass_time(&t.f, 10 * S));
	if (t.f.stream)
		TIGHT(&t, lrs_close(&t.f, "broken"));
	TIGHT(&t, lrs_pass_time(&t.f, 2 * S));
	go_on(&t);
	s->requests.issued += 100;
	TIGHT(&t, lrs_pass_time(&t.f, 10 * S));
	go_on(&t);

	// With memory again, and after the backoff, whatever it has come to.
	lrs_pass_time(&t.f, 20 * S);
	go_on(&t);
	for (int i = 0; i < 3; i++) {
		lrs_pass_time(&t.f, 10 * S);
		go_on(&t);
	}
	s->cluster = NULL;
	TIGHT(&t, xds_lrs_cluster_put(t.f.lrs, c));
	for (int i = 0; i < 3; i++) {
		lrs_pass_time(&t.f, 10 * S);
		go_on(&t);
	}
	assert_null(t.f.stream);
	assert_int_equal(t.issued, 111);
	assert_int_equal(t.dropped, 11);
	assert_int_equal(t.metric, 11);
	lrs_fini(&t.f);
	assert_true(t.n_calls < MAX_CALLS);
	return t.hit;
}

static void each_allocation_may_fail(void **state)
{
	if (!alloc_fail_works())
		skip();
	size_t n_failed = 0;
	for (unsigned victim = 0; victim < MAX_CALLS; victim++)
		for (size_t nth = 0; live_with_failure(victim, nth); nth++)
			n_failed++;
	assert_in_range(n_failed, 50, 10000);
}

RUN_SUITE("xds/lrs_memory", cmocka_unit_test(each_allocation_may_fail))
