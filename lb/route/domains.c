// SPDX-License-Identifier: Apache-2.0
#include "lb/route/domains.h"

#include "lb/index/radix.h"
#include "lb/index/string_index.h"
#include "lb/route/route.h"

#include <errno.h>
#include <stdlib.h>

// Exact names up to this length are looked up in a hash, by a folded copy on the stack; a real host
// name with its port is shorter. Longer ones live in a radix tree.
#define SHORT_NAME_MAX 272

// In the order of precedence: class beats length (VH-03).
enum class { EXACT, SUFFIX, PREFIX, ANY, N_CLASSES };

struct pattern {
	enum class class;
	struct str text; // without the star
};

// Names that a tree is to be made of.
struct names {
	struct str *texts; // owned, as below; the texts are borrowed
	uint32_t *vhosts;
	uint32_t n, room;
};

struct lb_domains { // the value of each name is its virtual host's index
	struct lb_string_index *exact_short; // folded
	struct lb_radix *exact_long, *suffix, *prefix;
	int any; // -1 = none
	struct names names[N_CLASSES]; // until seal(); of EXACT the long ones
};

bool lb_domain_is_valid(struct str domain)
{
	if (domain.len == 0)
		return false;
	bool at_an_end = domain.p[0] == '*' || domain.p[domain.len - 1] == '*';
	return at_an_end || !memchr(domain.p, '*', domain.len);
}

// `*x` is a suffix and `x*` a prefix even when x holds more stars: those are literal (VH-07).
// False = bad domain.
static bool pattern_parse(struct str domain, struct pattern *ret)
{
	if (!lb_domain_is_valid(domain))
		return false;
	if (domain.p[0] == '*') {
		struct str rest = {domain.p + 1, domain.len - 1};
		*ret = (struct pattern){rest.len ? SUFFIX : ANY, rest};
		return true;
	}
	if (domain.p[domain.len - 1] == '*')
		*ret = (struct pattern){PREFIX, {domain.p, domain.len - 1}};
	else
		*ret = (struct pattern){EXACT, domain};
	return true;
}

// Comparison ignores ASCII case (VH-05) and knows no ports (VH-06); a star covers at least one
// character (VH-04).
static bool pattern_matches(const struct pattern *p, struct str authority)
{
	struct str t = p->text;
	switch (p->class) {
	case EXACT:
		return str_eq_fold(authority, t);
	case SUFFIX:
		return authority.len > t.len &&
		       str_eq_fold((struct str){authority.p + authority.len - t.len, t.len}, t);
	case PREFIX:
		return authority.len > t.len && str_eq_fold((struct str){authority.p, t.len}, t);
	default:
		return true;
	}
}

int lb_vhost_choose(const struct lb_vhost_conf *vhosts, uint32_t n_vhosts, struct str authority)
{
	int best = -1;
	struct pattern best_pattern = {.class = N_CLASSES};
	for (uint32_t i = 0; i < n_vhosts; i++) {
		for (uint32_t j = 0; j < vhosts[i].n_domains; j++) {
			struct pattern p;
			if (!pattern_parse(vhosts[i].domains[j], &p) ||
				!pattern_matches(&p, authority))
				continue;
			// VH-02; of equal domains the earlier stays (VH-08).
			if (p.class < best_pattern.class ||
				(p.class == best_pattern.class &&
					p.text.len > best_pattern.text.len)) {
				best = (int)i;
				best_pattern = p;
			}
		}
	}
	return best;
}

// ASCII upper case to lower case, eight bytes at a time.
static uint64_t fold8(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t low = x & 0x7f * ones;
	uint64_t from_a = low + (0x80 - 'A') * ones; // top bit: >= 'A'
	uint64_t above_z = low + (0x7f - 'Z') * ones; // top bit: > 'Z'
	uint64_t is_upper = (from_a ^ above_z) & ~x & 0x80 * ones;
	return x | is_upper >> 2;
}

static void fold8_at(char *to, const char *from)
{
	uint64_t x;
	memcpy(&x, from, sizeof(x));
	x = fold8(x);
	memcpy(to, &x, sizeof(x));
}

static void fold_into(char *to, struct str s)
{
	if (s.len < 8) {
		for (size_t i = 0; i < s.len; i++)
			to[i] = str_fold(s.p[i]);
		return;
	}
	for (size_t i = 0; i + 8 <= s.len; i += 8)
		fold8_at(to + i, s.p + i);
	fold8_at(to + s.len - 8, s.p + s.len - 8); // the rest; what overlaps is the same twice
}

struct lb_domains *lb_domains_new(uint32_t n_exact)
{
	struct lb_domains *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->any = -1;
	x->exact_short = lb_string_index_new(n_exact, sizeof(uint32_t));
	if (x->exact_short)
		return x;
	free(x);
	return NULL;
}

static bool have_room(struct names *to)
{
	if (to->n < to->room)
		return true;
	uint32_t room = 2 * to->room + 8;
	struct str *texts = realloc(to->texts, room * sizeof(*texts));
	if (texts)
		to->texts = texts;
	uint32_t *vhosts = texts ? realloc(to->vhosts, room * sizeof(*vhosts)) : NULL;
	if (!vhosts)
		return false;
	to->vhosts = vhosts;
	to->room = room;
	return true;
}

static int add_name(struct names *to, struct str text, uint32_t vhost)
{
	if (!have_room(to))
		return -ENOMEM;
	to->texts[to->n] = text;
	to->vhosts[to->n++] = vhost;
	return 0;
}

static int add_exact(struct lb_domains *x, struct str name, uint32_t vhost)
{
	char folded[SHORT_NAME_MAX];
	uint32_t n = lb_string_index_count(x->exact_short);
	fold_into(folded, name);
	uint32_t k = lb_string_index_add(x->exact_short, (struct str){folded, name.len});
	if (k == LB_STRING_INDEX_NONE)
		return -ENOMEM;
	if (k == n) // of equal names the earlier host's stays (VH-08)
		*(uint32_t *)lb_string_index_value(x->exact_short, k) = vhost;
	return 0;
}

static int add_pattern(struct lb_domains *x, const struct pattern *p, uint32_t vhost)
{
	if (p->class == EXACT && p->text.len <= SHORT_NAME_MAX)
		return add_exact(x, p->text, vhost);
	if (p->class != ANY)
		return add_name(&x->names[p->class], p->text, vhost);
	if (x->any < 0)
		x->any = (int)vhost;
	return 0;
}

int lb_domains_add(
	struct lb_domains *x, const struct lb_vhost_conf *v, uint32_t index, struct lb_err *reterr)
{
	if (v->n_domains == 0)
		return lb_err_set(reterr, "virtual_hosts[%u] (%.*s): no domains", index,
			(int)v->name.len, v->name.p ? v->name.p : "");
	for (uint32_t i = 0; i < v->n_domains; i++) {
		struct str d = v->domains[i];
		struct pattern p;
		if (!pattern_parse(d, &p))
			return lb_err_set(reterr,
				"virtual_hosts[%u].domains[%u]: \"%.*s\" is not a domain pattern",
				index, i, (int)d.len, d.p ? d.p : "");
		if (add_pattern(x, &p, index)) {
			(void)lb_err_set(reterr, "out of memory");
			return -ENOMEM;
		}
	}
	return 0;
}

static struct lb_radix *build_tree(const struct names *from, int flags)
{
	void **values = malloc(((size_t)from->n + 1) * sizeof(void *));
	struct lb_radix *r =
		values ? lb_radix_new(from->texts, from->n, flags, sizeof(uint32_t), values) : NULL;
	for (uint32_t i = from->n; r && i-- > 0;) // the earlier host's stays (VH-08)
		*(uint32_t *)values[i] = from->vhosts[i];
	free(values);
	return r;
}

static void names_fini(struct lb_domains *x)
{
	for (int c = 0; c < N_CLASSES; c++) {
		free(x->names[c].texts);
		free(x->names[c].vhosts);
		x->names[c] = (struct names){.n = 0};
	}
}

int lb_domains_seal(struct lb_domains *x)
{
	bool ok = lb_string_index_seal(x->exact_short);
	x->exact_long = build_tree(&x->names[EXACT], LB_RADIX_FOLD);
	x->suffix = build_tree(&x->names[SUFFIX], LB_RADIX_FOLD | LB_RADIX_BACKWARDS);
	x->prefix = build_tree(&x->names[PREFIX], LB_RADIX_FOLD);
	names_fini(x);
	return ok && x->exact_long && x->suffix && x->prefix ? 0 : -ENOMEM;
}

void lb_domains_free(struct lb_domains *x)
{
	if (!x)
		return;
	names_fini(x);
	lb_string_index_free(x->exact_short);
	lb_radix_free(x->exact_long);
	lb_radix_free(x->suffix);
	lb_radix_free(x->prefix);
	free(x);
}

static int vhost_of(const void *value)
{
	return value ? (int)*(const uint32_t *)value : -1;
}

static int find_exact(const struct lb_domains *x, struct str authority)
{
	if (authority.len > SHORT_NAME_MAX) {
		struct lb_radix_hit hit = lb_radix_find(x->exact_long, authority);
		return vhost_of(hit.is_whole ? hit.longest : NULL);
	}
	if (lb_string_index_count(x->exact_short) == 0)
		return -1;
	char folded[SHORT_NAME_MAX];
	fold_into(folded, authority);
	return vhost_of(
		lb_string_index_find_value(x->exact_short, (struct str){folded, authority.len}));
}

int lb_domains_find(const struct lb_domains *x, struct str authority)
{
	if (authority.len == 0)
		return x->any;
	int found = find_exact(x, authority);
	// The character that the star must cover is cut off before (VH-04).
	struct str tail = {authority.p + 1, authority.len - 1};
	struct str head = {authority.p, authority.len - 1};
	if (found < 0)
		found = vhost_of(lb_radix_find(x->suffix, tail).longest);
	if (found < 0)
		found = vhost_of(lb_radix_find(x->prefix, head).longest);
	return found < 0 ? x->any : found;
}

bool lb_authority_is_valid(struct str authority)
{
	static const char others[] = "-._~"
				     "!$&'()*+,;="
				     ":[]"
				     "%";
	for (size_t i = 0; i < authority.len; i++) {
		char c = str_fold(authority.p[i]);
		bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (!plain && !memchr(others, c, sizeof(others) - 1))
			return false;
	}
	return authority.len;
}

struct str lb_authority_without_port(struct str authority)
{
	for (size_t i = authority.len; i-- > 0 && authority.p[i] != ']';)
		if (authority.p[i] == ':')
			return (struct str){authority.p, i};
	return authority;
}
