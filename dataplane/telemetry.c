// SPDX-License-Identifier: Apache-2.0
#include "dataplane/telemetry.h"

#include "dataplane/telemetry_socket.h"
#include "lb/base/counter.h"
#include "lb/pick/link.h"

#include <rte_telemetry.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(LB_MAX_WORKERS <= RTE_TEL_MAX_ARRAY_ENTRIES, "an answer lists all workers");
_Static_assert(POOL_LIST_MAX <= RTE_TEL_MAX_DICT_ENTRIES, "an answer has all pools of a worker");

// DPDK has one table of commands a process, and none ever leaves it.
static struct {
	pthread_mutex_t lock;
	struct lb_link *const *links;
	uint32_t n;
} telemetry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int list_workers(struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	for (uint32_t i = 0; i < telemetry.n; i++)
		rte_tel_data_add_array_int(d, (int)i);
	return 0;
}

// NULL = there is no such worker.
static const struct lb_link *link_of(const char *param)
{
	char *end;
	if (!param || *param < '0' || *param > '9')
		return NULL;
	unsigned long i = strtoul(param, &end, 10);
	return *end == '\0' && i < telemetry.n ? telemetry.links[i] : NULL;
}

static int tell_worker(const struct lb_link *l, struct rte_tel_data *d)
{
	const struct lb_worker_counters *c = &l->counters;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"requests", counter_read(&c->requests)},
		{"requests_ok", counter_read(&c->ended[LB_CAUSE_OK])},
		{"client_connections", counter_read(&c->client_connections)},
		{"snapshot_version", counter_read(&c->snapshot_version)},
		{"turns", counter_read(&c->turns)},
		{"empty_turns", counter_read(&c->empty_turns)},
		{"busy_ns", counter_read(&c->busy_ns)},
		{"idle_ns", counter_read(&c->idle_ns)},
		{"longest_turn_ns", counter_read(&c->longest_turn_ns)},
		{"long_turns", counter_read(&c->long_turns)},
	};
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "core", l->core);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		rte_tel_data_add_dict_u64(d, rows[i].name, rows[i].value);
	return 0;
}

static void add_pool(const struct pool_view *v, struct rte_tel_data *d)
{
	char name[RTE_TEL_MAX_STRING_LEN];
	struct rte_tel_data *row = rte_tel_data_alloc();
	if (!row)
		return;
	snprintf(name, sizeof(name), "%s", v->name);
	for (char *c = name; (c = strchr(c, '-'));) // which DPDK refuses in names
		*c = '_';
	rte_tel_data_start_dict(row);
	rte_tel_data_add_dict_u64(row, "bytes", v->size);
	rte_tel_data_add_dict_u64(row, "total", v->n_total);
	rte_tel_data_add_dict_u64(row, "used", gauge_read(v->n_used));
	rte_tel_data_add_dict_u64(row, "peak", gauge_read(v->n_peak));
	if (rte_tel_data_add_dict_container(d, name, row, 0))
		rte_tel_data_free(row);
}

static int tell_pools(const struct lb_link *l, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	for (uint32_t i = 0; i < l->pools.n; i++)
		add_pool(&l->pools.views[i], d);
	return 0;
}

// The groups of all workers are the same.
static int list_groups(struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (uint32_t i = 0; telemetry.n && i < telemetry.links[0]->n_groups; i++)
		rte_tel_data_add_array_string(d, telemetry.links[0]->groups[i].name);
	return 0;
}

static int tell_group(const char *name, struct rte_tel_data *d)
{
	uint32_t g = 0;
	if (!name || !telemetry.n)
		return -EINVAL;
	const struct lb_link *first = telemetry.links[0];
	while (g < first->n_groups && strcmp(first->groups[g].name, name) != 0)
		g++;
	if (g == first->n_groups)
		return -EINVAL;
	const struct counter_set *set = &first->groups[g].set;
	rte_tel_data_start_dict(d);
	for (uint32_t c = 0; c < set->n; c++) {
		uint64_t sum = 0;
		for (uint32_t w = 0; w < telemetry.n; w++)
			sum += counter_read(&telemetry.links[w]->groups[g].set.values[c]);
		rte_tel_data_add_dict_u64(d, set->names[c], sum);
	}
	return 0;
}

static int answer(const char *cmd, const char *param, struct rte_tel_data *d)
{
	const struct lb_link *l = link_of(param);
	if (strcmp(cmd, "/shunt/workers") == 0)
		return list_workers(d);
	if (strcmp(cmd, "/shunt/groups") == 0)
		return list_groups(d);
	if (strcmp(cmd, "/shunt/group") == 0)
		return tell_group(param, d);
	if (!l)
		return -EINVAL;
	return strcmp(cmd, "/shunt/pools") == 0 ? tell_pools(l, d) : tell_worker(l, d);
}

static int on_command(const char *cmd, const char *param, struct rte_tel_data *d)
{
	pthread_mutex_lock(&telemetry.lock);
	int ret = answer(cmd, param, d);
	pthread_mutex_unlock(&telemetry.lock);
	return ret;
}

static void set_links(struct lb_link *const *links, uint32_t n)
{
	pthread_mutex_lock(&telemetry.lock);
	telemetry.links = links;
	telemetry.n = n;
	pthread_mutex_unlock(&telemetry.lock);
}

int telemetry_start(struct lb_link *const *links, uint32_t n)
{
	static const struct {
		const char *name, *help;
	} commands[] = {
		{"/shunt/workers", "Returns the numbers of the workers"},
		{"/shunt/worker", "Returns what a worker did. Parameters: its number"},
		{"/shunt/pools", "Returns how full a worker's pools are. Parameters: its number"},
		{"/shunt/groups", "Returns the groups of counters, of ports among them"},
		{"/shunt/group", "Returns its counters, of all workers. Parameters: a group"},
	};
	int ret = 0;
	set_links(links, n);
	for (size_t i = 0; ret == 0 && i < sizeof(commands) / sizeof(commands[0]); i++)
		ret = rte_telemetry_register_cmd(commands[i].name, on_command, commands[i].help);
	return ret;
}

void telemetry_stop(void)
{
	telemetry_socket_end();
	set_links(NULL, 0);
}
