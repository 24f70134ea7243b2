// SPDX-License-Identifier: Apache-2.0
// One cluster's balancing on the control thread: owns the policy, gives it subchannels, and turns
// what it publishes into immutable lb_cluster objects for the next snapshot.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct lb_balancer;
struct lb_cluster;
struct lb_connectivity;
struct lb_hosts;
struct lb_policy_config;

struct lb_balancer_env {
	struct lb_connectivity *connectivity;
	// The cluster has a new state. Borrowed: a snapshot takes its own reference. Called from
	// inside update(), fail(), and connectivity events; must not free the balancer.
	void (*on_change)(void *ctx, struct lb_cluster *);
	void *ctx;
};

// id < LB_MAX_CLUSTERS; the name is copied. Until the first update() its requests wait (A28-R05).
// NULL = no memory.
struct lb_balancer *lb_balancer_new(uint32_t id, const char *name, const struct lb_balancer_env *);
void lb_balancer_free(struct lb_balancer *); // NULL is fine

// New endpoints. Unchanged ones keep their connections (UPD-02). 0 or -ENOMEM (the old list stays).
[[nodiscard]] int lb_balancer_update(struct lb_balancer *, const struct lb_policy_config *);
// What the endpoints are called, from the next object on, which is published at once. Takes its own
// reference; NULL = nothing is known. 0 or -ENOMEM (the old ones stay).
[[nodiscard]] int lb_balancer_set_hosts(struct lb_balancer *, struct lb_hosts *);
// The cluster is in error: its requests fail with the text, its endpoints are let go (A28-R06).
// 0 or -ENOMEM (nothing changed).
[[nodiscard]] int lb_balancer_fail(struct lb_balancer *, const char *text);

// The newest object; never NULL; borrowed until the next change.
struct lb_cluster *lb_balancer_cluster(const struct lb_balancer *);
