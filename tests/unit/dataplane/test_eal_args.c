// SPDX-License-Identifier: Apache-2.0
// What `eal` names counts, the rest is ours, and ports' devices are nobody's before they are
// claimed.
#include "dataplane/eal_args.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LCORES " --lcores '0@(0,2),1@1'"
#define QUIET " --log-level=lib.telemetry:error"
#define REST " --file-prefix=shunt" QUIET LCORES
#define ORDINARY "--no-huge --no-shconf -m 512 --iova-mode=va"

struct input {
	const char *given[8]; // up to NULL
	const char *devices[4]; // likewise
	const uint8_t *device_ports;
	bool wants_pa;
};

static int make(const struct input *in, char *ret, size_t size, struct lb_err *err)
{
	int core = 1;
	struct eal_args_conf conf = {.given = in->given,
		.devices = in->devices,
		.device_ports = in->device_ports,
		.wants_pa = in->wants_pa,
		.memory_mib = 512,
		.cores = &core,
		.n_cores = 1};
	while (in->given[conf.n_given])
		conf.n_given++;
	while (in->devices[conf.n_devices])
		conf.n_devices++;
	CPU_ZERO(&conf.usable);
	for (int i = 0; i < 3; i++)
		CPU_SET(i, &conf.usable);
	struct eal_args args;
	int rc = eal_args_make(&conf, &args, err);
	char *text = eal_args_print(&args);
	snprintf(ret, size, "%s", text);
	free(text);
	eal_args_fini(&args);
	return rc;
}

static void expect(const struct input *in, const char *want)
{
	char text[1024];
	struct lb_err err = {0};
	int rc = make(in, text, sizeof(text), &err);
	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	assert_string_equal(text, want);
}

static void refuse(const struct input *in, const char *want)
{
	char text[1024];
	struct lb_err err = {0};
	assert_int_equal(make(in, text, sizeof(text), &err), -EINVAL);
	assert_string_equal(err.text, want);
}

static void nothing_named_is_ordinary_memory_and_no_pci(void **state)
{
	expect(&(struct input){.devices = {"net_tap0"}}, "--no-pci " ORDINARY REST);
}

static void what_is_named_overrides_and_the_rest_stays(void **state)
{
	expect(&(struct input){{"-m", "64"}},
		"-m 64 --no-pci --no-huge --no-shconf --iova-mode=va" REST);
	expect(&(struct input){{"-m64"}},
		"-m64 --no-pci --no-huge --no-shconf --iova-mode=va" REST);
	expect(&(struct input){{"--file-prefix=a b", "--log-level=8"}},
		"'--file-prefix=a b' --log-level=8 --no-pci " ORDINARY QUIET LCORES);
	expect(&(struct input){{"--no-telemetry", "--iova-mode=pa", "--no-pci"}},
		"--no-telemetry --iova-mode=pa --no-pci --no-huge --no-shconf -m 512"
		" --file-prefix=shunt" LCORES);
	expect(&(struct input){{"--no-huge", "--no-shconf"}},
		"--no-huge --no-shconf --no-pci -m 512 --iova-mode=va" REST);
	// As the README and the examples have it.
	expect(&(struct input){{"--in-memory", "--no-huge", "-m", "256"}},
		"--no-shconf --no-huge -m 256 --no-pci --iova-mode=va" REST);
}

static void hugepages_come_with_an_option_of_theirs(void **state)
{
	expect(&(struct input){{"--in-memory"}}, "--in-memory --no-pci" REST);
	expect(&(struct input){{"--in-memory", "-m", "1024"}}, "--in-memory -m 1024 --no-pci" REST);
	expect(&(struct input){{"--socket-mem=512,0"}},
		"--socket-mem=512,0 --no-pci --in-memory" REST);
	expect(&(struct input){{"--huge-dir", "/mnt/huge"}}, "--huge-dir /mnt/huge --no-pci" REST);
	expect(&(struct input){{"--huge-unlink"}}, "--huge-unlink --no-pci" REST);
	const char *huge[] = {"--in-memory"}, *ordinary[] = {"--in-memory", "--no-huge"};
	assert_true(eal_args_want_hugepages(huge, 1));
	assert_false(eal_args_want_hugepages(ordinary, 2));
	assert_false(eal_args_want_hugepages(NULL, 0));
}

#define ALONE "-a ffffffff:ff:1f.7"

static void a_ports_device_is_left_for_the_port(void **state)
{
	expect(&(struct input){.devices = {"0000:01:00.0,vectorized=1"}}, ALONE " " ORDINARY REST);
	static const char *const spellings[][3] = {{"-a", "0000:01:00.0"}, {"-a", "1:0.0"},
		{"-a01:00.0"}, {"--allow", "01:00.0"}, {"--allow=pci:0000:01:00.0"}};
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		struct input in = {.devices = {"net_tap0", "01:00.0,x=1"}};
		memcpy(in.given, spellings[i], sizeof(spellings[i]));
		expect(&in, ALONE " " ORDINARY REST);
	}
	expect(&(struct input){{"-a", "0000:0A:00.0"}, {"0a:00.0"}}, ALONE " " ORDINARY REST);
}

static void other_devices_stay_allowed(void **state)
{
	expect(&(struct input){{"-a", "02:00.0,x=1"}, {"01:00.0"}},
		"-a 02:00.0,x=1 " ORDINARY REST);
	expect(&(struct input){{"-a", "01:00.0", "--allow=02:00.0"}, {"01:00.0"}},
		"--allow=02:00.0 " ORDINARY REST);
	expect(&(struct input){{"-a", "0002:01:00.0"}, {"01:00.0"}},
		"-a 0002:01:00.0 " ORDINARY REST);
	expect(&(struct input){{"-a", "02:00.0"}, {"net_tap0"}}, "-a 02:00.0 " ORDINARY REST);
	// Not on the PCI bus: that one must not be searched for all the same.
	expect(&(struct input){{"-a", "net_null0"}, {"net_tap0"}},
		"-a net_null0 --no-pci " ORDINARY REST);
}

static void a_device_without_an_iommu_gets_physical_addresses_of_hugepages(void **state)
{
	expect(&(struct input){{"--in-memory"}, {"01:00.0"}, .wants_pa = true},
		"--in-memory " ALONE " --iova-mode=pa" REST);
	expect(&(struct input){{"--in-memory"}, {"01:00.0"}},
		"--in-memory " ALONE " --iova-mode=va" REST);
	expect(&(struct input){{"--in-memory", "--iova-mode=va"}, {"01:00.0"}, .wants_pa = true},
		"--in-memory --iova-mode=va " ALONE REST);
}

static void what_is_ours_is_refused_by_its_place(void **state)
{
	refuse(&(struct input){{"-m", "64", "--lcores=1"}},
		"eal[2]: --lcores=1 is decided by workers and ports");
	refuse(&(struct input){{"-b", "01:00.0"}}, "eal[0]: -b is decided by workers and ports");
	refuse(&(struct input){{"--vdev=net_tap0"}},
		"eal[0]: --vdev=net_tap0 is decided by workers and ports");
	refuse(&(struct input){{"--no-huge", "-a"}}, "eal[1]: -a: its value is missing");
	refuse(&(struct input){{"--no-pci"}, {"01:00.0"}},
		"eal[0]: --no-pci, but a port is a PCI device");
	refuse(&(struct input){{"-a", "01:00.0,vectorized=1"}, {"net_tap0", "01:00.0"}},
		"eal[1]: '01:00.0,vectorized=1': parameters of a port's device belong into "
		"ports[1]");
}

// OPS-260
static void a_device_by_a_wrong_name_is_refused_by_its_port(void **state)
{
	refuse(&(struct input){.devices = {"net_tap0", "eth1"}},
		"ports[1].device: 'eth1' is neither a PCI address nor a device of DPDK's; an "
		"interface of the kernel's is net_af_packet0,iface=eth1");
}

// FL-91: in shunt.yaml a member is its port's.
static void what_is_a_members_is_told_of_its_port(void **state)
{
	static const uint8_t ports[] = {0, 0, 1};
	refuse(&(struct input){{"-a", "02:00.0,x=1"}, {"01:00.0", "02:00.0", "net_tap0"},
		       .device_ports = ports},
		"eal[1]: '02:00.0,x=1': parameters of a port's device belong into ports[0]");
	expect(&(struct input){{"-a", "02:00.0"}, {"01:00.0", "02:00.0"}, .device_ports = ports},
		ALONE " " ORDINARY REST);
}

static void too_many_are_refused(void **state)
{
	const char *given[EAL_ARGS_MAX];
	for (int i = 0; i < EAL_ARGS_MAX; i++)
		given[i] = "--no-huge";
	int core = 0;
	struct eal_args_conf conf = {
		.given = given, .n_given = EAL_ARGS_MAX, .cores = &core, .n_cores = 1};
	CPU_ZERO(&conf.usable);
	CPU_SET(0, &conf.usable);
	struct eal_args args;
	struct lb_err err;
	assert_int_equal(eal_args_make(&conf, &args, &err), -EINVAL);
	eal_args_fini(&args);
	assert_string_equal(err.text, "eal: too many, at most 63 with those implied");
}

RUN_SUITE("dataplane/eal_args", cmocka_unit_test(nothing_named_is_ordinary_memory_and_no_pci),
	cmocka_unit_test(what_is_named_overrides_and_the_rest_stays),
	cmocka_unit_test(hugepages_come_with_an_option_of_theirs),
	cmocka_unit_test(a_ports_device_is_left_for_the_port),
	cmocka_unit_test(other_devices_stay_allowed),
	cmocka_unit_test(what_is_a_members_is_told_of_its_port),
	cmocka_unit_test(a_device_by_a_wrong_name_is_refused_by_its_port),
	cmocka_unit_test(a_device_without_an_iommu_gets_physical_addresses_of_hugepages),
	cmocka_unit_test(what_is_ours_is_refused_by_its_place),
	cmocka_unit_test(too_many_are_refused))
