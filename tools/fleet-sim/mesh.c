// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/mesh.h"

#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/pick/orca.h"
#include "tools/fleet-sim/backends.h"

#include <stdlib.h>
#include <string.h>

#define START (1000 * NS_PER_SECOND)
#define READY_SIZE (LB_MAX_ENDPOINTS / 8)

static void on_connect(void *ctx, struct lb_endpoint *e)
{
	struct mesh *m = ctx;
	m->connecting = e;
}

static void on_release(void *ctx, struct lb_endpoint *e)
{
	// Nobody waits for workers here: all goes at once.
	(void)ctx;
	(void)e;
}

// False = out of memory.
static bool connect(struct mesh *m, uint32_t i)
{
	uint32_t n;
	const struct ip_port *address = lb_leaf_endpoints_addresses(m->endpoints, i, &n);
	m->members[i] = lb_member_new(&m->member_env, i, address, n);
	m->connecting = NULL;
	if (m->members[i])
		lb_member_connect(m->members[i]);
	if (!m->connecting)
		return false;
	const struct lb_event e = {.kind = LB_EVENT_CONNECTED, .endpoint_id = m->connecting->id};
	lb_connectivity_event(m->connectivity, 0, &e);
	return true;
}

static bool init(struct mesh *m, uint32_t n_localities)
{
	m->wheel = twheel_new(START);
	m->endpoints = backends_new(m->n, 0, n_localities);
	m->orca = lb_orca_table_new();
	m->members = calloc(m->n, sizeof(struct lb_member *));
	m->ready = malloc(READY_SIZE);
	if (!m->wheel || !m->endpoints || !m->orca || !m->members || !m->ready)
		return false;
	memset(m->ready, 0xff, READY_SIZE);
	m->connectivity = lb_connectivity_new(&(struct lb_connectivity_env){.wheel = m->wheel,
		.rand = &m->rand,
		.n_workers = 1,
		.connect = on_connect,
		.release = on_release,
		.ctx = m,
		.on_state = lb_member_on_state});
	m->member_env = (struct lb_member_env){.connectivity = m->connectivity, .n_expected = m->n};
	bool ok = m->connectivity;
	for (uint32_t i = 0; ok && i < m->n; i++)
		ok = connect(m, i);
	return ok;
}

struct mesh *mesh_new(uint64_t seed, uint32_t n, uint32_t n_localities)
{
	struct mesh *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->n = n;
	rand_init(&m->rand, seed);
	if (init(m, n_localities))
		return m;
	mesh_free(m);
	return NULL;
}

void mesh_free(struct mesh *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; m->members && i < m->n; i++)
		lb_member_put(m->members[i]);
	free(m->members);
	lb_connectivity_free(m->connectivity);
	lb_orca_table_free(m->orca);
	lb_leaf_endpoints_put(m->endpoints);
	twheel_free(m->wheel);
	free(m->ready);
	free(m);
}
