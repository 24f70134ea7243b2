// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_workers.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdlib.h>

// As in a container that has some of the machine's cores.
static void the_default_worker_is_on_a_core_that_the_process_may_use(void **state)
{
	cpu_set_t before, first;
	struct lb_err err = {0};
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	uint16_t core = 0;
	while (!CPU_ISSET(core, &before))
		core++;
	CPU_ZERO(&first);
	CPU_SET(core, &first);
	assert_int_equal(sched_setaffinity(0, sizeof(first), &first), 0);
	struct config c = {0};
	int rc = config_check_workers(&c, &err);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(rc, 0);
	assert_int_equal(c.n_workers, 1);
	assert_int_equal(c.workers[0], core);
	free(c.workers);
}

RUN_SUITE("conf/config_workers",
	cmocka_unit_test(the_default_worker_is_on_a_core_that_the_process_may_use))
