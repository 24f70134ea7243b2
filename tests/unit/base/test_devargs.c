// SPDX-License-Identifier: Apache-2.0
#include "lb/base/devargs.h"
#include "tests/support/check.h"

static void an_argument_is_found_by_its_whole_key(void **state)
{
	static const char device[] = "net_af_packet0,xiface=no,qpairs=2,iface=eth1,mode=x";
	struct str found = devargs_find(device, "iface");
	assert_ptr_equal(found.p, device + 40);
	assert_int_equal(found.len, 4);
	assert_int_equal(devargs_find("net_tap0,iface=tap12", "iface").len, 5);
	assert_int_equal(devargs_find("net_memif0,id=,role=server", "id").len, 0);
	assert_non_null(devargs_find("net_memif0,id=,role=server", "id").p);
	assert_null(devargs_find("0000:03:00.0", "iface").p);
	assert_null(devargs_find("iface=eth1", "iface").p); // the name of the device
	assert_null(devargs_find("net_tap0,iface", "iface").p);
}

static void the_last_of_two_counts(void **state)
{
	static const char device[] = "net_af_xdp0,iface=a,start_queue=1,iface=b,start_queue=12";
	assert_true(str_eq(devargs_find(device, "iface"), STR("b")));
	assert_int_equal(devargs_number(device, "start_queue"), 12);
}

static void what_is_no_number_is_0(void **state)
{
	assert_int_equal(devargs_number("a,n=7x", "n"), 0);
	assert_int_equal(devargs_number("a,n=", "n"), 0);
	assert_int_equal(devargs_number("a,n=4294967296", "n"), 0);
	assert_int_equal(devargs_number("a", "n"), 0);
	assert_int_equal(devargs_number("a,n=4294967295", "n"), 4294967295);
}

RUN_SUITE("base/devargs", cmocka_unit_test(an_argument_is_found_by_its_whole_key),
	cmocka_unit_test(the_last_of_two_counts), cmocka_unit_test(what_is_no_number_is_0))
