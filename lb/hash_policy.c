// SPDX-License-Identifier: Apache-2.0
#include "lb/hash_policy.h"

#include "lb/hash.h"
#include "lb/regex.h"

// gRPC requests show their custom metadata and content-type alone (A28-H12); nobody's request
// shows te, or -bin metadata (HP-02).
static bool is_visible(struct str name, bool is_grpc)
{
	if (str_ends(name, STR("-bin")) || str_eq(name, STR("te")))
		return false;
	return !is_grpc || !(str_eq(name, STR("user-agent")) || str_starts(name, STR("grpc-")));
}

// Pseudo-headers, as plain HTTP sees them.
static bool find_pseudo(const struct lb_req *req, struct str name, struct str *ret)
{
	if (str_eq(name, STR(":authority")) || str_eq(name, STR("host")))
		*ret = req->authority;
	else if (str_eq(name, STR(":path")))
		*ret = req->path;
	else if (str_eq(name, STR(":method")))
		*ret = req->method;
	else if (str_eq(name, STR(":scheme")))
		*ret = req->scheme;
	else
		return false;
	return !req->is_grpc && ret->len;
}

struct room {
	char *p;
	size_t len;
};

static void add(struct str *s, struct room *room, struct str more)
{
	size_t n = more.len < room->len ? more.len : room->len;
	if (n)
		memcpy(room->p, more.p, n);
	s->len += n;
	room->p += n;
	room->len -= n;
}

// The values of all fields of this name, joined; a single one stays where it is. False = absent.
static bool join(const struct lb_req *req, struct str name, struct room *room, struct str *ret)
{
	struct str glue = str_eq(name, STR("cookie")) ? STR("; ") : STR(","); // A28-H08, H09
	uint32_t n = 0;
	for (size_t i = 0; i < req->n_fields; i++) {
		if (!str_eq(req->fields[i].name, name))
			continue;
		struct str value = req->fields[i].value;
		if (n == 0) {
			*ret = value;
		} else {
			if (n == 1) {
				struct str first = *ret;
				*ret = (struct str){room->p, 0};
				add(ret, room, first);
			}
			add(ret, room, glue);
			add(ret, room, value);
		}
		n++;
	}
	return n != 0;
}

static bool hash_header(const struct lb_hash_policy *policy, const struct lb_req *req,
	struct room room, uint64_t *ret)
{
	struct str value;
	if (!is_visible(policy->header, req->is_grpc))
		return false;
	if (!find_pseudo(req, policy->header, &value) && !join(req, policy->header, &room, &value))
		return false;
	if (policy->rewrite) { // HP-03
		size_t n = lb_regex_rewrite_apply(policy->rewrite, value, room.p, room.len);
		value = (struct str){room.p, n};
	}
	*ret = lb_xxh64(value.len ? value.p : "", value.len); // HP-01
	return true;
}

bool lb_hash_policies_run(const struct lb_hash_policy *policies, uint32_t n,
	const struct lb_req *req, char *buf, size_t buf_size, uint64_t *ret_hash)
{
	uint64_t hash = 0;
	bool any = false;
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_hash_policy *policy = &policies[i];
		uint64_t one = req->connection; // HP-08
		bool found = true;
		if (policy->kind == LB_HASH_HEADER)
			found = hash_header(policy, req, (struct room){buf, buf_size}, &one);
		if (found) {
			hash = any ? (hash << 1 | hash >> 63) ^ one : one; // HP-04
			any = true;
		}
		if (policy->terminal && any) // HP-05
			break;
	}
	if (any)
		*ret_hash = hash;
	return any;
}
