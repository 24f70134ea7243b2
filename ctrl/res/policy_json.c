// SPDX-License-Identifier: Apache-2.0
// Policies by gRPC's names, with the JSON of a service config, which a TypedStruct may hold in
// load_balancing_policy (gRFC A52). It is the only form that has all of gRPC's parameters (gRFC
// A76). Fields that are not known are ignored, as gRPC does.
#include "ctrl/res/policy_inside.h"
#include "proto/json.h"

#include <errno.h>
#include <string.h>

#define SUBSETTING "random_subsetting_experimental"
#define WRR_LOCALITY "xds_wrr_locality_experimental"

static const struct {
	const char *name;
	enum lb_policy_kind kind;
} policies[] = {
	{"least_request_experimental", LB_POLICY_LEAST_REQUEST},
	{"pick_first", LB_POLICY_PICK_FIRST},
	{SUBSETTING, LB_POLICY_ROUND_ROBIN}, // until the policy within it says of which kind it is
	{"ring_hash_experimental", LB_POLICY_RING_HASH},
	{"round_robin", LB_POLICY_ROUND_ROBIN},
	{"weighted_round_robin", LB_POLICY_WEIGHTED_ROUND_ROBIN},
	{WRR_LOCALITY, LB_POLICY_WRR_LOCALITY},
};

// What the API's message calls a field; both mean the same and have the same form.
static const struct {
	enum lb_policy_kind kind;
	const char *name, *in_message;
} fields[] = {
	{LB_POLICY_LEAST_REQUEST, "choiceCount", "choiceCount"},
	{LB_POLICY_PICK_FIRST, "shuffleAddressList", "shuffleAddressList"},
	{LB_POLICY_RING_HASH, "minRingSize", "minimumRingSize"},
	{LB_POLICY_RING_HASH, "maxRingSize", "maximumRingSize"},
	{LB_POLICY_WEIGHTED_ROUND_ROBIN, "enableOobLoadReport", "enableOobLoadReport"},
	{LB_POLICY_WEIGHTED_ROUND_ROBIN, "oobReportingPeriod", "oobReportingPeriod"},
	{LB_POLICY_WEIGHTED_ROUND_ROBIN, "blackoutPeriod", "blackoutPeriod"},
	{LB_POLICY_WEIGHTED_ROUND_ROBIN, "weightExpirationPeriod", "weightExpirationPeriod"},
	{LB_POLICY_WEIGHTED_ROUND_ROBIN, "weightUpdatePeriod", "weightUpdatePeriod"},
	{LB_POLICY_WEIGHTED_ROUND_ROBIN, "errorUtilizationPenalty", "errorUtilizationPenalty"},
};
#define N_OF(list) (sizeof(list) / sizeof((list)[0]))

// The JSON form of the policy's message. NULL = out of memory.
static json_t *message_json(enum lb_policy_kind kind, const json_t *config)
{
	json_t *made = json_object();
	for (size_t i = 0; made && i < N_OF(fields); i++) {
		json_t *value = json_object_get(config, fields[i].name);
		if (fields[i].kind != kind || !value)
			continue;
		if (json_object_set(made, fields[i].in_message, value)) {
			json_decref(made);
			made = NULL;
		}
	}
	return made;
}

static int read_as_message(struct res_policy_reader *pr, enum lb_policy_kind kind,
	const json_t *config, struct lb_policy_spec *s)
{
	json_t *json = message_json(kind, config);
	if (!json)
		return -ENOMEM;
	ProtobufCMessage *message;
	int rc = proto_json_decode(res_policy_message_of(kind), json, &message, pr->rd->err);
	json_decref(json);
	if (rc)
		return rc;
	rc = res_policy_read_message(pr, kind, message, s);
	protobuf_c_message_free_unpacked(message, NULL);
	return rc;
}

// RH-10: a name that gRPC metadata may have, and that is no binary one.
static bool is_hashable(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = str_fold(name.p[i]);
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !strchr("-_.", c))
			return false;
	}
	return !str_ends(name, STR("-bin"));
}

static int read_hash_header(
	struct res_policy_reader *pr, const json_t *config, struct lb_policy_spec *s)
{
	json_t *value = json_object_get(config, "requestHashHeader");
	if (!value)
		return 0;
	if (!json_is_string(value))
		return lb_err_set(pr->rd->err, "requestHashHeader: must be a string");
	int rc = res_copy_folded(
		pr->rd, json_string_value(value), &s->ring_hash.request_hash_header);
	if (!rc && !is_hashable(s->ring_hash.request_hash_header))
		return lb_err_set(pr->rd->err,
			"requestHashHeader: \"%.64s\" is not the name of a text header",
			json_string_value(value));
	return rc;
}

// The first policy of a known name. 0, -EINVAL or -ENOMEM.
static int read_list(struct res_policy_reader *pr, const json_t *list, struct lb_policy_spec *s)
{
	if (pr->depth > RES_POLICY_MAX_DEPTH)
		return lb_err_set(pr->rd->err, "nested deeper than %d", RES_POLICY_MAX_DEPTH);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *entry = json_array_get(list, i);
		void *only = json_object_size(entry) == 1 ? json_object_iter(entry) : NULL;
		if (!only)
			return lb_err_set(pr->rd->err,
				"childPolicy[%zu]: must be an object with one field", i);
		int rc = res_policy_read_json(
			pr, json_object_iter_key(only), json_object_iter_value(only), s);
		if (rc <= 0)
			return rc;
	}
	return lb_err_set(pr->rd->err, "childPolicy: no supported policy");
}

static int read_child(struct res_policy_reader *pr, const json_t *config, struct lb_policy_spec *s)
{
	struct lb_policy_spec *child = res_policy_new_child(pr, s);
	if (!child)
		return -ENOMEM;
	pr->depth++;
	int rc = read_list(pr, json_object_get(config, "childPolicy"), child);
	pr->depth--;
	return rc;
}

// A68-05: of whatever kind the policy within it is.
static int read_subset(struct res_policy_reader *pr, const json_t *config, struct lb_policy_spec *s)
{
	const json_t *size = json_object_get(config, "subsetSize");
	double n = json_number_value(size); // a Struct's numbers are all of this type
	if (!json_is_number(size) || n < 0 || n > UINT32_MAX || (double)(uint32_t)n < n)
		return lb_err_set(pr->rd->err, "subsetSize: must be a whole number");
	pr->depth++;
	int rc = read_list(pr, json_object_get(config, "childPolicy"), s);
	pr->depth--;
	return rc ? rc : res_policy_set_subset(pr, (uint32_t)n, s);
}

static bool has_child(const char *name)
{
	return strcmp(name, SUBSETTING) == 0 || strcmp(name, WRR_LOCALITY) == 0;
}

static int read_named(struct res_policy_reader *pr, const char *name, const json_t *config,
	struct lb_policy_spec *s)
{
	if (!json_is_object(config))
		return lb_err_set(pr->rd->err, "must be an object");
	if (strcmp(name, SUBSETTING) == 0)
		return read_subset(pr, config, s);
	if (s->kind == LB_POLICY_WRR_LOCALITY)
		return read_child(pr, config, s);
	int rc = read_as_message(pr, s->kind, config, s);
	return !rc && s->kind == LB_POLICY_RING_HASH ? read_hash_header(pr, config, s) : rc;
}

int res_policy_read_json(struct res_policy_reader *pr, const char *name, const json_t *config,
	struct lb_policy_spec *s)
{
	size_t i = 0;
	while (i < N_OF(policies) && strcmp(policies[i].name, name) != 0)
		i++;
	if (i == N_OF(policies))
		return 1;
	s->kind = policies[i].kind;
	int rc = read_named(pr, name, config, s);
	bool is_innermost = !has_child(name) || pr->depth == 1;
	return rc == -EINVAL && is_innermost ? lb_err_within(pr->rd->err, "%s", name) : rc;
}
