// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/variants/version.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct version {
	uint32_t n_refs;
	char text[];
};

static struct version *version_of(const char *text)
{
	return CONTAINER_OF((char *)(uintptr_t)text, struct version, text[0]);
}

const char *xds_version_new(const char *text)
{
	size_t size = strlen(text) + 1;
	struct version *v = malloc(sizeof(*v) + size);
	if (!v)
		return NULL;
	v->n_refs = 1;
	return memcpy(v->text, text, size);
}

const char *xds_version_get(const char *text)
{
	struct version *v = version_of(text);
	CHECK(v->n_refs > 0);
	v->n_refs++;
	return text;
}

void xds_version_put(const char *text)
{
	if (!text)
		return;
	struct version *v = version_of(text);
	CHECK(v->n_refs > 0);
	if (--v->n_refs == 0)
		free(v);
}
