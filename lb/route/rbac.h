// SPDX-License-Identifier: Apache-2.0
// Role based access control (gRFC A41; A41-01..A41-18): whether the policies of a filter let a
// request through. A compiled filter is one list of tests, each of which says which one follows:
// a request passes it once, from front to back.
// Thread: built and freed on ctrl; checks on workers, and on ctrl for display. Pure, but that RE2
// (lb/regex/regex_one.h) takes locks and may allocate.
#pragma once

#include "lb/base/err.h"
#include "lb/route/header_match.h"
#include "lb/route/peer_info.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_RBAC_DEPTH_MAX 16 // of rules within rules (A41-04)

enum lb_rbac_kind {
	LB_RBAC_AND, // all of `rules`; of none true
	LB_RBAC_OR, // one of `rules`; of none false
	LB_RBAC_NOT, // not the only one of `rules`
	LB_RBAC_ANY,
	LB_RBAC_NEVER,
	LB_RBAC_HEADER, // match
	LB_RBAC_URL_PATH, // match, of the path without query and fragment
	LB_RBAC_SERVER_NAME, // match
	LB_RBAC_AUTHENTICATED, // match, of the certificate's names
	LB_RBAC_TLS, // the connection is TLS
	LB_RBAC_DIRECT_IP, // prefix
	LB_RBAC_SOURCE_IP, // prefix
	LB_RBAC_REMOTE_IP, // prefix
	LB_RBAC_DESTINATION_IP, // prefix
	LB_RBAC_DESTINATION_PORT, // port
};

// The builder's input: borrowed for the call.
struct lb_rbac_rule {
	enum lb_rbac_kind kind;
	union {
		struct {
			const struct lb_rbac_rule *rules;
			uint32_t n;
		};
		// Of HEADER; of the others the kinds that are texts. regex is not read.
		struct lb_header_match_conf match;
		struct ip_prefix range;
		uint32_t port;
	};
};

enum lb_rbac_action { LB_RBAC_ALLOW, LB_RBAC_DENY, LB_RBAC_LOG };

struct lb_rbac_policy {
	struct str name;
	struct lb_rbac_rule rule; // permissions and principals
};

struct lb_rbac_rules {
	enum lb_rbac_action action;
	const struct lb_rbac_policy *policies; // the first that matches counts
	uint32_t n;
};

struct lb_rbac_conf {
	const struct lb_rbac_rules *rules, *shadow; // NULL = none
	struct str bytes; // equal = the same configuration
};

struct lb_rbac;

// NULL with the reason: out of memory, or an invalid pattern.
struct lb_rbac *lb_rbac_new(const struct lb_rbac_conf *, struct lb_err *reterr);
void lb_rbac_free(struct lb_rbac *); // NULL is fine

// What one list of policies says.
struct lb_rbac_decision {
	bool exists; // false: there is no such list
	bool denies; // never of LOG
	bool is_log;
	struct str policy; // that matched; p NULL = none
};
struct lb_rbac_verdict {
	struct lb_rbac_decision rules, shadow; // a request is refused if rules.denies
};

// buf is for repeated fields, which are joined, and as large as the longest list of fields.
struct lb_rbac_verdict lb_rbac_check(const struct lb_rbac *, const struct lb_req *,
	const struct lb_peer_info *, char *buf, size_t buf_size);
