// SPDX-License-Identifier: Apache-2.0
// What is to be seen of a device that could not be opened, in a made-up /sys and /dev.
#include "dataplane/pci_device.h"
#include "dataplane/remedy.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICE "0000:03:00.0"
#define PCI "sys/bus/pci/devices/"

static char root[] = "/tmp/test-remedy-XXXXXX";

static const char *path_of(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", root, name);
	return path;
}

static void run(const char *fmt, const char *name)
{
	char command[2 * PATH_MAX], path[PATH_MAX];
	snprintf(command, sizeof(command), fmt, path_of(path, name));
	assert_int_equal(system(command), 0);
}

static void make_dir(const char *name)
{
	run("mkdir -p '%s'", name);
}

static void write_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f = fopen(path_of(path, name), "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void make_link(const char *name, const char *target)
{
	char path[PATH_MAX];
	assert_int_equal(symlink(target, path_of(path, name)), 0);
}

static int setup(void **state)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	run("rm -r '%s'", "");
	return 0;
}

static void make_device(const char *driver)
{
	make_dir(PCI DEVICE);
	if (driver) {
		char target[64];
		snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver);
		make_link(PCI DEVICE "/driver", target);
	}
}

static const char *ask(bool hugepages)
{
	static char text[REMEDY_MAX];
	struct pci_addr addr;
	assert_true(pci_addr_parse(DEVICE, &addr));
	return remedy_for_device(root, &addr, hugepages, text);
}

static void expect(bool hugepages, const char *part)
{
	const char *text = ask(hugepages);
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void a_device_that_is_not_there(void **state)
{
	expect(false, "there is no such device on the PCI bus");
}

static void a_device_without_a_driver(void **state)
{
	make_device(NULL);
	expect(false, "no driver has it: bind it to vfio-pci");
	expect(false, "dpdk-devbind.py -b vfio-pci " DEVICE);
}

static void a_device_of_the_kernels(void **state)
{
	make_device("ixgbe");
	expect(true, "the kernel's driver ixgbe has it: bind it to vfio-pci");
}

static void a_driver_that_serves_both_is_not_blamed(void **state)
{
	make_device("mlx5_core");
	assert_string_equal(ask(false), "");
}

static void uio_wants_hugepages(void **state)
{
	make_device("uio_pci_generic");
	expect(false, "on uio_pci_generic it sees physical addresses and so needs hugepages: put "
		      "--in-memory");
	assert_string_equal(ask(true), "");
}

static void uio_wants_its_file(void **state)
{
	make_device("uio_pci_generic");
	make_dir(PCI DEVICE "/uio/uio3");
	expect(true, "there is no /dev/uio3");
	make_dir("dev");
	write_file("dev/uio3", "");
	assert_string_equal(ask(true), "");
}

static void make_group(void)
{
	make_dir("sys/kernel/iommu_groups/12/devices");
	make_link(PCI DEVICE "/iommu_group", "../../../../kernel/iommu_groups/12");
	make_link("sys/kernel/iommu_groups/12/devices/" DEVICE,
		"../../../../bus/pci/devices/" DEVICE);
}

static void vfio_wants_an_iommu(void **state)
{
	make_device("vfio-pci");
	expect(false, "there is no IOMMU");
	make_group();
	make_dir("dev/vfio");
	write_file("dev/vfio/12", "");
	assert_string_equal(ask(false), "");
}

static void vfio_wants_its_file(void **state)
{
	make_device("vfio-pci");
	make_group();
	expect(false, "there is no /dev/vfio/12");
}

static void vfio_wants_all_of_the_group(void **state)
{
	make_device("vfio-pci");
	make_group();
	make_dir("dev/vfio");
	write_file("dev/vfio/12", "");
	make_dir(PCI "0000:03:00.1");
	make_link("sys/kernel/iommu_groups/12/devices/0000:03:00.1", "x");
	assert_string_equal(ask(false), ""); // without a driver it does no harm
	make_link(PCI "0000:03:00.1/driver", "../../../bus/pci/drivers/ixgbe");
	expect(false, "0000:03:00.1 is in the same IOMMU group, and the kernel's driver ixgbe has");
}

static void vfio_without_an_iommu_wants_hugepages(void **state)
{
	make_device("vfio-pci");
	make_group();
	make_dir("sys/module/vfio/parameters");
	write_file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	expect(false, "without an IOMMU it sees physical addresses");
	expect(true, "there is no /dev/vfio/noiommu-12");
	struct pci_addr addr;
	struct pci_device device;
	assert_true(pci_addr_parse(DEVICE, &addr));
	pci_device_look(root, &addr, &device);
	assert_true(pci_device_wants_pa(root, &device));
}

static void a_file_that_may_not_be_used(void **state)
{
	make_device("vfio-pci");
	make_group();
	make_dir("dev/vfio");
	write_file("dev/vfio/12", "");
	run("chmod 755 '%s'", "");
	run("chmod 600 '%s'", "dev/vfio/12");
	if (geteuid() != 0)
		skip();
	pid_t pid = fork();
	if (pid == 0) {
		bool said = setuid(65534) == 0 && strstr(ask(false), "/dev/vfio/12: Permission");
		_exit(said ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void expect_for_memory(bool hugepages, const char *part)
{
	char text[REMEDY_MAX];
	remedy_for_memory(root, hugepages, text);
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void memory_is_counted_over_all_sizes(void **state)
{
	expect_for_memory(false, "give it more memory (-m in eal)");
	expect_for_memory(
		true, "there are no hugepages: reserve some (sysctl vm.nr_hugepages=512)");
	make_dir("sys/kernel/mm/hugepages/hugepages-2048kB");
	make_dir("sys/kernel/mm/hugepages/hugepages-1048576kB");
	write_file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n");
	write_file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n");
	write_file("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "2\n");
	write_file("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1\n");
	expect_for_memory(true, "4 of 66 hugepages are free (1030 MiB): reserve more");
}

static void a_device_is_seen_with_its_driver_and_gone(void **state)
{
	struct pci_addr addr;
	struct pci_device first, then;
	assert_true(pci_addr_parse(DEVICE, &addr));
	make_device("vfio-pci");
	pci_device_look(root, &addr, &first);
	assert_true(first.exists && first.is_vfio && !first.is_uio);
	run("rm -r '%s'", PCI DEVICE);
	pci_device_look(root, &addr, &then);
	assert_false(then.exists);
	make_device("igb_uio");
	pci_device_look(root, &addr, &then);
	assert_true(then.exists && then.is_uio && !then.is_vfio);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("dataplane/remedy", CASE(a_device_that_is_not_there), CASE(a_device_without_a_driver),
	CASE(a_device_of_the_kernels), CASE(a_driver_that_serves_both_is_not_blamed),
	CASE(uio_wants_hugepages), CASE(uio_wants_its_file), CASE(vfio_wants_an_iommu),
	CASE(vfio_wants_its_file), CASE(vfio_wants_all_of_the_group),
	CASE(vfio_without_an_iommu_wants_hugepages), CASE(a_file_that_may_not_be_used),
	CASE(memory_is_counted_over_all_sizes), CASE(a_device_is_seen_with_its_driver_and_gone))
