// SPDX-License-Identifier: Apache-2.0
#include "lb/route/header_match.h"

#include "lb/base/arena.h"
#include "lb/base/grow.h"
#include "lb/index/string_index.h"
#include "lb/route/header_value.h"
#include "lb/route/req.h"
#include "lb/route/value_match.h"

#include <stdlib.h>

struct matcher {
	uint32_t name; // number in names
	bool invert, present;
	struct lb_value_match value;
	uint32_t asked; // REGEX: index in asked
	uint32_t bit;
};

// One regex set on one header.
struct asked {
	uint32_t name;
	struct lb_regex_set *set; // counted
};

struct lb_header_matchers {
	struct lb_arena arena; // texts
	struct lb_string_index *names; // owned, as all below
	struct lb_string_index *asked_numbers; // of (name, set); for the builder
	enum lb_header_source *sources; // of names
	struct asked *asked;
	struct matcher *list;
	uint32_t n, room, n_asked, asked_room, sources_room;
	uint64_t filter; // a bit for each name: most fields end here
};

static unsigned filter_bit(struct str name)
{
	if (name.len == 0)
		return 0;
	return (unsigned)(name.len * 7 + (uint8_t)name.p[0] + (uint8_t)name.p[name.len - 1] * 5) &
	       63;
}

static int no_memory(struct lb_err *reterr)
{
	return lb_err_set(reterr, "out of memory");
}

struct lb_header_matchers *lb_header_matchers_new(void)
{
	struct lb_header_matchers *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->names = lb_string_index_new(0, 0);
	m->asked_numbers = lb_string_index_new(0, 0);
	if (m->names && m->asked_numbers)
		return m;
	lb_header_matchers_free(m);
	return NULL;
}

void lb_header_matchers_free(struct lb_header_matchers *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n_asked; i++)
		lb_regex_set_put(m->asked[i].set);
	lb_string_index_free(m->names);
	lb_string_index_free(m->asked_numbers);
	free(m->sources);
	free(m->asked);
	free(m->list);
	lb_arena_fini(&m->arena);
	free(m);
}

// The name's number. LB_STRING_INDEX_NONE = out of memory.
static uint32_t add_name(struct lb_header_matchers *m, struct str name)
{
	uint32_t n = lb_string_index_count(m->names);
	if (!grow(&m->sources, n, &m->sources_room, sizeof(m->sources[0])))
		return LB_STRING_INDEX_NONE;
	uint32_t i = lb_string_index_add(m->names, name);
	if (i == n) {
		m->sources[i] = lb_header_source(name);
		m->filter |= UINT64_C(1) << filter_bit(name);
	}
	return i;
}

// LB_STRING_INDEX_NONE = out of memory.
static uint32_t add_asked(struct lb_header_matchers *m, uint32_t name, struct lb_regex_set *set)
{
	struct {
		uint64_t set, name;
	} key = {(uintptr_t)set, name};
	if (!grow(&m->asked, m->n_asked, &m->asked_room, sizeof(m->asked[0])))
		return LB_STRING_INDEX_NONE;
	uint32_t i = lb_string_index_add(
		m->asked_numbers, (struct str){(const char *)&key, sizeof(key)});
	if (i == m->n_asked)
		m->asked[m->n_asked++] = (struct asked){name, lb_regex_set_get(set)};
	return i;
}

int lb_header_matchers_add(struct lb_header_matchers *m, const struct lb_header_match_conf *conf,
	struct lb_err *reterr)
{
	struct matcher to = {.name = add_name(m, conf->name),
		.invert = conf->invert,
		.present = conf->present,
		.bit = conf->regex.bit};
	if (to.name == LB_STRING_INDEX_NONE || !grow(&m->list, m->n, &m->room, sizeof(m->list[0])))
		return no_memory(reterr);
	if (!lb_value_match_init(&to.value, &m->arena, conf))
		return no_memory(reterr);
	if (conf->kind == LB_HEADER_REGEX) {
		if (!conf->regex.set || conf->regex.bit >= LB_REGEX_SET_MAX)
			return lb_err_set(reterr, "the regex is not compiled");
		to.asked = add_asked(m, to.name, conf->regex.set);
		if (to.asked == LB_STRING_INDEX_NONE)
			return no_memory(reterr);
	}
	m->list[m->n++] = to;
	return 0;
}

uint32_t lb_header_matchers_count(const struct lb_header_matchers *m)
{
	return m->n;
}

size_t lb_header_matchers_size(const struct lb_header_matchers *m)
{
	return sizeof(*m) + m->arena.n_bytes + lb_string_index_size(m->names) +
	       lb_string_index_size(m->asked_numbers) + m->room * sizeof(m->list[0]) +
	       m->asked_room * sizeof(m->asked[0]) + m->sources_room * sizeof(m->sources[0]);
}

void lb_header_matchers_needs(const struct lb_header_matchers *m, struct lb_table_scratch_size *ret)
{
	ret->n_values += lb_string_index_count(m->names);
	ret->n_hits += m->n_asked;
}

struct lb_regex_set *lb_header_matchers_next_set(const struct lb_header_matchers *m, uint32_t *at)
{
	return *at < m->n_asked ? m->asked[(*at)++].set : NULL;
}

// The value that a field goes to, NULL = no matcher asks for it or may see it.
static struct lb_header_value *value_of(const struct lb_header_view *v, struct str name)
{
	const struct lb_header_matchers *m = v->matchers;
	if (!(m->filter >> filter_bit(name) & 1))
		return NULL;
	uint32_t i = lb_string_index_find(m->names, name);
	if (i == LB_STRING_INDEX_NONE || !lb_header_in_fields(m->sources[i], v->hides_transport))
		return NULL;
	return &v->table_scratch->values[i];
}

// The second pass, if any name comes twice: each gets its place in the buffer.
static void join(struct lb_header_view *v)
{
	const struct lb_req *req = v->req;
	const char *to = v->text.p, *end = to + v->text.len;
	uint32_t n = lb_string_index_count(v->matchers->names);
	for (uint32_t i = 0; i < n; i++) {
		struct lb_header_value *value = &v->table_scratch->values[i];
		if (value->n < 2)
			continue;
		value->text = (struct str){to, 0};
		size_t room = (size_t)(end - to);
		to += value->joined_len < room ? value->joined_len : room;
	}
	for (size_t i = 0; i < req->n_fields; i++) {
		const struct field *f = &req->fields[i];
		struct lb_header_value *value = value_of(v, f->name);
		if (!value || value->n < 2)
			continue;
		if (value->n_joined++)
			lb_header_append(&value->text, lb_header_separator(f->name), end);
		lb_header_append(&value->text, f->value, end);
	}
}

static void gather_pseudo(struct lb_header_view *v)
{
	const struct lb_header_matchers *m = v->matchers;
	uint32_t n = lb_string_index_count(m->names);
	for (uint32_t i = 0; i < n; i++) {
		struct lb_header_value *value = &v->table_scratch->values[i];
		enum lb_header_source source = m->sources[i];
		*value = (struct lb_header_value){0};
		value->n = source >= LB_HEADER_METHOD &&
		           lb_header_pseudo(v->req, source, v->hides_transport, &value->text);
	}
}

static void gather(struct lb_header_view *v)
{
	const struct lb_req *req = v->req;
	bool repeated = false;
	gather_pseudo(v);
	for (size_t i = 0; i < req->n_fields; i++) {
		const struct field *f = &req->fields[i];
		struct lb_header_value *value = value_of(v, f->name);
		if (!value)
			continue;
		if (value->n++ == 0) {
			value->text = f->value;
			value->joined_len = f->value.len;
			continue;
		}
		value->joined_len += lb_header_separator(f->name).len + f->value.len;
		repeated = true;
	}
	if (repeated)
		join(v);
	v->gathered = true;
}

// Each set runs once a request on a header, whatever routes ask.
static bool regex_matches(const struct lb_header_view *v, const struct matcher *m, struct str value)
{
	struct lb_header_hits *hits = &v->table_scratch->hits[m->asked];
	if (hits->generation != v->table_scratch->generation) {
		const struct lb_regex_set *set = v->matchers->asked[m->asked].set;
		*hits = (struct lb_header_hits){v->table_scratch->generation,
			lb_regex_set_match(set, v->regex, v->thread, value)};
	}
	return hits->bits >> m->bit & 1;
}

bool lb_header_view_match(struct lb_header_view *v, uint32_t matcher)
{
	if (!v->gathered)
		gather(v);
	const struct matcher *m = &v->matchers->list[matcher];
	const struct lb_header_value *value = &v->table_scratch->values[m->name];
	if (m->value.kind == LB_HEADER_PRESENT) // A28-H05, A28-H07
		return ((value->n > 0) == m->present) != m->invert;
	if (value->n == 0) // A28-H06
		return false;
	bool hits = m->value.kind == LB_HEADER_REGEX ? regex_matches(v, m, value->text)
	                                             : lb_value_match(&m->value, value->text);
	return hits != m->invert;
}
