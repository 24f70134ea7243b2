// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/haproxy_server.h"

#include "ctrl/assemble/assemble.h"
#include "lb/base/str.h"

#include <stdio.h>
#include <string.h>

const char *haproxy_server_name(
	const char *cluster, const struct assembler_endpoint_info *e, char text[HAPROXY_SERVER_MAX])
{
	char address[IP_PORT_TEXT_MAX];
	bool is_own = strcmp(e->leaf, cluster) == 0;
	snprintf(text, HAPROXY_SERVER_MAX, "%.*s%s%s", OVERRIDE_MAX_CLUSTER - 1,
		is_own ? "" : e->leaf, is_own ? "" : "/", ip_port_print(&e->addresses[0], address));
	return text;
}

// One endpoint, as it stands.
struct server {
	char leaf[OVERRIDE_MAX_CLUSTER]; // its cluster, or the aggregate's that has it
	struct ip_port address;
	struct override override;
	uint32_t weight;
	bool is_found;
};

static void look(void *ctx, const struct assembler_endpoint_info *e)
{
	struct server *s = ctx;
	if (s->is_found || ip_port_cmp(&e->addresses[0], &s->address) != 0 ||
		(s->leaf[0] && strcmp(s->leaf, e->leaf) != 0) || strlen(e->leaf) >= sizeof(s->leaf))
		return;
	s->is_found = true;
	memcpy(s->leaf, e->leaf, strlen(e->leaf) + 1);
	s->override = e->override;
	s->weight = e->weight;
}

static bool take_part(char *to, size_t size, const char *from, size_t len)
{
	if (len == 0 || len >= size)
		return false;
	memcpy(to, from, len);
	to[len] = 0;
	return true;
}

// Names may have slashes of their own: what is before the last one is a cluster, or else a cluster
// and a leaf, with the first slash that makes it so.
static bool find_in(const struct assembler *a, const char *name, size_t len, struct server *ret)
{
	char cluster[OVERRIDE_MAX_CLUSTER];
	struct assembler_cluster_info info;
	if (take_part(cluster, sizeof(cluster), name, len) &&
		assembler_find_without_endpoints(a, cluster, &info)) {
		assembler_each_endpoint(a, cluster, look, ret);
		return true;
	}
	for (size_t i = 1; i + 1 < len; i++) {
		if (name[i] != '/' || !take_part(cluster, sizeof(cluster), name, i) ||
			!assembler_find_without_endpoints(a, cluster, &info) ||
			!take_part(ret->leaf, sizeof(ret->leaf), name + i + 1, len - i - 1))
			continue;
		assembler_each_endpoint(a, cluster, look, ret);
		return true;
	}
	return false;
}

static int find(const struct assembler *a, char *const *words, unsigned n, struct server *ret,
	struct lb_err *reterr)
{
	const char *slash = n ? strrchr(words[0], '/') : NULL;
	*ret = (struct server){.is_found = false};
	if (!slash)
		return lb_err_set(reterr, "Require 'backend/server'.");
	if (!ip_port_parse(str_from(slash + 1), &ret->address))
		return lb_err_set(
			reterr, "No such server: '%s' is not an address with a port.", slash + 1);
	if (!find_in(a, words[0], (size_t)(slash - words[0]), ret))
		return lb_err_set(reterr, "No such backend.");
	return ret->is_found ? 0 : lb_err_set(reterr, "No such server.");
}

static int apply(struct assembler *a, const struct server *s, struct lb_err *reterr)
{
	return assembler_override(a, s->leaf, &s->address, s->override, reterr);
}

static int set_health(struct assembler *a, char *const *words, unsigned n, bool has_health,
	enum lb_leaf_health health, struct lb_err *reterr)
{
	struct server s;
	int err = find(a, words, n, &s, reterr);
	if (err)
		return err;
	s.override.has_health = has_health;
	s.override.health = has_health ? health : LB_LEAF_UNKNOWN;
	return apply(a, &s, reterr);
}

int haproxy_server_disable(
	struct assembler *a, char *const *words, unsigned n, struct lb_err *reterr)
{
	return set_health(a, words, n, true, LB_LEAF_UNHEALTHY, reterr);
}

int haproxy_server_enable(
	struct assembler *a, char *const *words, unsigned n, struct lb_err *reterr)
{
	return set_health(a, words, n, false, LB_LEAF_UNKNOWN, reterr);
}

static int read_weight(const char *word, struct server *s, struct lb_err *reterr)
{
	uint64_t n;
	size_t len = strlen(word);
	bool is_percent = len && word[len - 1] == '%';
	if (!str_number((struct str){word, len - is_percent}, OVERRIDE_MAX_WEIGHT, &n))
		return lb_err_set(reterr, "'%s' is not a weight: 1 to %d, or a percentage.", word,
			OVERRIDE_MAX_WEIGHT);
	if (n == 0)
		return lb_err_set(reterr, "A weight of 0 is not known here: 'set server "
					  "BACKEND/SERVER state drain' keeps requests away.");
	if (is_percent && n == 100) {
		s->override.weight = 0; // the resource's own
		return 0;
	}
	if (is_percent && s->override.weight)
		return lb_err_set(reterr, "Percentages are of the weight that xDS gave, and "
					  "another is set: 100%% first.");
	if (is_percent)
		n = ((uint64_t)s->weight * n + 50) / 100;
	s->override.weight = n < 1                     ? 1
	                     : n < OVERRIDE_MAX_WEIGHT ? (uint32_t)n
	                                               : OVERRIDE_MAX_WEIGHT;
	return 0;
}

int haproxy_server_set_weight(
	struct assembler *a, char *const *words, unsigned n, struct lb_err *reterr)
{
	struct server s;
	int err = find(a, words, n, &s, reterr);
	if (err)
		return err;
	if (n != 2)
		return lb_err_set(reterr, "BACKEND/SERVER and a weight must follow.");
	err = read_weight(words[1], &s, reterr);
	return err ? err : apply(a, &s, reterr);
}

int haproxy_server_set(struct assembler *a, char *const *words, unsigned n, struct lb_err *reterr)
{
	const char *what = n == 3 ? words[1] : "", *to = n == 3 ? words[2] : "";
	if (strcmp(what, "weight") == 0)
		return haproxy_server_set_weight(a, (char *const[]){words[0], words[2]}, 2, reterr);
	if (strcmp(what, "state") == 0 && strcmp(to, "ready") == 0)
		return haproxy_server_enable(a, words, n, reterr);
	if (strcmp(what, "state") == 0 && strcmp(to, "drain") == 0)
		return set_health(a, words, n, true, LB_LEAF_DRAINING, reterr);
	if (strcmp(what, "state") == 0 && strcmp(to, "maint") == 0)
		return haproxy_server_disable(a, words, n, reterr);
	return lb_err_set(reterr, "'set server BACKEND/SERVER' knows 'state ready', 'state drain', "
				  "'state maint', 'weight N' and 'weight N%%'.");
}
