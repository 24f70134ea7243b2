// SPDX-License-Identifier: Apache-2.0
// A view of protobuf-c's messages for walks over decoded constraints; private to constraints.c,
// constraints_text.c and overlap.c. A walk recurses at most XDS_CONSTRAINTS_DEPTH_MAX times.
// Thread: any.
#pragma once

#include "envoy/service/discovery/v3/discovery.pb-c.h"

typedef Envoy__Service__Discovery__V3__DynamicParameterConstraints constraint_message;
typedef Envoy__Service__Discovery__V3__DynamicParameterConstraints__SingleConstraint
	constraint_single;
typedef Envoy__Service__Discovery__V3__DynamicParameterConstraints__ConstraintList constraint_list;

enum constraint_kind {
	CONSTRAINT_ANY, // nothing is required
	CONSTRAINT_VALUE,
	CONSTRAINT_EXISTS,
	CONSTRAINT_OR,
	CONSTRAINT_AND,
	CONSTRAINT_NOT,
};

// One step of a walk.
struct constraint_view {
	enum constraint_kind kind;
	const char *key, *value; // VALUE; EXISTS has no value
	constraint_message *const *list; // what OR, AND and NOT hold
	size_t n;
};

static inline struct constraint_view constraint_view(const constraint_message *m)
{
	const constraint_single *s = m->constraint;
	switch ((int)m->type_case) {
	case ENVOY__SERVICE__DISCOVERY__V3__DYNAMIC_PARAMETER_CONSTRAINTS__TYPE_CONSTRAINT:
		if (s->constraint_type_case ==
			ENVOY__SERVICE__DISCOVERY__V3__DYNAMIC_PARAMETER_CONSTRAINTS__SINGLE_CONSTRAINT__CONSTRAINT_TYPE_EXISTS)
			return (struct constraint_view){CONSTRAINT_EXISTS, s->key, NULL, NULL, 0};
		return (struct constraint_view){CONSTRAINT_VALUE, s->key, s->value, NULL, 0};
	case ENVOY__SERVICE__DISCOVERY__V3__DYNAMIC_PARAMETER_CONSTRAINTS__TYPE_OR_CONSTRAINTS:
		return (struct constraint_view){CONSTRAINT_OR,
			.list = m->or_constraints->constraints,
			.n = m->or_constraints->n_constraints};
	case ENVOY__SERVICE__DISCOVERY__V3__DYNAMIC_PARAMETER_CONSTRAINTS__TYPE_AND_CONSTRAINTS:
		return (struct constraint_view){CONSTRAINT_AND,
			.list = m->and_constraints->constraints,
			.n = m->and_constraints->n_constraints};
	case ENVOY__SERVICE__DISCOVERY__V3__DYNAMIC_PARAMETER_CONSTRAINTS__TYPE_NOT_CONSTRAINTS:
		return (struct constraint_view){
			CONSTRAINT_NOT, .list = &m->not_constraints, .n = 1};
	}
	return (struct constraint_view){.kind = CONSTRAINT_ANY};
}
