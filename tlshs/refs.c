// SPDX-License-Identifier: Apache-2.0
// What workers call of a context: it brings no TLS library with it.
#include "tlshs/impl.h"

struct tlshs_context *tlshs_context_get(struct tlshs_context *c)
{
	__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
	return c;
}

enum tlshs_role tlshs_context_role(const struct tlshs_context *c)
{
	return c->role;
}
