// SPDX-License-Identifier: Apache-2.0
// An interface has one owner at a time.
#include "dataplane/port_claim.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

// Names of this process alone: tests may run side by side.
static const char *named(char text[64], const char *driver, const char *end)
{
	snprintf(text, 64, "%s,iface=t%d%s", driver, (int)getpid(), end);
	return text;
}

static void a_claimed_interface_is_refused_whatever_the_driver(void **state)
{
	char first[64], second[64], third[64];
	int claim = port_claim(named(first, "net_af_packet0", ""));
	assert_true(claim >= 0);
	assert_int_equal(port_claim(named(second, "net_af_xdp1", ",queue=1")), -EADDRINUSE);
	int other = port_claim(named(third, "net_af_packet1", "x"));
	assert_true(other >= 0);
	port_claim_drop(other);
	port_claim_drop(claim);
	claim = port_claim(second);
	assert_true(claim >= 0);
	port_claim_drop(claim);
}

static void a_name_too_long_is_an_error(void **state)
{
	char name[256];
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = 'x';
	name[sizeof(name) - 1] = 0;
	assert_int_equal(port_claim(name), -ENAMETOOLONG);
	port_claim_drop(-1);
}

static void a_device_without_an_interface_is_nobodys(void **state)
{
	assert_int_equal(port_claim("net_memif0,role=client,socket=/run/a"), -ENODEV);
	assert_int_equal(port_claim("net_ring0"), -ENODEV);
}

RUN_SUITE("dataplane/port_claim",
	cmocka_unit_test(a_claimed_interface_is_refused_whatever_the_driver),
	cmocka_unit_test(a_name_too_long_is_an_error),
	cmocka_unit_test(a_device_without_an_interface_is_nobodys))
