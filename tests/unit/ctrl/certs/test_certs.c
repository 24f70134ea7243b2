// SPDX-License-Identifier: Apache-2.0
// Certificates that change under a running process: seen at once or at the interval, in virtual
// time; what was good stays (TLS-109 to TLS-111).
#include "ctrl/certs/certs.h"
#include "ctrl/certs/material.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/certs/pki.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOUND_MS 20000
#define WALL_NS (1800000000 * NS_PER_SECOND)

static struct pki_cert ca, first, second;
static struct twheel *wheel;
static struct xds_cert_provider_conf provider;
static struct xds_bootstrap bootstrap;
static char provider_name[] = "p", last_changed[64];
static const char *tickets; // the file of their secret; NULL = none

// The linker's --wrap: a folder that the system's limit of watches leaves out; NULL = none.
static _Atomic(const char *) unwatchable;
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	const char *out = unwatchable;
	if (!out || !strstr(path, out))
		return __real_inotify_add_watch(fd, path, mask);
	errno = ENOSPC;
	return -1;
}

static uint64_t wall_ns(void)
{
	return WALL_NS;
}

static void on_changed(void *ctx, const char *name)
{
	snprintf(last_changed, sizeof(last_changed), "%s", name);
}

static int begin(void **state)
{
	pki_begin();
	ca = pki_make("ca", NULL, NULL, -1, 10);
	first = pki_make("first", NULL, &ca, -1, 2);
	second = pki_make("second", NULL, &ca, -1, 2);
	wheel = twheel_new(NS_PER_SECOND);
	assert_non_null(wheel);
	last_changed[0] = '\0';
	unwatchable = NULL;
	return 0;
}

static int end(void **state)
{
	twheel_free(wheel);
	pki_end();
	return 0;
}

static char *path(const char *name)
{
	return (char *)(uintptr_t)pki_path(name);
}

static struct certs *start(struct xds_cert_files files, const char *crl_directory)
{
	provider = (struct xds_cert_provider_conf){.name = provider_name, .files = files};
	bootstrap = (struct xds_bootstrap){
		.cert_providers = &provider, .n_cert_providers = files.ca || files.cert};
	struct certs_conf conf = {
		.bootstrap = &bootstrap,
		.crl_directory = crl_directory,
		.ticket_secret = tickets,
		.crl_refresh_ns = 60 * NS_PER_SECOND,
		.wheel = wheel,
		.wall_ns = wall_ns,
		.changed = on_changed,
	};
	struct certs *c = certs_new(&conf);
	assert_non_null(c);
	return c;
}

static void copy_info(void *ctx, const struct certs_info *i)
{
	*(struct certs_info *)ctx = *i;
}

static struct certs_info info(const struct certs *c)
{
	struct certs_info i;
	certs_each(c, copy_info, &i);
	return i;
}

static void count_readings(void *ctx, const struct certs_info *i)
{
	*(uint64_t *)ctx += i->n_changed + i->n_unchanged + i->n_failed;
}

static uint64_t n_readings(const struct certs *c)
{
	uint64_t n = 0;
	certs_each(c, count_readings, &n);
	return n;
}

static void wait_news(struct certs *c)
{
	struct pollfd fd = {.fd = certs_fd(c), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, BOUND_MS), 1);
	certs_dispatch(c);
}

// Until the thread has read once more than before.
static void wait_reading(struct certs *c, uint64_t before)
{
	while (n_readings(c) == before)
		wait_news(c);
}

static const char *subject(const struct certs *c)
{
	return certs_find(c, "p")->chain.list[0].subject;
}

static void write_pair(const char *prefix, const struct pki_cert *cert)
{
	char name[64];
	snprintf(name, sizeof(name), "%skey", prefix);
	pki_write(name, pki_key_pem(cert->key));
	snprintf(name, sizeof(name), "%scert", prefix);
	pki_write(name, pki_cert_pem(cert));
}

static struct xds_cert_files pair(void)
{
	return (struct xds_cert_files){
		.cert = path("cert"), .key = path("key"), .refresh_ns = 600 * NS_PER_SECOND};
}

static void tls_111_a_new_file_is_seen_at_once(void **state)
{
	write_pair("", &first);
	struct certs *c = start(pair(), NULL);
	assert_string_equal(subject(c), "CN=first");
	assert_string_equal(last_changed, "p");
	assert_int_equal(info(c).version, 1);
	assert_true(info(c).watched);

	write_pair("", &second);
	while (info(c).version == 1) // key and certificate may be seen apart
		wait_reading(c, n_readings(c));
	assert_string_equal(subject(c), "CN=second");
	assert_int_equal(info(c).version, 2);
	assert_string_equal(info(c).error, "");
	certs_free(c);
}

// As Kubernetes does it: cert -> ..data/cert, ..data -> ..1, and a new ..data is moved over it.
static void tls_111_swapped_links_are_seen_at_once(void **state)
{
	assert_int_equal(mkdir(pki_path("..1"), 0755), 0);
	assert_int_equal(mkdir(pki_path("..2"), 0755), 0);
	write_pair("..1/", &first);
	write_pair("..2/", &second);
	assert_int_equal(symlink("..1", pki_path("..data")), 0);
	assert_int_equal(symlink("..data/cert", pki_path("cert")), 0);
	assert_int_equal(symlink("..data/key", pki_path("key")), 0);
	struct certs *c = start(pair(), NULL);
	assert_string_equal(subject(c), "CN=first");

	assert_int_equal(symlink("..2", pki_path("..tmp")), 0);
	assert_int_equal(rename(pki_path("..tmp"), pki_path("..data")), 0);
	wait_reading(c, n_readings(c));
	assert_string_equal(subject(c), "CN=second");

	write_pair("..2/", &first); // what is watched now is the new folder
	while (info(c).version == 2)
		wait_reading(c, n_readings(c));
	assert_string_equal(subject(c), "CN=first");
	certs_free(c);
}

static void tls_111_a_file_that_comes_late_is_seen_at_once(void **state)
{
	struct certs *c = start(
		(struct xds_cert_files){.ca = path("late/ca"), .refresh_ns = 600 * NS_PER_SECOND},
		NULL);
	assert_null(certs_find(c, "p"));
	assert_int_equal(info(c).n_failed, 1);
	assert_non_null(strstr(info(c).error, "late/ca: No such file or directory"));
	assert_int_equal(mkdir(pki_path("late"), 0755), 0);
	wait_reading(c, n_readings(c));
	pki_write("late/ca", pki_cert_pem(&ca));
	while (!certs_find(c, "p"))
		wait_reading(c, n_readings(c));
	assert_string_equal(info(c).error, "");
	certs_free(c);
}

static void tls_111_files_are_read_at_the_interval_too(void **state)
{
	write_pair("", &first);
	struct certs *c = start(pair(), NULL);
	uint64_t now = twheel_now(wheel);
	twheel_advance(wheel, now + 599 * NS_PER_SECOND);
	struct pollfd fd = {.fd = certs_fd(c), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 100), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		twheel_advance(wheel, now + i * 600 * NS_PER_SECOND);
		wait_reading(c, n_readings(c));
		assert_int_equal(info(c).n_unchanged, i); // the same bytes are no new version
	}
	assert_int_equal(info(c).version, 1);
	certs_free(c);
}

// OPS-328
static void ops_328_one_that_is_added_is_read_and_then_seen_to_change(void **state)
{
	static char name[] = "late";
	struct xds_cert_provider_conf late = {.name = name, .files = pair()};
	struct certs *c = start((struct xds_cert_files){.ca = NULL}, NULL);
	write_pair("", &first);
	certs_add(c, &late);
	assert_string_equal(certs_find(c, name)->chain.list[0].subject, "CN=first");
	assert_string_equal(last_changed, name);
	wait_reading(c, n_readings(c)); // once more, since it is watched
	assert_int_equal(info(c).n_unchanged, 1);
	write_pair("", &second);
	while (info(c).version == 1)
		wait_reading(c, n_readings(c));
	assert_string_equal(certs_find(c, name)->chain.list[0].subject, "CN=second");
	certs_free(c);
}

// Others that are watched do not make up for it.
static void tls_111_what_could_not_be_watched_is_so_at_the_next_interval(void **state)
{
	assert_int_equal(mkdir(pki_path("crls"), 0755), 0);
	write_pair("", &first);
	unwatchable = "/crls";
	struct certs *c = start(pair(), pki_path("crls"));
	assert_false(info(c).watched);
	write_pair("", &second);
	while (strcmp(subject(c), "CN=second") != 0)
		wait_news(c);
	assert_false(info(c).watched);

	unwatchable = NULL;
	uint64_t before = n_readings(c);
	twheel_advance(wheel, twheel_now(wheel) + 60 * NS_PER_SECOND);
	wait_reading(c, before);
	while (!info(c).watched)
		wait_news(c);
	before = n_readings(c);
	pki_write("crls/a.pem", pki_crl_pem(&ca, 5));
	wait_reading(c, before);
	certs_free(c);
}

static void tls_109_a_bad_file_leaves_the_last_good_ones(void **state)
{
	write_pair("", &first);
	struct certs *c = start(pair(), NULL);
	struct cert_material *kept = cert_material_get(certs_find(c, "p"));
	twheel_advance(wheel, 5 * NS_PER_SECOND);
	pki_write("cert", "garbage");
	wait_reading(c, n_readings(c));
	assert_ptr_equal(certs_find(c, "p"), kept);
	assert_int_equal(info(c).version, 1);
	assert_int_equal(info(c).failed_ns, 5 * NS_PER_SECOND);
	assert_non_null(strstr(info(c).error, "certificate_file"));
	assert_non_null(strstr(info(c).error, "has no certificate in PEM"));

	pki_write("cert", pki_cert_pem(&first)); // mended: the same as before is no news
	wait_reading(c, n_readings(c));
	assert_string_equal(info(c).error, "");
	assert_int_equal(info(c).version, 1);
	assert_int_equal(info(c).since_ns, NS_PER_SECOND);
	cert_material_put(kept);
	certs_free(c);
}

static void tls_109_who_counted_the_old_ones_keeps_them(void **state)
{
	write_pair("", &first);
	struct certs *c = start(pair(), NULL);
	struct cert_material *kept = cert_material_get(certs_find(c, "p"));
	write_pair("", &second);
	while (info(c).version == 1)
		wait_reading(c, n_readings(c));
	certs_free(c);
	assert_string_equal(kept->chain.list[0].subject, "CN=first");
	cert_material_put(kept);
}

static uint32_t n_crls(const struct certs *c)
{
	return certs_find_crls(c)->crls.n;
}

static void tls_110_a_directory_of_crls_is_the_truth_unless_a_file_is_bad(void **state)
{
	assert_int_equal(mkdir(pki_path("crls"), 0755), 0);
	struct pki_cert other = pki_make("other", NULL, NULL, -1, 10);
	pki_write("crls/a.pem", pki_crl_pem(&ca, 5));
	pki_write("crls/b.pem", pki_crl_pem(&other, 3));
	pki_write("crls/.hidden", "garbage");
	struct certs *c = start((struct xds_cert_files){.ca = NULL}, pki_path("crls"));
	assert_null(certs_find(c, "p"));
	assert_int_equal(n_crls(c), 2);
	assert_string_equal(certs_find_crls(c)->crls.list[1].issuers, "CN=other");
	assert_string_equal(info(c).error, "");

	pki_write("crls/b.pem", "garbage"); // whose CRL was it?
	wait_reading(c, n_readings(c));
	assert_non_null(strstr(info(c).error, "crls/b.pem: has no CRL in PEM"));
	assert_int_equal(n_crls(c), 2);

	remove(pki_path("crls/a.pem")); // it stays while not all can be read
	wait_reading(c, n_readings(c));
	assert_int_equal(n_crls(c), 2);

	remove(pki_path("crls/b.pem"));
	while (n_crls(c))
		wait_reading(c, n_readings(c));
	assert_string_equal(info(c).error, "");
	certs_free(c);
}

// TLS-111: the bytes are the same before, while the file is bad, and afterwards.
static void tls_110_a_file_between_others_that_is_bad_for_a_while_makes_no_version(void **state)
{
	assert_int_equal(mkdir(pki_path("crls"), 0755), 0);
	struct pki_cert other = pki_make("other", NULL, NULL, -1, 10);
	const char *b = pki_crl_pem(&other, 3);
	pki_write("crls/a.pem", pki_crl_pem(&ca, 5));
	pki_write("crls/b.pem", b);
	pki_write("crls/c.pem", pki_crl_pem(&ca, 4));
	struct certs *c = start((struct xds_cert_files){.ca = NULL}, pki_path("crls"));
	assert_int_equal(info(c).version, 1);
	pki_write("crls/b.pem", "garbage");
	wait_reading(c, n_readings(c));
	assert_int_equal(n_crls(c), 3);
	assert_string_equal(certs_find_crls(c)->crls.list[1].issuers, "CN=other");
	assert_int_equal(info(c).version, 1);
	certs_free(c);
}

static void tls_110_a_directory_that_is_not_there_is_named(void **state)
{
	struct certs *c = start((struct xds_cert_files){.ca = NULL}, pki_path("none"));
	assert_null(certs_find_crls(c));
	assert_non_null(strstr(info(c).error, "none: No such file or directory"));
	certs_free(c);
}

// FL-204
static void what_another_process_has_is_lacking_until_it_was_good_here(void **state)
{
	struct lb_err why = {""};
	write_pair("", &first);
	pki_write("key", pki_key_pem(second.key));
	assert_int_equal(mkdir(pki_path("crls"), 0755), 0);
	pki_write("crls/a.pem", "garbage");
	struct certs *c = start(pair(), pki_path("crls"));
	assert_false(certs_lacks(c, &why)); // the other one does not have it, either
	certs_expect(c, "another");
	assert_false(certs_lacks(c, &why));
	certs_expect(c, "p");
	certs_expect(c, CERTS_CRLS);
	assert_true(certs_lacks(c, &why));
	assert_non_null(strstr(why.text, "certificate provider \"p\": private_key_file "));
	write_pair("", &first);
	while (!certs_find(c, "p"))
		wait_reading(c, n_readings(c));
	assert_true(certs_lacks(c, &why));
	assert_non_null(strstr(why.text, "/crls/a.pem: has no CRL in PEM"));
	pki_write("crls/a.pem", pki_crl_pem(&ca, 5));
	while (!certs_find_crls(c))
		wait_reading(c, n_readings(c));
	assert_false(certs_lacks(c, &why));
	pki_write("key", "garbage");
	wait_reading(c, n_readings(c));
	assert_false(certs_lacks(c, &why)); // what was good serves (TLS-109)
	certs_free(c);
}

// FL-204, FL-122: handshakes need no file of it.
static void a_secret_of_tickets_is_never_lacking(void **state)
{
	struct lb_err why = {""};
	tickets = pki_path("none");
	struct certs *c = start((struct xds_cert_files){.ca = NULL}, NULL);
	tickets = NULL;
	certs_expect(c, CERTS_TICKETS);
	assert_null(certs_find_tickets(c));
	assert_false(certs_lacks(c, &why));
	certs_free(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest suite[] = {
		TEST(tls_111_a_new_file_is_seen_at_once),
		TEST(tls_111_swapped_links_are_seen_at_once),
		TEST(tls_111_a_file_that_comes_late_is_seen_at_once),
		TEST(tls_111_files_are_read_at_the_interval_too),
		TEST(ops_328_one_that_is_added_is_read_and_then_seen_to_change),
		TEST(tls_111_what_could_not_be_watched_is_so_at_the_next_interval),
		TEST(tls_109_a_bad_file_leaves_the_last_good_ones),
		TEST(tls_109_who_counted_the_old_ones_keeps_them),
		TEST(tls_110_a_directory_of_crls_is_the_truth_unless_a_file_is_bad),
		TEST(tls_110_a_file_between_others_that_is_bad_for_a_while_makes_no_version),
		TEST(tls_110_a_directory_that_is_not_there_is_named),
		TEST(what_another_process_has_is_lacking_until_it_was_good_here),
		TEST(a_secret_of_tickets_is_never_lacking),
	};
	return cmocka_run_group_tests_name("certs/certs", suite, NULL, NULL);
}
