// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/explain_args.h"

#include "lb/route/req.h"

#include <errno.h>
#include <string.h>

struct reader {
	struct explain_args *a;
	bool wants_grpc, wants_http;
	struct str host;
};

static int read_field(struct reader *r, char *word, struct lb_err *err)
{
	char *colon = strchr(word, ':');
	if (!colon || colon == word)
		return lb_err_set(err, "-H '%s': not 'NAME: VALUE'", word);
	if (r->a->n_fields == EXPLAIN_MAX_FIELDS)
		return lb_err_set(err, "more than %d headers", EXPLAIN_MAX_FIELDS);
	for (char *c = word; c < colon; c++)
		*c = str_fold(*c);
	*colon = 0;
	struct str value = str_trim(str_from(colon + 1));
	if (strcmp(word, "host") == 0) { // becomes the authority, if there is none (VH-11)
		r->host = value;
		return 0;
	}
	r->a->fields[r->a->n_fields++] =
		(struct field){.name = str_trim(str_from(word)), .value = value};
	return 0;
}

static int read_flag(struct reader *r, const char *word, struct lb_err *err)
{
	if (strcmp(word, "json") == 0)
		r->a->json = true;
	else if (strcmp(word, "--grpc") == 0)
		r->wants_grpc = true;
	else if (strcmp(word, "--http") == 0)
		r->wants_http = true;
	else
		return lb_err_set(err, "'%s' is not an option of explain", word);
	return 0;
}

// Whether it is gRPC, and a content type that says so.
static int settle_kind(struct reader *r, struct lb_err *err)
{
	struct explain_args *a = r->a;
	const struct field *type = NULL;
	for (size_t i = 0; i < a->n_fields; i++) // the last one says so
		if (str_eq(a->fields[i].name, STR("content-type")))
			type = &a->fields[i];
	a->is_grpc = type ? lb_content_type_is_grpc(type->value) : r->wants_grpc;
	if (r->wants_grpc && r->wants_http)
		return lb_err_set(err, "--grpc and --http");
	if (type && ((r->wants_grpc && !a->is_grpc) || (r->wants_http && a->is_grpc)))
		return lb_err_set(err, "%s, but the content-type says otherwise",
			r->wants_grpc ? "--grpc" : "--http");
	if (!type && a->is_grpc && a->n_fields < EXPLAIN_MAX_FIELDS)
		a->fields[a->n_fields++] =
			(struct field){STR("content-type"), STR("application/grpc"), false};
	return 0;
}

int explain_args_read(struct explain_args *a, char *const *words, unsigned n, struct lb_err *err)
{
	*a = (struct explain_args){0};
	struct reader r = {.a = a};
	const char *authority = NULL, *from = NULL;
	const struct {
		const char *name;
		const char **to;
	} options[] = {{"--authority", &authority}, {"--path", &a->path}, {"--method", &a->method},
		{"--frontend", &a->frontend}, {"--from", &from}, {"-H", NULL}};
	for (unsigned i = 0; i < n; i++) {
		size_t k = 0, n_options = sizeof(options) / sizeof(options[0]);
		while (k < n_options && strcmp(options[k].name, words[i]) != 0)
			k++;
		if (k < n_options && ++i == n)
			return lb_err_set(err, "%s needs a value", options[k].name);
		if (k < n_options && options[k].to && *options[k].to)
			return lb_err_set(err, "%s is given twice", options[k].name);
		if (k < n_options && options[k].to)
			*options[k].to = words[i];
		else if (k < n_options ? read_field(&r, words[i], err)
				       : read_flag(&r, words[i], err))
			return -EINVAL;
	}
	if (!authority)
		a->authority = r.host;
	else
		a->authority = str_from(authority);
	if (!a->authority.p || !a->path)
		return lb_err_set(err, "explain needs --authority and --path");
	if (!ip_parse(from ? from : "0.0.0.0", &a->from))
		return lb_err_set(err, "--from '%s': not an address", from);
	if (settle_kind(&r, err))
		return -EINVAL;
	if (!a->method)
		a->method = a->is_grpc ? "POST" : "GET";
	return 0;
}
