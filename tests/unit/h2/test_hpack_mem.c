// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack_mem.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define N_BLOCKS 600

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

// Every block keeps its own bytes while others come and go, whatever their sizes.
static void random_blocks_do_not_overlap(void **state)
{
	struct hpack_mem *m = hpack_mem_new(40);
	uint8_t *blocks[N_BLOCKS] = {0};
	size_t sizes[N_BLOCKS];
	uint64_t seed = 3;
	assert_non_null(m);
	for (int step = 0; step < 100000; step++) {
		size_t i = next(&seed) % N_BLOCKS;
		if (blocks[i]) {
			for (size_t k = 0; k < sizes[i]; k += 1 + k / 8)
				assert_int_equal(blocks[i][k], (uint8_t)i);
			assert_int_equal(blocks[i][sizes[i] - 1], (uint8_t)i);
			hpack_mem_put(m, blocks[i]);
			blocks[i] = NULL;
			continue;
		}
		static const size_t limits[] = {60, 60, 150, 150, 1200, 4200, 9000};
		sizes[i] = 1 + next(&seed) % limits[next(&seed) % 7];
		blocks[i] = hpack_mem_take(m, sizes[i]);
		if (!blocks[i])
			continue;
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		assert_true(hpack_mem_size(m, blocks[i]) >= sizes[i]);
		memset(blocks[i], (int)i, sizes[i]);
	}
	for (size_t i = 0; i < N_BLOCKS; i++)
		hpack_mem_put(m, blocks[i]);
	assert_int_equal(hpack_mem_used(m), 0);
	struct pool_view view = hpack_mem_view(m);
	assert_int_equal(*view.n_used, 0);
	assert_in_range(*view.n_peak, 1, view.n_total);
	hpack_mem_free(m);
}

// One block is enough for a page to be in use; the page that stays with its size is not.
static void a_page_counts_while_a_block_of_it_is_out(void **state)
{
	struct hpack_mem *m = hpack_mem_new(8);
	struct pool_view view = hpack_mem_view(m);
	assert_int_equal(view.n_total, 8);
	void *small[] = {hpack_mem_take(m, 64), hpack_mem_take(m, 64)};
	void *large = hpack_mem_take(m, 30000);
	assert_int_equal(*view.n_used, 2);
	hpack_mem_put(m, large);
	hpack_mem_put(m, small[0]);
	assert_int_equal(*view.n_used, 1);
	hpack_mem_put(m, small[1]);
	assert_int_equal(*view.n_used, 0);
	small[0] = hpack_mem_take(m, 64);
	assert_int_equal(*view.n_used, 1);
	assert_int_equal(*view.n_peak, 2);
	hpack_mem_put(m, small[0]);
	hpack_mem_free(m);
}

// Pages that one size has emptied serve the next size.
static void exhausted_memory_serves_again_in_any_size(void **state)
{
	static const size_t sizes[] = {48, 80, 1024, 4096, 8144, 30000, 64};
	struct hpack_mem *m = hpack_mem_new(8);
	void *blocks[8 * 1024];
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = 0;
		while ((blocks[n] = hpack_mem_take(m, sizes[k])))
			n++;
		// One page may still be held by each size before.
		assert_true(n * sizes[k] >= (8 - k) * HPACK_PAGE * 3 / 4);
		while (n)
			hpack_mem_put(m, blocks[--n]);
		assert_int_equal(hpack_mem_used(m), 0);
	}
	hpack_mem_free(m);
}

static void a_block_larger_than_a_page_is_not_there(void **state)
{
	struct hpack_mem *m = hpack_mem_new(2);
	assert_null(hpack_mem_take(m, HPACK_PAGE));
	assert_int_equal(hpack_mem_used(m), 0);
	hpack_mem_free(m);
}

RUN_SUITE("h2/hpack_mem", cmocka_unit_test(random_blocks_do_not_overlap),
	cmocka_unit_test(a_page_counts_while_a_block_of_it_is_out),
	cmocka_unit_test(exhausted_memory_serves_again_in_any_size),
	cmocka_unit_test(a_block_larger_than_a_page_is_not_there))
