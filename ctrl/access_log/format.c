// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct piece {
	const struct access_operator *op; // NULL = literal text
	struct access_arg arg; // literal: its text
	size_t most; // bytes; 0 = all
};

struct access_format {
	bool is_json;
	size_t n;
	struct piece *pieces; // owned
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
			"'%%%.64s' begins no operator, like %%REQ(X)%% or %%REQ(X):10%% "
			"(%%%% is a percent sign)",
			start);
	p->op = find(start, name_len);
	if (!p->op)
		return lb_err_set(
			reterr, "%%%.*s%% is no operator that is known", (int)name_len, start);
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
	f->is_json = !text;
	int rc = text ? read_format(f, text, reterr) : 0;
	if (rc) {
		access_format_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

void access_format_free(struct access_format *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free(f->pieces[i].arg.text);
	free(f->pieces);
	free(f);
}

void access_format_write(
	const struct access_format *f, const struct access_view *v, struct access_line *l)
{
	l->size--; // for the newline
	if (f->is_json)
		access_json_write(l, v);
	for (size_t i = 0; i < f->n; i++) {
		const struct piece *p = &f->pieces[i];
		size_t before = l->len;
		if (p->op)
			p->op->write(l, v, &p->arg);
		else
			access_line_put(l, str_from(p->arg.text));
		if (p->most && l->len - before > p->most)
			l->len = before + p->most;
	}
	l->size++;
	if (!l->len || l->p[l->len - 1] != '\n')
		access_line_put(l, STR("\n"));
}
