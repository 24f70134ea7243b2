// SPDX-License-Identifier: Apache-2.0
#include "lb/route/session.h"

#include "lb/base/base64.h"

#include <stdio.h>

static struct str after(struct str s, size_t n)
{
	return n < s.len ? (struct str){s.p + n, s.len - n} : (struct str){0};
}

static bool has(struct str s, char c)
{
	return str_until(s, c).len < s.len;
}

// The part before c, which moves behind it.
static struct str cut(struct str *s, char c)
{
	struct str part = str_until(*s, c);
	*s = after(*s, part.len + 1);
	return part;
}

static struct str unquoted(struct str s)
{
	bool quoted = s.len >= 2 && s.p[0] == '"' && s.p[s.len - 1] == '"';
	return quoted ? (struct str){s.p + 1, s.len - 2} : s;
}

bool lb_session_covers(const struct lb_session *s, struct str path)
{
	struct str p = s->path;
	if (!s->enabled)
		return false;
	if (p.len == 0 || str_eq(p, STR("/")))
		return true;
	path = str_until(str_until(path, '?'), '#');
	if (!str_starts(path, p)) // RFC 6265 5.1.4
		return false;
	return path.len == p.len || p.p[p.len - 1] == '/' || path.p[p.len] == '/';
}

// The first one of this name: clients may split their cookies over fields (SA-05).
static struct str find_cookie(struct str name, const struct lb_req *req)
{
	for (size_t i = 0; i < req->n_fields; i++) {
		struct str rest = req->fields[i].value;
		if (!str_eq(req->fields[i].name, STR("cookie")))
			continue;
		while (rest.len) {
			struct str value = str_trim(cut(&rest, ';'));
			if (has(value, '=') && str_eq(cut(&value, '='), name))
				return unquoted(value);
		}
	}
	return (struct str){0};
}

struct lb_session_cookie lb_session_read(
	const struct lb_session *s, const struct lb_req *req, char *buf, size_t buf_size)
{
	struct str text = find_cookie(s->cookie, req), plain = {buf, 0};
	if (text.len / 4 * 3 > buf_size || !base64_decode(text, buf, &plain.len))
		return (struct lb_session_cookie){0};
	struct str addresses = cut(&plain, ';');
	return (struct lb_session_cookie){addresses, plain};
}

bool lb_session_is_cluster(const struct lb_session_cookie *c, struct str name)
{
	static const char prefix[] = "cluster:";
	struct str text = c->cluster;
	if (str_eq(text, name) || str_eq(unquoted(text), name))
		return true;
	return str_starts(text, STR(prefix)) && str_eq(after(text, sizeof(prefix) - 1), name);
}

size_t lb_session_addresses(struct str list, struct ip_port ret[LB_SESSION_MAX_ADDRESSES])
{
	size_t n = 0;
	for (int i = 0; list.len && i < LB_SESSION_MAX_ADDRESSES; i++)
		if (ip_port_parse(cut(&list, ','), &ret[n]))
			n++;
	return n;
}

struct out {
	char *p;
	size_t len, room; // len may exceed the room: then nothing fits
};

static void put(struct out *o, struct str s)
{
	if (s.len && s.len <= o->room && o->len <= o->room - s.len)
		memcpy(o->p + o->len, s.p, s.len);
	o->len += s.len;
}

size_t lb_session_write(
	const struct lb_session *s, const struct lb_session_cookie *c, char *out, size_t room)
{
	struct out o = {out, 0, room};
	size_t plain_len = c->addresses.len + 1 + c->cluster.len;
	put(&o, s->cookie);
	put(&o, STR("="));
	// The plain text is laid out at the end of where its code goes, which catches up with it
	// only at the last byte.
	size_t start = o.len, text_len = BASE64_SIZE(plain_len);
	if (start > room || text_len > room - start)
		return 0;
	struct out plain = {out + start + text_len - plain_len, 0, plain_len};
	put(&plain, c->addresses);
	put(&plain, STR(";"));
	put(&plain, c->cluster);
	o.len += base64_encode(plain.p, plain_len, out + start);
	put(&o, STR("; HttpOnly"));
	if (s->path.len) {
		put(&o, STR("; Path="));
		put(&o, s->path);
	}
	if (s->ttl_s) {
		char age[40];
		int n = snprintf(age, sizeof(age), "; Max-Age=%llu", (unsigned long long)s->ttl_s);
		put(&o, (struct str){age, (size_t)n});
	}
	return o.len <= room ? o.len : 0;
}
