// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/format.h"

#include "ctrl/access_log/entry.h"

#include <jansson.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum piece_how {
	PIECE_PLAIN,
	PIECE_ESCAPED, // within a string of JSON
	PIECE_VALUE, // as a value of JSON
};

struct piece {
	enum piece_how how;
	const struct access_operator *op; // NULL = literal text
	struct access_arg arg; // literal: its text
	size_t most; // bytes; 0 = all
};

struct access_format {
	bool is_ours; // our JSON: it has no pieces
	bool is_json; // its pieces make JSON
	size_t n;
	struct piece *pieces; // owned
	struct access_entry_form *entry; // owned; NULL = its lines are no entries
};

static int add(struct access_format *f, struct piece piece, struct lb_err *reterr)
{
	struct piece *more = realloc(f->pieces, (f->n + 1) * sizeof(*more));
	if (!more) {
		free(piece.arg.text);
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	f->pieces = more;
	f->pieces[f->n++] = piece;
	return 0;
}

static int add_text(struct access_format *f, const char *text, size_t len, struct lb_err *reterr)
{
	char *copy = len ? strndup(text, len) : NULL;
	if (!len)
		return 0;
	if (!copy) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	return add(f, (struct piece){.arg.text = copy}, reterr);
}

static const struct access_operator *find(const char *name, size_t len)
{
	for (size_t i = 0; i < access_n_operators; i++)
		if (strlen(access_operators[i].name) == len &&
			strncmp(access_operators[i].name, name, len) == 0)
			return &access_operators[i];
	return NULL;
}

static int read_arg(struct piece *p, const char *text, size_t len, struct lb_err *reterr)
{
	if (!p->op->read)
		return text ? lb_err_set(reterr, "%%%s%% takes nothing in parentheses", p->op->name)
		            : 0;
	p->arg.text = text ? strndup(text, len) : NULL;
	if (text && !p->arg.text) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	int rc = p->op->read(&p->arg, reterr);
	return rc ? lb_err_within(reterr, "%%%s%%", p->op->name) : 0;
}

// From behind its first %. *ret_end: behind its last.
static int read_operator(
	struct piece *p, const char *at, const char **ret_end, struct lb_err *reterr)
{
	const char *start = at, *arg = NULL;
	size_t name_len = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"), arg_len = 0;
	at += name_len;
	if (*at == '(') {
		arg = at + 1;
		arg_len = strcspn(arg, ")");
		at = arg + arg_len;
		at += *at == ')';
	}
	if (*at == ':') {
		char *end;
		p->most = strtoul(at + 1, &end, 10);
		if (at[1] < '0' || at[1] > '9' || p->most == 0 || p->most > ACCESS_LINE_MAX)
			return lb_err_set(reterr,
				"%%%.64s: the length behind : is not a number "
				"from 1 to %d",
				start, ACCESS_LINE_MAX);
		at = end;
	}
	if (!name_len || *at != '%')
		return lb_err_set(reterr,
			"'%%%.64s' does not begin an operator, like %%REQ(X)%% or %%REQ(X):10%% "
			"(%%%% is a percent sign)",
			start);
	p->op = find(start, name_len);
	if (!p->op)
		return lb_err_set(reterr, "%%%.*s%% is not a known operator", (int)name_len, start);
	*ret_end = at + 1;
	return read_arg(p, arg, arg_len, reterr);
}

static int read_format(struct access_format *f, const char *text, struct lb_err *reterr)
{
	while (*text) {
		size_t len = strcspn(text, "%");
		bool percent = text[len] == '%' && text[len + 1] == '%';
		int rc = add_text(f, text, len + percent, reterr);
		if (rc)
			return rc;
		text += len + 2 * percent;
		if (percent || !*text)
			continue;
		struct piece p = {0};
		rc = read_operator(&p, text + 1, &text, reterr);
		if (rc) {
			free(p.arg.text);
			return rc;
		}
		rc = add(f, p, reterr);
		if (rc)
			return rc;
	}
	return 0;
}

int access_format_new(const char *text, struct access_format **ret, struct lb_err *reterr)
{
	struct access_format *f = calloc(1, sizeof(*f));
	if (!f) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	f->is_ours = !text;
	int rc = text ? read_format(f, text, reterr) : 0;
	if (rc) {
		access_format_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

// JSON with operators.

static int add_escaped(struct access_format *f, const char *text, struct lb_err *reterr)
{
	char room[ACCESS_LINE_MAX];
	struct access_line l = {.p = room, .size = sizeof(room)};
	access_line_escaped(&l, str_from(text));
	return add_text(f, room, l.len, reterr);
}

static void drop_pieces(struct access_format *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->pieces[i].arg.text);
	free(f->pieces);
}

// Its own pieces are those of the text, and go to the format.
static int take_string(
	struct access_format *f, struct access_format *own, bool is_typed, struct lb_err *reterr)
{
	bool is_value = is_typed && own->n == 1 && own->pieces[0].op;
	int rc = is_value ? 0 : add_text(f, "\"", 1, reterr);
	for (size_t i = 0; !rc && i < own->n; i++) {
		struct piece *p = &own->pieces[i];
		if (!p->op) {
			rc = add_escaped(f, p->arg.text, reterr);
			continue;
		}
		struct piece taken = *p;
		taken.how = is_value ? PIECE_VALUE : PIECE_ESCAPED;
		p->arg.text = NULL;
		rc = add(f, taken, reterr);
	}
	return rc || is_value ? rc : add_text(f, "\"", 1, reterr);
}

static int add_string(
	struct access_format *f, const char *text, bool is_typed, struct lb_err *reterr)
{
	struct access_format own = {0};
	int rc = read_format(&own, text, reterr);
	if (!rc)
		rc = take_string(f, &own, is_typed, reterr);
	drop_pieces(&own);
	return rc;
}

static int add_value(struct access_format *, const json_t *, bool is_typed, struct lb_err *);

static int add_list(
	struct access_format *f, const json_t *list, bool is_typed, struct lb_err *reterr)
{
	int rc = add_text(f, "[", 1, reterr);
	for (size_t i = 0; !rc && i < json_array_size(list); i++) {
		rc = add_text(f, ",", i != 0, reterr);
		if (!rc)
			rc = add_value(f, json_array_get(list, i), is_typed, reterr);
	}
	return rc ? rc : add_text(f, "]", 1, reterr);
}

static int add_key(struct access_format *f, const char *key, bool is_first, struct lb_err *reterr)
{
	int rc = is_first ? add_text(f, "\"", 1, reterr) : add_text(f, ",\"", 2, reterr);
	if (!rc)
		rc = add_escaped(f, key, reterr);
	return rc ? rc : add_text(f, "\":", 2, reterr);
}

static int add_object(
	struct access_format *f, const json_t *object, bool is_typed, struct lb_err *reterr)
{
	json_t *of = (json_t *)(uintptr_t)object; // jansson's walk takes no const
	int rc = add_text(f, "{", 1, reterr);
	bool is_first = true;
	for (void *at = json_object_iter(of); !rc && at; at = json_object_iter_next(of, at)) {
		const char *key = json_object_iter_key(at);
		rc = add_key(f, key, is_first, reterr);
		if (!rc)
			rc = add_value(f, json_object_iter_value(at), is_typed, reterr);
		if (rc == -EINVAL)
			lb_err_within(reterr, "%.64s", key);
		is_first = false;
	}
	return rc ? rc : add_text(f, "}", 1, reterr);
}

static int add_value(
	struct access_format *f, const json_t *value, bool is_typed, struct lb_err *reterr)
{
	if (json_is_object(value))
		return add_object(f, value, is_typed, reterr);
	if (json_is_array(value))
		return add_list(f, value, is_typed, reterr);
	if (json_is_string(value))
		return add_string(f, json_string_value(value), is_typed, reterr);
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	int rc = text ? add_text(f, text, strlen(text), reterr) : -ENOMEM;
	free(text);
	return rc;
}

// The same with its keys in order; NULL = it is no JSON, or no memory.
static json_t *read_sorted(const char *text)
{
	json_t *as_given = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	char *sorted = as_given ? json_dumps(as_given, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
	json_t *json = sorted ? json_loads(sorted, 0, NULL) : NULL;
	free(sorted);
	json_decref(as_given);
	return json;
}

int access_format_new_json(
	const char *text, bool is_typed, struct access_format **ret, struct lb_err *reterr)
{
	struct access_format *f = calloc(1, sizeof(*f));
	json_t *json = read_sorted(text);
	int rc = -EINVAL;
	if (!f)
		rc = -ENOMEM;
	else if (!json_is_object(json))
		lb_err_set(reterr, "it is not a JSON object");
	else
		rc = add_object(f, json, is_typed, reterr);
	json_decref(json);
	if (rc) {
		access_format_free(f);
		return rc;
	}
	f->is_json = true;
	*ret = f;
	return 0;
}

int access_format_new_entry(const char *text, struct access_format **ret, struct lb_err *reterr)
{
	struct access_format *f = calloc(1, sizeof(*f));
	if (!f) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	int rc = access_entry_form_new(text, &f->entry, reterr);
	if (rc)
		access_format_free(f);
	else
		*ret = f;
	return rc;
}

void access_format_free(struct access_format *f)
{
	if (!f)
		return;
	access_entry_form_free(f->entry);
	drop_pieces(f);
	free(f);
}

static void write_plain(const struct piece *p, const struct access_view *v, struct access_line *l)
{
	size_t before = l->len;
	if (p->op)
		p->op->write(l, v, &p->arg);
	else
		access_line_put(l, str_from(p->arg.text));
	if (p->most && l->len - before > p->most)
		l->len = before + p->most;
}

static void write_json(const struct piece *p, const struct access_view *v, struct access_line *l)
{
	char room[ACCESS_LINE_MAX];
	struct access_line own = {.p = room, .size = sizeof(room)};
	write_plain(p, v, &own);
	struct str text = {room, own.len};
	if (p->how == PIECE_ESCAPED)
		access_line_escaped(l, text);
	else if (str_eq(text, STR("-")))
		access_line_put(l, STR("null"));
	else if (p->op->is_number && !p->most)
		access_line_put(l, text);
	else
		access_line_json(l, text);
}

void access_format_write(
	const struct access_format *f, const struct access_view *v, struct access_line *l)
{
	if (f->entry) {
		access_entry_write(f->entry, v, l);
		return;
	}
	l->size--; // for the newline
	size_t before = l->len;
	if (f->is_ours)
		access_json_write(l, v);
	for (size_t i = 0; i < f->n; i++) {
		const struct piece *p = &f->pieces[i];
		if (p->how == PIECE_PLAIN)
			write_plain(p, v, l);
		else
			write_json(p, v, l);
	}
	if (f->is_json && l->len == l->size) { // what is cut is no JSON
		l->len = before;
		access_line_put(l, STR("{\"error\":\"the line is too long\"}"));
	}
	l->size++;
	if (!l->len || l->p[l->len - 1] != '\n')
		access_line_put(l, STR("\n"));
}
