// SPDX-License-Identifier: Apache-2.0
#include "ctrl/check.h"

#include "ctrl/certs/certs.h"
#include "ctrl/conf/config.h"
#include "ctrl/data_plane.h"
#include "ctrl/doctor/host.h"
#include "ctrl/frontends.h"
#include "ctrl/loop.h"
#include "ctrl/status_start.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int check_print(const struct config *c, const struct xds_bootstrap *bootstrap, const char *path,
	struct lb_err *reterr)
{
	int ret = certs_check(bootstrap, c->tls ? c->tls->crl_directory : NULL,
		c->tls ? c->tls->ticket_secret : NULL, reterr);
	if (ret)
		return ret;
	if (c->takeover_socket && data_plane_check_shared(c, reterr))
		return -EINVAL; // with --takeover, which a service has, the start fails
	char *args = data_plane_print_eal(c, reterr);
	if (!args)
		return -EINVAL;
	printf("%s: configuration OK\nDPDK starts with: %s\n", path, args);
	free(args);
	return 0;
}

static void tell(struct doctor_report *report, const char *path, const struct lb_err *err)
{
	doctor_find(report, DOCTOR_ERROR, "%s%s%s; the start fails", path, path[0] ? ": " : "",
		err->text);
	doctor_fix(report, "that field: docs/config.md has each option");
}

// Each a finding of its own, since what is left can be looked at nevertheless.
static void look_at_configuration(const struct config *c, const char *path,
	const struct xds_bootstrap *bootstrap, struct doctor_report *report)
{
	struct lb_err err = {.text = ""};
	char **names = NULL;
	doctor_report_begin(report, "config");
	if (data_plane_check_eal(c, &err) ||
		(c->takeover_socket && data_plane_check_shared(c, &err)))
		tell(report, path, &err);
	if (bootstrap && (frontends_name_listeners(c, bootstrap, &names, &err) ||
				 frontends_check_providers(c, bootstrap, &err) ||
				 status_check_providers(c, bootstrap, &err)))
		tell(report, path, &err);
	frontends_free_names(c, names);
}

static void examine(const struct config *c, const char *path, struct doctor_report *report)
{
	struct doctor_device devices[CONFIG_MAX_DEVICES];
	struct xds_bootstrap *bootstrap = NULL;
	struct lb_err err = {.text = ""};
	if (xds_bootstrap_load(path, &bootstrap, &err) && !err.text[0])
		lb_err_set(&err, "out of memory");
	struct doctor_host host = {
		.root = "",
		.config = c,
		.bootstrap = bootstrap,
		.bootstrap_error = err.text,
		.devices = devices,
		.n_devices = data_plane_describe_devices(c, "", devices),
		.memory = data_plane_describe_memory(c),
		.ops = &doctor_system,
		.now_s = (int64_t)(loop_wall_ns() / NS_PER_SECOND),
		.report = report,
	};
	look_at_configuration(c, path, bootstrap, report);
	doctor_examine(&host);
	xds_bootstrap_free(bootstrap);
}

static bool print(const struct doctor_report *report, bool json)
{
	json_t *tree = doctor_report_json(report);
	char *text = tree && json ? json_dumps(tree, JSON_COMPACT)
	             : tree       ? doctor_report_text(tree)
	                          : NULL;
	bool ok = text && printf("%s%s", text, json ? "\n" : "") > 0;
	free(text);
	json_decref(tree);
	return ok;
}

int check_host(const char *path, bool json)
{
	struct doctor_report report;
	struct lb_err err = {.text = ""};
	int status = 2;
	if (!doctor_report_init(&report))
		return status;
	struct config *c = config_load(path, &err);
	if (c) {
		examine(c, path, &report);
	} else {
		doctor_report_begin(&report, "config");
		tell(&report, "", &err); // which begins with the path
	}
	if (print(&report, json))
		status = doctor_report_status(&report);
	doctor_report_fini(&report);
	config_free(c);
	return status;
}
