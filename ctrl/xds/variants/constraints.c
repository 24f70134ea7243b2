// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/variants/constraints.h"

#include "ctrl/xds/variants/constraints_inside.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/arena.h"
#include "proto/wire.h"

#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_DEPTH_MAX 8 // levels that an error names: a deeper path would push out the reason

typedef constraint_message Node;
typedef constraint_single Single;
typedef constraint_list List;
typedef Envoy__Service__Discovery__V3__DynamicParameterConstraints__SingleConstraint__Exists Exists;

#define NODE(kind) ENVOY__SERVICE__DISCOVERY__V3__DYNAMIC_PARAMETER_CONSTRAINTS__TYPE_##kind
#define SINGLE(kind)                                                                               \
	ENVOY__SERVICE__DISCOVERY__V3__DYNAMIC_PARAMETER_CONSTRAINTS__SINGLE_CONSTRAINT__CONSTRAINT_TYPE_##kind

// The decoded structure is protobuf-c's own, without unknown fields: what it is sent as is what it
// is evaluated as.
struct xds_constraints {
	uint32_t n_refs;
	uint64_t hash; // of the encoding
	uint8_t *bytes; // the encoding; in the arena
	size_t len;
	Node *root; // in the arena
	struct lb_arena arena;
};

static int copy_node(const Node *, unsigned depth, struct lb_arena *, Node **ret, struct lb_err *);

static int copy_single(const Single *in, struct lb_arena *a, Single **ret, struct lb_err *err)
{
	if (in->constraint_type_case == SINGLE(_NOT_SET)) // TP2-C08
		return lb_err_set(
			err, "constraint on \"%.64s\": neither value nor exists is set", in->key);
	Single *s = lb_arena_alloc(a, 1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	envoy__service__discovery__v3__dynamic_parameter_constraints__single_constraint__init(s);
	s->key = lb_arena_strdup(a, in->key);
	s->constraint_type_case = in->constraint_type_case;
	bool ok = s->key;
	if (s->constraint_type_case == SINGLE(VALUE)) {
		// A copy of its own, even of "": a value at protobuf-c's default address would not
		// be packed (TP2-C09).
		s->value = lb_arena_strdup(a, in->value);
		ok = ok && s->value;
	} else {
		s->exists = lb_arena_alloc(a, 1, sizeof(Exists));
		ok = ok && s->exists;
		if (s->exists)
			envoy__service__discovery__v3__dynamic_parameter_constraints__single_constraint__exists__init(
				s->exists);
	}
	*ret = s;
	return ok ? 0 : -ENOMEM;
}

static int copy_list(const List *in, const char *field, unsigned depth, struct lb_arena *a,
	List **ret, struct lb_err *err)
{
	List *l = lb_arena_alloc(a, 1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	envoy__service__discovery__v3__dynamic_parameter_constraints__constraint_list__init(l);
	l->n_constraints = in->n_constraints;
	l->constraints = lb_arena_alloc(a, in->n_constraints, sizeof(Node *));
	if (!l->constraints)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_constraints; i++) {
		int rc = copy_node(in->constraints[i], depth + 1, a, &l->constraints[i], err);
		if (rc == -EINVAL && depth <= PATH_DEPTH_MAX)
			lb_err_within(err, "%s[%zu]", field, i);
		if (rc)
			return rc;
	}
	*ret = l;
	return 0;
}

static int copy_node(
	const Node *in, unsigned depth, struct lb_arena *a, Node **ret, struct lb_err *err)
{
	if (depth > XDS_CONSTRAINTS_DEPTH_MAX)
		return lb_err_set(err, "nested deeper than %d", XDS_CONSTRAINTS_DEPTH_MAX);
	Node *n = lb_arena_alloc(a, 1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	envoy__service__discovery__v3__dynamic_parameter_constraints__init(n);
	n->type_case = in->type_case;
	int rc = 0;
	switch ((int)in->type_case) {
	case NODE(CONSTRAINT):
		rc = copy_single(in->constraint, a, &n->constraint, err);
		break;
	case NODE(OR_CONSTRAINTS):
		rc = copy_list(
			in->or_constraints, "or_constraints", depth, a, &n->or_constraints, err);
		break;
	case NODE(AND_CONSTRAINTS):
		rc = copy_list(
			in->and_constraints, "and_constraints", depth, a, &n->and_constraints, err);
		break;
	case NODE(NOT_CONSTRAINTS):
		rc = copy_node(in->not_constraints, depth + 1, a, &n->not_constraints, err);
		if (rc == -EINVAL && depth <= PATH_DEPTH_MAX)
			lb_err_within(err, "not_constraints");
		break;
	}
	*ret = n;
	return rc;
}

static int encode(struct xds_constraints *c)
{
	c->len = envoy__service__discovery__v3__dynamic_parameter_constraints__get_packed_size(
		c->root);
	c->bytes = lb_arena_alloc(&c->arena, 1, c->len);
	if (!c->bytes)
		return -ENOMEM;
	envoy__service__discovery__v3__dynamic_parameter_constraints__pack(c->root, c->bytes);
	c->hash = XXH64(c->bytes, c->len, 0);
	return 0;
}

int xds_constraints_read(const Node *m, struct xds_constraints **ret, struct lb_err *err)
{
	if (!m || m->type_case == NODE(_NOT_SET)) {
		*ret = NULL;
		return 0;
	}
	struct xds_constraints *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->n_refs = 1;
	int rc = copy_node(m, 1, &c->arena, &c->root, err);
	if (!rc)
		rc = encode(c);
	if (rc)
		xds_constraints_put(c);
	else
		*ret = c;
	return rc;
}

int xds_constraints_decode(
	const uint8_t *bytes, size_t len, struct xds_constraints **ret, struct lb_err *err)
{
	Node *m = proto_unpack(
		&envoy__service__discovery__v3__dynamic_parameter_constraints__descriptor, bytes,
		len, err);
	if (!m)
		return -EINVAL;
	int rc = xds_constraints_read(m, ret, err);
	proto_free(m);
	return rc;
}

struct xds_constraints *xds_constraints_get(struct xds_constraints *c)
{
	if (c)
		c->n_refs++;
	return c;
}

void xds_constraints_put(struct xds_constraints *c)
{
	if (!c || --c->n_refs > 0)
		return;
	lb_arena_fini(&c->arena);
	free(c);
}

Node *xds_constraints_message(const struct xds_constraints *c)
{
	return c ? c->root : NULL;
}

const uint8_t *xds_constraints_bytes(const struct xds_constraints *c, size_t *ret_len)
{
	*ret_len = c ? c->len : 0;
	return c ? c->bytes : NULL;
}

static bool match(const Node *m, const struct xds_params *p)
{
	struct constraint_view c = constraint_view(m);
	const char *value;
	switch (c.kind) {
	case CONSTRAINT_ANY:
		return true; // TP2-C06
	case CONSTRAINT_VALUE: // TP2-C01
		value = xds_params_find(p, c.key);
		return value && strcmp(value, c.value) == 0;
	case CONSTRAINT_EXISTS: // TP2-C02
		return xds_params_find(p, c.key);
	case CONSTRAINT_NOT: // TP2-C03
		return !match(c.list[0], p);
	case CONSTRAINT_OR:
	case CONSTRAINT_AND:
		break;
	}
	// TP2-C04. An empty list has nothing that could decide: AND is true, OR false (TP2-C07).
	bool deciding = c.kind == CONSTRAINT_OR;
	for (size_t i = 0; i < c.n; i++)
		if (match(c.list[i], p) == deciding)
			return deciding;
	return !deciding;
}

bool xds_constraints_match(const struct xds_constraints *c, const struct xds_params *p)
{
	return !c || match(c->root, p);
}

bool xds_constraints_eq(const struct xds_constraints *a, const struct xds_constraints *b)
{
	return a == b || (a && b && a->hash == b->hash && xds_constraints_cmp(a, b) == 0);
}

int xds_constraints_cmp(const struct xds_constraints *a, const struct xds_constraints *b)
{
	size_t len_a = a ? a->len : 0, len_b = b ? b->len : 0;
	if (len_a != len_b)
		return len_a < len_b ? -1 : 1;
	return len_a ? memcmp(a->bytes, b->bytes, len_a) : 0;
}

uint64_t xds_constraints_hash(const struct xds_constraints *c)
{
	return c ? c->hash : 0;
}
