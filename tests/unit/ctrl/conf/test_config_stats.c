// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_stats.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

// FL-12: or the name of a process behind another would be cut.
static void names_of_sockets_leave_room_for_a_generation(void **state)
{
	static char path[] = "/run/shunt/takeover.sock", fine[] = "/run/a";
	char long_name[98], mode[] = "0660";
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	for (int i = 0; i < 2; i++) {
		struct config_stats stats = {.socket = i ? fine : long_name,
			.haproxy_socket = i ? long_name : NULL,
			.mode = mode};
		struct config c = {.stats = &stats};
		struct lb_err err = {0};
		assert_int_equal(config_check_stats(&c, &err), 0);
		c.takeover_socket = path;
		assert_int_not_equal(config_check_stats(&c, &err), 0);
		assert_string_equal(err.text,
			i ? "stats.haproxy_socket: longer than 96 bytes, which takeover_socket "
			    "leaves it"
			  : "stats.socket: longer than 96 bytes, which takeover_socket leaves it");
		long_name[96] = 0;
		assert_int_equal(config_check_stats(&c, &err), 0);
		long_name[96] = 'a';
	}
}

RUN_SUITE("conf/config_stats", cmocka_unit_test(names_of_sockets_leave_room_for_a_generation))
