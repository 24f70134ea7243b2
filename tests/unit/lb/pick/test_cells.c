// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/cells.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/lb/world.h"

#include <errno.h>
#include <stdlib.h>

#define N_ENDPOINTS 50
#define N_VERSIONS 8
#define MAX_CELLS 20000

struct fixture {
	struct lb_endpoint_table *table;
	struct lb_endpoint *endpoints[N_ENDPOINTS];
	struct rand rand;
};

static void init(struct fixture *f, uint64_t seed)
{
	f->table = lb_endpoint_table_new(NULL);
	assert_non_null(f->table);
	for (uint32_t i = 0; i < N_ENDPOINTS; i++) {
		struct ip_port addr = world_addr(i);
		f->endpoints[i] = lb_endpoint_get(f->table, &addr, NULL, NULL);
		assert_non_null(f->endpoints[i]);
	}
	rand_init(&f->rand, seed);
}

static void fini(struct fixture *f)
{
	for (uint32_t i = 0; i < N_ENDPOINTS; i++) // every version has given back what it counted
		assert_int_equal(f->endpoints[i]->n_refs, 1);
	lb_endpoint_table_free(f->table);
}

static struct lb_cell random_cell(struct fixture *f)
{
	struct lb_endpoint *e = f->endpoints[rand_below(&f->rand, N_ENDPOINTS)];
	return (struct lb_cell){
		.endpoint = e, .member = rand_below(&f->rand, LB_MAX_MEMBERS), .state = LB_READY};
}

// What a version must say.
struct twin {
	struct lb_cells cells;
	uint32_t n;
	struct lb_cell list[MAX_CELLS];
};

static void compare(const struct twin *t)
{
	assert_int_equal(t->cells.n, t->n);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct lb_cell *c = lb_cells_at(&t->cells, i);
		assert_true(c->endpoint == t->list[i].endpoint);
		assert_true(c->state != LB_READY || c->endpoint_id == c->endpoint->id);
		assert_true(c->member == t->list[i].member);
	}
}

static void change(struct fixture *f, struct twin *t)
{
	uint32_t kind = (uint32_t)rand_below(&f->rand, 3);
	if (rand_below(&f->rand, 8) == 0)
		lb_cells_seal(&t->cells);
	if ((kind == 0 || t->n == 0) && t->n < MAX_CELLS) {
		t->list[t->n] = random_cell(f);
		assert_int_equal(lb_cells_push(&t->cells, t->list[t->n]), 0);
		t->n++;
	} else if (kind == 1) {
		assert_int_equal(lb_cells_pop(&t->cells), 0);
		t->n--;
	} else {
		uint32_t at = (uint32_t)rand_below(&f->rand, t->n);
		t->list[at] = random_cell(f);
		assert_int_equal(lb_cells_set(&t->cells, at, t->list[at]), 0);
	}
}

// A change of one version shows in no other one.
static void versions_agree_with_copies(void **state)
{
	(void)state;
	static struct twin twins[N_VERSIONS];
	struct fixture f;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		init(&f, seed);
		static const uint32_t start[] = {0, 63, 64, 65, 4095, 4097};
		for (uint32_t i = 0; i < start[seed - 1]; i++) {
			twins[0].list[i] = random_cell(&f);
			assert_int_equal(lb_cells_push(&twins[0].cells, twins[0].list[i]), 0);
			twins[0].n++;
		}
		for (uint32_t step = 0; step < 300; step++) {
			struct twin *a = &twins[rand_below(&f.rand, N_VERSIONS)];
			struct twin *b = &twins[rand_below(&f.rand, N_VERSIONS)];
			if (a != b && rand_below(&f.rand, 4) == 0) {
				lb_cells_fini(&b->cells);
				*b = *a;
				b->cells = lb_cells_share(&a->cells);
			}
			for (uint32_t i = 0; i < rand_below(&f.rand, 10); i++)
				change(&f, a);
			compare(a);
			compare(b);
		}
		for (uint32_t i = 0; i < N_VERSIONS; i++) {
			compare(&twins[i]);
			lb_cells_fini(&twins[i].cells);
			twins[i].n = 0;
		}
		fini(&f);
	}
}

static void list_grows_over_three_levels_and_shrinks_to_nothing(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	static struct twin t;
	while (t.n < MAX_CELLS) {
		t.list[t.n] = random_cell(&f);
		assert_int_equal(lb_cells_push(&t.cells, t.list[t.n++]), 0);
	}
	assert_int_equal(t.cells.height, 2);
	compare(&t);
	while (t.n) {
		assert_int_equal(lb_cells_pop(&t.cells), 0);
		t.n--;
		if (t.n % 997 == 0)
			compare(&t);
	}
	assert_null(t.cells.root);
	fini(&f);
}

static struct lb_cell given(const void *ctx, uint32_t at)
{
	return ((const struct twin *)ctx)->list[at];
}

// It goes on as if each had been pushed.
static void list_made_at_once_is_as_one_pushed_together(void **state)
{
	(void)state;
	static const uint32_t lengths[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, MAX_CELLS};
	static struct twin t;
	struct fixture f;
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		init(&f, k);
		for (t.n = 0; t.n < lengths[k]; t.n++)
			t.list[t.n] = random_cell(&f);
		assert_int_equal(lb_cells_init(&t.cells, t.n, given, &t), 0);
		compare(&t);
		for (uint32_t i = 0; i < 100; i++)
			change(&f, &t);
		compare(&t);
		lb_cells_fini(&t.cells);
		fini(&f);
	}
	init(&f, 1);
	for (t.n = 0; t.n < 200; t.n++)
		t.list[t.n] = random_cell(&f);
	int err = 0;
	ALLOC_FAIL_EACH(err = lb_cells_init(&t.cells, t.n, given, &t),
		err == -ENOMEM && t.cells.n == 0 && !t.cells.root, lb_cells_fini(&t.cells));
	fini(&f);
}

static void errors_live_as_long_as_a_version_has_them(void **state)
{
	(void)state;
	struct fixture f;
	init(&f, 1);
	struct lb_text *text = lb_text_new("refused");
	assert_non_null(text);
	struct lb_cells a = {0};
	struct lb_cell failed = {.error = text, .state = LB_TRANSIENT_FAILURE};
	assert_int_equal(lb_cells_push(&a, failed), 0);
	assert_int_equal(text->n_refs, 2);
	lb_text_put(text);
	struct lb_cells b = lb_cells_share(&a);
	assert_int_equal(lb_cells_set(&a, 0, random_cell(&f)), 0);
	assert_string_equal(lb_cells_at(&b, 0)->error->text, "refused");
	lb_cells_fini(&b);
	lb_cells_fini(&a);
	fini(&f);
}

// Fails each allocation of one change to a shared list of every height.
static void failed_change_leaves_the_list_as_before(void **state)
{
	(void)state;
	static struct twin t;
	struct fixture f;
	static const uint32_t lengths[] = {1, 2, 63, 64, 65, 4095, 4096, 4097};
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		for (int kind = 0; kind < 3; kind++) {
			init(&f, k);
			while (t.n < lengths[k]) {
				t.list[t.n] = random_cell(&f);
				assert_int_equal(lb_cells_push(&t.cells, t.list[t.n++]), 0);
			}
			struct lb_cells before = lb_cells_share(&t.cells);
			struct lb_cell cell = random_cell(&f);
			for (size_t nth = 0;; nth++) {
				alloc_fail_arm(nth);
				int err = kind == 0   ? lb_cells_push(&t.cells, cell)
				          : kind == 1 ? lb_cells_pop(&t.cells)
				                      : lb_cells_set(&t.cells, 0, cell);
				if (!alloc_fail_disarm()) {
					assert_int_equal(err, 0);
					break;
				}
				assert_int_equal(err, -ENOMEM);
				compare(&t);
			}
			lb_cells_fini(&before);
			lb_cells_fini(&t.cells);
			t.n = 0;
			fini(&f);
		}
	}
}

static void sealed_list_has_no_room_and_grows_again(void **state)
{
	(void)state;
	static struct twin t;
	struct fixture f;
	init(&f, 1);
	lb_cells_seal(&t.cells); // of nothing
	while (t.n < 4106) {
		t.list[t.n] = random_cell(&f);
		assert_int_equal(lb_cells_push(&t.cells, t.list[t.n++]), 0);
	}
	const struct lb_page *last = t.cells.root->entries[1].below->entries[0].below;
	assert_in_range(last->n, 1, last->room - 1);
	struct lb_cells shared = lb_cells_share(&t.cells);
	lb_cells_seal(&t.cells); // others read it where it is
	assert_in_range(last->n, 1, last->room - 1);
	lb_cells_fini(&shared);
	alloc_fail_arm(0);
	lb_cells_seal(&t.cells);
	assert_true(alloc_fail_disarm() || !alloc_fail_works());
	compare(&t);
	lb_cells_seal(&t.cells);
	last = t.cells.root->entries[1].below->entries[0].below;
	assert_int_equal(last->room, last->n);
	compare(&t);
	t.list[t.n] = random_cell(&f);
	assert_int_equal(lb_cells_push(&t.cells, t.list[t.n++]), 0);
	compare(&t);
	lb_cells_fini(&t.cells);
	t.n = 0;
	fini(&f);
}

RUN_SUITE("lb/cells", cmocka_unit_test(versions_agree_with_copies),
	cmocka_unit_test(list_grows_over_three_levels_and_shrinks_to_nothing),
	cmocka_unit_test(list_made_at_once_is_as_one_pushed_together),
	cmocka_unit_test(errors_live_as_long_as_a_version_has_them),
	cmocka_unit_test(failed_change_leaves_the_list_as_before),
	cmocka_unit_test(sealed_list_has_no_room_and_grows_again))
