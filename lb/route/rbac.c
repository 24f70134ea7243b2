// SPDX-License-Identifier: Apache-2.0
#include "lb/route/rbac.h"

#include "lb/base/arena.h"
#include "lb/base/check.h"
#include "lb/regex/regex_one.h"
#include "lb/route/header_value.h"
#include "lb/route/req.h"
#include "lb/route/value_match.h"

#include <errno.h>
#include <stdlib.h>

// Where a test leads: to another one, behind it, or to an end.
#define END UINT32_C(0x80000000) // policy `rest` matches
#define NO_POLICY UINT32_MAX

struct test {
	enum lb_rbac_kind kind;
	uint32_t if_true, if_false;
	bool invert, present; // HEADER
	enum lb_header_source source; // HEADER
	struct str name; // HEADER
	struct lb_value_match value;
	struct lb_regex_one *regex; // owned; NULL = the value decides
	struct ip_prefix range;
	uint32_t port;
};

struct program {
	bool exists;
	enum lb_rbac_action action;
	struct test *tests; // in the arena
	uint32_t n;
	uint32_t first; // where it begins
	struct str *policies; // in the arena; their names
};

struct lb_rbac {
	struct lb_arena arena;
	struct program rules, shadow;
};

// Builds from the last test to the first: each knows then where it leads.
struct builder {
	struct lb_arena *arena;
	struct program *to;
	uint32_t at; // tests from here on are made
	struct lb_err *err;
};

static bool is_leaf(enum lb_rbac_kind kind)
{
	return kind > LB_RBAC_NEVER;
}

static size_t count(const struct lb_rbac_rule *r)
{
	if (is_leaf(r->kind))
		return 1;
	size_t n = 0;
	for (uint32_t i = 0; r->kind <= LB_RBAC_NOT && i < r->n; i++)
		n += count(&r->rules[i]);
	return n;
}

static int no_memory(struct lb_err *err)
{
	return lb_err_set(err, "out of memory");
}

// A41-09: of binary headers the value as it came counts, which is base64.
static enum lb_header_source source_of(struct str name)
{
	return str_ends(name, STR("-bin")) ? LB_HEADER_FIELDS : lb_header_source(name);
}

static int fill_match(struct builder *b, struct test *t, const struct lb_header_match_conf *m)
{
	t->invert = m->invert;
	t->present = m->present;
	if (!lb_value_match_init(&t->value, b->arena, m) ||
		!lb_arena_copy(b->arena, m->name, &t->name))
		return no_memory(b->err);
	t->source = source_of(t->name);
	if (m->kind != LB_HEADER_REGEX)
		return 0;
	t->regex = lb_regex_one_new(m->text, b->err);
	return t->regex ? 0 : -EINVAL;
}

static int fill(struct builder *b, struct test *t, const struct lb_rbac_rule *r)
{
	t->kind = r->kind;
	switch (r->kind) {
	case LB_RBAC_HEADER:
	case LB_RBAC_URL_PATH:
	case LB_RBAC_SERVER_NAME:
	case LB_RBAC_AUTHENTICATED:
		return fill_match(b, t, &r->match);
	case LB_RBAC_DIRECT_IP:
	case LB_RBAC_SOURCE_IP:
	case LB_RBAC_REMOTE_IP:
	case LB_RBAC_DESTINATION_IP:
		t->range = r->range;
		return 0;
	case LB_RBAC_DESTINATION_PORT:
		t->port = r->port;
		return 0;
	default:
		return 0;
	}
}

// Sets *at to where the rule begins, which leads to if_true or if_false.
static int add(struct builder *b, const struct lb_rbac_rule *r, uint32_t if_true, uint32_t if_false,
	uint32_t *at)
{
	int rc = 0;
	switch (r->kind) {
	case LB_RBAC_AND:
		*at = if_true;
		for (uint32_t i = r->n; i > 0 && !rc; i--)
			rc = add(b, &r->rules[i - 1], *at, if_false, at);
		return rc;
	case LB_RBAC_OR:
		*at = if_false;
		for (uint32_t i = r->n; i > 0 && !rc; i--)
			rc = add(b, &r->rules[i - 1], if_true, *at, at);
		return rc;
	case LB_RBAC_NOT:
		return add(b, r->rules, if_false, if_true, at);
	case LB_RBAC_ANY:
		*at = if_true;
		return 0;
	case LB_RBAC_NEVER:
		*at = if_false;
		return 0;
	default:
		break;
	}
	CHECK(b->at > 0);
	struct test *t = &b->to->tests[--b->at];
	t->if_true = if_true;
	t->if_false = if_false;
	*at = b->at;
	return fill(b, t, r);
}

static int build(struct program *p, struct lb_arena *arena, const struct lb_rbac_rules *rules,
	struct lb_err *err)
{
	size_t n = 0;
	if (!rules)
		return 0;
	for (uint32_t i = 0; i < rules->n; i++)
		n += count(&rules->policies[i].rule);
	if (n >= END || rules->n >= END - 1)
		return no_memory(err);
	p->exists = true;
	p->action = rules->action;
	p->policies = lb_arena_alloc(arena, rules->n, sizeof(*p->policies));
	p->tests = lb_arena_alloc(arena, n, sizeof(*p->tests));
	if (!p->policies || !p->tests)
		return no_memory(err);
	p->n = (uint32_t)n;
	struct builder b = {.arena = arena, .to = p, .at = p->n, .err = err};
	p->first = NO_POLICY;
	for (uint32_t i = rules->n; i > 0; i--) {
		const struct lb_rbac_policy *policy = &rules->policies[i - 1];
		if (!lb_arena_copy(arena, policy->name, &p->policies[i - 1]))
			return no_memory(err);
		int rc = add(&b, &policy->rule, END | (i - 1), p->first, &p->first);
		if (rc)
			return rc;
	}
	return 0;
}

static void program_fini(struct program *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		lb_regex_one_free(p->tests[i].regex);
}

struct lb_rbac *lb_rbac_new(const struct lb_rbac_conf *conf, struct lb_err *reterr)
{
	struct lb_rbac *r = calloc(1, sizeof(*r));
	if (!r) {
		(void)no_memory(reterr);
		return NULL;
	}
	if (!build(&r->rules, &r->arena, conf->rules, reterr) &&
		!build(&r->shadow, &r->arena, conf->shadow, reterr))
		return r;
	lb_rbac_free(r);
	return NULL;
}

void lb_rbac_free(struct lb_rbac *r)
{
	if (!r)
		return;
	program_fini(&r->rules);
	program_fini(&r->shadow);
	lb_arena_fini(&r->arena);
	free(r);
}

// One request while it is checked.
struct query {
	const struct lb_req *req;
	const struct lb_peer_info *peer;
	char *buf;
	size_t buf_size;
	bool unknown; // a test could not be decided
};

static bool matches(const struct test *t, struct str value)
{
	return t->regex ? lb_regex_one_match(t->regex, value) : lb_value_match(&t->value, value);
}

// A41-08 to A41-10.
static bool header_matches(const struct query *q, const struct test *t)
{
	struct str value = {0};
	bool found = lb_header_in_fields(t->source, false)
	                     ? lb_header_find_field(q->req, t->name, q->buf, q->buf_size, &value)
	                     : lb_header_pseudo(q->req, t->source, false, &value);
	if (t->value.kind == LB_HEADER_PRESENT)
		return (found == t->present) != t->invert;
	return found && matches(t, value) != t->invert;
}

// Returns how many names of this kind there are.
static uint32_t compare(
	const struct query *q, const struct test *t, enum lb_san_kind kind, bool *hit)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < q->peer->n_sans && !*hit; i++) {
		if (q->peer->sans[i].kind != kind)
			continue;
		n++;
		*hit = matches(t, q->peer->sans[i].text);
	}
	return n;
}

// A41-12. What is not among the names that are known may be among the others: nobody can say.
static bool is_principal(struct query *q, const struct test *t)
{
	bool hit = false;
	if (!q->peer->is_tls)
		return false;
	if (!compare(q, t, LB_SAN_URI, &hit) && !q->peer->cut && !compare(q, t, LB_SAN_DNS, &hit))
		hit = matches(t, q->peer->subject);
	if (!hit && q->peer->cut)
		q->unknown = true;
	return hit;
}

static bool is_true(struct query *q, const struct test *t)
{
	const struct lb_peer_info *peer = q->peer;
	switch (t->kind) {
	case LB_RBAC_HEADER:
		return header_matches(q, t);
	case LB_RBAC_URL_PATH:
		return matches(t, str_until(str_until(q->req->path, '?'), '#'));
	case LB_RBAC_SERVER_NAME:
		return matches(t, peer->server_name);
	case LB_RBAC_AUTHENTICATED:
		return is_principal(q, t);
	case LB_RBAC_TLS:
		return peer->is_tls;
	case LB_RBAC_DIRECT_IP:
		return ip_in_prefix(&peer->direct, &t->range.ip, t->range.bits);
	case LB_RBAC_SOURCE_IP:
		return ip_in_prefix(&peer->source, &t->range.ip, t->range.bits);
	case LB_RBAC_REMOTE_IP:
		return ip_in_prefix(&peer->remote, &t->range.ip, t->range.bits);
	case LB_RBAC_DESTINATION_IP:
		return ip_in_prefix(&peer->destination.ip, &t->range.ip, t->range.bits);
	case LB_RBAC_DESTINATION_PORT:
		return peer->destination.port == t->port;
	default:
		return false;
	}
}

static struct lb_rbac_decision run(const struct program *p, struct query *q)
{
	struct lb_rbac_decision d = {.exists = p->exists, .is_log = p->action == LB_RBAC_LOG};
	uint32_t at = p->first;
	if (!p->exists)
		return d;
	q->unknown = false;
	while (!(at & END) && !q->unknown) {
		const struct test *t = &p->tests[at];
		at = is_true(q, t) ? t->if_true : t->if_false;
	}
	bool found = !q->unknown && at != NO_POLICY;
	if (found)
		d.policy = p->policies[at & ~END];
	d.denies = !d.is_log && (q->unknown || found == (p->action == LB_RBAC_DENY));
	return d;
}

struct lb_rbac_verdict lb_rbac_check(const struct lb_rbac *r, const struct lb_req *req,
	const struct lb_peer_info *peer, char *buf, size_t buf_size)
{
	struct query q = {req, peer, buf, buf_size, false};
	return (struct lb_rbac_verdict){run(&r->rules, &q), run(&r->shadow, &q)};
}
