// SPDX-License-Identifier: Apache-2.0
// What DPDK 22.11 would make of a memif's devargs, and what both processes of a takeover call it.
#include "dataplane/memif.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct memif parse(const char *device)
{
	struct memif m;
	assert_true(memif_parse(device, &m));
	return m;
}

static void arguments_are_read_as_dpdk_reads_them(void **state)
{
	static const struct {
		const char *device, *name;
		bool is_client;
	} rows[] = {
		{"net_memif0", "memif:0:@/run/memif.sock", true},
		{"net_memif7,role=client", "memif:0:@/run/memif.sock", true},
		{"net_memif0,role=server", "memif:0:@/run/memif.sock", false},
		{"net_memif0,role=slave,id=3", "memif:3:@/run/memif.sock", true},
		{"net_memif0,role=master", "memif:0:@/run/memif.sock", false},
		{"net_memif0,socket=/a/b,socket-abstract=no,id=4294967295", "memif:4294967295:/a/b",
			true},
		{"net_memif0,socket-abstract=yes,socket=x", "memif:0:@x", true},
		{"net_memif0,role=server,role=client,id=1,id=2", "memif:2:@/run/memif.sock", true},
		{"net_memif0,secret=role=server,xid=9", "memif:0:@/run/memif.sock", true},
		{"net_memif0,id=x,socket=", "memif:0:@", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char name[64];
		struct memif m = parse(rows[i].device);
		assert_int_equal(m.is_client, rows[i].is_client);
		assert_true(memif_print(&m, name, sizeof(name)));
		assert_string_equal(name, rows[i].name);
	}
}

static void an_address_is_found(void **state)
{
	static const char device[] = "net_memif0,mac=02:00:00:00:00:01,role=client";
	struct memif m = parse(device);
	assert_ptr_equal(m.mac.p, strstr(device, "02:"));
	assert_int_equal(m.mac.len, 17);
	assert_null(parse("net_memif0,role=client").mac.p);
}

static void other_devices_are_none(void **state)
{
	static const char *const devices[] = {"", "net_ring0", "net_af_packet0,iface=net_memif0",
		"0000:03:00.0,role=client", "net_memi"};
	struct memif m;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		assert_false(memif_parse(devices[i], &m));
}

static void a_name_that_has_no_room_is_none(void **state)
{
	char name[20];
	struct memif m = parse("net_memif0,socket=/345678901,socket-abstract=no");
	assert_true(memif_print(&m, name, sizeof(name)));
	m = parse("net_memif0,socket=/3456789012,socket-abstract=no");
	assert_true(memif_print(&m, name, sizeof(name)));
	m = parse("net_memif0,socket=/34567890123,socket-abstract=no");
	assert_false(memif_print(&m, name, sizeof(name)));
}

static void a_socket_that_is_a_file_is_looked_for(void **state)
{
	char path[] = "/tmp/test-memif-XXXXXX", device[400];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(device, sizeof(device), "net_memif0,socket-abstract=no,socket=%s", path);
	struct memif m = parse(device);
	assert_true(memif_has_socket(&m));
	unlink(path);
	assert_false(memif_has_socket(&m));
	m.is_abstract = true; // nobody can see those
	assert_true(memif_has_socket(&m));
	snprintf(device, sizeof(device), "net_memif0,socket-abstract=no,socket=/%0200d", 1);
	m = parse(device);
	assert_true(memif_has_socket(&m)); // DPDK's to say
}

RUN_SUITE("dataplane/memif", cmocka_unit_test(arguments_are_read_as_dpdk_reads_them),
	cmocka_unit_test(an_address_is_found), cmocka_unit_test(other_devices_are_none),
	cmocka_unit_test(a_name_that_has_no_room_is_none),
	cmocka_unit_test(a_socket_that_is_a_file_is_looked_for))
