// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/plan.h"

#include "lb/base/check.h"
#include "tools/shunt-load/body.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WEIGHT 1000000000
#define MAX_LINE 8192

static bool copy(struct str s, struct str *ret)
{
	char *p = malloc(s.len + 1);
	if (!p)
		return false;
	if (s.len)
		memcpy(p, s.p, s.len);
	p[s.len] = '\0';
	*ret = (struct str){p, s.len};
	return true;
}

static void drop(struct str s)
{
	free((void *)(uintptr_t)s.p);
}

static void add_own(struct plan *p, struct str name, struct str value)
{
	p->fields[p->n_fields++] = (struct field){.name = name, .value = value};
	p->n_own = p->n_fields;
}

int plan_init(struct plan *p, bool is_grpc, const char *authority)
{
	*p = (struct plan){.is_grpc = is_grpc};
	if (!copy(str_from(authority), &p->authority))
		return -ENOMEM;
	add_own(p, STR("user-agent"), STR("shunt-load"));
	if (is_grpc) {
		add_own(p, STR("content-type"), STR("application/grpc"));
		add_own(p, STR("te"), STR("trailers"));
	}
	return 0;
}

void plan_fini(struct plan *p)
{
	for (uint32_t i = 0; i < p->n_paths; i++)
		drop(p->paths[i].text);
	free(p->paths);
	for (size_t i = p->n_own; i < p->n_fields; i++) {
		drop(p->fields[i].name);
		drop(p->fields[i].value);
	}
	drop(p->authority);
	*p = (struct plan){0};
}

static bool is_path(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] <= ' ' || s.p[i] == 0x7f || s.p[i] == '#')
			return false;
	return s.len && s.p[0] == '/';
}

int plan_add_path(struct plan *p, const char *text, struct lb_err *reterr)
{
	struct str path = str_from(text), head = str_until(path, ':');
	uint64_t weight = 1;
	if (path.len && path.p[0] != '/' && head.len < path.len) {
		if (!str_number(head, MAX_WEIGHT, &weight) || weight == 0)
			return lb_err_set(reterr, "path %s: the weight is not within 1 and %d",
				text, MAX_WEIGHT);
		path = (struct str){path.p + head.len + 1, path.len - head.len - 1};
	}
	if (!is_path(path))
		return lb_err_set(
			reterr, "path %s: does not begin with /, or has odd characters", text);
	if (p->n_paths == PLAN_MAX_PATHS)
		return lb_err_set(reterr, "more than %d paths", PLAN_MAX_PATHS);
	struct plan_path *grown = realloc(p->paths, (p->n_paths + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->paths = grown;
	struct plan_path *new = &grown[p->n_paths];
	new->until = (p->n_paths ? grown[p->n_paths - 1].until : 0) + weight;
	if (!copy(path, &new->text))
		return -ENOMEM;
	p->n_paths++;
	return 0;
}

// RFC 9113 8.2: lower case, and nothing that speaks of the connection.
static const char *why_not(struct str name, struct str value)
{
	static const char *const banned[] = {"connection", "keep-alive", "proxy-connection",
		"transfer-encoding", "upgrade", "host", "content-length", "te", PLAN_ID_FIELD,
		PLAN_ANSWER_FIELD};
	if (name.len == 0)
		return "no name before a colon";
	for (size_t i = 0; i < name.len; i++)
		if (!islower((unsigned char)name.p[i]) && !isdigit((unsigned char)name.p[i]) &&
			!memchr("!#$%&'*+-.^_`|~", name.p[i], 15))
			return "a name is of lower-case letters, digits and !#$%&'*+-.^_`|~";
	for (size_t i = 0; i < value.len; i++)
		if (((unsigned char)value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] == 0x7f)
			return "a value holds no control characters";
	for (size_t i = 0; i < sizeof(banned) / sizeof(banned[0]); i++)
		if (str_eq(name, str_from(banned[i])))
			return "this field is not to be chosen";
	return NULL;
}

int plan_add_field(struct plan *p, struct str line, struct lb_err *reterr)
{
	struct str name = str_until(line, ':');
	if (name.len == line.len)
		return lb_err_set(reterr, "no colon");
	struct str value = {line.p + name.len + 1, line.len - name.len - 1};
	name = str_trim(name);
	value = str_trim(value);
	const char *why = why_not(name, value);
	if (why)
		return lb_err_set(reterr, "%s", why);
	if (p->n_fields + 2 >= PLAN_MAX_FIELDS) // the sizes come last
		return lb_err_set(reterr, "more than %d fields", PLAN_MAX_FIELDS);
	struct field f = {0};
	if (!copy(name, &f.name))
		return -ENOMEM;
	if (!copy(value, &f.value)) {
		drop(f.name);
		return -ENOMEM;
	}
	p->fields[p->n_fields++] = f;
	return 0;
}

int plan_read_fields(struct plan *p, const char *file, struct lb_err *reterr)
{
	FILE *in = fopen(file, "re");
	if (!in)
		return lb_err_set(reterr, "%s: %s", file, strerror(errno));
	char line[MAX_LINE];
	int r = 0;
	for (unsigned n = 1; r == 0 && fgets(line, sizeof(line), in); n++) {
		size_t len = strlen(line);
		bool whole = len && line[len - 1] == '\n';
		if (!whole && !feof(in)) {
			r = lb_err_set(reterr, "longer than %d bytes", MAX_LINE - 2);
		} else {
			while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
				len--;
			struct str text = str_trim((struct str){line, len});
			if (text.len && text.p[0] != '#')
				r = plan_add_field(p, text, reterr);
		}
		if (r == -EINVAL)
			lb_err_within(reterr, "%s:%u", file, n);
	}
	if (r == 0 && ferror(in))
		r = lb_err_set(reterr, "%s: cannot be read", file);
	fclose(in);
	return r;
}

// Before the fields that were given, which are owned.
static void insert_own(struct plan *p, struct str name, struct str value)
{
	memmove(&p->fields[p->n_own + 1], &p->fields[p->n_own],
		(p->n_fields - p->n_own) * sizeof(p->fields[0]));
	p->fields[p->n_own++] = (struct field){.name = name, .value = value};
	p->n_fields++;
}

int plan_seal(struct plan *p, enum plan_check check, uint32_t body_size, uint32_t answer_size)
{
	DCHECK(p->n_fields + 2 <= PLAN_MAX_FIELDS);
	if (p->n_paths == 0) {
		struct lb_err ignored;
		int r = plan_add_path(p, p->is_grpc ? "/shunt.load.Echo/Call" : "/", &ignored);
		if (r < 0)
			return r;
	}
	p->check = check;
	p->body_size = body_size;
	p->answer_size = answer_size;
	p->id_in_field = check == PLAN_CHECK_CONTENT &&
	                 (body_size < BODY_ID_LEN || answer_size < BODY_ID_LEN);
	p->method = p->is_grpc || body_size ? STR("POST") : STR("GET");
	if (check == PLAN_CHECK_CONTENT) {
		int n = snprintf(p->answer_text, sizeof(p->answer_text), "%u", answer_size);
		insert_own(p, STR(PLAN_ANSWER_FIELD), (struct str){p->answer_text, (size_t)n});
	}
	if (body_size && !p->is_grpc) {
		int n = snprintf(p->length_text, sizeof(p->length_text), "%u", body_size);
		insert_own(p, STR("content-length"), (struct str){p->length_text, (size_t)n});
	}
	return 0;
}

uint32_t plan_draw(const struct plan *p, struct rand *rand)
{
	if (p->n_paths == 1)
		return 0;
	uint64_t x = rand_below(rand, p->paths[p->n_paths - 1].until);
	uint32_t low = 0, high = p->n_paths - 1; // the first one whose `until` is above x
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (p->paths[middle].until > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void print_hex(uint64_t id, char text[16])
{
	for (int i = 15; i >= 0; i--, id >>= 4)
		text[i] = "0123456789abcdef"[id & 15];
}

void plan_request(const struct plan *p, uint32_t path, uint64_t id, struct field *fields,
	char id_text[16], struct h2_message *ret)
{
	*ret = (struct h2_message){.kind = H2_REQUEST,
		.method = p->method,
		.scheme = STR("http"),
		.authority = p->authority,
		.path = p->paths[path].text,
		.end_stream = !p->is_grpc && p->body_size == 0,
		.content_length = -1,
		.fields = p->fields,
		.n_fields = p->n_fields};
	if (!p->id_in_field)
		return;
	memcpy(fields, p->fields, p->n_fields * sizeof(fields[0]));
	print_hex(id, id_text);
	// Not into anybody's table: no two are alike.
	fields[p->n_fields] = (struct field){
		.name = STR(PLAN_ID_FIELD), .value = {id_text, 16}, .never_index = true};
	ret->fields = fields;
	ret->n_fields = p->n_fields + 1;
}
