// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_scalars.h"

#include "ctrl/conf/config_numbers.h"
#include "ctrl/conf/config_schema.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#define MAX_DEPTH 16 // options have five; libyaml's time grows with the square of it

struct walk {
	yaml_document_t *document;
	const char *path; // of the file
	struct lb_err *err;
	char field[160]; // "ports[0].mtu"
};

static int check(struct walk *, const cyaml_schema_value_t *, const yaml_node_t *);

static const char *text_of(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

static bool is_whole_number(const char *text)
{
	size_t n = strspn(text, "0123456789");
	return n && !text[n] && (text[0] != '0' || n == 1);
}

static bool is_boolean(const char *text)
{
	return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

static int refuse(struct walk *w, const yaml_node_t *node, const char *reason)
{
	return lb_err_set(
		w->err, "%s:%zu: %s: %s", w->path, node->start_mark.line + 1, w->field, reason);
}

static int check_number(struct walk *w, const yaml_node_t *node)
{
	char reason[160];
	if (is_whole_number(text_of(node)))
		return 0;
	config_number_refuse(w->field, text_of(node), reason, sizeof(reason));
	return refuse(w, node, reason);
}

static int check_boolean(struct walk *w, const yaml_node_t *node)
{
	char reason[160];
	if (is_boolean(text_of(node)))
		return 0;
	snprintf(reason, sizeof(reason), "'%.64s' is neither true nor false", text_of(node));
	return refuse(w, node, reason);
}

// Goes down by one part of the field's path.
static int check_part(
	struct walk *w, const char *part, const cyaml_schema_value_t *value, yaml_node_item_t id)
{
	size_t len = strlen(w->field);
	const char *dot = len && part[0] != '[' ? "." : "";
	snprintf(w->field + len, sizeof(w->field) - len, "%s%s", dot, part);
	int rc = check(w, value, yaml_document_get_node(w->document, id));
	w->field[len] = 0;
	return rc;
}

static int check_pair(
	struct walk *w, const cyaml_schema_field_t *fields, const yaml_node_pair_t *pair)
{
	const yaml_node_t *key = yaml_document_get_node(w->document, pair->key);
	for (const cyaml_schema_field_t *f = fields; f->key; f++)
		if (key->type == YAML_SCALAR_NODE && strcmp(f->key, text_of(key)) == 0)
			return check_part(w, f->key, &f->value, pair->value);
	return 0;
}

static int check_mapping(
	struct walk *w, const cyaml_schema_field_t *fields, const yaml_node_t *node)
{
	const yaml_node_pair_t *end = node->data.mapping.pairs.top;
	int rc = 0;
	for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; !rc && p < end; p++)
		rc = check_pair(w, fields, p);
	return rc;
}

static int check_list(struct walk *w, const cyaml_schema_value_t *entry, const yaml_node_t *node)
{
	const yaml_node_item_t *start = node->data.sequence.items.start;
	const yaml_node_item_t *end = node->data.sequence.items.top;
	int rc = 0;
	for (const yaml_node_item_t *i = start; !rc && i < end; i++) {
		char part[32];
		snprintf(part, sizeof(part), "[%zu]", (size_t)(i - start));
		rc = check_part(w, part, entry, *i);
	}
	return rc;
}

// An alias is the node that it names. That it can name one around it is no matter: the schema ends.
static int check(struct walk *w, const cyaml_schema_value_t *value, const yaml_node_t *node)
{
	switch (node->type) {
	case YAML_MAPPING_NODE:
		return value->type != CYAML_MAPPING ? 0
		                                    : check_mapping(w, value->mapping.fields, node);
	case YAML_SEQUENCE_NODE:
		return value->type != CYAML_SEQUENCE ? 0
		                                     : check_list(w, value->sequence.entry, node);
	case YAML_SCALAR_NODE:
		return value->type == CYAML_UINT   ? check_number(w, node)
		       : value->type == CYAML_BOOL ? check_boolean(w, node)
		                                   : 0;
	case YAML_NO_NODE:
		break;
	}
	return 0;
}

// The line of what is deeper than any option, or of a second document, which nobody would read; 0 =
// there is neither. What is wrong otherwise others say.
static size_t find_odd(const char *text, size_t len, const char **ret_what)
{
	yaml_parser_t parser;
	yaml_event_t e = {.type = YAML_NO_EVENT};
	size_t line = 0;
	if (!yaml_parser_initialize(&parser))
		return 0;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	for (int depth = 0, n_documents = 0; !line && yaml_parser_parse(&parser, &e);) {
		yaml_event_type_t type = e.type;
		size_t at = e.start_mark.line + 1;
		yaml_event_delete(&e);
		if (type == YAML_STREAM_END_EVENT)
			break;
		depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
		depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
		n_documents += type == YAML_DOCUMENT_START_EVENT;
		line = depth > MAX_DEPTH || n_documents > 1 ? at : 0;
		*ret_what = depth > MAX_DEPTH ? "no option is so deep"
		                              : "a second document begins, and only one is read";
	}
	yaml_parser_delete(&parser);
	return line;
}

int config_scalars_check(const char *path, const char *text, size_t len, struct lb_err *reterr)
{
	yaml_parser_t parser;
	yaml_document_t document;
	const char *what = "";
	size_t line = find_odd(text, len, &what);
	if (line)
		return lb_err_set(reterr, "%s:%zu: %s", path, line, what);
	if (!yaml_parser_initialize(&parser))
		return lb_err_set(reterr, "%s: out of memory", path);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	int rc = 0;
	if (yaml_parser_load(&parser, &document)) {
		struct walk w = {.document = &document, .path = path, .err = reterr};
		const yaml_node_t *root = yaml_document_get_root_node(&document);
		rc = root ? check(&w, &config_schema, root) : 0;
		yaml_document_delete(&document);
	}
	yaml_parser_delete(&parser);
	return rc;
}
