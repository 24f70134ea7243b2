// SPDX-License-Identifier: Apache-2.0
#include "lb/route/san_match.h"

#include "lb/base/ip.h"
#include "lb/regex/regex_re2.h"

#include <stdlib.h>
#include <string.h>

struct matcher {
	uint32_t kinds;
	enum lb_san_match match;
	bool ignore_case;
	struct str text; // stored after the matchers
	struct regex_re2 *regex; // REGEX
};

struct lb_san_matchers {
	uint32_t n;
	struct matcher list[];
};

static int copy(
	struct matcher *m, const struct lb_san_matcher_conf *conf, char **room, struct lb_err *err)
{
	char why[128];
	memcpy(*room, conf->text.p ? conf->text.p : "", conf->text.len);
	*m = (struct matcher){
		.kinds = conf->kinds,
		.match = conf->match,
		.ignore_case = conf->ignore_case,
		.text = {*room, conf->text.len},
	};
	*room += conf->text.len;
	if (conf->match != LB_SAN_REGEX)
		return 0;
	m->regex = regex_re2_new(conf->text.p, conf->text.len, why, sizeof(why));
	return m->regex ? 0 : lb_err_set(err, "%s", why);
}

struct lb_san_matchers *lb_san_matchers_new(
	const struct lb_san_matcher_conf *confs, uint32_t n, struct lb_err *err)
{
	size_t len = 0;
	for (uint32_t i = 0; i < n; i++)
		len += confs[i].text.len;
	struct lb_san_matchers *m = calloc(1, sizeof(*m) + n * sizeof(m->list[0]) + len);
	if (!m)
		return NULL;
	char *room = (char *)&m->list[n];
	for (m->n = 0; m->n < n; m->n++) {
		if (copy(&m->list[m->n], &confs[m->n], &room, err) == 0)
			continue;
		lb_san_matchers_free(m);
		return NULL;
	}
	return m;
}

void lb_san_matchers_free(struct lb_san_matchers *m)
{
	for (uint32_t i = 0; m && i < m->n; i++)
		regex_re2_free(m->list[i].regex);
	free(m);
}

static bool text_eq(struct str a, struct str b, bool ignore_case)
{
	return ignore_case ? str_eq_fold(a, b) : str_eq(a, b);
}

static struct str without_last_dot(struct str name)
{
	return (struct str){name.p, name.len - (name.len && name.p[name.len - 1] == '.')};
}

static struct str skip(struct str s, size_t n)
{
	return (struct str){s.p + n, s.len - n};
}

// RFC 6125 6.4.3, as gRPC reads it: a wildcard is the whole first label and stands for one label.
static bool dns_covers(struct str name, struct str host)
{
	name = without_last_dot(name);
	host = without_last_dot(host);
	if (!name.len || !host.len || name.p[0] == '.' || host.p[0] == '.')
		return false;
	if (!memchr(name.p, '*', name.len))
		return str_eq_fold(name, host);
	struct str label = str_until(host, '.');
	if (name.len < 3 || name.p[0] != '*' || name.p[1] != '.' ||
		memchr(name.p + 1, '*', name.len - 1))
		return false;
	return label.len < host.len && str_eq_fold(skip(name, 1), skip(host, label.len));
}

static bool contains(struct str text, struct str part, bool ignore_case)
{
	for (size_t i = 0; i + part.len <= text.len; i++)
		if (text_eq((struct str){text.p + i, part.len}, part, ignore_case))
			return true;
	return false;
}

static bool matches(const struct matcher *m, enum lb_san_kind kind, struct str name)
{
	size_t len = m->text.len;
	switch (m->match) {
	case LB_SAN_EXACT:
		return kind == LB_SAN_DNS ? dns_covers(name, m->text)
		                          : text_eq(name, m->text, m->ignore_case);
	case LB_SAN_PREFIX:
		return name.len >= len &&
		       text_eq((struct str){name.p, len}, m->text, m->ignore_case);
	case LB_SAN_SUFFIX:
		return name.len >= len &&
		       text_eq(skip(name, name.len - len), m->text, m->ignore_case);
	case LB_SAN_CONTAINS:
		return contains(name, m->text, m->ignore_case);
	case LB_SAN_REGEX:
		return regex_re2_match(m->regex, name.p, name.len);
	}
	return false;
}

// The name as it is compared; empty for an address that is none.
static struct str text_of(const struct lb_san *s, char room[IP_PORT_TEXT_MAX])
{
	struct ip_addr ip;
	if (s->kind != LB_SAN_IP)
		return s->text;
	if (s->text.len == 4) {
		const uint8_t *b = (const uint8_t *)s->text.p;
		ip = ip_from_v4(
			(uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
	} else if (s->text.len == sizeof(ip.b)) {
		memcpy(ip.b, s->text.p, sizeof(ip.b));
	} else {
		return (struct str){"", 0};
	}
	return str_from(ip_print(&ip, room));
}

bool lb_san_matchers_match(const struct lb_san_matchers *m, const struct lb_san *sans, uint32_t n)
{
	char room[IP_PORT_TEXT_MAX];
	for (uint32_t s = 0; s < n; s++) {
		struct str name = text_of(&sans[s], room);
		for (uint32_t i = 0; name.len && i < m->n; i++)
			if ((m->list[i].kinds & sans[s].kind) &&
				matches(&m->list[i], sans[s].kind, name))
				return true;
	}
	return m->n == 0;
}

bool lb_san_has_host(const struct lb_san *sans, uint32_t n, struct str host)
{
	for (uint32_t s = 0; s < n; s++)
		if (sans[s].kind == LB_SAN_DNS && dns_covers(sans[s].text, host))
			return true;
	return false;
}
