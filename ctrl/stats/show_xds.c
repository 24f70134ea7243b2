// SPDX-License-Identifier: Apache-2.0
// show xds: the server, and what CSDS tells of each resource (ctrl/status/csds_dump.c).
#include "ctrl/res/types.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/xds/federation.h"
#include "ctrl/xds/keeper.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <string.h>

// Asked for, and served from disk meanwhile: no status of CSDS, which has no 0.
#define STALE 0
#define N_STATES (XDS_STATUS_TIMEOUT + 1)

// How many resources of a type are in which state, without and with a value: what gRFC A78 counts
// as grpc.xds_client.resources (CS-09).
struct counts {
	uint64_t n[N_STATES][2];
};

struct dump {
	uint64_t now_ns;
	struct counts counts[RES_N_TYPES];
	json_t *rows;
};

// Of a moment, or null.
static json_t *age(const struct dump *d, uint64_t ns)
{
	return ns ? json_real(show_seconds(d->now_ns - ns)) : json_null();
}

static int state_of(const struct xds_entry_info *e)
{
	return e->is_stale && e->status == XDS_STATUS_REQUESTED ? STALE : (int)e->status;
}

static const char *name_of(int state)
{
	return state == STALE ? "STALE" : xds_status_name((enum xds_status)state);
}

static void add_resource(void *ctx, const struct xds_entry_info *e)
{
	struct dump *d = ctx;
	for (uint32_t t = 0; t < RES_N_TYPES; t++)
		if (res_types[t] == e->type)
			d->counts[t].n[state_of(e)][e->res != NULL]++;
	json_t *row = json_object();
	show_set_text(row, "type", e->type->label);
	show_set_text(row, "name", e->name);
	show_set_text(row, "state", name_of(state_of(e)));
	show_set_text(row, "version", e->version);
	json_object_set_new(row, "stale", json_boolean(e->is_stale));
	json_object_set_new(row, "age_s", age(d, e->updated_ns));
	json_object_set_new(
		row, "bytes", e->res ? json_integer((json_int_t)e->res->len) : json_null());
	json_object_set_new(row, "failed_s", age(d, e->error_ns));
	show_set_text(row, "rejected", e->error_version);
	show_set_text(row, "error", e->error);
	json_array_append_new(d->rows, row);
}

// An accepted resource has its value; of the others those that do serve on with it.
static json_t *count_rows(const struct dump *d)
{
	json_t *rows = json_array();
	for (uint32_t t = 0; t < RES_N_TYPES; t++) {
		for (int state = STALE; state < N_STATES; state++) {
			for (int has_value = 0; has_value < 2; has_value++) {
				uint64_t n = d->counts[t].n[state][has_value];
				if (!n)
					continue;
				json_t *row = json_object();
				show_set_text(row, "type", res_types[t]->label);
				show_set_text(row, "state", name_of(state));
				json_object_set_new(row, "serves", json_boolean(has_value));
				show_set_u64(row, "resources", n);
				json_array_append_new(rows, row);
			}
		}
	}
	return rows;
}

static json_t *server_json(const struct xds_server_info *i, uint64_t now_ns)
{
	json_t *server = json_object();
	show_set_text(server, "uri", i->uri);
	show_set_text(server, "protocol", i->protocol);
	show_set_text(server, "state", xds_server_state_name(i->state));
	json_object_set_new(server, "for_s",
		i->since_ns ? json_real(show_seconds(now_ns - i->since_ns)) : json_null());
	show_set_text(server, "error", i->error);
	show_set_u64(server, "streams", i->n_streams);
	show_set_u64(server, "requests", i->n_requests);
	show_set_u64(server, "responses", i->n_responses);
	show_set_u64(server, "acks", i->n_acks);
	show_set_u64(server, "nacks", i->n_nacks);
	show_set_u64(server, "undecodable", i->n_undecodable);
	show_set_u64(server, "unknown_type", i->n_unknown_type);
	show_set_u64(server, "over_limit", i->n_over_limit);
	show_set_u64(server, "unwanted", i->n_unwanted);
	show_set_u64(server, "stale", i->n_stale);
	return server;
}

static void add_server(void *ctx, const struct xds_server_info *i)
{
	struct dump *d = ctx;
	json_array_append_new(d->rows, server_json(i, d->now_ns));
}

// What is kept of it in state_dir, or null.
static json_t *state_json(const struct show *s, uint64_t now_ns)
{
	struct xds_keeper_info i;
	if (!s->conf.keeper)
		return json_null();
	xds_keeper_info(s->conf.keeper, &i);
	uint64_t wall_s = s->conf.wall_ns() / NS_PER_SECOND;
	json_t *state = json_object();
	show_set_text(state, "directory", i.directory);
	json_object_set_new(state, "read_age_s",
		i.read_s ? json_integer((json_int_t)(wall_s - i.read_s)) : json_null());
	json_object_set_new(state, "written_age_s",
		i.written_ns ? json_real(show_seconds(now_ns - i.written_ns)) : json_null());
	show_set_u64(state, "bytes", i.len);
	show_set_u64(state, "written", i.n_written);
	show_set_u64(state, "failed", i.n_failed);
	show_set_u64(state, "too_large", i.n_too_large);
	show_set_u64(state, "set_aside", i.n_set_aside);
	show_set_text(state, "read_error", i.read_error);
	show_set_text(state, "error", i.error);
	return state;
}

// "server" is the one in use for old-style names.
json_t *show_xds(const struct show *s, struct show_args *args)
{
	uint64_t now_ns = twheel_now(s->conf.wheel);
	struct dump servers = {.now_ns = now_ns, .rows = json_array()};
	struct dump d = {.now_ns = now_ns, .rows = json_array()};
	struct xds_server_info active;
	xds_federation_server(s->conf.xds, &active);
	json_t *server = server_json(&active, now_ns);
	xds_federation_each_server(s->conf.xds, add_server, &servers);
	xds_federation_each(s->conf.xds, add_resource, &d);
	return json_pack("{so so so so so}", "server", server, "servers", servers.rows, "state",
		state_json(s, now_ns), "counts", count_rows(&d), "resources", d.rows);
}
