// SPDX-License-Identifier: Apache-2.0
// Decides which parts of a response somebody here has asked for.
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/respond_inside.h"
#include "ctrl/xds/variants/variants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *xds_round_canonical(const struct xds_round *r, const char *name, struct lb_err *err)
{
	struct xds_name parsed;
	if (!xds_name_is_xdstp(name) || xds_round_type(r)->is_opaque)
		return strdup(name);
	int rc = xds_name_parse(name, xds_round_type(r)->url, &parsed, err);
	if (rc)
		return rc == -ENOMEM ? NULL : strdup(name);
	char *text = parsed.text;
	parsed.text = NULL;
	xds_name_fini(&parsed);
	return text;
}

bool xds_round_wants(const struct xds_round *r, const char *name)
{
	if (r->takes_all)
		return true;
	if (!xds_name_is_xdstp(name))
		return xds_variants_knows(r->variants, name);
	char *text = xds_round_canonical(r, name, NULL);
	bool is_known = !text || xds_variants_knows(r->variants, text);
	free(text);
	return is_known;
}

const char *xds_round_text(struct xds_round *r, struct str s)
{
	if (s.len >= r->name_room) {
		size_t room = 2 * s.len + 64;
		char *name = realloc(r->name, room);
		r->out_of_memory |= !name;
		if (!name)
			return NULL;
		r->name = name;
		r->name_room = room;
	}
	memcpy(r->name, s.p, s.len);
	r->name[s.len] = '\0';
	return r->name;
}

// What counts of a type URL (WF-04).
static struct str after_slash(struct str url)
{
	size_t at = url.len;
	while (at > 0 && url.p[at - 1] != '/')
		at--;
	return at ? (struct str){url.p + at, url.len - at} : url; // nothing may be nowhere
}

bool xds_round_is_own_type(const struct xds_round *r, struct str url)
{
	return str_eq(after_slash(url), after_slash(str_from(xds_round_type(r)->url)));
}

// What does not even tell its name or its type is opened, and refused.
bool xds_round_may_pass_over(struct xds_round *r, const struct xds_part *part, bool *ret_heartbeat)
{
	struct xds_part_view v;
	if (r->takes_all || !xds_part_look(r->response, part, &v))
		return false;
	*ret_heartbeat = v.is_heartbeat;
	if (part->kind == XDS_PART_RESOURCE && !v.is_heartbeat &&
		!xds_round_is_own_type(r, v.type_url))
		return false;
	const char *name = xds_round_text(r, v.name);
	return name && !xds_name_is_wildcard(name) && !xds_round_wants(r, name);
}
