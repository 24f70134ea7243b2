// SPDX-License-Identifier: Apache-2.0
// What sorting a route table's keys costs, beside qsort() with the same comparison. Run by hand;
// asserts nothing.
#include "lb/base/check.h"
#include "lb/base/rand.h"
#include "lb/index/strsort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_REPEATS 15
#define MAX_KEYS 100000
#define TEXT_SIZE 80

static char texts[MAX_KEYS][TEXT_SIZE];
static struct lb_strsort_item keys[MAX_KEYS], sorted[MAX_KEYS];

static double clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); // others run beside
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	return lb_strsort_order(a, b, 0);
}

static double sort_ms(uint32_t n, bool with_qsort)
{
	memcpy(sorted, keys, n * sizeof(keys[0]));
	double start_ms = clock_ms();
	if (with_qsort)
		qsort(sorted, n, sizeof(sorted[0]), compare);
	else
		CHECK(lb_strsort(sorted, n));
	return clock_ms() - start_ms;
}

static int path(char *text, unsigned k)
{
	return snprintf(text, TEXT_SIZE, "/api/v1/tenants/%06u/projects/%u/items", k / 8, k % 8);
}

static int method(char *text, unsigned k)
{
	return snprintf(
		text, TEXT_SIZE, "/com.example.package.v1.Service%06u/Method%u", k / 8, k % 8);
}

static int domain(char *text, unsigned k) // backwards, as they are looked up
{
	return snprintf(text, TEXT_SIZE, "moc.elpmaxe.retsulc.ecivres-%06u", k);
}

static void run(const char *name, int (*make)(char *, unsigned), uint32_t n, bool in_order)
{
	struct rand r;
	rand_init(&r, 1);
	for (uint32_t i = 0; i < n; i++) {
		unsigned k = in_order ? i : (unsigned)rand_below(&r, n);
		int len = make(texts[i], k);
		keys[i] = (struct lb_strsort_item){
			.p = (const uint8_t *)texts[i], .len = (size_t)len, .index = i};
	}
	double best[2] = {1e9, 1e9};
	for (int i = 0; i < 2 * N_REPEATS; i++) {
		double ms = sort_ms(n, i % 2);
		best[i % 2] = ms < best[i % 2] ? ms : best[i % 2];
	}
	printf("%-17s %6u: strsort %7.3f ms, qsort %7.3f ms, times ours %.2f\n", name, n, best[0],
		best[1], best[1] / best[0]);
}

int main(void)
{
	for (uint32_t n = 1000; n <= MAX_KEYS; n *= 10) {
		run("paths", path, n, false);
		run("methods", method, n, false);
		run("domains", domain, n, false);
		run("paths in order", path, n, true);
	}
}
