// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/frontend_next.h"

#include "ctrl/assemble/assembled_frontend.h"
#include "ctrl/res/listener.h"
#include "lb/base/check.h"

#include <stdlib.h>

void frontend_next_fini(struct assembled_frontend *of)
{
	if (of->next)
		assembled_frontend_fini(of->next);
	free(of->next);
	of->next = NULL;
}

void frontend_next_drop(struct assembled_frontend *of)
{
	if (of->next)
		assembled_frontend_fail(of->next, "");
	frontend_next_fini(of);
}

bool frontend_next_begin(struct assembled_frontend *of)
{
	frontend_next_drop(of);
	of->next = calloc(1, sizeof(*of->next));
	if (!of->next)
		return false;
	of->next->is_next = true;
	if (!assembled_frontend_init(of->next, of->env, of->index)) {
		frontend_next_fini(of);
		return false;
	}
	of->next->refused_bit = of->refused_bit ^ 1;
	return true;
}

bool frontend_next_is_made(const struct assembled_frontend *of)
{
	const struct assembled_frontend *next = of->next;
	return next && next->applied && !next->lacks_clusters;
}

// Both change places, so that what served goes as one that never came does. What is not of a
// configuration stays.
void frontend_next_take(struct assembled_frontend *of)
{
	DCHECK(frontend_next_is_made(of));
	struct assembled_frontend *next = of->next, was = *of;
	bool is_other = !was.listener || !xds_res_eq(&was.listener->base, &next->listener->base);
	*of = *next;
	of->is_next = false;
	of->next = next;
	of->live = was.live;
	of->generation = was.generation + is_other;
	*next = was;
	next->is_next = true;
	next->next = NULL;
	next->live = NULL;
	assembled_frontend_draft(of);
	frontend_next_drop(of);
}
