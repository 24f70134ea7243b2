// SPDX-License-Identifier: Apache-2.0
// Any text as the name of a resource: refused with a reason, or canonical, and then it stays as it
// is when it is read again.
#include "ctrl/xds/bootstrap/name.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct xds_name *n, const char *text)
{
	static const char URL[] = "type.googleapis.com/T";
	CHECK(!n->authority == !xds_name_is_xdstp(text));
	if (!n->authority) {
		CHECK(strcmp(n->text, text) == 0);
		return;
	}
	CHECK(xds_name_is_xdstp(n->text) && strstr(n->text, "/T/") && !strchr(n->text, '#'));
	for (const char *p = n->text; *p; p++)
		CHECK(*p > ' ' && *p <= '~');
	struct xds_name again;
	struct lb_err err = {""};
	CHECK(xds_name_parse(n->text, URL, &again, &err) == 0);
	CHECK(strcmp(again.text, n->text) == 0 && strcmp(again.authority, n->authority) == 0);
	xds_name_fini(&again);
	CHECK(xds_name_parse(n->text, "type.googleapis.com/U", &again, &err) == -EINVAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	CHECK(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	struct xds_name n;
	struct lb_err err = {""};
	if (xds_name_parse(text, "type.googleapis.com/T", &n, &err)) {
		CHECK(*err.text);
	} else {
		check(&n, text);
		xds_name_fini(&n);
	}
	free(text);
	return 0;
}
