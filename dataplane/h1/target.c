// SPDX-License-Identifier: Apache-2.0
// The four forms of a request's target (RFC 9112 3.2), of which CONNECT's is refused before.
#include "dataplane/h1/impl.h"
#include "dataplane/h1/text.h"

// Consumes a scheme that we serve.
static bool take_scheme(struct str *target, struct str *ret)
{
	static const struct str schemes[] = {STR("http"), STR("https")};
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t n = schemes[i].len;
		struct str rest = {target->p + n, target->len - n};
		if (target->len < n || !str_eq_fold((struct str){target->p, n}, schemes[i]) ||
			!str_starts(rest, STR("://")))
			continue;
		*ret = schemes[i];
		*target = (struct str){rest.p + 3, rest.len - 3};
		return true;
	}
	return false;
}

static size_t authority_len(struct str s)
{
	size_t i = 0;
	while (i < s.len && s.p[i] != '/' && s.p[i] != '?')
		i++;
	return i;
}

// An empty path is "/", and "*" of OPTIONS (RFC 9112 3.2.4). A query without a path, which some
// would append to the authority, is refused: the path would have to be made.
static enum h1_malformed absolute(struct h1_message *m, struct str rest)
{
	size_t n = authority_len(rest);
	m->authority = (struct str){rest.p, n};
	m->path = (struct str){rest.p + n, rest.len - n};
	if (m->path.len == 0)
		m->path = str_eq(m->method, STR("OPTIONS")) ? STR("*") : STR("/");
	bool ok = h1_text_is_authority(m->authority) && m->path.p[0] != '?';
	return ok ? H1_WELL_FORMED : H1_BAD_TARGET;
}

enum h1_malformed h1_target_parse(struct h1_head *h, struct str target)
{
	struct h1_message *m = &h->message;
	if (!h1_text_is(target, H1_TEXT_TARGET))
		return H1_BAD_TARGET;
	m->path = target;
	if (target.p[0] == '/')
		return H1_WELL_FORMED;
	if (str_eq(target, STR("*")))
		return str_eq(m->method, STR("OPTIONS")) ? H1_WELL_FORMED : H1_BAD_TARGET;
	if (!take_scheme(&target, &m->scheme))
		return H1_BAD_TARGET;
	h->host_in_target = true;
	return absolute(m, target);
}
