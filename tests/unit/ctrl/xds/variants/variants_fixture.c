// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/xds/variants/variants_fixture.h"

#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/params.h"
#include "envoy/service/discovery/v3/discovery.pb-c.h"
#include "lb/base/check.h"
#include "lb/base/err.h"
#include "proto/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xds_constraints *constraints_of(const char *json)
{
	char *text = strdup(json);
	CHECK(text);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	ProtobufCMessage *m = NULL;
	struct lb_err err = {""};
	int rc = proto_json_parse(
		&envoy__service__discovery__v3__dynamic_parameter_constraints__descriptor, text,
		strlen(text), &m, &err);
	free(text);
	if (rc)
		fprintf(stderr, "%s: %s\n", json, err.text);
	CHECK(rc == 0);
	struct xds_constraints *c = NULL;
	CHECK(xds_constraints_read((Envoy__Service__Discovery__V3__DynamicParameterConstraints *)m,
		      &c, &err) == 0);
	protobuf_c_message_free_unpacked(m, NULL);
	return c;
}

struct xds_params *params_of(const char *text)
{
	char *copy = strdup(text), *save = NULL;
	struct xds_param list[8];
	size_t n = 0;
	CHECK(copy);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');
		CHECK(value && n < 8);
		*value = '\0';
		list[n++] = (struct xds_param){word, value + 1};
	}
	struct xds_params *p = NULL;
	CHECK(xds_params_new(list, n, &p) == 0);
	free(copy);
	return p;
}

static const char *const keys[TWIN_KEYS] = {"", "env", "version"};
static const char *const values[TWIN_VALUES] = {"", "prod", "alien"};

struct twin *twin_new(struct rand *r, unsigned depth)
{
	struct twin *t = calloc(1, sizeof(*t));
	CHECK(t && depth > 0);
	uint64_t draw = rand_below(r, 16);
	t->kind = draw == 0 ? TWIN_ANY : draw < 5 ? TWIN_VALUE : draw < 7 ? TWIN_EXISTS : TWIN_OR;
	if (t->kind == TWIN_OR && depth == 1)
		t->kind = TWIN_VALUE;
	else if (t->kind == TWIN_OR)
		t->kind = TWIN_OR + (unsigned)rand_below(r, 3);
	t->key = (int)rand_below(r, TWIN_KEYS);
	t->value = (int)rand_below(r, TWIN_VALUES - 1);
	if (t->kind == TWIN_NOT)
		t->n = 1;
	else if (t->kind >= TWIN_OR)
		t->n = (unsigned)rand_below(r, TWIN_KIDS + 1);
	for (unsigned i = 0; i < t->n; i++)
		t->kids[i] = twin_new(r, depth - 1);
	return t;
}

void twin_free(struct twin *t)
{
	for (unsigned i = 0; i < t->n; i++)
		twin_free(t->kids[i]);
	free(t);
}

bool twin_match(const struct twin *t, const struct twin_params *p)
{
	unsigned n_true = 0;
	for (unsigned i = 0; i < t->n; i++)
		n_true += twin_match(t->kids[i], p);
	switch (t->kind) {
	case TWIN_ANY:
		return true;
	case TWIN_VALUE:
		return p->values[t->key] == t->value;
	case TWIN_EXISTS:
		return p->values[t->key] != TWIN_ABSENT;
	case TWIN_OR:
		return n_true > 0;
	case TWIN_AND:
		return n_true == t->n;
	case TWIN_NOT:
		return n_true == 0;
	}
	return false;
}

struct bytes {
	uint8_t *p;
	size_t len;
};

static void append(struct bytes *b, const void *data, size_t len)
{
	b->p = realloc(b->p, b->len + len + 1);
	CHECK(b->p);
	memcpy(b->p + b->len, data, len);
	b->len += len;
}

static void append_field(struct bytes *b, unsigned number, const void *data, size_t len)
{
	uint8_t head[8] = {(uint8_t)(number << 3 | 2)};
	size_t n = 1, left = len;
	for (; left > 0x7f; left >>= 7)
		head[n++] = (uint8_t)(left | 0x80);
	head[n++] = (uint8_t)left;
	append(b, head, n);
	append(b, data, len);
}

static struct bytes encode(const struct twin *t)
{
	static const unsigned field_of[] = {0, 1, 1, 2, 3, 4};
	struct bytes inner = {0}, outer = {0};
	append(&inner, "", 0);
	append(&outer, "", 0);
	if (t->kind == TWIN_VALUE || t->kind == TWIN_EXISTS) {
		const char *key = keys[t->key];
		const char *value = t->kind == TWIN_VALUE ? values[t->value] : "";
		if (*key)
			append_field(&inner, 1, key, strlen(key));
		append_field(&inner, t->kind == TWIN_VALUE ? 2 : 3, value, strlen(value));
	}
	for (unsigned i = 0; i < t->n; i++) {
		struct bytes kid = encode(t->kids[i]);
		if (t->kind == TWIN_NOT)
			append(&inner, kid.p, kid.len);
		else
			append_field(&inner, 1, kid.p, kid.len);
		free(kid.p);
	}
	if (t->kind != TWIN_ANY)
		append_field(&outer, field_of[t->kind], inner.p, inner.len);
	free(inner.p);
	return outer;
}

uint8_t *twin_encode(const struct twin *t, size_t *ret_len)
{
	struct bytes b = encode(t);
	*ret_len = b.len;
	return b.p;
}

struct xds_constraints *twin_constraints(const struct twin *t)
{
	struct xds_constraints *c = NULL;
	struct lb_err err = {""};
	size_t len;
	uint8_t *bytes = twin_encode(t, &len);
	CHECK(xds_constraints_decode(bytes, len, &c, &err) == 0);
	free(bytes);
	return c;
}

struct xds_params *twin_params(const struct twin_params *p)
{
	struct xds_param list[TWIN_KEYS];
	size_t n = 0;
	for (int k = TWIN_KEYS - 1; k >= 0; k--)
		if (p->values[k] != TWIN_ABSENT)
			list[n++] = (struct xds_param){keys[k], values[p->values[k]]};
	struct xds_params *params = NULL;
	CHECK(xds_params_new(list, n, &params) == 0);
	return params;
}

bool twin_next(struct twin_params *p)
{
	for (int k = 0; k < TWIN_KEYS; k++) {
		if (++p->values[k] < TWIN_VALUES)
			return true;
		p->values[k] = TWIN_ABSENT;
	}
	return false;
}
