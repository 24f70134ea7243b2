// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/trace_context.h"

#include "dataplane/h2/hpack_names.h"

#include <string.h>

#define TRACEPARENT_LEN 55
#define TRACE_AT 3 // of traceparent
#define SPAN_AT 36
#define FLAGS_AT 53
#define ID_LEN 16 // digits of a span's id, and of half a trace's
#define SAMPLED 1 // flag

enum name {
	NAME_NONE,
	NAME_TRACEPARENT,
	NAME_TRACESTATE,
	NAME_B3,
	NAME_B3_TRACE,
	NAME_B3_SPAN,
	NAME_B3_PARENT,
	NAME_B3_SAMPLED,
	NAME_B3_FLAGS,
	NAME_CLIENT_TRACE,
	NAME_FORCE,
	N_NAMES,
};

static const struct str names[N_NAMES] = {
	[NAME_TRACEPARENT] = STR("traceparent"),
	[NAME_TRACESTATE] = STR("tracestate"),
	[NAME_B3] = STR("b3"),
	[NAME_B3_TRACE] = STR("x-b3-traceid"),
	[NAME_B3_SPAN] = STR("x-b3-spanid"),
	[NAME_B3_PARENT] = STR("x-b3-parentspanid"),
	[NAME_B3_SAMPLED] = STR("x-b3-sampled"),
	[NAME_B3_FLAGS] = STR("x-b3-flags"),
	[NAME_CLIENT_TRACE] = STR("x-client-trace-id"),
	[NAME_FORCE] = STR("x-envoy-force-trace"),
};

// Lengths of these names: most others are told by theirs.
#define LENGTHS (1u << 2 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 17 | 1u << 19)

static __attribute__((noinline)) enum name name_by_text(struct str s)
{
	if (s.p[0] != 'x' && s.p[0] != 'b' && s.p[0] != 't')
		return NAME_NONE;
	for (enum name i = NAME_NONE + 1; i < N_NAMES; i++)
		if (str_eq(s, names[i]))
			return i;
	return NAME_NONE;
}

// HTTP/1.1 gives no numbers; names of most fields have one, and are none of these.
static inline enum name name_of(const struct field *f)
{
	if (!f->name_id)
		return f->name.len < 32 && LENGTHS >> f->name.len & 1 ? name_by_text(f->name)
		                                                      : NAME_NONE;
	return f->name_id == HPACK_TRACEPARENT  ? NAME_TRACEPARENT
	       : f->name_id == HPACK_TRACESTATE ? NAME_TRACESTATE
	                                        : NAME_NONE;
}

// Digits in lower case, as both forms have them.
static bool read_hex(const char *p, size_t len, uint64_t *ret)
{
	uint64_t n = 0;
	for (size_t i = 0; i < len; i++) {
		char c = p[i];
		if (c >= '0' && c <= '9')
			n = n << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*ret = n;
	return true;
}

static bool read_trace(struct str s, struct proxy_trace_parent *p)
{
	if (s.len == ID_LEN) {
		p->high = 0;
		return read_hex(s.p, ID_LEN, &p->low) && p->low;
	}
	return s.len == 2 * ID_LEN && read_hex(s.p, ID_LEN, &p->high) &&
	       read_hex(s.p + ID_LEN, ID_LEN, &p->low) && (p->high || p->low);
}

static bool read_span(struct str s, struct proxy_trace_parent *p)
{
	return s.len == ID_LEN && read_hex(s.p, ID_LEN, &p->span) && p->span;
}

// W3C Trace Context 3.2: a later version may go on behind another dash.
static bool read_traceparent(struct str s, struct proxy_trace_parent *p)
{
	uint64_t version, flags;
	if (s.len < TRACEPARENT_LEN || !read_hex(s.p, 2, &version) || version == 0xff)
		return false;
	if (s.len > TRACEPARENT_LEN && (version == 0 || s.p[TRACEPARENT_LEN] != '-'))
		return false;
	if (s.p[2] != '-' || s.p[SPAN_AT - 1] != '-' || s.p[FLAGS_AT - 1] != '-')
		return false;
	if (!read_trace((struct str){s.p + TRACE_AT, 2 * ID_LEN}, p) ||
		!read_span((struct str){s.p + SPAN_AT, ID_LEN}, p) ||
		!read_hex(s.p + FLAGS_AT, 2, &flags))
		return false;
	p->word = flags & SAMPLED ? PROXY_TRACE_YES : PROXY_TRACE_NO;
	p->is_w3c = true;
	return true;
}

static bool read_word(struct str s, struct proxy_trace_parent *p)
{
	if (str_eq(s, STR("1")) || str_eq(s, STR("d")) || str_eq(s, STR("true")))
		p->word = PROXY_TRACE_YES;
	else if (str_eq(s, STR("0")) || str_eq(s, STR("false")))
		p->word = PROXY_TRACE_NO;
	else
		return false;
	return true;
}

static struct str cut(struct str *s)
{
	struct str first = str_until(*s, '-');
	size_t n = first.len < s->len ? first.len + 1 : s->len;
	*s = (struct str){s->p + n, s->len - n};
	return first;
}

// A word alone, or TRACE-SPAN, TRACE-SPAN-WORD, TRACE-SPAN-WORD-PARENT.
static bool read_b3(struct str s, struct proxy_trace_parent *p)
{
	if (read_word(s, p))
		return true;
	struct str trace = cut(&s), span = cut(&s);
	if (!read_trace(trace, p) || !read_span(span, p))
		return false;
	return !s.len || read_word(cut(&s), p);
}

static bool read_b3_many(const struct str values[N_NAMES], struct proxy_trace_parent *p)
{
	if (str_eq(values[NAME_B3_FLAGS], STR("1"))) // debug
		p->word = PROXY_TRACE_YES;
	else if (values[NAME_B3_SAMPLED].p && !read_word(values[NAME_B3_SAMPLED], p))
		return false;
	if (!values[NAME_B3_TRACE].p)
		return p->word != PROXY_TRACE_UNSAID;
	return read_trace(values[NAME_B3_TRACE], p) && read_span(values[NAME_B3_SPAN], p);
}

// Of several the first that is well-formed.
static void choose(const struct str values[N_NAMES], struct proxy_trace_parent *ret)
{
	struct proxy_trace_parent w3c = *ret, b3 = *ret, many = *ret;
	if (values[NAME_TRACEPARENT].len && read_traceparent(values[NAME_TRACEPARENT], &w3c))
		*ret = w3c;
	else if (ret->has_b3 && read_b3(values[NAME_B3], &b3))
		*ret = b3;
	else if (ret->has_b3_many && read_b3_many(values, &many))
		*ret = many;
}

void proxy_trace_read(const struct field *fields, size_t n, struct proxy_trace_parent *ret)
{
	struct str values[N_NAMES];
	uint32_t met = 0;
	*ret = (struct proxy_trace_parent){0};
	for (size_t i = 0; i < n; i++) {
		enum name name = name_of(&fields[i]);
		if (name == NAME_NONE)
			continue;
		if (!met)
			memset(values, 0, sizeof(values));
		// Of two nobody knows which one counts: neither (W3C Trace Context 3.2.1).
		values[name] = met >> name & 1 ? STR("") : fields[i].value;
		met |= UINT32_C(1) << name;
	}
	if (!met)
		return;
	ret->has_b3 = met >> NAME_B3 & 1;
	ret->has_b3_many = met & (1u << NAME_B3_TRACE | 1u << NAME_B3_SPAN | 1u << NAME_B3_SAMPLED |
					 1u << NAME_B3_FLAGS);
	ret->is_asked = met >> NAME_CLIENT_TRACE & 1;
	ret->is_forced = met >> NAME_FORCE & 1;
	choose(values, ret);
}

bool proxy_trace_is_replaced(const struct field *f, bool keeps_state)
{
	enum name name = name_of(f);
	if (name == NAME_TRACESTATE)
		return !keeps_state;
	return name == NAME_TRACEPARENT || (name >= NAME_B3 && name <= NAME_B3_FLAGS);
}

static char *put_hex(char *p, uint64_t n)
{
	for (int shift = 60; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[n >> shift & 15];
	return p;
}

static char *put(char *p, struct str s)
{
	memcpy(p, s.p, s.len);
	return p + s.len;
}

static struct field field(enum name name, const char *value, size_t len)
{
	uint8_t id = name == NAME_TRACEPARENT ? HPACK_TRACEPARENT : 0;
	return (struct field){.name = names[name], .value = {value, len}, .name_id = id};
}

size_t proxy_trace_write(const struct lb_trace_ids *ids, uint64_t span, bool b3, bool b3_many,
	struct field ret[PROXY_TRACE_FIELDS], char text[PROXY_TRACE_TEXT])
{
	const size_t ids_len = SPAN_AT - TRACE_AT + ID_LEN;
	size_t n = 0;
	char *p = put_hex(put_hex(put(text, STR("00-")), ids->high), ids->low);
	p = put(put_hex(put(p, STR("-")), span), STR("-01"));
	ret[n++] = field(NAME_TRACEPARENT, text, TRACEPARENT_LEN);
	if (b3) {
		char *from = p;
		p = put(put(p, (struct str){text + TRACE_AT, ids_len}), STR("-1"));
		ret[n++] = field(NAME_B3, from, (size_t)(p - from));
	}
	if (b3_many) {
		ret[n++] = field(NAME_B3_TRACE, text + TRACE_AT, 2 * ID_LEN);
		ret[n++] = field(NAME_B3_SPAN, text + SPAN_AT, ID_LEN);
		ret[n++] = field(NAME_B3_SAMPLED, "1", 1);
	}
	return n;
}
