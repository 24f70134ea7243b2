// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_access_log.h"

#include "ctrl/access_log/format.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_address.h"
#include "ctrl/conf/config_numbers.h"
#include "lb/base/time.h"

#include <errno.h>
#include <string.h>

#define ALL_CAUSES ((UINT32_C(1) << LB_N_CAUSES) - 1)

// Those that Envoy gives one flag to.
static uint32_t causes_with(const char *flag)
{
	uint32_t causes = strcmp(flag, LB_ACCESS_DELAYED_FLAG) == 0 ? LB_ACCESS_DELAYED : 0;
	for (int i = LB_CAUSE_OK + 1; i < LB_N_CAUSES; i++)
		if (strcmp(lb_cause_info((enum lb_cause)i)->flag, flag) == 0)
			causes |= UINT32_C(1) << i;
	return causes;
}

static int check_flags(
	const struct config_access_filter *given, uint32_t *ret, struct lb_err *reterr)
{
	for (unsigned i = 0; i < given->n_response_flags; i++) {
		uint32_t causes = causes_with(given->response_flags[i]);
		if (!causes)
			return lb_err_set(reterr,
				"access_log.filter.response_flags[%u]: '%s' is not a response "
				"flag, like NR",
				i, given->response_flags[i]);
		*ret |= causes;
	}
	return 0;
}

static int check_causes(
	const struct config_access_filter *given, uint32_t *ret, struct lb_err *reterr)
{
	*ret = given->causes || given->response_flags ? 0 : ALL_CAUSES;
	for (unsigned i = 0; i < given->n_causes; i++) {
		int cause = 0;
		while (cause < LB_N_CAUSES &&
			strcmp(lb_cause_info((enum lb_cause)cause)->name, given->causes[i]) != 0)
			cause++;
		if (cause == LB_N_CAUSES)
			return lb_err_set(reterr,
				"access_log.filter.causes[%u]: '%s' is not the name of a cause, "
				"like no_route",
				i, given->causes[i]);
		*ret |= UINT32_C(1) << cause;
	}
	return 0;
}

static int check_access_filter(struct config *c, struct lb_err *reterr)
{
	const struct config_access_filter none = {0};
	const struct config_access_filter *given =
		c->access_log && c->access_log->filter ? c->access_log->filter : &none;
	struct lb_access_filter *f = &c->access_filter;
	uint32_t per_million, min_status, min_ms;
	if (config_number_check(
		    CONFIG_ACCESS_SAMPLE, given->sample_per_million, &per_million, reterr) ||
		config_number_check(CONFIG_ACCESS_STATUS, given->min_status, &min_status, reterr) ||
		config_number_check(
			CONFIG_ACCESS_DURATION, given->min_duration_ms, &min_ms, reterr))
		return -EINVAL;
	f->sample = per_million * LB_ACCESS_SAMPLE_ALL / 1000000;
	f->min_status = (uint16_t)min_status;
	f->min_ns = min_ms * NS_PER_MS;
	if (check_causes(given, &f->causes, reterr))
		return -EINVAL;
	return check_flags(given, &f->causes, reterr);
}

int config_check_directory(const char *field, const char *folder, struct lb_err *reterr)
{
	if (folder[0] == '/' && folder[strlen(folder) - 1] != '/')
		return 0;
	return lb_err_set(reterr,
		"%s: '%s' is not a path from the root to a directory below it, without / at its "
		"end",
		field, folder);
}

// Between whom requests are told to there is nothing that protects them: it is for shunt.yaml to
// say where they go.
static int check_collectors(const struct config_access_log *a, struct lb_err *reterr)
{
	if (a->log_name && !a->collector)
		return lb_err_set(reterr, "access_log.log_name: there is no access_log.collector");
	if (a->collector && config_check_host_port("access_log.collector", a->collector, reterr))
		return -EINVAL;
	for (unsigned i = 0; i < a->n_xds_collectors; i++) {
		const struct config_xds_collector *k = &a->xds_collectors[i];
		if (config_check_host_port("address", k->address, reterr))
			return lb_err_within(reterr, "access_log.xds_collectors[%u]", i);
		for (unsigned j = 0; j < i; j++)
			if (strcmp(k->cluster, a->xds_collectors[j].cluster) == 0)
				return lb_err_set(reterr,
					"access_log.xds_collectors[%u].cluster: '%s' is "
					"access_log.xds_collectors[%u] already",
					i, k->cluster, j);
	}
	return 0;
}

static int check_own(const struct config_access_log *a, struct lb_err *reterr)
{
	struct access_format *format = NULL;
	if (!a->path && a->text_format)
		return lb_err_set(reterr, "access_log.text_format: there is no access_log.path");
	if (!a->path && !a->collector && a->filter)
		return lb_err_set(reterr, "access_log.filter: there is neither access_log.path nor "
					  "access_log.collector");
	if (!a->path && !a->collector && !a->xds_directory && !a->xds_stdout &&
		!a->n_xds_collectors)
		return lb_err_set(reterr,
			"access_log: none of path, collector, xds_directory, xds_stdout and "
			"xds_collectors is there");
	if (a->path && a->path[0] != '/' && strcmp(a->path, "stdout") != 0)
		return lb_err_set(reterr,
			"access_log.path: '%s' is neither stdout nor a path from the root",
			a->path);
	if (access_format_new(a->text_format, &format, reterr))
		return lb_err_within(reterr, "access_log.text_format");
	access_format_free(format);
	return 0;
}

int config_check_access_log(struct config *c, struct lb_err *reterr)
{
	if (check_access_filter(c, reterr))
		return -EINVAL;
	if (!c->access_log)
		return 0;
	if (check_own(c->access_log, reterr) || check_collectors(c->access_log, reterr))
		return -EINVAL;
	const char *folder = c->access_log->xds_directory;
	return folder ? config_check_directory("access_log.xds_directory", folder, reterr) : 0;
}
