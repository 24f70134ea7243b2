// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_kernel.h"
#include "tests/support/check.h"

#include <string.h>

static const struct {
	const char *first, *second; // interfaces; NULL = none
	uint32_t rate;
	const char *expected; // NULL = fine
} rows[] = {
	{"shunt0", "shunt1", 10, NULL},
	{NULL, "shunt0", 1000000, NULL},
	{"shunt0", "shunt0", 10, "ports[1].kernel: interface: 'shunt0' is that of ports[0]"},
	{"a b", NULL, 10, "ports[0].kernel: interface: 'a b' is not an interface's name"},
	{"tap%d", NULL, 10, "ports[0].kernel: interface: 'tap%d' is not"},
	{"../x", NULL, 10, "ports[0].kernel: interface: '../x' is not"},
	{"..", NULL, 10, "ports[0].kernel: interface: '..' is not"},
	{"shunt-with-a-name", NULL, 10, "is not an interface's name"},
	{"lo", NULL, 10, "ports[0].kernel: interface: 'lo' is there already"},
	{"eth1", NULL, 10, "ports[0].kernel: interface: 'eth1' is there already"},
	{NULL, "eth1", 10, "ports[1].kernel: interface: 'eth1' is there already"},
	{"eth2", NULL, 10, "ports[0].kernel: interface: 'eth2' is there already"},
	{"eth", "eth11", 10, NULL},
	{"shunt0", NULL, 9, "ports[0].kernel: kernel.rate: 9 is outside 10..1000000"},
};

// FL-26
static void a_kernel_that_cannot_be_is_an_error_of_its_field(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config_kernel kernels[2] = {{.rate = NULL}};
		char *members[] = {(char[]){"net_af_packet1,iface=eth2,qpairs=1"}};
		struct config_bond bond = {.members = members, .n_members = 1};
		struct config_port ports[2] = {
			{.device = (char[]){"net_af_packet0,iface=eth1"}}, {.bond = &bond}};
		struct config c = {.ports = ports, .n_ports = 2};
		struct lb_err err = {0};
		const char *names[2] = {rows[i].first, rows[i].second};
		char text[2][32];
		uint32_t rate = rows[i].rate;
		for (int p = 0; p < 2; p++) {
			if (!names[p])
				continue;
			strcpy(text[p], names[p]);
			kernels[p].interface = text[p];
			kernels[p].rate = &rate;
			ports[p].kernel = &kernels[p];
		}
		int rc = config_check_kernels(&c, &err);
		if (rows[i].expected ? !strstr(err.text, rows[i].expected) : err.text[0])
			fail_msg("row %zu: got \"%s\"", i, err.text);
		assert_int_equal(rc == 0, !rows[i].expected);
	}
}

// FL-15
static void a_port_with_a_kernel_cannot_be_taken_over(void **state)
{
	struct config_kernel kernel = {.interface = (char[]){"shunt0"}};
	struct config_port port = {.kernel = &kernel};
	struct config c = {
		.ports = &port, .n_ports = 1, .takeover_socket = (char[]){"/run/shunt/t"}};
	struct lb_err err = {0};
	assert_int_not_equal(config_check_kernels(&c, &err), 0);
	assert_string_equal(
		err.text, "ports[0].kernel: cannot be taken over: leave out takeover_socket");
}

// FL-26
static void a_rate_that_is_left_out_is_the_default(void **state)
{
	struct config_kernel kernel = {.interface = (char[]){"shunt0"}};
	struct config_port port = {.kernel = &kernel};
	struct config c = {.ports = &port, .n_ports = 1};
	struct lb_err err = {0};
	assert_int_equal(config_check_kernels(&c, &err), 0);
	assert_int_equal(kernel.frames_per_s, 10000);
}

RUN_SUITE("ctrl/config_kernel", cmocka_unit_test(a_kernel_that_cannot_be_is_an_error_of_its_field),
	cmocka_unit_test(a_port_with_a_kernel_cannot_be_taken_over),
	cmocka_unit_test(a_rate_that_is_left_out_is_the_default))
