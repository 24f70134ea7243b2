// SPDX-License-Identifier: Apache-2.0
// envoy.config.cluster.v3.Cluster as a plain struct (CL-03, CL-04, CL-08).
// Thread: ctrl.
#pragma once

#include "ctrl/res/warnings.h"
#include "ctrl/xds/type.h"
#include "lb/base/container_of.h"
#include "lb/pick/breaker.h"
#include "lb/pick/security.h"
#include "lb/pick/timers.h"
#include "lb/policy/policy_spec.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_check;
struct lb_outlier_conf;
struct res_tls;

enum res_cluster_kind { RES_CLUSTER_EDS, RES_CLUSTER_LOGICAL_DNS, RES_CLUSTER_AGGREGATE };

struct res_cluster {
	struct xds_res base;
	enum res_cluster_kind kind;
	// An aggregate with CLUSTER_PROVIDED (A75-G07): `spec` is only a default, and its leaves
	// keep their own policies even if A75-G08 applies.
	bool is_provided;
	bool reports_load; // lrs_server is self
	uint32_t n_children, n_metrics;
	struct {
		const char *host; // a name or an address
		const char *hostname; // of the endpoint (gRFC A81); "" = none
		uint16_t port;
	} dns; // LOGICAL_DNS
	const char *const *children; // AGGREGATE: names as listed, duplicates included
	// The balancing of its endpoints; for an aggregate see A75-G08. Lives as long as the
	// resource.
	const struct lb_policy_spec *spec; // never NULL
	const struct lb_outlier_conf *outlier; // NULL = none
	struct lb_check *check; // of health, counted; NULL = none
	const struct res_tls *tls; // NULL = plain text
	bool uses_proxies; // of endpoints that name one (gRFC A86)
	struct lb_header header; // of PROXY, that connections begin with
	// lrs_report_endpoint_metrics (gRFC A85): "cpu_utilization", "named_metrics.*", …
	const char *const *metrics;
	struct res_warnings warnings; // accepted fields without effect (ENV-04)
	const char *eds_name; // name of its endpoints: the service name, else the cluster's own
	const char *eds_service_name; // as given; "" = none (A32-I07, LR-05)
	uint32_t max_requests; // circuit breaker (CB-01); default 1024
	struct lb_retry_budget retry_budget; // CB-07
	// override_host_status: bit set of enum lb_leaf_health (SA-12). 0 = it lists no usable
	// status: no sessions.
	uint32_t session_health;
	uint64_t idle_timeout_ns; // of session connections (gRFC A75); default 1 h
	struct lb_timers timers; // of the connections to its endpoints (CL-09)
	struct lb_policy_spec specs[]; // of which `spec` is made; there may be more in the arena
};

extern const struct xds_type res_type_cluster;

static inline struct res_cluster *res_cluster_from(struct xds_res *r)
{
	return CONTAINER_OF(r, struct res_cluster, base); // base is the first member
}
