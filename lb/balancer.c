// SPDX-License-Identifier: Apache-2.0
#include "lb/balancer.h"

#include "lb/base/check.h"
#include "lb/cluster.h"
#include "lb/connectivity.h"
#include "lb/hosts.h"
#include "lb/limits.h"
#include "lb/picker.h"
#include "lb/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lb_balancer {
	uint32_t id;
	char *name; // owned
	struct lb_balancer_env env;
	struct lb_policy *policy; // owned; NULL before the first update and after fail()
	struct lb_cluster *cluster; // counted; the newest
	struct lb_hosts *hosts; // counted; NULL = none
};

static struct lb_subchannel *subchannel_get(void *ctx, const struct ip_port *addr)
{
	struct lb_balancer *b = ctx;
	return lb_connectivity_get(b->env.connectivity, addr);
}

static void subchannel_put(void *ctx, struct lb_subchannel *s)
{
	struct lb_balancer *b = ctx;
	lb_connectivity_put(b->env.connectivity, s);
}

// Takes the reference to the picker. -ENOMEM leaves the old cluster in place.
static int replace(struct lb_balancer *b, enum lb_state state, struct lb_picker *picker)
{
	struct lb_cluster *c = lb_cluster_new(b->id, b->name, state, picker);
	lb_picker_put(picker);
	if (!c)
		return -ENOMEM;
	lb_cluster_set_hosts(c, b->hosts);
	lb_cluster_put(b->cluster);
	b->cluster = c;
	return 0;
}

static int publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct lb_balancer *b = ctx;
	int err = replace(b, state, picker);
	if (!err)
		b->env.on_change(b->env.ctx, b->cluster);
	return err;
}

struct lb_balancer *lb_balancer_new(
	uint32_t id, const char *name, const struct lb_balancer_env *env)
{
	CHECK(id < LB_MAX_CLUSTERS);
	struct lb_balancer *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->id = id;
	b->env = *env;
	b->name = strdup(name);
	struct lb_picker *picker = lb_picker_new_queue();
	if (!b->name || !picker) {
		lb_picker_put(picker);
		goto err;
	}
	if (replace(b, LB_CONNECTING, picker) == 0)
		return b;
err:
	lb_balancer_free(b);
	return NULL;
}

void lb_balancer_free(struct lb_balancer *b)
{
	if (!b)
		return;
	if (b->policy)
		b->policy->ops->free(b->policy);
	lb_cluster_put(b->cluster);
	lb_hosts_put(b->hosts);
	free(b->name);
	free(b);
}

int lb_balancer_update(struct lb_balancer *b, const struct lb_policy_config *config)
{
	if (!b->policy) {
		const struct lb_policy_helper helper = {
			.name = b->name,
			.subchannel_get = subchannel_get,
			.subchannel_put = subchannel_put,
			.publish = publish,
			.ctx = b,
			.wheel = lb_connectivity_wheel(b->env.connectivity),
		};
		b->policy = lb_policy_round_robin.new(&helper);
	}
	return b->policy ? b->policy->ops->update(b->policy, config) : -ENOMEM;
}

int lb_balancer_set_hosts(struct lb_balancer *b, struct lb_hosts *hosts)
{
	struct lb_hosts *old = b->hosts;
	b->hosts = hosts;
	int err = publish(b, b->cluster->state, lb_picker_get(b->cluster->picker));
	if (err) {
		b->hosts = old;
		return err;
	}
	if (hosts)
		lb_hosts_get(hosts);
	lb_hosts_put(old);
	return 0;
}

int lb_balancer_fail(struct lb_balancer *b, const char *text)
{
	struct lb_picker *picker = lb_picker_new_fail(text);
	if (!picker)
		return -ENOMEM;
	int err = publish(b, LB_TRANSIENT_FAILURE, picker);
	if (err)
		return err;
	if (b->policy)
		b->policy->ops->free(b->policy);
	b->policy = NULL;
	return 0;
}

struct lb_cluster *lb_balancer_cluster(const struct lb_balancer *b)
{
	return b->cluster;
}
