// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/haproxy_stat.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/haproxy_ids.h"
#include "ctrl/stats/haproxy_info.h"
#include "ctrl/stats/haproxy_server.h"
#include "ctrl/stats/haproxy_stat_fields.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/stats_server.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"

#include <event2/buffer.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SOME_ENDPOINTS 128 // of a step

#define X(name, tags, type) STAT_##name,
enum { HAPROXY_STAT_FIELDS(X) N_FIELDS };
#undef X
#define X(name, tags, type) {#name, tags, type},
static const struct haproxy_field fields[N_FIELDS] = {HAPROXY_STAT_FIELDS(X)};
#undef X

struct stat_walk {
	struct stats_follow follow; // first
	const struct show *show;
	struct haproxy_ids *ids;
	struct slice slice;
	struct haproxy_ask ask;
	char *proxy; // of the ask; owned; NULL = all
	FILE *out; // of this slice
	uint64_t listing;
	uint32_t n_taken, n_told; // rows that there are, and that are told
	bool has_begun, has_skipped; // skipped: some cluster
	bool is_over, has_failed; // all was told; memory ran out
	// Where it stands.
	uint32_t frontend;
	struct assembler_cluster_info cluster; // in whose endpoints; its texts are not kept
	char *name; // its name; owned; NULL = before the first
	char *group; // of its endpoints' ids; owned
	struct haproxy_id *id; // its row; NULL = the next cluster is to come
	uint32_t at; // endpoints that are done
	uint64_t weight, n_active, n_backup; // of these: all weights; those that are up
	struct haproxy_value values[N_FIELDS];
};

// What all rows have.
static void begin_row(struct stat_walk *w, const char *proxy, const char *server, unsigned type,
	const char *status)
{
	memset(w->values, 0, sizeof(w->values));
	haproxy_set_text(&w->values[STAT_pxname], proxy);
	haproxy_set_text(&w->values[STAT_svname], server);
	haproxy_set_text(&w->values[STAT_status], status);
	haproxy_set_text(&w->values[STAT_mode], "http");
	haproxy_set(&w->values[STAT_type], type);
	haproxy_set(&w->values[STAT_pid], 1);
}

static void set_rate(struct stat_walk *w, unsigned field, const struct haproxy_reading *r)
{
	if (r->has_rate)
		haproxy_set(&w->values[field], r->per_s);
}

static bool is_of(const struct haproxy_ask *ask, const char *proxy, uint32_t iid)
{
	char number[16];
	snprintf(number, sizeof(number), "%u", iid);
	return !ask->proxy || strcmp(ask->proxy, proxy) == 0 || strcmp(ask->proxy, number) == 0;
}

static void end_row(
	struct stat_walk *w, const char *proxy, unsigned type, uint32_t iid, uint32_t sid)
{
	static const char *const objects[] = {[HAPROXY_FRONTENDS] = "Frontend",
		[HAPROXY_BACKENDS] = "Backend",
		[HAPROXY_SERVERS] = "Server"};
	if (!is_of(&w->ask, proxy, iid) || !(w->ask.types & type) ||
		(w->ask.sid >= 0 && w->ask.sid != sid))
		return;
	haproxy_set(&w->values[STAT_iid], iid);
	haproxy_set(&w->values[STAT_sid], sid);
	const struct haproxy_row row = {fields, w->values, N_FIELDS, objects[type], iid, sid};
	if (w->n_told++ && w->ask.form == HAPROXY_JSON)
		fputc(',', w->out);
	haproxy_row_print(w->out, &row, w->ask.form);
}

// An answer of gRPC comes with HTTP's status 200, whatever its own.
static void set_answers(struct stat_walk *w, const uint64_t answers[LB_N_ANSWERS])
{
	uint64_t n_grpc = 0;
	for (int i = LB_ANSWER_GRPC; i <= LB_ANSWER_GRPC_OTHER; i++)
		n_grpc += answers[i];
	for (unsigned i = 0; i < 5; i++)
		haproxy_set(&w->values[STAT_hrsp_1xx + i],
			answers[LB_ANSWER_HTTP + i] + (i == 1 ? n_grpc : 0));
	haproxy_set(&w->values[STAT_hrsp_other], 0);
}

static void set_bodies(struct stat_walk *w, const struct lb_bodies *n)
{
	haproxy_set(&w->values[STAT_bin], n->in);
	haproxy_set(&w->values[STAT_bout], n->out);
}

// Frontends.

struct frontend_counts {
	uint64_t requests, connections, clients;
};

static struct frontend_counts count_frontend(const struct show *s, uint32_t i, bool accepts)
{
	struct frontend_counts n = {0};
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++) {
		const struct lb_worker_counters *k = &workers_link(s->conf.workers, w)->counters;
		uint64_t uses = counter_read(&k->frontend_uses[i]);
		n.requests += counter_read(&k->frontend_requests[i]);
		n.connections += counter_read(&k->frontend_connections[i]);
		n.clients += uses && accepts ? uses - 1 : uses;
	}
	return n;
}

static void tell_frontend(struct stat_walk *w, uint32_t i)
{
	const struct show *s = w->show;
	const char *name = s->conf.config->frontends[i].name;
	struct haproxy_id *id = haproxy_ids_take(w->ids, w->listing, "frontend", name);
	if (!id)
		return;
	struct drain_info drain;
	struct lb_frontend_times times = {0};
	char down[256];
	drains_look(s->conf.drains, i, &drain);
	bool accepts = drain.phase == DRAIN_NONE || drain.phase == DRAIN_LAME_DUCK;
	bool serves = show_frontend_down(s, i, down, sizeof(down))[0] == 0 &&
	              assembler_frontend_error(s->conf.assembler, i)[0] == 0;
	const struct frontend_counts n = count_frontend(s, i, accepts);
	workers_frontend_times(s->conf.workers, i, &times);
	uint64_t now_ns = twheel_now(s->conf.wheel);
	haproxy_reading_take(&id->events, n.connections, 0, now_ns);
	haproxy_reading_take(&id->requests, n.requests, 0, now_ns);
	begin_row(w, name, "FRONTEND", 0, accepts && serves ? "OPEN" : "STOP");
	set_answers(w, times.answers);
	set_bodies(w, &times.bodies);
	set_rate(w, STAT_rate, &id->events);
	set_rate(w, STAT_conn_rate, &id->events);
	set_rate(w, STAT_req_rate, &id->requests);
	haproxy_set(&w->values[STAT_scur], n.clients);
	haproxy_set(&w->values[STAT_slim], haproxy_info_max_clients(s));
	haproxy_set(&w->values[STAT_stot], n.connections);
	haproxy_set(&w->values[STAT_conn_tot], n.connections);
	haproxy_set(&w->values[STAT_req_tot], n.requests);
	haproxy_set(&w->values[STAT_dreq], times.ended[LB_CAUSE_DENIED]);
	haproxy_set(&w->values[STAT_ereq], times.ended[LB_CAUSE_CLIENT_PROTOCOL]);
	haproxy_set(&w->values[STAT_eint], times.ended[LB_CAUSE_OVERLOAD]);
	w->n_taken++;
	end_row(w, name, HAPROXY_FRONTENDS, id->number, 0);
}

// Endpoints.

static bool is_maint(const struct assembler_endpoint_info *e)
{
	return e->override.has_health && e->override.health == LB_LEAF_UNHEALTHY;
}

static const char *status_of(const struct assembler_endpoint_info *e)
{
	if (is_maint(e))
		return "MAINT";
	if (strcmp(e->health, "DRAINING") == 0)
		return "DRAIN";
	if (e->is_failing || e->is_ejected || strcmp(e->health, "UNHEALTHY") == 0 ||
		strcmp(e->health, "TIMEOUT") == 0)
		return "DOWN";
	return e->is_up ? "UP" : "no check"; // nothing has been tried, or no check has passed yet
}

// An active check; else a connection that is kept says what one would.
static const char *check_of(const struct assembler_endpoint_info *e)
{
	const struct lb_health_record *check = &e->record.health;
	if (check->is_checked)
		return check->health == LB_MEMBER_UNCHECKED   ? "INI"
		       : check->health == LB_MEMBER_UNHEALTHY ? "L7STS"
		                                              : "L7OK";
	switch (e->state) {
	case LB_READY:
		return "L4OK";
	case LB_CONNECTING:
		return "INI";
	case LB_TRANSIENT_FAILURE:
		return "L4CON";
	default:
		return "UNK";
	}
}

static bool is_told(const struct haproxy_ask *ask, const struct assembler_endpoint_info *e)
{
	const char *status = status_of(e);
	return !((ask->no_maint || ask->only_up) && strcmp(status, "MAINT") == 0) &&
	       !(ask->only_up && strcmp(status, "DOWN") == 0);
}

static void set_endpoint(struct stat_walk *w, const struct assembler_endpoint_info *e)
{
	struct haproxy_value *v = w->values;
	const struct member_totals *t = &e->totals;
	haproxy_set(&v[STAT_scur], t->active);
	haproxy_set(&v[STAT_stot], t->issued);
	haproxy_set(&v[STAT_lbtot], t->issued);
	haproxy_set(&v[STAT_req_tot], t->issued);
	haproxy_set(&v[STAT_eresp], t->failed);
	haproxy_set(&v[STAT_weight], e->weight);
	haproxy_set(&v[STAT_uweight], e->weight);
	haproxy_set(&v[STAT_act], e->priority == 0);
	haproxy_set(&v[STAT_bck], e->priority != 0);
	haproxy_set(&v[STAT_used_conn_cur], e->connections);
	haproxy_set_text(&v[STAT_check_status], check_of(e));
	haproxy_set_text(&v[STAT_last_chk], e->last_error);
}

static void tell_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct stat_walk *w = ctx;
	char name[HAPROXY_SERVER_MAX], address[IP_PORT_TEXT_MAX];
	haproxy_server_name(w->name, e, name);
	struct haproxy_id *id = haproxy_ids_take(w->ids, w->listing, w->group, name);
	if (!id)
		return;
	haproxy_reading_take(&id->events, e->totals.issued, 0, twheel_now(w->show->conf.wheel));
	begin_row(w, w->name, name, 2, status_of(e));
	set_endpoint(w, e);
	set_rate(w, STAT_rate, &id->events);
	haproxy_set_text(&w->values[STAT_addr], ip_port_print(&e->addresses[0], address));
	bool is_up = strcmp(status_of(e), "UP") == 0;
	w->weight += e->weight;
	w->n_active += is_up && e->priority == 0;
	w->n_backup += is_up && e->priority != 0;
	w->n_taken++;
	if (is_told(&w->ask, e))
		end_row(w, w->name, HAPROXY_SERVERS, w->id->number, id->number);
}

// Clusters.

static uint64_t count_of(const struct histogram *h)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < HISTOGRAM_N; i++)
		n += h->counts[i];
	return n;
}

static void set_times(struct stat_walk *w)
{
	struct lb_cluster_times times = {0};
	if (w->cluster.totals.started)
		assembler_cluster_times(w->show->conf.assembler, w->name, &times);
	uint64_t now_ns = twheel_now(w->show->conf.wheel);
	haproxy_reading_take(
		&w->id->requests, count_of(&times.request), times.request.sum_ns, now_ns);
	haproxy_reading_take(
		&w->id->attempts, count_of(&times.attempt), times.attempt.sum_ns, now_ns);
	if (w->id->requests.has_mean)
		haproxy_set(&w->values[STAT_ttime], w->id->requests.mean / NS_PER_MS);
	if (w->id->attempts.has_mean)
		haproxy_set(&w->values[STAT_rtime], w->id->attempts.mean / NS_PER_MS);
	set_answers(w, times.answers);
	set_bodies(w, &times.bodies);
}

// One that went meanwhile is not told: it would have counted nothing.
static void tell_cluster(struct stat_walk *w)
{
	if (!assembler_find_without_endpoints(w->show->conf.assembler, w->name, &w->cluster))
		return;
	const struct cluster_totals *t = &w->cluster.totals;
	struct haproxy_value *v = w->values;
	uint64_t n_lost = t->ended[LB_CAUSE_UPSTREAM_RESET] + t->ended[LB_CAUSE_UPSTREAM_LOST];
	begin_row(
		w, w->name, "BACKEND", 1, w->cluster.state == LB_TRANSIENT_FAILURE ? "DOWN" : "UP");
	haproxy_reading_take(&w->id->events, t->started, 0, twheel_now(w->show->conf.wheel));
	set_rate(w, STAT_rate, &w->id->events);
	set_times(w);
	haproxy_set(&v[STAT_qcur], t->queued);
	haproxy_set(&v[STAT_scur], t->active);
	haproxy_set(&v[STAT_slim], w->cluster.max_requests);
	haproxy_set(&v[STAT_stot], t->started);
	haproxy_set(&v[STAT_lbtot], t->started);
	haproxy_set(&v[STAT_req_tot], t->started);
	haproxy_set(&v[STAT_dreq], t->ended[LB_CAUSE_DENIED]);
	haproxy_set(&v[STAT_econ], t->ended[LB_CAUSE_NO_HEALTHY]);
	haproxy_set(&v[STAT_eresp], n_lost + t->ended[LB_CAUSE_UPSTREAM_PROTOCOL] +
					    t->ended[LB_CAUSE_UPSTREAM_TOO_LARGE]);
	haproxy_set(&v[STAT_srv_abrt], n_lost);
	haproxy_set(&v[STAT_cli_abrt],
		t->ended[LB_CAUSE_CLIENT_RESET] + t->ended[LB_CAUSE_CLIENT_LOST]);
	haproxy_set(&v[STAT_eint], t->ended[LB_CAUSE_OVERLOAD]);
	haproxy_set(&v[STAT_weight], w->weight);
	haproxy_set(&v[STAT_uweight], w->weight);
	haproxy_set(&v[STAT_act], w->n_active);
	haproxy_set(&v[STAT_bck], w->n_backup);
	v[STAT_act].tags = v[STAT_bck].tags = "MGP"; // what a server is is a status
	w->n_taken++;
	end_row(w, w->name, HAPROXY_BACKENDS, w->id->number, 0);
}

// Clusters may come and go between two slices: the walk goes on behind the name.
static bool next_cluster(struct stat_walk *w)
{
	const char *next = assembler_cluster_after(w->show->conf.assembler, w->name ? w->name : "");
	char *group = NULL;
	if (!next)
		return false;
	char *name = strdup(next);
	if (!name || asprintf(&group, "in %s", name) < 0) {
		free(name);
		w->has_failed = true;
		return false;
	}
	free(w->name);
	free(w->group);
	w->name = name;
	w->group = group;
	w->id = haproxy_ids_take(w->ids, w->listing, "cluster", name);
	w->at = 0;
	w->weight = w->n_active = w->n_backup = 0;
	if (w->id && !is_of(&w->ask, name, w->id->number)) {
		w->id = NULL;
		w->has_skipped = true;
	}
	return true;
}

// False = nothing is left.
static bool step(struct stat_walk *w)
{
	const struct show *s = w->show;
	if (w->frontend < s->conf.config->n_frontends) {
		uint32_t i = w->frontend++;
		if (config_serves(s->conf.config, i))
			tell_frontend(w, i);
		return true;
	}
	if (!w->id)
		return next_cluster(w);
	uint32_t n = assembler_some_endpoints(
		s->conf.assembler, w->name, w->at, SOME_ENDPOINTS, tell_endpoint, w);
	w->at += n;
	if (n == SOME_ENDPOINTS)
		return true;
	tell_cluster(w);
	w->id = NULL;
	return true;
}

static void begin(struct stat_walk *w)
{
	if (w->ask.form == HAPROXY_JSON)
		fputc('[', w->out);
	if (w->ask.form == HAPROXY_PLAIN) {
		fputs("# ", w->out);
		for (uint32_t i = 0; i < N_FIELDS; i++)
			fprintf(w->out, "%s,", fields[i].name);
		fputs("-,\n", w->out);
	}
}

static bool tell_some(struct stat_walk *w)
{
	if (!w->has_begun)
		begin(w);
	w->has_begun = true;
	slice_begin(&w->slice);
	do {
		if (step(w))
			continue;
		w->is_over = !w->has_failed;
		if (w->has_failed)
			fputs("Out of memory: the list is cut short.\n", w->out);
		else if (w->ask.form == HAPROXY_JSON)
			fputs("]\n", w->out);
		return false;
	} while (!slice_over(&w->slice));
	return true;
}

static bool more(struct stats_follow *f, struct evbuffer *out)
{
	struct stat_walk *w = CONTAINER_OF(f, struct stat_walk, follow);
	char *text = NULL;
	size_t len = 0;
	w->out = open_memstream(&text, &len);
	bool goes_on = w->out && tell_some(w);
	if (w->out && fclose(w->out) == 0)
		evbuffer_add(out, text, len);
	free(text);
	return goes_on;
}

static void walk_free(struct stats_follow *f)
{
	struct stat_walk *w = CONTAINER_OF(f, struct stat_walk, follow);
	bool is_whole = w->is_over && !w->has_skipped;
	haproxy_ids_end(w->ids, w->listing, is_whole ? w->n_taken : UINT32_MAX);
	free(w->proxy);
	free(w->name);
	free(w->group);
	free(w);
}

struct stats_follow *haproxy_stat_new(const struct show *show, struct haproxy_ids *ids,
	const struct slice *slice, const struct haproxy_ask *ask)
{
	struct stat_walk *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->follow = (struct stats_follow){more, walk_free, true};
	w->show = show;
	w->ids = ids;
	w->slice = *slice;
	w->ask = *ask;
	w->ask.proxy = w->proxy = ask->proxy ? strdup(ask->proxy) : NULL;
	w->listing = haproxy_ids_begin(ids);
	if (!ask->proxy || w->proxy)
		return &w->follow;
	walk_free(&w->follow);
	return NULL;
}

// The words behind `show stat`.

static int read_filter(char *const *words, struct haproxy_ask *ret, struct lb_err *reterr)
{
	char *end[2];
	long types = strtol(words[1], &end[0], 10);
	ret->sid = strtoll(words[2], &end[1], 10);
	if (*end[0] || *end[1])
		return lb_err_set(
			reterr, "'%s %s %s' is no IID TYPE SID", words[0], words[1], words[2]);
	ret->types = types < 0 ? UINT_MAX : (unsigned)types;
	if (strcmp(words[0], "-1") != 0)
		ret->proxy = words[0];
	return 0;
}

int haproxy_stat_ask(char *const *words, unsigned n, struct haproxy_ask *ret, struct lb_err *reterr)
{
	*ret = (struct haproxy_ask){.types = UINT_MAX, .sid = -1};
	unsigned i = 0;
	if (n >= 2 && strcmp(words[0], "domain") == 0) {
		if (strcmp(words[1], "proxy") != 0)
			return lb_err_set(reterr, "there is no domain but proxy");
		i = 2;
	}
	if (n >= i + 3 && (strspn(words[i + 1], "-0123456789") == strlen(words[i + 1]))) {
		int err = read_filter(words + i, ret, reterr);
		if (err)
			return err;
		i += 3;
	}
	for (; i < n; i++) {
		if (strcmp(words[i], "typed") == 0)
			ret->form = HAPROXY_TYPED;
		else if (strcmp(words[i], "json") == 0)
			ret->form = HAPROXY_JSON;
		else if (strcmp(words[i], "up") == 0)
			ret->only_up = true;
		else if (strcmp(words[i], "no-maint") == 0)
			ret->no_maint = true;
		else
			return lb_err_set(reterr, "unexpected argument '%s'", words[i]);
	}
	return 0;
}
