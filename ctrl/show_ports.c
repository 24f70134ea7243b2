// SPDX-License-Identifier: Apache-2.0
// show ports: each device, who brings its frames to the workers they belong to, and what all
// workers together counted on it.
#include "ctrl/config.h"
#include "ctrl/show_impl.h"
#include "ctrl/workers.h"

#include <stdio.h>
#include <string.h>

static const struct counter_set *port_group(const struct lb_link *link, uint32_t port)
{
	char name[16];
	snprintf(name, sizeof(name), "port%u", port);
	for (uint32_t g = 0; g < link->n_groups; g++)
		if (strcmp(link->groups[g].name, name) == 0)
			return &link->groups[g].set;
	return NULL;
}

static void add_counters(json_t *row, const struct workers *workers, uint32_t port)
{
	const struct counter_set *first = port_group(workers_link(workers, 0), port);
	for (uint32_t c = 0; first && c < first->n; c++) {
		uint64_t sum = 0;
		for (uint32_t w = 0; w < workers_count(workers); w++) {
			const struct counter_set *set = port_group(workers_link(workers, w), port);
			sum += set ? counter_read(&set->values[c]) : 0;
		}
		show_set_u64(row, first->names[c], sum);
	}
}

json_t *show_ports(const struct show *s, struct show_args *args)
{
	json_t *rows = json_array();
	for (uint32_t i = 0; rows && i < s->conf.config->n_ports; i++) {
		const struct config_port *p = &s->conf.config->ports[i];
		const struct show_port *more = &s->conf.ports[i];
		json_t *row = json_object();
		show_set_u64(row, "port", i);
		show_set_text(row, "device", p->device);
		show_set_text(row, "driver", more->driver);
		show_set_text(row, "mac", more->mac);
		show_set_u64(row, "mtu", more->mtu);
		show_set_u64(row, "queues", workers_count(s->conf.workers));
		show_set_text(row, "steering", s->conf.steering(s->conf.ctx_steering, i));
		add_counters(row, s->conf.workers, i);
		json_array_append_new(rows, row);
	}
	return rows;
}
