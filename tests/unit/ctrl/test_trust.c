// SPDX-License-Identifier: Apache-2.0
// What of a bootstrap that is read again takes effect (OPS-328).
#include "ctrl/certs/certs.h"
#include "ctrl/certs/material.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/trust.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/certs/pki.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct config config;
static struct loop *loop;
static struct xds_bootstrap *running;
static struct trust *trust;
static char changed[1 << 14], needs_restart[1 << 14]; // what was noted, in lines

// Of so many providers p0, p1, … from this one on, whose file is FOLDER/ca.
static struct xds_bootstrap *bootstrap(unsigned from, unsigned n, const char *folder)
{
	static char text[1 << 16];
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	size_t len = (size_t)snprintf(text, sizeof(text),
		"{\"xds_servers\":[{\"server_uri\":\"s:1\",\"channel_creds\":[{\"type\":"
		"\"insecure\"}]}],\"certificate_providers\":{");
	for (unsigned i = from; i < from + n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"%s\"p%u\":{\"plugin_name\":\"file_watcher\",\"config\":"
			"{\"ca_certificate_file\":\"%s/ca\"}}",
			i > from ? "," : "", i, folder);
	snprintf(text + len, sizeof(text) - len, "}}");
	if (xds_bootstrap_parse(text, strlen(text), "b.json", &b, &err))
		fail_msg("%s", err.text);
	return b;
}

static void begin(unsigned n_providers)
{
	pki_begin();
	struct pki_cert ca = pki_make("ca", NULL, NULL, -1, 10);
	pki_write("ca", pki_cert_pem(&ca));
	loop = loop_new();
	running = bootstrap(0, n_providers, pki_path(""));
	trust = trust_new(
		&(struct trust_conf){.config = &config, .bootstrap = running, .loop = loop});
	assert_non_null(trust);
}

static void end(void)
{
	trust_free(trust);
	xds_bootstrap_free(running);
	loop_free(loop);
	pki_end();
}

static void note(void *ctx, const char *field, bool restart)
{
	char *all = restart ? needs_restart : changed;
	snprintf(all + strlen(all), sizeof(changed) - strlen(all), "%s\n", field);
}

// As the file has it now.
static int learn(unsigned from, unsigned n, const char *folder, struct lb_err *err)
{
	struct xds_bootstrap *now = bootstrap(from, n, folder);
	changed[0] = needs_restart[0] = err->text[0] = '\0';
	int rc = trust_learn(trust, now, note, NULL, err);
	xds_bootstrap_free(now);
	return rc;
}

static void ops_328_new_providers_are_in_force_and_others_need_a_restart(void **state)
{
	struct lb_err err;
	begin(2);
	assert_int_equal(learn(0, 2, pki_path(""), &err), 0);
	assert_string_equal(changed, "");
	assert_string_equal(needs_restart, "");
	assert_int_equal(learn(1, 2, pki_path(""), &err), 0); // p0 is gone, p2 has come
	assert_string_equal(changed, "certificate_providers[\"p2\"]\n");
	assert_string_equal(needs_restart, "certificate_providers[\"p0\"]\n");
	assert_int_equal(xds_bootstrap_check_provider(running, "p0", XDS_CERT_CA, &err), 0);
	assert_int_equal(xds_bootstrap_check_provider(running, "p2", XDS_CERT_CA, &err), 0);
	assert_int_equal(certs_find(trust_certs(trust), "p2")->cas.n, 1);
	assert_int_equal(mkdir(pki_path("b"), 0755), 0);
	assert_int_equal(learn(0, 3, pki_path("b"), &err), 0);
	assert_string_equal(changed, ""); // p2 is known
	assert_string_equal(needs_restart, "certificate_providers[\"p0\"]\n"
					   "certificate_providers[\"p1\"]\n"
					   "certificate_providers[\"p2\"]\n");
	assert_non_null(certs_find(trust_certs(trust), "p2"));
	end();
}

static void ops_328_one_with_a_bad_file_is_refused_and_can_be_mended(void **state)
{
	struct lb_err err;
	begin(1);
	assert_int_equal(mkdir(pki_path("b"), 0755), 0);
	assert_int_equal(learn(0, 3, pki_path("b"), &err), -EINVAL);
	assert_non_null(strstr(err.text, "certificate provider \"p1\": ca_certificate_file "));
	assert_string_equal(changed, "");
	assert_string_equal(needs_restart, "");
	assert_int_equal(running->n_cert_providers, 1);
	assert_int_equal(learn(0, 4, pki_path(""), &err), 0);
	assert_string_equal(changed, "certificate_providers[\"p1\"]\n"
				     "certificate_providers[\"p2\"]\n"
				     "certificate_providers[\"p3\"]\n");
	end();
}

static void ops_328_more_than_there_is_room_for_are_refused_with_all_others(void **state)
{
	struct lb_err err;
	begin(0);
	assert_int_equal(learn(0, 1, pki_path(""), &err), 0);
	assert_int_equal(learn(0, XDS_MORE_PROVIDERS + 1, pki_path(""), &err), -EINVAL);
	assert_string_equal(err.text, "bootstrap: certificate_providers: 256 are new, and there is "
				      "room for 255 until a restart");
	assert_string_equal(changed, "");
	assert_int_equal(running->n_cert_providers, 1);
	assert_int_equal(learn(0, XDS_MORE_PROVIDERS, pki_path(""), &err), 0);
	assert_int_equal(certs_find(trust_certs(trust), "p255")->cas.n, 1);
	end();
}

RUN_SUITE("ctrl/trust",
	cmocka_unit_test(ops_328_new_providers_are_in_force_and_others_need_a_restart),
	cmocka_unit_test(ops_328_one_with_a_bad_file_is_refused_and_can_be_mended),
	cmocka_unit_test(ops_328_more_than_there_is_room_for_are_refused_with_all_others))
