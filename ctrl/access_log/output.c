// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool copy(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return !text || *ret;
}

int access_output_init(struct access_output *o, const struct access_output_kind *kind,
	const struct access_place *place, struct lb_err *reterr)
{
	char *path, *log_name;
	bool all = copy(place->path, &path);
	all = copy(place->log_name, &log_name) && all;
	o->kind = kind;
	o->place = *place;
	o->place.path = path;
	o->place.log_name = log_name;
	o->fd = -1;
	if (all)
		return 0;
	lb_err_set(reterr, "out of memory");
	return -ENOMEM;
}

void access_output_fini(struct access_output *o)
{
	free((char *)(uintptr_t)o->place.path);
	free((char *)(uintptr_t)o->place.log_name);
}
