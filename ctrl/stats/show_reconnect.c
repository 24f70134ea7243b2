// SPDX-License-Identifier: Apache-2.0
// `reconnect`: what gRPC calls ResetConnectBackoff, for operators who know that a backend is back.
#include "ctrl/assemble/assemble.h"
#include "ctrl/stats/show_inside.h"
#include "lb/base/ip.h"
#include "lb/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Addresses of a cluster. They are listed before any is retried, which may change the cluster.
struct chosen {
	const char *only; // as ip_port_print() has it; NULL = all
	struct ip_port *list; // NULL = they are counted
	size_t n;
};

static void choose(void *ctx, const struct assembler_endpoint_info *info)
{
	struct chosen *c = ctx;
	char text[IP_PORT_TEXT_MAX];
	for (uint32_t i = 0; i < info->n_addresses; i++) {
		const struct ip_port *address = &info->addresses[i];
		if (c->only && strcmp(ip_port_print(address, text), c->only) != 0)
			continue;
		if (c->list)
			c->list[c->n] = *address;
		c->n++;
	}
}

static bool is_cluster(const struct show *s, const char *name)
{
	struct assembler_cluster_info info;
	return assembler_find_cluster(s->conf.assembler, name, &info);
}

// Cuts the word in two if there is no cluster of the whole name. False = args->err says why not.
static bool split(const struct show *s, struct show_args *args, char *word, const char **ret_only)
{
	*ret_only = NULL;
	if (is_cluster(s, word))
		return true;
	char *slash = strrchr(word, '/');
	if (slash) {
		*slash = 0;
		*ret_only = slash + 1;
		if (is_cluster(s, word))
			return true;
	}
	lb_err_set(&args->err, "no cluster '%s', try show clusters", word);
	return false;
}

// How many waited; -EINVAL = args->err says what is wrong; -ENOMEM.
static int64_t reconnect(const struct show *s, struct show_args *args, char *word)
{
	struct assembler *a = s->conf.assembler;
	struct chosen c = {0};
	if (!split(s, args, word, &c.only))
		return -EINVAL;
	assembler_each_endpoint(a, word, choose, &c);
	if (c.only && !c.n)
		return lb_err_set(&args->err,
			"cluster '%s' has no endpoint '%s', try show endpoints", word, c.only);
	c.list = malloc((c.n + 1) * sizeof(*c.list));
	if (!c.list)
		return -ENOMEM;
	c.n = 0;
	assembler_each_endpoint(a, word, choose, &c);
	int64_t n_waited = 0;
	for (size_t i = 0; i < c.n; i++)
		n_waited += assembler_reconnect(a, &c.list[i]);
	free(c.list);
	return n_waited;
}

// `[CLUSTER[/ADDRESS]]`.
json_t *show_reconnect(const struct show *s, struct show_args *args)
{
	if (args->n > 1) {
		lb_err_set(&args->err, "unexpected argument '%s', try help", args->words[1]);
		return NULL;
	}
	char asked_for[256]; // what it is split into is not what was said
	snprintf(asked_for, sizeof(asked_for), "%s", args->n ? args->words[0] : "all");
	int64_t n = args->n ? reconnect(s, args, args->words[0])
	                    : (int64_t)assembler_reconnect(s->conf.assembler, NULL);
	if (n >= 0)
		log_info("reconnect", "asked_for=%s endpoints=%" PRId64, log_quote(asked_for), n);
	return n < 0 ? NULL : json_pack("{sI}", "reconnecting", (json_int_t)n);
}
