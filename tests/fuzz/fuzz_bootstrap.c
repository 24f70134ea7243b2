// SPDX-License-Identifier: Apache-2.0
// Any text as a bootstrap file: it is read, or the error says where it is wrong.
#include "ctrl/xds/bootstrap.h"
#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	if (xds_bootstrap_parse((const char *)data, size, "fuzz", &b, &err)) {
		CHECK(!b && strstr(err.text, "fuzz"));
		return 0;
	}
	CHECK(b->n_servers > 0 && *b->servers[0].uri && b->node_id && b->listener_template);
	char *name;
	if (xds_bootstrap_listener_name(b, "xds:///a b", &name, &err) == 0)
		free(name);
	xds_bootstrap_free(b);
	return 0;
}
