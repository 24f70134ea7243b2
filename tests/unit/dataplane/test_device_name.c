// SPDX-License-Identifier: Apache-2.0
// What an operator writes who has an interface in mind is answered with how it is written.
#include "dataplane/device_name.h"
#include "tests/support/check.h"

#include <errno.h>

static void refuse(const char *device, const char *want)
{
	struct lb_err err = {0};
	assert_int_equal(device_name_check(device, &err), -EINVAL);
	assert_string_equal(err.text, want);
}

// OPS-260
static void an_interface_by_its_bare_name_is_refused(void **state)
{
	refuse("eth1", "'eth1' is neither a PCI address nor a device of DPDK's; an interface of "
		       "the kernel's is net_af_packet0,iface=eth1");
	refuse("enp3s0f1", "'enp3s0f1' is neither a PCI address nor a device of DPDK's; an "
			   "interface of the kernel's is net_af_packet0,iface=enp3s0f1");
	refuse("af_packet0,iface=eth1,qpairs=2",
		"'af_packet0,iface=eth1,qpairs=2' is neither a PCI address nor a device of DPDK's; "
		"an "
		"interface of the kernel's is net_af_packet0,iface=eth1");
}

// OPS-260
static void a_driver_of_interfaces_without_one_is_refused(void **state)
{
	refuse("net_af_packet0",
		"'net_af_packet0' names no interface, as in net_af_packet0,iface=INTERFACE");
	refuse("net_af_packet0,ifname=eth1",
		"'net_af_packet0,ifname=eth1' names no interface, as in "
		"net_af_packet0,iface=INTERFACE");
	refuse("net_af_xdp1,queue_count=2", "'net_af_xdp1,queue_count=2' names no interface, as in "
					    "net_af_xdp1,iface=INTERFACE");
	refuse("net_af_xdp1,xiface=eth1",
		"'net_af_xdp1,xiface=eth1' names no interface, as in net_af_xdp1,iface=INTERFACE");
}

static void other_names_are_left_to_dpdk(void **state)
{
	static const char *const names[] = {"0000:3b:00.0", "3b:00.0,x=1",
		"net_af_packet0,iface=eth1", "net_af_xdp0,start_queue=0,iface=eth1", "net_tap0",
		"net_memif0,role=server", "eth_af_packet0,iface=eth1", "auxiliary:mlx5_core.sf.2",
		"mlx5_core.sf.2", "fm1-mac1", "dpni.1", "bus=vdev,name=net_null0", ""};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct lb_err err = {0};
		assert_int_equal(device_name_check(names[i], &err), 0);
	}
}

RUN_SUITE("dataplane/device_name", cmocka_unit_test(an_interface_by_its_bare_name_is_refused),
	cmocka_unit_test(a_driver_of_interfaces_without_one_is_refused),
	cmocka_unit_test(other_names_are_left_to_dpdk))
