// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/route/route_twin.h"

#include "tests/support/check.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PATTERNS 256
#define MAX_VALUE 8192

static struct {
	char *text;
	struct lb_regex_set *set;
	struct lb_regex_scratches *scratches;
} patterns[MAX_PATTERNS];
static uint32_t n_patterns;

bool twin_regex_matches(struct str pattern, struct str subject)
{
	uint32_t i = 0;
	while (i < n_patterns && !str_eq(str_from(patterns[i].text), pattern))
		i++;
	if (i == n_patterns) {
		assert_true(n_patterns < MAX_PATTERNS);
		patterns[i].text = strndup(pattern.p, pattern.len);
		patterns[i].set = lb_regex_set_new(&pattern, 1, NULL);
		assert_non_null(patterns[i].set);
		patterns[i].scratches = lb_regex_scratches_fit(NULL, 0, patterns[i].set);
		assert_non_null(patterns[i].scratches);
		n_patterns++;
	}
	return lb_regex_set_match(patterns[i].set, patterns[i].scratches, 0, subject);
}

void twin_fini(void)
{
	while (n_patterns) {
		n_patterns--;
		free(patterns[n_patterns].text);
		lb_regex_set_put(patterns[n_patterns].set);
		lb_regex_scratches_put(patterns[n_patterns].scratches);
	}
}

static int lower(char c)
{
	unsigned char u = (unsigned char)c;
	return u < 128 ? tolower(u) : u;
}

static bool same(const char *a, const char *b, size_t len, bool ignore_case)
{
	for (size_t i = 0; i < len; i++)
		if (ignore_case ? lower(a[i]) != lower(b[i]) : a[i] != b[i])
			return false;
	return true;
}

static bool path_matches(const struct lb_route_conf *r, struct str path)
{
	size_t len = 0;
	while (len < path.len && path.p[len] != '?' && path.p[len] != '#')
		len++;
	if (r->path_kind == LB_PATH_REGEX)
		return twin_regex_matches(r->path, (struct str){path.p, len});
	if (r->path_kind == LB_PATH_EXACT ? r->path.len != len : r->path.len > len)
		return false;
	return same(r->path.p, path.p, r->path.len, !r->case_sensitive);
}

static bool is(struct str a, const char *b)
{
	return a.len == strlen(b) && memcmp(a.p, b, a.len) == 0;
}

// What the request shows under a name. False = absent.
static bool value_of(const struct twin_table *t, const struct lb_req *req, struct str name,
	char *to, size_t *ret_len)
{
	bool as_grpc = req->is_grpc && !t->grpc_sees_all;
	size_t len = 0, n = 0;
	if (name.len >= 4 && memcmp(name.p + name.len - 4, "-bin", 4) == 0) // A28-H10
		return false;
	struct str pseudo = {0};
	if (is(name, ":method"))
		pseudo = req->method;
	else if (is(name, ":scheme"))
		pseudo = req->scheme;
	else if (is(name, ":path"))
		pseudo = req->path;
	else if (is(name, ":authority") || is(name, "host"))
		pseudo = req->authority;
	else if (is(name, "te") || is(name, "connection"))
		return false;
	else if (as_grpc && (is(name, "user-agent") || strncmp(name.p, "grpc-", 5) == 0))
		return false;
	else {
		for (size_t i = 0; i < req->n_fields; i++) {
			const struct field *f = &req->fields[i];
			if (f->name.len != name.len || memcmp(f->name.p, name.p, name.len) != 0)
				continue;
			if (n++) // A28-H08, A28-H09
				len += (size_t)sprintf(to + len, is(name, "cookie") ? "; " : ",");
			assert_true(len + f->value.len < MAX_VALUE);
			if (f->value.len)
				memcpy(to + len, f->value.p, f->value.len);
			len += f->value.len;
		}
		*ret_len = len;
		return n > 0;
	}
	if (as_grpc || pseudo.len == 0) // A28-H12
		return false;
	memcpy(to, pseudo.p, pseudo.len);
	*ret_len = pseudo.len;
	return true;
}

static bool in_range(const struct lb_header_match_conf *h, const char *value, size_t len)
{
	char text[64], *end;
	if (len == 0 || len >= sizeof(text) || memchr(value, 0, len))
		return false;
	memcpy(text, value, len);
	text[len] = 0;
	if (strspn(text, "+-0123456789") != len)
		return false;
	errno = 0;
	long long x = strtoll(text, &end, 10);
	return errno == 0 && *end == 0 && end != text && x >= h->start && x < h->end;
}

static bool compare(const struct lb_header_match_conf *h, const char *value, size_t len)
{
	size_t n = h->text.len;
	switch (h->kind) {
	case LB_HEADER_EXACT:
		return n == len && same(h->text.p, value, n, h->ignore_case);
	case LB_HEADER_PREFIX:
		return n <= len && same(h->text.p, value, n, h->ignore_case);
	case LB_HEADER_SUFFIX:
		return n <= len && same(h->text.p, value + len - n, n, h->ignore_case);
	case LB_HEADER_CONTAINS:
		for (size_t i = 0; i + n <= len; i++)
			if (same(h->text.p, value + i, n, h->ignore_case))
				return true;
		return false;
	case LB_HEADER_REGEX:
		return twin_regex_matches(h->text, (struct str){value, len});
	case LB_HEADER_RANGE:
		return in_range(h, value, len);
	case LB_HEADER_PRESENT:
		break;
	}
	return h->present;
}

static bool header_matches(
	const struct twin_table *t, const struct lb_req *req, const struct lb_header_match_conf *h)
{
	char value[MAX_VALUE];
	size_t len = 0;
	bool present = value_of(t, req, h->name, value, &len);
	if (h->kind == LB_HEADER_PRESENT)
		return (present == h->present) != h->invert;
	return present && compare(h, value, len) != h->invert; // A28-H06, A28-H07
}

static enum lb_route_verdict judge(const struct twin_table *t, const struct lb_route_conf *r,
	const struct lb_req *req, struct rand *rand, uint32_t *ret_header)
{
	for (uint32_t i = 0; i < r->n_headers; i++)
		if (!header_matches(t, req, &r->headers[i])) {
			*ret_header = i;
			return LB_VERDICT_HEADER;
		}
	if (r->grpc_only && !req->is_grpc)
		return LB_VERDICT_NOT_GRPC;
	if (r->ppm < 1000000 && !(rand_below(rand, 1000000) < r->ppm))
		return LB_VERDICT_FRACTION;
	return LB_VERDICT_MATCH;
}

// A28-W01, A28-W04: nothing to draw where one entry has all the weight.
static uint32_t draw(const struct lb_route_conf *r, struct rand *rand)
{
	uint64_t sum = 0;
	uint32_t n = 0, last = 0;
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		sum += r->clusters[i].weight;
		if (r->clusters[i].weight == 0)
			continue;
		n++;
		last = r->clusters[i].cluster_id;
	}
	if (n == 1)
		return last;
	uint64_t point = rand_below(rand, sum);
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		if (point < r->clusters[i].weight)
			return r->clusters[i].cluster_id;
		point -= r->clusters[i].weight;
	}
	fail();
	return 0;
}

static int choose_vhost(const struct twin_table *t, struct str authority)
{
	size_t i = t->ignore_port ? authority.len : 0;
	while (i && authority.p[i - 1] != ':' && authority.p[i - 1] != ']')
		i--;
	if (i && authority.p[i - 1] == ':')
		authority.len = i - 1;
	return lb_vhost_choose(t->vhosts, t->n_vhosts, authority); // test_domains.c has its twin
}

void twin_find(const struct twin_table *t, const struct lb_req *req, struct rand *rand,
	struct twin_answer *ret)
{
	ret->n_steps = 0;
	ret->kind = LB_ROUTE_NO_VHOST;
	int vhost = choose_vhost(t, req->authority);
	if (vhost < 0)
		return;
	const struct lb_vhost_conf *v = &t->vhosts[vhost];
	ret->vhost = (uint32_t)vhost;
	ret->kind = LB_ROUTE_NONE;
	bool is_tunnel = req->path.len == 0 || str_eq(req->method, STR("CONNECT"));
	for (uint32_t i = 0; !is_tunnel && i < v->n_routes; i++) {
		const struct lb_route_conf *r = &v->routes[i];
		if (!path_matches(r, req->path))
			continue;
		struct lb_route_step *step = &ret->steps[ret->n_steps++];
		*step = (struct lb_route_step){.route_index = i};
		step->verdict = judge(t, r, req, rand, &step->header);
		if (step->verdict != LB_VERDICT_MATCH)
			continue;
		ret->route = i;
		bool draws = r->action == LB_ACTION_CLUSTERS;
		ret->kind = draws ? LB_ROUTE_CLUSTER : LB_ROUTE_UNSUPPORTED;
		ret->cluster = draws ? draw(r, rand) : 0;
		return;
	}
}
