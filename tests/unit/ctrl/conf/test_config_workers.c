// SPDX-License-Identifier: Apache-2.0
// The machine has eight cores, of which some are offline, so that the others' numbers are beyond
// their count.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_workers.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

long __wrap_sysconf(int name);
int __wrap_sched_getaffinity(pid_t, size_t size, cpu_set_t *ret);

static uint16_t own[2]; // cores of the process

long __wrap_sysconf(int name)
{
	return name == _SC_NPROCESSORS_CONF ? 8 : 2;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	for (int i = 0; i < 2; i++)
		CPU_SET(own[i], ret);
	return 0;
}

// As in a container that has some of the machine's cores.
static void the_default_worker_is_on_a_core_that_the_process_may_use(void **state)
{
	static const uint16_t rows[][2] = {{0, 0}, {0, 1}, {0, 4}, {5, 6}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_err err = {0};
		struct config c = {0};
		own[0] = rows[i][0];
		own[1] = rows[i][1];
		assert_int_equal(config_check_workers(&c, &err), 0);
		assert_int_equal(c.n_workers, 1);
		assert_int_equal(c.workers[0], own[1]);
		free(c.workers);
	}
}

static void a_worker_may_be_on_any_core_that_the_machine_has(void **state)
{
	uint16_t cores[] = {2, 7};
	struct config c = {.workers = cores, .n_workers = 2};
	struct lb_err err = {0};
	assert_int_equal(config_check_workers(&c, &err), 0);
	cores[1] = 8;
	assert_int_not_equal(config_check_workers(&c, &err), 0);
	assert_string_equal(err.text, "workers[1]: this machine has no core 8");
}

RUN_SUITE("conf/config_workers",
	cmocka_unit_test(the_default_worker_is_on_a_core_that_the_process_may_use),
	cmocka_unit_test(a_worker_may_be_on_any_core_that_the_machine_has))
