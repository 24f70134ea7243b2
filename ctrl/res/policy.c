// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/policy.h"

#include "ctrl/res/policy_inside.h"
#include "envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb-c.h"
#include "envoy/extensions/load_balancing_policies/cluster_provided/v3/cluster_provided.pb-c.h"
#include "envoy/extensions/load_balancing_policies/least_request/v3/least_request.pb-c.h"
#include "envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb-c.h"
#include "envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.pb-c.h"
#include "envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb-c.h"
#include "envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb-c.h"
#include "envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb-c.h"
#include "lb/base/time.h"
#include "proto/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_DEPTH_SAID 3 // lists within lists in an error: its reason must not be cut off

// RH-03: what the resource may ask for, and what it gets.
#define RING_MIN_SIZE 1024
#define RING_MAX_SIZE (8u << 20)
#define RING_SIZE_CAP 4096

// A48-01
#define CHOICES_DEFAULT 2
#define CHOICES_LEAST 2
#define CHOICES_MOST 10

// A58-02
#define OOB_PERIOD_NS (10 * NS_PER_SECOND)
#define BLACKOUT_NS (10 * NS_PER_SECOND)
#define EXPIRATION_NS (180 * NS_PER_SECOND)
#define UPDATE_NS NS_PER_SECOND
#define UPDATE_LEAST_NS (NS_PER_SECOND / 10)

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Cluster__V3__LoadBalancingPolicy PolicyList;
#define POLICIES(x) Envoy__Extensions__LoadBalancingPolicies__##x
#define POLICY_TYPE(x) (&envoy__extensions__load_balancing_policies__##x##__descriptor)
#define POLICY_ENUM(x) ENVOY__EXTENSIONS__LOAD_BALANCING_POLICIES__##x
typedef POLICIES(RoundRobin__V3__RoundRobin) RoundRobin;
typedef POLICIES(ClientSideWeightedRoundRobin__V3__ClientSideWeightedRoundRobin) WeightedRoundRobin;
typedef POLICIES(LeastRequest__V3__LeastRequest) LeastRequest;
typedef POLICIES(RandomSubsetting__V3__RandomSubsetting) RandomSubsetting;
typedef POLICIES(RingHash__V3__RingHash) RingHash;
typedef POLICIES(PickFirst__V3__PickFirst) PickFirst;
typedef POLICIES(WrrLocality__V3__WrrLocality) WrrLocality;
#define CLUSTER_PROVIDED_TYPE POLICY_TYPE(cluster_provided__v3__cluster_provided)
#define LB(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_POLICY__##x
#define LB_CONFIG(x) ENVOY__CONFIG__CLUSTER__V3__CLUSTER__LB_CONFIG_##x

static int read_list(struct res_policy_reader *, const PolicyList *, struct lb_policy_spec *);

static int read_round_robin(
	struct res_policy_reader *pr, const void *message, struct lb_policy_spec *s)
{
	const RoundRobin *m = message;
	if (m->slow_start_config)
		res_warn(pr->rd, "round_robin: slow_start_config is ignored");
	if (m->locality_lb_config)
		res_warn(pr->rd, "round_robin: locality_lb_config is ignored");
	return 0;
}

// 0 or -EINVAL.
static int read_period(
	const Google__Protobuf__Duration *d, const char *field, uint64_t *ret, struct lb_err *err)
{
	if (res_check_duration(d, field, err))
		return -EINVAL;
	if (d)
		*ret = res_duration_ns(d);
	return 0;
}

static int read_weighted(
	struct res_policy_reader *pr, const void *message, struct lb_policy_spec *s)
{
	const WeightedRoundRobin *m = message;
	struct lb_err *err = pr->rd->err;
	s->wrr.oob = m->enable_oob_load_report && m->enable_oob_load_report->value;
	s->wrr.oob_period_ns = OOB_PERIOD_NS;
	s->wrr.blackout_ns = BLACKOUT_NS;
	s->wrr.expiration_ns = EXPIRATION_NS;
	s->wrr.update_ns = UPDATE_NS;
	s->wrr.error_penalty = 1.0;
	if (read_period(
		    m->oob_reporting_period, "oob_reporting_period", &s->wrr.oob_period_ns, err) ||
		read_period(m->blackout_period, "blackout_period", &s->wrr.blackout_ns, err) ||
		read_period(m->weight_expiration_period, "weight_expiration_period",
			&s->wrr.expiration_ns, err) ||
		read_period(
			m->weight_update_period, "weight_update_period", &s->wrr.update_ns, err))
		return -EINVAL;
	if (s->wrr.update_ns < UPDATE_LEAST_NS)
		s->wrr.update_ns = UPDATE_LEAST_NS;
	if (m->error_utilization_penalty) {
		double penalty = (double)m->error_utilization_penalty->value;
		if (!isfinite(penalty) || penalty < 0)
			return lb_err_set(err,
				"error_utilization_penalty: must be a number and not negative");
		s->wrr.error_penalty = penalty;
	}
	if (s->wrr.oob)
		res_warn(pr->rd, "client_side_weighted_round_robin: enable_oob_load_report: "
				 "reports of answers are used instead");
	if (m->n_metric_names_for_computing_utilization)
		res_warn(pr->rd, "client_side_weighted_round_robin: "
				 "metric_names_for_computing_utilization is ignored");
	return 0;
}

static int read_choices(
	const Google__Protobuf__UInt32Value *count, struct lb_policy_spec *s, struct lb_err *err)
{
	uint32_t n = count ? count->value : CHOICES_DEFAULT;
	if (n < CHOICES_LEAST)
		return lb_err_set(err, "choice_count: must be at least %d", CHOICES_LEAST);
	s->least_request.choice_count = n < CHOICES_MOST ? n : CHOICES_MOST;
	return 0;
}

static int read_least_request(
	struct res_policy_reader *pr, const void *message, struct lb_policy_spec *s)
{
	const LeastRequest *m = message;
	if (m->active_request_bias)
		res_warn(pr->rd, "least_request: active_request_bias is ignored");
	if (m->slow_start_config)
		res_warn(pr->rd, "least_request: slow_start_config is ignored");
	if (m->locality_lb_config)
		res_warn(pr->rd, "least_request: locality_lb_config is ignored");
	if (m->selection_method !=
		POLICY_ENUM(LEAST_REQUEST__V3__LEAST_REQUEST__SELECTION_METHOD__N_CHOICES))
		res_warn(pr->rd, "least_request: selection_method is ignored");
	return read_choices(m->choice_count, s, pr->rd->err);
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

static int read_ring_sizes(const Google__Protobuf__UInt64Value *in_min,
	const Google__Protobuf__UInt64Value *in_max, struct lb_policy_spec *s, struct lb_err *err)
{
	uint64_t min = in_min ? in_min->value : RING_MIN_SIZE;
	uint64_t max = in_max ? in_max->value : RING_MAX_SIZE;
	if (max == 0 || max > RING_MAX_SIZE)
		return lb_err_set(err, "maximum_ring_size: must be in [1, %u]", RING_MAX_SIZE);
	if (min == 0 || min > RING_MAX_SIZE)
		return lb_err_set(err, "minimum_ring_size: must be in [1, %u]", RING_MAX_SIZE);
	if (min > max)
		return lb_err_set(err, "minimum_ring_size: must not exceed maximum_ring_size");
	s->ring_hash.min_size = at_most(min, RING_SIZE_CAP);
	s->ring_hash.max_size = at_most(max, RING_SIZE_CAP);
	return 0;
}

static int read_ring_hash(
	struct res_policy_reader *pr, const void *message, struct lb_policy_spec *s)
{
	const RingHash *m = message;
	if (m->hash_function != POLICY_ENUM(RING_HASH__V3__RING_HASH__HASH_FUNCTION__XX_HASH) &&
		m->hash_function !=
			POLICY_ENUM(RING_HASH__V3__RING_HASH__HASH_FUNCTION__DEFAULT_HASH))
		return lb_err_set(pr->rd->err, "hash_function: must be XX_HASH");
	bool bounded = m->hash_balance_factor ||
	               (m->consistent_hashing_lb_config &&
			       m->consistent_hashing_lb_config->hash_balance_factor);
	bool by_name = m->use_hostname_for_hashing ||
	               (m->consistent_hashing_lb_config &&
			       m->consistent_hashing_lb_config->use_hostname_for_hashing);
	if (bounded)
		res_warn(pr->rd, "ring_hash: hash_balance_factor is ignored");
	if (by_name)
		res_warn(pr->rd, "ring_hash: use_hostname_for_hashing is ignored");
	return read_ring_sizes(m->minimum_ring_size, m->maximum_ring_size, s, pr->rd->err);
}

static int read_pick_first(
	struct res_policy_reader *pr, const void *message, struct lb_policy_spec *s)
{
	const PickFirst *m = message;
	s->pick_first.shuffle = m->shuffle_address_list;
	return 0;
}

// The outermost lists name their place in an error.
static bool is_said(const struct res_policy_reader *pr, int rc)
{
	return rc == -EINVAL && pr->depth <= MAX_DEPTH_SAID;
}

static struct lb_policy_spec *new_spec(struct res_policy_reader *pr)
{
	if (!pr->n_room)
		return lb_arena_alloc(pr->rd->arena, 1, sizeof(struct lb_policy_spec));
	pr->n_room--;
	return pr->room++;
}

struct lb_policy_spec *res_policy_new_child(
	struct res_policy_reader *pr, struct lb_policy_spec *parent)
{
	struct lb_policy_spec *child = new_spec(pr);
	parent->child = child;
	return child;
}

static int read_wrr_locality(
	struct res_policy_reader *pr, const void *message, struct lb_policy_spec *s)
{
	const WrrLocality *m = message;
	if (!m->endpoint_picking_policy)
		return lb_err_set(pr->rd->err, "no endpoint_picking_policy");
	struct lb_policy_spec *child = res_policy_new_child(pr, s);
	if (!child)
		return -ENOMEM;
	pr->depth++;
	int rc = read_list(pr, m->endpoint_picking_policy, child);
	pr->depth--;
	return is_said(pr, rc) ? lb_err_within(pr->rd->err, "endpoint_picking_policy") : rc;
}

// A68-05. It is no policy of its own but what the inner one gets; one within another leaves the
// fewer.
int res_policy_set_subset(struct res_policy_reader *pr, uint32_t size, struct lb_policy_spec *s)
{
	if (!size)
		return lb_err_set(pr->rd->err, "subset_size: must be greater than 0");
	if (!s->subset_size || size < s->subset_size)
		s->subset_size = size;
	return 0;
}

static int read_random_subsetting(
	struct res_policy_reader *pr, const void *message, struct lb_policy_spec *s)
{
	const RandomSubsetting *m = message;
	if (!m->child_policy)
		return lb_err_set(pr->rd->err, "no child_policy");
	pr->depth++;
	int rc = read_list(pr, m->child_policy, s);
	pr->depth--;
	if (rc)
		return is_said(pr, rc) ? lb_err_within(pr->rd->err, "child_policy") : rc;
	return res_policy_set_subset(pr, m->subset_size ? m->subset_size->value : 0, s);
}

static const struct policy_type {
	const ProtobufCMessageDescriptor *message;
	const char *name; // in errors
	enum lb_policy_kind kind;
	int (*read)(struct res_policy_reader *, const void *message, struct lb_policy_spec *);
	bool has_child;
} policy_types[] = {
	{POLICY_TYPE(wrr_locality__v3__wrr_locality), "wrr_locality", LB_POLICY_WRR_LOCALITY,
		read_wrr_locality, .has_child = true},
	{POLICY_TYPE(round_robin__v3__round_robin), "round_robin", LB_POLICY_ROUND_ROBIN,
		read_round_robin},
	{POLICY_TYPE(client_side_weighted_round_robin__v3__client_side_weighted_round_robin),
		"client_side_weighted_round_robin", LB_POLICY_WEIGHTED_ROUND_ROBIN, read_weighted},
	{POLICY_TYPE(least_request__v3__least_request), "least_request", LB_POLICY_LEAST_REQUEST,
		read_least_request},
	{POLICY_TYPE(ring_hash__v3__ring_hash), "ring_hash", LB_POLICY_RING_HASH, read_ring_hash},
	{POLICY_TYPE(pick_first__v3__pick_first), "pick_first", LB_POLICY_PICK_FIRST,
		read_pick_first},
	// The inner policy says of which kind it is.
	{POLICY_TYPE(random_subsetting__v3__random_subsetting), "random_subsetting",
		.read = read_random_subsetting, .has_child = true},
};

static const struct policy_type *find_type(const char *type_url)
{
	for (size_t i = 0; i < sizeof(policy_types) / sizeof(policy_types[0]); i++)
		if (proto_any_is(type_url, policy_types[i].message))
			return &policy_types[i];
	return NULL;
}

static const struct policy_type *type_of(enum lb_policy_kind kind)
{
	size_t i = 0;
	while (policy_types[i].kind != kind)
		i++;
	return &policy_types[i];
}

// What names a type at all: an entry that does not is wrong, even where it would be passed over.
static bool names_a_type(const char *type_url)
{
	const char *slash = strrchr(type_url, '/');
	return slash && slash[1];
}

int res_policy_read_message(struct res_policy_reader *pr, enum lb_policy_kind kind,
	const void *message, struct lb_policy_spec *s)
{
	return type_of(kind)->read(pr, message, s);
}

const ProtobufCMessageDescriptor *res_policy_message_of(enum lb_policy_kind kind)
{
	return type_of(kind)->message;
}

// A TypedStruct stands for a policy by gRPC's name (gRFC A52), not for a message of the API.
static int read_struct(
	struct res_policy_reader *pr, const struct res_any *opened, struct lb_policy_spec *s)
{
	if (!names_a_type(opened->type_url))
		return lb_err_set(pr->rd->err, "TypedStruct: type_url names no type");
	json_t *json = opened->json ? proto_json_encode(&opened->json->base) : json_object();
	if (!json)
		return -ENOMEM;
	int rc = res_policy_read_json(pr, strrchr(opened->type_url, '/') + 1, json, s);
	json_decref(json);
	return rc;
}

static int read_message(
	struct res_policy_reader *pr, const Google__Protobuf__Any *any, struct lb_policy_spec *s)
{
	const struct policy_type *type = find_type(any->type_url);
	if (!type)
		return 1;
	void *m = res_any_unpack(any, type->message, pr->rd->err);
	if (!m)
		return lb_err_within(pr->rd->err, "%s", type->name);
	s->kind = type->kind;
	int rc = type->read(pr, m, s);
	proto_free(m);
	bool is_innermost = rc == -EINVAL && !type->has_child;
	return is_innermost || is_said(pr, rc) ? lb_err_within(pr->rd->err, "%s", type->name) : rc;
}

// 1 = an unknown one, to be passed over; else 0, -EINVAL or -ENOMEM.
static int read_entry(
	struct res_policy_reader *pr, const Google__Protobuf__Any *any, struct lb_policy_spec *s)
{
	struct res_any opened;
	if (!names_a_type(any->type_url))
		return lb_err_set(pr->rd->err, "type_url: \"%.128s\" names no type", any->type_url);
	if (res_any_open(any, &opened, pr->rd->err))
		return -EINVAL;
	int rc = opened.typed_struct ? read_struct(pr, &opened, s) : read_message(pr, any, s);
	res_any_close(&opened);
	return rc;
}

// The first entry of a type we know counts; what it says must then be right (A52-T10). 0, -EINVAL
// or -ENOMEM.
static int read_list(struct res_policy_reader *pr, const PolicyList *list, struct lb_policy_spec *s)
{
	if (pr->depth > RES_POLICY_MAX_DEPTH)
		return lb_err_set(pr->rd->err, "nested deeper than %d", RES_POLICY_MAX_DEPTH);
	for (size_t i = 0; i < list->n_policies; i++) {
		const Envoy__Config__Core__V3__TypedExtensionConfig *e =
			list->policies[i]->typed_extension_config;
		if (!e || !e->typed_config)
			return lb_err_set(pr->rd->err, "policies[%zu]: no typed_config", i);
		int rc = read_entry(pr, e->typed_config, s);
		if (rc <= 0)
			return is_said(pr, rc) ? lb_err_within(pr->rd->err, "policies[%zu]", i)
			                       : rc;
	}
	return lb_err_set(pr->rd->err, "no supported policy");
}

// Does an aggregate leave it to its members by the newer field? What stands after it is not read.
static bool is_provided(const PolicyList *list)
{
	for (size_t i = 0; i < list->n_policies; i++) {
		const Envoy__Config__Core__V3__TypedExtensionConfig *e =
			list->policies[i]->typed_extension_config;
		if (!e || !e->typed_config || find_type(e->typed_config->type_url))
			return false;
		if (proto_any_is(e->typed_config->type_url, CLUSTER_PROVIDED_TYPE))
			return true;
	}
	return false;
}

// A52-L04: by locality first, then by this.
static int spread(struct res_policy_reader *pr, enum lb_policy_kind kind, struct lb_policy_spec *s,
	struct lb_policy_spec **ret_child)
{
	s->kind = LB_POLICY_WRR_LOCALITY;
	*ret_child = res_policy_new_child(pr, s);
	if (!*ret_child)
		return -ENOMEM;
	(*ret_child)->kind = kind;
	return 0;
}

static int read_old_least_request(
	struct res_policy_reader *pr, const Cluster *m, struct lb_policy_spec *s)
{
	const Envoy__Config__Cluster__V3__Cluster__LeastRequestLbConfig *c =
		m->lb_config_case == LB_CONFIG(LEAST_REQUEST_LB_CONFIG) ? m->least_request_lb_config
									: NULL;
	struct lb_policy_spec *child;
	if (spread(pr, LB_POLICY_LEAST_REQUEST, s, &child))
		return -ENOMEM;
	if (c && c->active_request_bias)
		res_warn(pr->rd, "least_request_lb_config: active_request_bias is ignored");
	if (c && c->slow_start_config)
		res_warn(pr->rd, "least_request_lb_config: slow_start_config is ignored");
	if (read_choices(c ? c->choice_count : NULL, child, pr->rd->err))
		return lb_err_within(pr->rd->err, "least_request_lb_config");
	return 0;
}

static int read_old_ring_hash(
	struct res_policy_reader *pr, const Cluster *m, struct lb_policy_spec *s)
{
	const Envoy__Config__Cluster__V3__Cluster__RingHashLbConfig *c =
		m->lb_config_case == LB_CONFIG(RING_HASH_LB_CONFIG) ? m->ring_hash_lb_config : NULL;
	s->kind = LB_POLICY_RING_HASH;
	if (read_ring_sizes(c ? c->minimum_ring_size : NULL, c ? c->maximum_ring_size : NULL, s,
		    pr->rd->err))
		return lb_err_within(pr->rd->err, "ring_hash_lb_config");
	if (c &&
		c->hash_function !=
			ENVOY__CONFIG__CLUSTER__V3__CLUSTER__RING_HASH_LB_CONFIG__HASH_FUNCTION__XX_HASH)
		return lb_err_set(
			pr->rd->err, "ring_hash_lb_config: hash_function: must be XX_HASH");
	return 0;
}

static int read_old_round_robin(
	struct res_policy_reader *pr, const Cluster *m, struct lb_policy_spec *s)
{
	struct lb_policy_spec *child;
	if (m->lb_config_case == LB_CONFIG(ROUND_ROBIN_LB_CONFIG) &&
		m->round_robin_lb_config->slow_start_config)
		res_warn(pr->rd, "round_robin_lb_config: slow_start_config is ignored");
	return spread(pr, LB_POLICY_ROUND_ROBIN, s, &child);
}

static int read_old(struct res_policy_reader *pr, const Cluster *m, struct lb_policy_spec *s)
{
	switch (m->lb_policy) {
	case LB(ROUND_ROBIN):
		return read_old_round_robin(pr, m, s);
	case LB(LEAST_REQUEST):
		return read_old_least_request(pr, m, s);
	case LB(RING_HASH):
		return read_old_ring_hash(pr, m, s);
	default:
		return lb_err_set(pr->rd->err, "lb_policy: %s is not supported",
			res_enum_name(&envoy__config__cluster__v3__cluster__lb_policy__descriptor,
				(int)m->lb_policy));
	}
}

uint32_t res_policy_depth(const Cluster *m)
{
	return m->load_balancing_policy || m->lb_policy == LB(RING_HASH) ? 1 : 2;
}

int res_policy_read(struct res_reader *rd, const Cluster *m, bool is_aggregate,
	struct lb_policy_spec *room, const struct lb_policy_spec **ret, bool *ret_provided)
{
	struct res_policy_reader pr = {rd, 1, room, res_policy_depth(m)};
	struct lb_policy_spec *s = new_spec(&pr), *child;
	if (!s)
		return -ENOMEM;
	*ret_provided =
		is_aggregate && (m->load_balancing_policy ? is_provided(m->load_balancing_policy)
							  : m->lb_policy == LB(CLUSTER_PROVIDED));
	int rc;
	if (*ret_provided) {
		rc = spread(&pr, LB_POLICY_ROUND_ROBIN, s, &child);
	} else if (m->load_balancing_policy) {
		rc = read_list(&pr, m->load_balancing_policy, s);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "load_balancing_policy");
	} else {
		rc = read_old(&pr, m, s);
	}
	if (!rc)
		*ret = s;
	return rc;
}
