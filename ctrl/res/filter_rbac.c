// SPDX-License-Identifier: Apache-2.0
// Permissions and principals differ in their types and in what each knows; what they share is read
// by the same functions.
#include "ctrl/res/filter_rbac.h"

#include "ctrl/res/cidr.h"
#include "ctrl/res/matcher.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb-c.h"
#include "lb/route/rbac.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Extensions__Filters__Http__Rbac__V3__RBAC Filter;
typedef Envoy__Extensions__Filters__Http__Rbac__V3__RBACPerRoute PerRoute;
typedef Envoy__Config__Rbac__V3__RBAC Rules;
typedef Envoy__Config__Rbac__V3__RBAC__PoliciesEntry Entry;
typedef Envoy__Config__Rbac__V3__Policy Policy;
typedef Envoy__Config__Rbac__V3__Permission Permission;
typedef Envoy__Config__Rbac__V3__Principal Principal;
typedef Envoy__Config__Route__V3__HeaderMatcher HeaderMatcher;
typedef Envoy__Config__Core__V3__CidrRange CidrRange;
typedef Envoy__Type__Matcher__V3__PathMatcher PathMatcher;
typedef Envoy__Type__Matcher__V3__StringMatcher StringMatcher;
#define ACTION(x) ENVOY__CONFIG__RBAC__V3__RBAC__ACTION__##x
#define PERMISSION(x) ENVOY__CONFIG__RBAC__V3__PERMISSION__RULE_##x
#define PRINCIPAL(x) ENVOY__CONFIG__RBAC__V3__PRINCIPAL__IDENTIFIER_##x
#define PATH_SET ENVOY__TYPE__MATCHER__V3__PATH_MATCHER__RULE_PATH

// One of a list of permissions or principals. 0, -EINVAL, -ENOMEM, or -E2BIG: nested too deep.
typedef int (*read_one)(
	struct res_reader *, const void *message, unsigned depth, struct lb_rbac_rule *);

static int within(struct res_reader *rd, int rc, const char *field)
{
	return rc == -EINVAL ? lb_err_within(rd->err, "%s", field) : rc;
}

static int read_list(struct res_reader *rd, enum lb_rbac_kind kind, const void *const *list,
	size_t n, unsigned depth, read_one read, const char *field, struct lb_rbac_rule *ret)
{
	struct lb_rbac_rule *rules = lb_arena_alloc(rd->arena, n, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	*ret = (struct lb_rbac_rule){.kind = kind};
	ret->rules = rules;
	ret->n = (uint32_t)n;
	if (depth > LB_RBAC_DEPTH_MAX)
		return -E2BIG; // told of by read_policy(): the way there is longer than an error
	for (size_t i = 0; i < n; i++) {
		int rc = read(rd, list[i], depth, &rules[i]);
		if (rc == -EINVAL && kind != LB_RBAC_NOT)
			return lb_err_within(rd->err, "%s[%zu]", field, i);
		if (rc)
			return within(rd, rc, field);
	}
	return 0;
}

// A41-06: who reads such a rule cannot mean what is not there for gRPC, and may not see it.
static int read_header(struct res_reader *rd, const HeaderMatcher *m, struct lb_rbac_rule *ret)
{
	*ret = (struct lb_rbac_rule){.kind = LB_RBAC_HEADER};
	int rc = res_header_matcher_read(rd, m, &ret->match);
	struct str name = ret->match.name;
	if (!rc && (str_eq(name, STR(":scheme")) || str_starts(name, STR("grpc-"))))
		rc = lb_err_set(rd->err, "name: \"%.128s\" is not allowed", m->name);
	if (!rc && m->treat_missing_header_as_empty)
		res_warn(rd, "rbac: treat_missing_header_as_empty is ignored");
	return within(rd, rc, "header");
}

static int read_text(struct res_reader *rd, enum lb_rbac_kind kind, const StringMatcher *m,
	const char *field, struct lb_rbac_rule *ret)
{
	*ret = (struct lb_rbac_rule){.kind = kind};
	return within(rd, res_string_matcher_read(rd, m, &ret->match), field);
}

static int read_path(struct res_reader *rd, const PathMatcher *m, struct lb_rbac_rule *ret)
{
	if (m->rule_case != PATH_SET)
		return lb_err_set(rd->err, "url_path: no path");
	return read_text(rd, LB_RBAC_URL_PATH, m->path, "url_path.path", ret);
}

static int read_range(struct res_reader *rd, enum lb_rbac_kind kind, const CidrRange *m,
	const char *field, struct lb_rbac_rule *ret)
{
	*ret = (struct lb_rbac_rule){.kind = kind};
	return within(rd, res_cidr_read(rd, m, RES_CIDR_REFUSE, &ret->range), field);
}

// A41-11: filters tell each other nothing here.
static void read_metadata(
	const Envoy__Type__Matcher__V3__MetadataMatcher *m, struct lb_rbac_rule *ret)
{
	*ret = (struct lb_rbac_rule){.kind = m->invert ? LB_RBAC_ANY : LB_RBAC_NEVER};
}

static int read_permission(
	struct res_reader *rd, const void *message, unsigned depth, struct lb_rbac_rule *ret)
{
	const Permission *m = message;
	const void *child;
	switch (m->rule_case) {
	case PERMISSION(AND_RULES):
		return within(rd,
			read_list(rd, LB_RBAC_AND, (const void *const *)m->and_rules->rules,
				m->and_rules->n_rules, depth + 1, read_permission, "rules", ret),
			"and_rules");
	case PERMISSION(OR_RULES):
		return within(rd,
			read_list(rd, LB_RBAC_OR, (const void *const *)m->or_rules->rules,
				m->or_rules->n_rules, depth + 1, read_permission, "rules", ret),
			"or_rules");
	case PERMISSION(NOT_RULE):
		child = m->not_rule;
		return read_list(
			rd, LB_RBAC_NOT, &child, 1, depth + 1, read_permission, "not_rule", ret);
	case PERMISSION(ANY):
		*ret = (struct lb_rbac_rule){.kind = LB_RBAC_ANY};
		return 0;
	case PERMISSION(HEADER):
		return read_header(rd, m->header, ret);
	case PERMISSION(URL_PATH):
		return read_path(rd, m->url_path, ret);
	case PERMISSION(DESTINATION_IP):
		return read_range(
			rd, LB_RBAC_DESTINATION_IP, m->destination_ip, "destination_ip", ret);
	case PERMISSION(DESTINATION_PORT):
		*ret = (struct lb_rbac_rule){
			.kind = LB_RBAC_DESTINATION_PORT, .port = m->destination_port};
		return 0;
	case PERMISSION(METADATA):
		read_metadata(m->metadata, ret);
		return 0;
	case PERMISSION(REQUESTED_SERVER_NAME):
		return read_text(rd, LB_RBAC_SERVER_NAME, m->requested_server_name,
			"requested_server_name", ret);
	default: // A41-05
		return lb_err_set(rd->err, "no rule, or one that is not supported");
	}
}

static int read_authenticated(
	struct res_reader *rd, const StringMatcher *name, struct lb_rbac_rule *ret)
{
	*ret = (struct lb_rbac_rule){.kind = LB_RBAC_TLS};
	return name ? read_text(
			      rd, LB_RBAC_AUTHENTICATED, name, "authenticated.principal_name", ret)
	            : 0;
}

static int read_principal(
	struct res_reader *rd, const void *message, unsigned depth, struct lb_rbac_rule *ret)
{
	const Principal *m = message;
	const void *child;
	switch (m->identifier_case) {
	case PRINCIPAL(AND_IDS):
		return within(rd,
			read_list(rd, LB_RBAC_AND, (const void *const *)m->and_ids->ids,
				m->and_ids->n_ids, depth + 1, read_principal, "ids", ret),
			"and_ids");
	case PRINCIPAL(OR_IDS):
		return within(rd,
			read_list(rd, LB_RBAC_OR, (const void *const *)m->or_ids->ids,
				m->or_ids->n_ids, depth + 1, read_principal, "ids", ret),
			"or_ids");
	case PRINCIPAL(NOT_ID):
		child = m->not_id;
		return read_list(
			rd, LB_RBAC_NOT, &child, 1, depth + 1, read_principal, "not_id", ret);
	case PRINCIPAL(ANY):
		*ret = (struct lb_rbac_rule){.kind = LB_RBAC_ANY};
		return 0;
	case PRINCIPAL(AUTHENTICATED):
		return read_authenticated(rd, m->authenticated->principal_name, ret);
	case PRINCIPAL(SOURCE_IP): // A41-13
		return read_range(rd, LB_RBAC_SOURCE_IP, m->source_ip, "source_ip", ret);
	case PRINCIPAL(DIRECT_REMOTE_IP):
		return read_range(
			rd, LB_RBAC_DIRECT_IP, m->direct_remote_ip, "direct_remote_ip", ret);
	case PRINCIPAL(REMOTE_IP):
		return read_range(rd, LB_RBAC_REMOTE_IP, m->remote_ip, "remote_ip", ret);
	case PRINCIPAL(HEADER):
		return read_header(rd, m->header, ret);
	case PRINCIPAL(URL_PATH):
		return read_path(rd, m->url_path, ret);
	case PRINCIPAL(METADATA):
		read_metadata(m->metadata, ret);
		return 0;
	default: // A41-05
		return lb_err_set(rd->err, "no identifier, or one that is not supported");
	}
}

static int read_policy(struct res_reader *rd, const Policy *m, struct lb_rbac_rule *ret)
{
	static const Policy empty = ENVOY__CONFIG__RBAC__V3__POLICY__INIT;
	if (!m) // of a map's entry without a value
		m = &empty;
	if (m->condition)
		return lb_err_set(rd->err, "condition: not supported");
	if (m->checked_condition)
		return lb_err_set(rd->err, "checked_condition: not supported");
	struct lb_rbac_rule *both = lb_arena_alloc(rd->arena, 2, sizeof(*both));
	if (!both)
		return -ENOMEM;
	*ret = (struct lb_rbac_rule){.kind = LB_RBAC_AND};
	ret->rules = both;
	ret->n = 2;
	int rc = read_list(rd, LB_RBAC_OR, (const void *const *)m->permissions, m->n_permissions, 0,
		read_permission, "permissions", &both[0]);
	if (!rc)
		rc = read_list(rd, LB_RBAC_OR, (const void *const *)m->principals, m->n_principals,
			0, read_principal, "principals", &both[1]);
	if (rc == -E2BIG) // A41-04
		rc = lb_err_set(rd->err, "rules are nested more than %d deep", LB_RBAC_DEPTH_MAX);
	return rc;
}

struct place {
	const Entry *entry;
	size_t index; // in the message
};

static int by_name(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = strcmp(x->entry->key, y->entry->key);
	return order ? order : x->index < y->index ? -1 : 1;
}

// By name, as Envoy asks them; of two entries with one name the last one is used. The caller frees
// the list; NULL = out of memory.
static struct place *sort_policies(const Rules *m, size_t *ret_n)
{
	struct place *list = malloc((m->n_policies + 1) * sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < m->n_policies; i++)
		list[i] = (struct place){m->policies[i], i};
	qsort(list, m->n_policies, sizeof(*list), by_name);
	size_t n = 0;
	for (size_t i = 0; i < m->n_policies; i++) {
		bool again = n && strcmp(list[n - 1].entry->key, list[i].entry->key) == 0;
		list[again ? n - 1 : n] = list[i];
		n += !again;
	}
	*ret_n = n;
	return list;
}

static int read_policies(
	struct res_reader *rd, const struct place *list, size_t n, struct lb_rbac_rules *ret)
{
	struct lb_rbac_policy *policies = lb_arena_alloc(rd->arena, n, sizeof(*policies));
	if (!policies)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int rc = res_copy(rd, list[i].entry->key, &policies[i].name);
		if (!rc)
			rc = read_policy(rd, list[i].entry->value, &policies[i].rule);
		if (rc == -EINVAL)
			return lb_err_within(rd->err, "policies[%.128s]", list[i].entry->key);
		if (rc)
			return rc;
	}
	ret->policies = policies;
	ret->n = (uint32_t)n;
	return 0;
}

static int read_rules(struct res_reader *rd, const Rules *m, const struct lb_rbac_rules **ret)
{
	static const enum lb_rbac_action actions[] = {[ACTION(ALLOW)] = LB_RBAC_ALLOW,
		[ACTION(DENY)] = LB_RBAC_DENY,
		[ACTION(LOG)] = LB_RBAC_LOG};
	if ((unsigned)m->action >= sizeof(actions) / sizeof(actions[0]))
		return lb_err_set(rd->err, "action: unknown value %d", (int)m->action);
	if (m->audit_logging_options) // A41-16
		res_warn(rd, "rbac: audit_logging_options is ignored");
	struct lb_rbac_rules *rules = lb_arena_alloc(rd->arena, 1, sizeof(*rules));
	size_t n = 0;
	struct place *list = sort_policies(m, &n);
	int rc = -ENOMEM;
	if (rules && list) {
		rules->action = actions[m->action];
		rc = read_policies(rd, list, n, rules);
	}
	free(list);
	*ret = rules;
	return rc;
}

// A41-03: what refuses no request is no reason to refuse a configuration either.
static int read_harmless(
	struct res_reader *rd, const Rules *m, const char *field, const struct lb_rbac_rules **ret)
{
	int rc = read_rules(rd, m, ret);
	if (rc != -EINVAL)
		return rc;
	res_warn(rd, "rbac: %s left out: %.200s", field, rd->err->text);
	*rd->err = (struct lb_err){""};
	*ret = NULL;
	return 0;
}

static int read_bytes(struct res_reader *rd, const Filter *m, struct str *ret)
{
	size_t len = m ? protobuf_c_message_get_packed_size(&m->base) : 0;
	uint8_t *bytes = lb_arena_alloc(rd->arena, len, 1);
	if (!bytes)
		return -ENOMEM;
	if (m)
		protobuf_c_message_pack(&m->base, bytes);
	*ret = (struct str){(const char *)bytes, len};
	return 0;
}

static int read_filter(struct res_reader *rd, const Filter *m, struct lb_filter *ret)
{
	struct lb_rbac_conf *conf = lb_arena_alloc(rd->arena, 1, sizeof(*conf));
	ret->kind = LB_FILTER_RBAC;
	ret->rbac.conf = conf;
	ret->rbac.compiled = NULL;
	int rc = conf ? read_bytes(rd, m, &conf->bytes) : -ENOMEM;
	if (rc || !m)
		return rc;
	if (m->matcher || m->shadow_matcher) // A41-02
		res_warn(rd, "rbac: matcher and shadow_matcher are ignored");
	if (m->rules && m->rules->action == ACTION(LOG))
		rc = read_harmless(rd, m->rules, "rules", &conf->rules);
	else if (m->rules)
		rc = within(rd, read_rules(rd, m->rules, &conf->rules), "rules");
	if (!rc && m->shadow_rules)
		rc = read_harmless(rd, m->shadow_rules, "shadow_rules", &conf->shadow);
	return rc;
}

int res_rbac_read(struct res_reader *rd, const void *message, struct lb_filter *ret)
{
	return read_filter(rd, message, ret);
}

int res_rbac_read_override(struct res_reader *rd, const void *message, struct lb_filter *ret)
{
	const PerRoute *m = message;
	return within(rd, read_filter(rd, m->rbac, ret), "rbac");
}
