// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/res/rows.h"

#include "ctrl/res/cluster.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/type.h"
#include "tests/support/check.h"
#include "tests/support/res_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct xds_cert_provider_conf provider = {.name = (char[]){"p"}};
const struct xds_bootstrap res_rows_bootstrap = {
	.cert_providers = &provider, .n_cert_providers = 1};

static const char *print(const struct res_warning *w, char text[1024])
{
	snprintf(text, 1024, "%s%s%s", w->where, *w->where ? ": " : "", w->text);
	return text;
}

// An ignored route is told of beside what else there is.
static bool tells_of_ignored(const struct res_row *row, const struct res_warning *w)
{
	char text[256];
	snprintf(text, sizeof(text), "it is as if it were not there: %s",
		row->ignored ? row->ignored : "");
	return row->ignored && strcmp(w->text, text) == 0;
}

static void check_warnings(const struct res_row *row, const struct res_warnings *w)
{
	char text[1024];
	uint32_t n = 0;
	bool told = !row->ignored;
	for (uint32_t i = 0; i < w->n; i++) {
		if (tells_of_ignored(row, &w->list[i])) {
			told = true;
			continue;
		}
		n++;
		print(&w->list[i], text);
		if (!row->warning)
			fail_msg("%s: warns: %s", row->rule, text);
		else if (strcmp(text, row->warning) != 0)
			fail_msg("%s: warns \"%s\" instead of \"%s\"", row->rule, text,
				row->warning);
	}
	if (n != (row->warning != NULL))
		fail_msg("%s: %u warnings instead of \"%s\"", row->rule, n, row->warning);
	if (!told)
		fail_msg("%s: the ignored route is not told of", row->rule);
}

static void check_ignored(const struct res_row *row, const struct res_route_config *c)
{
	const char *reason = NULL;
	for (uint32_t v = 0; v < c->n_vhosts; v++)
		for (uint32_t i = 0; i < c->vhosts[v].n_ignored; i++)
			reason = c->vhosts[v].ignored[i].reason;
	if (!reason != !row->ignored || (reason && strcmp(reason, row->ignored) != 0))
		fail_msg("%s: ignored because \"%s\", not \"%s\"", row->rule, reason ? reason : "",
			row->ignored ? row->ignored : "");
}

static void check_accepted(const struct res_row *row, struct xds_res *res)
{
	if (res->type == &res_type_route_config) {
		const struct res_route_config *c = res_route_config_from(res);
		check_warnings(row, &c->warnings);
		check_ignored(row, c);
	} else if (res->type == &res_type_listener) {
		const struct res_listener *l = res_listener_from(res);
		check_warnings(row, &l->warnings);
	} else if (res->type == &res_type_cluster) {
		const struct res_cluster *c = res_cluster_from(res);
		check_warnings(row, &c->warnings);
	}
}

static void check_refused(const struct res_row *row, const char *text)
{
	bool exact = row->refused[0] == '=';
	const char *wanted = row->refused + exact;
	if (exact ? strcmp(text, wanted) != 0 : !strstr(text, wanted))
		fail_msg("%s: says \"%s\", not \"%s\"", row->rule, text, wanted);
}

static void run_row(const struct xds_type *type, const struct res_row *row)
{
	size_t len;
	uint8_t *bytes = res_bytes_from_json(type, row->json, &len);
	struct xds_decoded d = {.bootstrap = &res_rows_bootstrap};
	type->decode(bytes, len, &d);
	free(bytes);
	if (row->refused && d.res)
		fail_msg("%s: accepted: %s", row->rule, row->json);
	if (!row->refused && !d.res)
		fail_msg("%s: refused: %s", row->rule, d.err.text);
	if (row->refused) {
		check_refused(row, d.err.text);
	} else {
		assert_string_equal(d.err.text, "");
		assert_string_equal(d.name, d.res->name);
		check_accepted(row, d.res);
	}
	xds_res_put(d.res);
	free(d.name);
}

void res_rows_run(const struct xds_type *type, const struct res_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		run_row(type, &rows[i]);
}
