// SPDX-License-Identifier: Apache-2.0
// The heads of the HTTP/1.1 client's requests, in memory that the plan's longest one fits.
#include "dataplane/buf/buf.h"
#include "tests/support/check.h"
#include "tools/shunt-load/client_inside.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
	struct plan plan;
	struct pool chunks;
	struct client client;
	struct side side;
	struct client_conn on;
	struct buf out;
	void *session;
};

// The linker's --wrap: there is no TCP.
uint32_t __wrap_conn_n_queued(const struct conn *);
uint32_t __wrap_conn_n_queued(const struct conn *c)
{
	return 0;
}

static int set_up(void **state)
{
	static struct world w;
	w = (struct world){.on.conn.side = &w.side};
	struct lb_err err;
	assert_int_equal(plan_init(&w.plan, false, "a.test"), 0);
	assert_int_equal(plan_add_path(&w.plan, "/long/path", &err), 0);
	assert_int_equal(plan_add_field(&w.plan, STR("x-one: 1"), &err), 0);
	assert_int_equal(plan_seal(&w.plan, PLAN_CHECK_STATUS, 0, 0), 0);
	assert_int_equal(buf_pool_init(&w.chunks, 4), 0);
	w.client.conf.plan = &w.plan;
	w.client.conf.chunks = &w.chunks;
	w.side.context = client_http1.context_new(&w.client, 1, 1);
	assert_non_null(w.side.context);
	w.session = client_http1.conn->begin(&w.on.conn, &w.out);
	assert_non_null(w.session);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	client_http1.context_free(w->side.context);
	buf_clear(&w->out, &w->chunks);
	pool_fini(&w->chunks);
	plan_fini(&w->plan);
	return 0;
}

static void a_request_of_the_plan_fits(void **state)
{
	struct world *w = *state;
	struct request r = {0};
	struct field fields[PLAN_MAX_FIELDS + 1];
	char id[16], text[512] = "";
	struct h2_message m;
	plan_request(&w->plan, 0, 1, fields, id, &m);
	assert_non_null(client_http1.open(w->session, &m, &r));
	assert_true(w->out.len < sizeof(text));
	buf_copy_out(&w->out, 0, text, w->out.len);
	static const char begin[] = "GET /long/path HTTP/1.1\r\nhost: a.test\r\n";
	assert_int_equal(strncmp(text, begin, sizeof(begin) - 1), 0);
	assert_non_null(strstr(text, "\r\nx-one: 1\r\n"));
	assert_string_equal(text + w->out.len - 4, "\r\n\r\n");
}

// More than lies behind it in memory: to write that down first would end otherwise.
#define TOO_LONG ((size_t)256 << 20)

static _Noreturn void send_what_is_too_long(struct world *w)
{
	const struct rlimit no_core = {0, 0};
	struct request r = {0};
	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGABRT, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	void *zeros = mmap(NULL, TOO_LONG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct field field = {.name = STR("x"), .value = {zeros, TOO_LONG}};
	const struct h2_message m = {.method = STR("GET"),
		.path = STR("/"),
		.authority = STR("a.test"),
		.fields = &field,
		.n_fields = 1};
	if (zeros != MAP_FAILED)
		client_http1.open(w->session, &m, &r);
	_exit(1);
}

static void one_that_does_not_fit_is_not_written(void **state)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		send_what_is_too_long(*state);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("shunt-load/client_h1", CASE(a_request_of_the_plan_fits),
	CASE(one_that_does_not_fit_is_not_written))
