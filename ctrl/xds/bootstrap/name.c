// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/bootstrap/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char SCHEME[] = "xdstp:";

// A part of the name that is parsed.
struct span {
	const char *p;
	size_t len;
};

// A context parameter, canonical, in the memory of the new text.
struct param {
	struct span key, value;
	size_t rank; // of two with one key the higher counts
};

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

static bool is_sub_delim(char c)
{
	return c && strchr("!$&'()*+,;=", c);
}

static bool is_authority_char(char c)
{
	return is_unreserved(c) || is_sub_delim(c) || (c && strchr(":@[]", c));
}

bool xds_name_is_id_char(char c)
{
	return is_unreserved(c) || is_sub_delim(c) || (c && strchr(":@/", c));
}

static bool is_query_char(char c)
{
	return xds_name_is_id_char(c) || c == '?';
}

bool xds_name_is_xdstp(const char *text)
{
	return strncmp(text, SCHEME, strlen(SCHEME)) == 0;
}

bool xds_name_is_wildcard(const char *text)
{
	return strcmp(text, "*") == 0;
}

// -1 = not a hexadecimal digit.
static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The character that "%XX" at p stands for; -1 = it is cut or no number.
static int decode_at(const char *p, const char *end)
{
	if (end - p < 3)
		return -1;
	int high = hex_value(p[1]), low = hex_value(p[2]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

// Writes the part to *at, which moves on by no more than its length: RFC 3986 6.2.2.1 (upper case)
// and 6.2.2.2 (what needs no encoding has none).
static int normalize(struct span in, bool (*allowed)(char), char **at, struct lb_err *err)
{
	static const char HEX[] = "0123456789ABCDEF";
	char *out = *at;
	for (const char *p = in.p, *end = p + in.len; p < end; p++) {
		if (*p != '%') {
			if (!allowed(*p))
				return lb_err_set(err, "byte 0x%02x must be percent-encoded",
					(unsigned char)*p);
			*out++ = *p;
			continue;
		}
		int c = decode_at(p, end);
		if (c < 0)
			return lb_err_set(err, "\"%%\" must be followed by two hexadecimal digits");
		p += 2;
		if (is_unreserved((char)c)) {
			*out++ = (char)c;
		} else {
			*out++ = '%';
			*out++ = HEX[c >> 4];
			*out++ = HEX[c & 15];
		}
	}
	*at = out;
	return 0;
}

static int normalize_to_span(
	struct span in, bool (*allowed)(char), char **at, struct span *ret, struct lb_err *err)
{
	char *start = *at;
	int rc = normalize(in, allowed, at, err);
	*ret = (struct span){start, (size_t)(*at - start)};
	return rc;
}

static int span_cmp(struct span a, struct span b)
{
	int order = memcmp(a.p, b.p, a.len < b.len ? a.len : b.len);
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int param_cmp(const void *x, const void *y)
{
	const struct param *a = x, *b = y;
	int order = span_cmp(a->key, b->key);
	return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static size_t count_params(struct span query)
{
	size_t n = query.len > 0;
	for (size_t i = 0; i < query.len; i++)
		n += query.p[i] == '&';
	return n;
}

// Canonical keys and values, written to `room`.
static int read_params(
	struct span query, char *room, struct param *params, size_t *ret_n, struct lb_err *err)
{
	const char *p = query.p, *end = p + query.len;
	size_t n = 0;
	for (const char *next; p < end; p = next + 1) {
		next = memchr(p, '&', (size_t)(end - p));
		next = next ? next : end;
		if (next == p)
			continue;
		const char *eq = memchr(p, '=', (size_t)(next - p));
		struct span key = {p, (size_t)((eq ? eq : next) - p)};
		struct span value = {eq ? eq + 1 : next, eq ? (size_t)(next - eq - 1) : 0};
		if (key.len == 0)
			return lb_err_set(err, "a context parameter has no key");
		struct param *to = &params[n];
		int rc = normalize_to_span(key, is_query_char, &room, &to->key, err);
		if (!rc)
			rc = normalize_to_span(value, is_query_char, &room, &to->value, err);
		if (rc)
			return rc;
		to->rank = n++;
	}
	*ret_n = n;
	return 0;
}

static void put(char **at, struct span s)
{
	memcpy(*at, s.p, s.len);
	*at += s.len;
}

// "?a=1&b=2", by key; nothing when there are none.
static int put_query(struct span query, char **at, struct lb_err *err)
{
	size_t n = count_params(query);
	if (n == 0)
		return 0;
	struct param *params = calloc(n, sizeof(*params));
	char *room = malloc(query.len);
	int rc = params && room ? read_params(query, room, params, &n, err) : -ENOMEM;
	if (!rc)
		qsort(params, n, sizeof(*params), param_cmp);
	const char *gap = "?";
	for (size_t i = 0; !rc && i < n; i++) {
		if (i + 1 < n && span_cmp(params[i].key, params[i + 1].key) == 0)
			continue;
		put(at, (struct span){gap, 1});
		put(at, params[i].key);
		put(at, (struct span){"=", 1});
		put(at, params[i].value);
		gap = "&";
	}
	free(params);
	free(room);
	return rc;
}

// Up to one of the stops or the end.
static struct span take_until(const char **p, const char *stops)
{
	struct span s = {*p, strcspn(*p, stops)};
	*p += s.len;
	return s;
}

static int check_type(struct span type, const char *type_url, struct lb_err *err)
{
	const char *slash = strrchr(type_url, '/');
	const char *expected = slash ? slash + 1 : type_url;
	if (type.len == 0)
		return lb_err_set(err, "has no resource type");
	if (strlen(expected) != type.len || memcmp(expected, type.p, type.len) != 0)
		return lb_err_set(err, "is the name of a \"%.*s\", not of a \"%s\"",
			type.len < 128 ? (int)type.len : 128, type.p, expected);
	return 0;
}

static int check_id(struct span id, struct lb_err *err)
{
	if (id.len == 0)
		return lb_err_set(err, "has no id after the resource type");
	if (id.p[id.len - 1] == '*' && (id.len == 1 || id.p[id.len - 2] == '/'))
		return lb_err_set(err, "is a glob collection, which is not supported");
	return 0;
}

// Of a canonical authority.
static int decode_authority(struct span in, char **ret, struct lb_err *err)
{
	char *text = malloc(in.len + 1), *out = text;
	if (!text)
		return -ENOMEM;
	for (const char *p = in.p, *end = p + in.len; p < end; p++) {
		int c = *p == '%' ? decode_at(p, end) : *p;
		if (c == 0) {
			free(text);
			return lb_err_set(err, "its authority holds a NUL");
		}
		p += *p == '%' ? 2 : 0;
		*out++ = (char)c;
	}
	*out = '\0';
	*ret = text;
	return 0;
}

// Writes the canonical form of "//authority/type/id?query#fragment" behind the scheme.
static int put_name(
	const char *p, const char *type_url, char **at, char **ret_authority, struct lb_err *err)
{
	if (strncmp(p, "//", 2) != 0)
		return lb_err_set(err, "must start with xdstp://");
	put(at, (struct span){p, 2});
	p += 2;
	struct span authority;
	int rc = normalize_to_span(take_until(&p, "/?#"), is_authority_char, at, &authority, err);
	if (rc)
		return rc;
	put(at, (struct span){"/", 1});
	p += *p == '/';
	struct span type = take_until(&p, "/?#");
	rc = check_type(type, type_url, err);
	if (rc)
		return rc;
	put(at, type);
	put(at, (struct span){"/", 1});
	p += *p == '/';
	struct span id;
	rc = normalize_to_span(take_until(&p, "?#"), xds_name_is_id_char, at, &id, err);
	if (!rc)
		rc = check_id(id, err);
	p += *p == '?';
	if (!rc)
		rc = put_query(take_until(&p, "#"), at, err);
	return rc ? rc : decode_authority(authority, ret_authority, err);
}

int xds_name_parse(const char *text, const char *type_url, struct xds_name *ret, struct lb_err *err)
{
	if (!*text)
		return lb_err_set(err, "is empty");
	if (xds_name_is_wildcard(text))
		return lb_err_set(err, "stands for all resources");
	char *authority = NULL, *copy;
	if (!xds_name_is_xdstp(text)) {
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	} else {
		size_t len = strlen(text);
		// A parameter without "=" gets one; nothing else grows.
		copy = malloc(len + count_params((struct span){text, len}) + 1);
		if (!copy)
			return -ENOMEM;
		char *at = copy;
		put(&at, (struct span){SCHEME, strlen(SCHEME)});
		int rc = put_name(text + strlen(SCHEME), type_url, &at, &authority, err);
		if (rc) {
			free(copy);
			return rc;
		}
		*at = '\0';
	}
	*ret = (struct xds_name){copy, authority};
	return 0;
}

void xds_name_fini(struct xds_name *n)
{
	free(n->text);
	free(n->authority);
}
