// SPDX-License-Identifier: Apache-2.0
// Constraints as operators read them, and what two of them speak of.
#include "ctrl/base/text.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/constraints_inside.h"

#include <string.h>

static void write_node(struct xds_text *t, const constraint_message *m, bool is_outermost)
{
	struct constraint_view c = constraint_view(m);
	switch (c.kind) {
	case CONSTRAINT_ANY:
		xds_text_add(t, "any");
		return;
	case CONSTRAINT_VALUE:
		xds_text_add_word(t, c.key);
		xds_text_add(t, "=");
		xds_text_add_word(t, c.value);
		return;
	case CONSTRAINT_EXISTS:
		xds_text_add(t, "exists(");
		xds_text_add_word(t, c.key);
		xds_text_add(t, ")");
		return;
	case CONSTRAINT_NOT:
		xds_text_add(t, "NOT ");
		write_node(t, c.list[0], false);
		return;
	case CONSTRAINT_OR:
	case CONSTRAINT_AND:
		break;
	}
	if (c.n == 0) {
		xds_text_add(t, c.kind == CONSTRAINT_AND ? "any" : "none");
		return;
	}
	bool in_brackets = !is_outermost && c.n > 1;
	xds_text_add(t, in_brackets ? "(" : "");
	for (size_t i = 0; i < c.n; i++) {
		xds_text_add(t, i == 0 ? "" : c.kind == CONSTRAINT_AND ? " AND " : " OR ");
		write_node(t, c.list[i], is_outermost && c.n == 1);
	}
	xds_text_add(t, in_brackets ? ")" : "");
}

void xds_constraints_print(const struct xds_constraints *c, char *out, size_t room)
{
	struct xds_text t = xds_text_of(out, room);
	if (c)
		write_node(&t, xds_constraints_message(c), true);
	else
		xds_text_add(&t, "any");
}

static bool mentions(const constraint_message *m, const char *key)
{
	struct constraint_view c = constraint_view(m);
	if (c.key)
		return strcmp(c.key, key) == 0;
	for (size_t i = 0; i < c.n; i++)
		if (mentions(c.list[i], key))
			return true;
	return false;
}

// A key of m that `other` (NULL = unconstrained) does not mention.
static const char *odd_key(const constraint_message *m, const constraint_message *other)
{
	struct constraint_view c = constraint_view(m);
	if (c.key)
		return other && mentions(other, c.key) ? NULL : c.key;
	const char *key = NULL;
	for (size_t i = 0; i < c.n && !key; i++)
		key = odd_key(c.list[i], other);
	return key;
}

const char *xds_constraints_odd_key(
	const struct xds_constraints *a, const struct xds_constraints *b)
{
	const constraint_message *m_a = xds_constraints_message(a);
	const constraint_message *m_b = xds_constraints_message(b);
	const char *key = m_a ? odd_key(m_a, m_b) : NULL;
	return key || !m_b ? key : odd_key(m_b, m_a);
}
