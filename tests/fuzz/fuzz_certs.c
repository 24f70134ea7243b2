// SPDX-License-Identifier: Apache-2.0
// Any text as a file with certificates, a key, CRLs or a SPIFFE map: it is read, or the error says
// what is wrong, and all that is shown of it is printable.
#include "ctrl/certs/pem.h"
#include "ctrl/certs/spiffe.h"
#include "ctrl/certs/strength.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *s)
{
	for (; *s; s++)
		CHECK(*s >= ' ' && *s <= '~');
}

static void check_list(const struct cert_list *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		check_text(l->list[i].subject);
		check_text(l->list[i].issuer);
		check_text(l->list[i].sans);
	}
}

static void read_certificates(struct str text)
{
	struct cert_list l;
	struct lb_err err = {""};
	int rc = cert_list_read(text, &l, &err);
	CHECK(rc ? rc == -EINVAL && *err.text : l.n > 0 && !*err.text);
	if (!rc)
		check_list(&l);
	if (!rc) {
		rc = cert_chain_judge(text, &l, &err);
		CHECK(rc ? rc == -EINVAL && *err.text : !*err.text);
		check_text(err.text);
	}
	cert_list_fini(&l);
}

static void read_crls(struct str text)
{
	char *issuers;
	int64_t next_s;
	struct lb_err err = {""};
	int n = cert_crls_read(text, &issuers, &next_s, &err);
	CHECK(n > 0 ? !*err.text : n == -EINVAL && *err.text);
	if (n > 0)
		check_text(issuers);
	free(issuers);
}

static void read_map(struct str text)
{
	struct cert_bundles b;
	struct cert_list cas = {NULL, 0};
	struct lb_err err = {""};
	int rc = cert_bundles_read(text, &b, &cas, &err);
	CHECK(rc ? rc == -EINVAL && *err.text : !*err.text);
	for (uint32_t i = 0; !rc && i < b.n; i++)
		if (*b.list[i].ca_pem)
			read_certificates(str_from(b.list[i].ca_pem));
	cert_bundles_fini(&b);
	cert_list_fini(&cas);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct lb_err err = {""};
	read_certificates(text);
	read_crls(text);
	read_map(text);
	CHECK(!cert_key_check(text, &err) == !*err.text);
	return 0;
}
