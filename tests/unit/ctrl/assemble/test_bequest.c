// SPDX-License-Identifier: Apache-2.0
// What one assembler leaves to another, through the file between them.
#include "ctrl/bequest.h"
#include "ctrl/bequest_wire.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"
#include "lb/leaf/outlier.h"
#include "lb/pick/check.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/policy/policy_spec.h"
#include "lb/route/req.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define S NS_PER_SECOND
#define N 4
#define BACKEND(last)                                                                              \
	{                                                                                          \
		{{{[10] = 255, [11] = 255, [12] = 10, [15] = (last)}}, 80}, LB_LEAF_HEALTHY, 1     \
	}
static const struct told_endpoint backends[] = {BACKEND(1), BACKEND(2), BACKEND(3), BACKEND(4)};
static const struct told_locality all = {"r", "z", "s", 1, backends, N},
				  one = {"r", "z", "s", 1, backends, 1};
static const struct told_priority all_of_them[] = {{&all, 1}}, only_one[] = {{&one, 1}};
static const struct res_vhost blue = {
	"v", DOMAINS("*"), ROUTES({PREFIX(""), CLUSTERS({"blue", 1})})};
static const struct lb_policy_spec weighted = {.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
	.wrr = {.blackout_ns = 10 * S, .expiration_ns = 180 * S, .update_ns = S}};
static const struct lb_outlier_conf outlier = {.interval_ns = 10 * S,
	.base_ejection_ns = 30 * S,
	.max_ejection_ns = 300 * S,
	.max_ejection_percent = 50,
	.failure_percentage = {true, 100, 5, 50}};

static struct world *older, *newer;

// What a process has of TLS.
struct keeper {
	struct certs *certs;
	struct credentials *credentials;
};
static struct keeper older_keeper, newer_keeper;

static uint64_t wall_ns(void)
{
	return 1800000000 * S;
}

static void on_credential(void *ctx, uint32_t id, struct lb_credential *c)
{
}

static struct keeper keeper_of(struct world *w, const char *ticket_secret)
{
	static const struct xds_bootstrap none;
	struct keeper k;
	k.certs = certs_new(&(struct certs_conf){.bootstrap = &none,
		.ticket_secret = ticket_secret,
		.wheel = w->wheel,
		.wall_ns = wall_ns});
	assert_non_null(k.certs);
	k.credentials = credentials_new(&(struct credentials_conf){
		.certs = k.certs, .wheel = w->wheel, .changed = on_credential});
	assert_non_null(k.credentials);
	return k;
}

static void keeper_fini(struct keeper *k)
{
	credentials_free(k->credentials);
	certs_free(k->certs);
}

// Blocks that are given back with these bytes in them are counted.
static char watched[BEQUEST_SECRET];
static bool watches;
static unsigned n_leaks;
void __real_free(void *);
void __wrap_free(void *);
void *__real_realloc(void *, size_t);
void *__wrap_realloc(void *, size_t);

static void look(void *block)
{
	if (block && __atomic_load_n(&watches, __ATOMIC_ACQUIRE) &&
		memmem(block, malloc_usable_size(block), watched, sizeof(watched)))
		__atomic_fetch_add(&n_leaks, 1, __ATOMIC_RELAXED);
}

void __wrap_free(void *block)
{
	look(block);
	__real_free(block);
}

void *__wrap_realloc(void *block, size_t len)
{
	look(block);
	return __real_realloc(block, len);
}

static void watch(struct str secret)
{
	assert_int_equal(secret.len, sizeof(watched));
	memcpy(watched, secret.p, sizeof(watched));
	n_leaks = 0;
	__atomic_store_n(&watches, true, __ATOMIC_RELEASE);
}

static unsigned leaks(void)
{
	__atomic_store_n(&watches, false, __ATOMIC_RELEASE);
	return __atomic_load_n(&n_leaks, __ATOMIC_RELAXED);
}

// Endpoints that the worker is to connect are connected.
static void obey(struct world *w)
{
	struct lb_command c;
	while (spsc_read(&w->link->commands, &c)) {
		struct lb_event e = {.kind = LB_EVENT_CONNECTED, .endpoint_id = c.endpoint->id};
		if (c.kind == LB_COMMAND_RELEASE)
			e.kind = LB_EVENT_RELEASED;
		assert_true(spsc_write(&w->link->events, &e));
		settle(w);
	}
}

static void give(struct world *w, const struct told_priority *priorities)
{
	struct res_endpoints *e = endpoints_of(priorities, 1);
	struct res_cluster *c = cluster_of("blue");
	c->spec = &weighted;
	c->outlier = &outlier;
	xds_res_put(&c->base);
	apply(w, &blue, (const char *[]){"blue"}, &e, 1);
	xds_res_put(&e->base);
	settle(w);
}

static int set_up(void **state)
{
	void *made;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(world_set_up(&made), 0);
	older = made;
	assert_int_equal(world_set_up(&made), 0);
	newer = made;
	older->now += 1000 * S;
	newer->now += 500 * S; // ages are told, not times
	turns(older, 1);
	turns(newer, 1);
	give(older, all_of_them);
	obey(older);
	older_keeper = keeper_of(older, NULL);
	newer_keeper = keeper_of(newer, NULL);
	return 0;
}

static int tear_down(void **state)
{
	keeper_fini(&older_keeper);
	keeper_fini(&newer_keeper);
	(void)world_tear_down((void *[]){older});
	return world_tear_down((void *[]){newer});
}

static void know(struct world *w, uint8_t last, struct lb_bequest what)
{
	const struct assembler_bequest b = {.cluster = "blue",
		.leaf = "blue",
		.addresses = &backends[last - 1].addr,
		.n_addresses = 1,
		.of = what};
	assert_true(assembler_inherit(w->assembler, &b));
}

static void pass_on(void)
{
	int fd = bequest_make(older->assembler, older_keeper.credentials);
	assert_true(fd >= 0);
	bequest_take(newer->assembler, newer_keeper.credentials, fd);
	close(fd);
	turns(newer, 1);
}

// How often each backend is picked of so many times.
static void pick(struct world *w, unsigned n, unsigned ret[N + 1])
{
	struct lb_pick_hash hash = {0};
	memset(ret, 0, (N + 1) * sizeof(ret[0]));
	for (unsigned i = 0; i < n; i++) {
		struct lb_pick p = assembler_pick(w->assembler, "blue", &(struct lb_req){0}, &hash);
		assert_int_equal(p.kind, LB_PICK_ENDPOINT);
		ret[p.cell->endpoint->addr.ip.b[15]]++;
	}
}

static struct lb_bequest ejected(uint64_t ago_ns)
{
	return (struct lb_bequest){.ejection = {2, true, ago_ns}};
}

static struct lb_bequest reported(float qps)
{
	return (struct lb_bequest){.orca = {.qps = qps,
					   .utilization = 0.5F,
					   .last_ago_ns = S,
					   .in_series = true,
					   .since_ago_ns = 60 * S}};
}

// FL-17
static void one_that_is_ejected_is_so_for_the_newer_process_and_for_no_longer(void **state)
{
	unsigned picks[N + 1];
	know(older, 2, ejected(20 * S));
	turns(older, 1);
	give(newer, all_of_them);
	obey(newer);
	pass_on();
	pick(newer, 40, picks);
	assert_true(picks[1] && !picks[2] && picks[3] && picks[4]);
	turns(newer, 35 * 500); // 60 s from its ejection are 40 s from now
	pick(newer, 40, picks);
	assert_int_equal(picks[2], 0);
	turns(newer, 20 * 500); // and a sweep
	obey(newer);
	pick(newer, 40, picks);
	assert_true(picks[2]);
}

// FL-17: at once, whatever the time of the next weighing.
static void weights_hold_at_once(void **state)
{
	unsigned picks[N + 1];
	for (uint8_t i = 1; i <= N; i++)
		know(older, i, reported(i == 1 ? 300 : 100));
	give(newer, all_of_them);
	obey(newer);
	pass_on();
	pick(newer, 600, picks);
	assert_in_range(picks[1], 290, 310);
	assert_in_range(picks[2], 90, 110);
}

// FL-17, A58-03: it was connected all the time, only not from here.
static void one_that_is_still_being_connected_has_no_blackout(void **state)
{
	unsigned picks[N + 1];
	for (uint8_t i = 1; i <= N; i++)
		know(older, i, reported(i == 1 ? 300 : 100));
	give(newer, all_of_them);
	pass_on();
	obey(newer);
	turns(newer, 600);
	pick(newer, 600, picks);
	assert_in_range(picks[1], 290, 310);
}

// FL-17
static void what_operators_say_holds(void **state)
{
	struct lb_err err;
	unsigned picks[N + 1];
	const struct override down = {.has_health = true, .health = LB_LEAF_UNHEALTHY};
	assert_int_equal(
		assembler_override(older->assembler, "blue", &backends[2].addr, down, &err), 0);
	give(newer, all_of_them);
	obey(newer);
	pass_on();
	settle(newer);
	obey(newer);
	pick(newer, 40, picks);
	assert_true(picks[1] && picks[2] && !picks[3] && picks[4]);
}

static void what_the_newer_process_has_not_is_left_out(void **state)
{
	unsigned picks[N + 1];
	know(older, 1, ejected(S));
	know(older, 2, ejected(S));
	give(newer, only_one);
	obey(newer);
	pass_on();
	struct lb_pick p = assembler_pick(
		newer->assembler, "blue", &(struct lb_req){0}, &(struct lb_pick_hash){0});
	assert_int_equal(p.kind, LB_PICK_FAIL); // its only one is ejected
	give(newer, all_of_them);
	obey(newer);
	pick(newer, 40, picks);
	assert_true(!picks[1] && picks[2]);
}

// FL-17: a newer process serves with whatever it gets.
static void a_file_that_is_none_is_not_taken(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		off_t size;
	} rows[] = {{"", 0, 0}, {"SHB", 3, 0}, {"SHBQ\0\2\0", 8, 0},
		{"SHBQ\0\1\0\0\0\1\0\7", 12, 0}, {"SHBQ\0\1\0", 8, BEQUEST_MAX_LEN + 1}};
	unsigned picks[N + 1];
	give(newer, all_of_them);
	obey(newer);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd = memfd_create("test", 0);
		assert_int_equal(write(fd, rows[i].bytes, rows[i].len), rows[i].len);
		if (rows[i].size)
			assert_int_equal(ftruncate(fd, rows[i].size), 0);
		bequest_take(newer->assembler, newer_keeper.credentials, fd);
		close(fd);
	}
	int pipe_fds[2];
	assert_int_equal(pipe(pipe_fds), 0);
	bequest_take(newer->assembler, newer_keeper.credentials, pipe_fds[0]);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	pick(newer, 40, picks);
	assert_true(picks[1] && picks[2] && picks[3] && picks[4]);
}

static bool has_secret_of(const struct keeper *a, const struct keeper *b)
{
	return str_eq(
		credentials_own_tickets(a->credentials), credentials_own_tickets(b->credentials));
}

// FL-121
static void a_secret_of_tickets_goes_from_process_to_process(void **state)
{
	struct keeper third = keeper_of(newer, NULL);
	assert_false(has_secret_of(&newer_keeper, &older_keeper));
	pass_on();
	assert_true(has_secret_of(&newer_keeper, &older_keeper));
	int fd = bequest_make(newer->assembler, newer_keeper.credentials);
	bequest_take(older->assembler, third.credentials, fd);
	close(fd);
	assert_true(has_secret_of(&third, &older_keeper));
	keeper_fini(&third);
}

// FL-122
static void where_one_has_a_secret_of_tickets_configured_none_is_handed_over(void **state)
{
	char own[BEQUEST_SECRET];
	struct str theirs = credentials_own_tickets(newer_keeper.credentials);
	memcpy(own, theirs.p, sizeof(own));
	keeper_fini(&older_keeper);
	older_keeper = keeper_of(older, "/nowhere/secret");
	pass_on();
	theirs = credentials_own_tickets(newer_keeper.credentials);
	assert_true(str_eq(theirs, (struct str){own, sizeof(own)}));
	struct keeper k = newer_keeper;
	newer_keeper = older_keeper;
	older_keeper = k;
	pass_on();
	assert_int_equal(credentials_own_tickets(newer_keeper.credentials).len, 0);
}

// TLS-220
static void no_memory_is_given_back_with_the_secret_of_tickets_in_it(void **state)
{
	static const struct str another = {"another of thirty-two bytes, too", 32};
	struct bequest_writer w;
	struct str secret = credentials_own_tickets(older_keeper.credentials);
	watch(secret);
	pass_on();
	assert_true(bequest_wire_begin(&w));
	bequest_wire_secret(&w, (const uint8_t *)secret.p);
	for (int i = 0; i < 1000; i++) // it grows
		bequest_wire_leaf(&w, "cluster", "leaf");
	int fd = memfd_create("test", 0);
	assert_int_equal(write(fd, w.bytes, w.len - 1), w.len - 1); // malformed
	bequest_wire_fini(&w);
	bequest_take(newer->assembler, newer_keeper.credentials, fd);
	close(fd);
	// Another takes its place.
	assert_true(credentials_inherit_tickets(older_keeper.credentials, another));
	assert_true(credentials_inherit_tickets(newer_keeper.credentials, another));
	assert_int_equal(leaks(), 0);
	// What is looked for would be found; volatile, or compilers leave out what nobody reads.
	char *volatile block = malloc(100);
	memcpy(block + 50, watched, sizeof(watched));
	__atomic_store_n(&watches, true, __ATOMIC_RELEASE);
	free(block);
	assert_int_equal(leaks(), 1);
}

// TLS-220
static void the_file_between_the_two_is_sealed(void **state)
{
	int fd = bequest_make(older->assembler, older_keeper.credentials);
	assert_int_equal(
		fcntl(fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
RUN_SUITE("ctrl/bequest", CASE(one_that_is_ejected_is_so_for_the_newer_process_and_for_no_longer),
	CASE(weights_hold_at_once), CASE(one_that_is_still_being_connected_has_no_blackout),
	CASE(what_operators_say_holds), CASE(what_the_newer_process_has_not_is_left_out),
	CASE(a_file_that_is_none_is_not_taken),
	CASE(a_secret_of_tickets_goes_from_process_to_process),
	CASE(where_one_has_a_secret_of_tickets_configured_none_is_handed_over),
	CASE(no_memory_is_given_back_with_the_secret_of_tickets_in_it),
	CASE(the_file_between_the_two_is_sealed))
