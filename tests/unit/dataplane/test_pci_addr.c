// SPDX-License-Identifier: Apache-2.0
// One device has one address, whoever wrote it.
#include "dataplane/pci_addr.h"
#include "tests/support/check.h"

static void every_spelling_is_the_same_device(void **state)
{
	static const char *const texts[] = {"0000:0a:00.1", "0a:00.1", "0A:00.1", "a:0.1",
		"0:a:0.1", "00000:0A:00.1", "0000:0a:00.1,vectorized=1", "pci:0000:0a:00.1",
		"bus=pci,addr=0a:00.1", "bus=pci,addr=0a:00.1/class=eth"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pci_addr addr;
		char text[PCI_ADDR_TEXT_MAX];
		assert_true(pci_addr_parse(texts[i], &addr));
		assert_string_equal(pci_addr_print(&addr, text), "0000:0a:00.1");
	}
}

static void what_is_no_pci_device_is_none(void **state)
{
	static const char *const texts[] = {"", "net_tap0", "net_af_packet0,iface=eth1", "0a:00",
		"0a:00.", "0a:00.8", "0a:20.0", "100:00.0", "0a:00.1x", ":00.1", "0a.00.1",
		"-1:0.0", " 0a:00.1", "123456789:0a:00.1", "0:0:a:0.1",
		"pci:", "auxiliary:mlx5_core.sf.2"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pci_addr addr;
		assert_false(pci_addr_parse(texts[i], &addr));
		assert_string_equal(pci_addr_skip(texts[i]), "");
	}
}

static void the_domain_counts(void **state)
{
	struct pci_addr a, b, c;
	char text[PCI_ADDR_TEXT_MAX];
	assert_true(pci_addr_parse("0001:0a:00.1", &a));
	assert_true(pci_addr_parse("0a:00.1", &b));
	assert_true(pci_addr_parse("10000:0a:1f.7", &c));
	assert_false(pci_addr_eq(&a, &b));
	assert_true(pci_addr_eq(&a, &a));
	assert_string_equal(pci_addr_print(&c, text), "10000:0a:1f.7");
}

static void what_follows_is_the_drivers(void **state)
{
	assert_string_equal(pci_addr_skip("0a:00.1"), "");
	assert_string_equal(pci_addr_skip("0a:00.1,"), "");
	assert_string_equal(pci_addr_skip("0000:0A:00.1,vectorized=1,x=2"), "vectorized=1,x=2");
}

RUN_SUITE("dataplane/pci_addr", cmocka_unit_test(every_spelling_is_the_same_device),
	cmocka_unit_test(what_is_no_pci_device_is_none), cmocka_unit_test(the_domain_counts),
	cmocka_unit_test(what_follows_is_the_drivers))
