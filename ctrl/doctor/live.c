// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/live.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/base/show_port.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/material.h"
#include "ctrl/conf/config.h"
#include "ctrl/doctor/dates.h"
#include "ctrl/xds/federation.h"
#include "ctrl/xds/keeper.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/route/filter.h"

#include <stdio.h>
#include <string.h>

#define SILENT_NS (15 * NS_PER_SECOND) // as long as a resource may take (gRFC A57)
struct look {
	const struct doctor_live *live;
	const char *uri; // of the server in use
	bool wants_refusal; // of those that end streams for what we are
};

// A status by which a server says that it does not like us, rather than that it has a fault.
static bool is_refusal(const char *error)
{
	static const char *const names[] = {"PERMISSION_DENIED", "UNAUTHENTICATED",
		"INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(error, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void look_at_server(void *ctx, const struct xds_server_info *s)
{
	const struct look *k = ctx;
	struct doctor_report *r = k->live->report;
	bool in_use = k->uri && strcmp(s->uri, k->uri) == 0;
	enum doctor_severity severity = in_use ? DOCTOR_ERROR : DOCTOR_WARNING;
	uint64_t for_ns = twheel_now(k->live->wheel) - s->since_ns;
	bool fails = !s->connected && s->error[0];
	bool is_silent = s->state == XDS_SERVER_CONNECTING && s->since_ns && for_ns > SILENT_NS;
	if (s->state == XDS_SERVER_IDLE || s->state == XDS_SERVER_CONNECTED ||
		k->wants_refusal != (fails && is_refusal(s->error)))
		return;
	if (k->wants_refusal) {
		doctor_find(r, severity,
			"xDS server %s refuses this node: %s; what serves is not "
			"updated",
			s->uri, s->error);
		doctor_fix(r, "node (id, cluster, metadata) and channel_creds in the bootstrap, or "
			      "what the server knows of this node");
	} else if (fails) {
		doctor_find(r, severity, "xDS server %s: %s; what serves is not updated", s->uri,
			s->error);
		doctor_fix(r, "start the server, or open the way to it; server_uri in the "
			      "bootstrap");
	} else if (is_silent) {
		doctor_find(r, severity,
			"xDS server %s has not answered for %.0f s; what serves is "
			"not updated",
			s->uri, (double)for_ns / (double)NS_PER_SECOND);
		doctor_fix(r, "the server's log: what it has for this node's id");
	}
}

static void look_at_servers(const struct doctor_live *l, bool wants_refusal)
{
	struct xds_server_info active;
	char uri[512];
	xds_federation_server(l->xds, &active);
	snprintf(uri, sizeof(uri), "%s", active.uri ? active.uri : "");
	struct look k = {.live = l, .uri = uri, .wants_refusal = wants_refusal};
	xds_federation_each_server(l->xds, look_at_server, &k);
}

static void check_stream(const struct doctor_live *l)
{
	look_at_servers(l, false);
}

static void check_node(const struct doctor_live *l)
{
	look_at_servers(l, true);
}

static void look_at_resource(void *ctx, const struct xds_entry_info *e)
{
	const struct doctor_live *l = ctx;
	bool serves = e->res;
	if (e->status == XDS_STATUS_REQUESTED || e->status == XDS_STATUS_ACKED)
		return;
	doctor_find(l->report, serves ? DOCTOR_WARNING : DOCTOR_ERROR, "%s %s is %s: %s; %s",
		e->type->label, e->name, xds_status_name(e->status), e->error,
		serves ? "its last good version serves" : "what needs it fails");
	if (e->status == XDS_STATUS_NACKED)
		doctor_fix(l->report, "the resource on the xDS server: docs/xds.md has each field");
	else
		doctor_fix(l->report, "the name, or the resource on the xDS server");
}

static void check_resources(const struct doctor_live *l)
{
	xds_federation_each(l->xds, look_at_resource, (void *)(uintptr_t)l);
}

static void count_stale(void *ctx, const struct xds_entry_info *e)
{
	unsigned *n = ctx;
	*n += e->is_stale && e->res;
}

static void check_stale(const struct doctor_live *l)
{
	unsigned n = 0;
	xds_federation_each(l->xds, count_stale, &n);
	if (!n)
		return;
	doctor_find(l->report, DOCTOR_WARNING,
		"%s: %u resources serve as an earlier run %s them; their xDS server has not "
		"confirmed them",
		l->keeper ? "state_dir" : "xds", n, l->keeper ? "kept" : "had");
	doctor_fix(l->report, "shuntctl show xds: the servers, and the resources that are stale");
}

static void check_kept(const struct doctor_live *l)
{
	struct xds_keeper_info i;
	if (!l->keeper)
		return;
	xds_keeper_info(l->keeper, &i);
	if (i.error[0]) {
		doctor_find(l->report, DOCTOR_WARNING,
			"state_dir: %s: %s; a start without the xDS servers has what was written "
			"before, or nothing",
			i.directory, i.error);
		doctor_fix(l->report, "the directory, and room on its disk (df %s)", i.directory);
	}
	if (i.read_error[0]) {
		doctor_find(l->report, i.n_written ? DOCTOR_NOTE : DOCTOR_WARNING,
			"state_dir: the file that was there at the start was not used%s: %s",
			i.n_set_aside ? ", and is set aside as xds-state.corrupt" : "",
			i.read_error);
		doctor_fix(l->report, "the disk, and who else writes in %s", i.directory);
	}
}

static void check_state(const struct doctor_live *l)
{
	check_kept(l);
	check_stale(l);
}

static void check_frontends(const struct doctor_live *l)
{
	for (uint32_t i = 0; i < l->config->n_frontends; i++) {
		if (!config_serves(l->config, i))
			continue;
		const char *name = l->config->frontends[i].name;
		const char *error = assembler_frontend_error(l->assembler, i);
		const char *tls = assembler_frontend_tls_error(l->assembler, i);
		const char *refusal = assembler_frontend_refusal(l->assembler, i);
		const char *waits = assembler_frontend_waiting(l->assembler, i);
		refusal = refusal[0] ? refusal : l->refused(l->ctx, i);
		if (error[0] || tls[0]) {
			doctor_find(l->report, DOCTOR_ERROR,
				"frontend %s fails: %s; its requests are answered 14/503, or its "
				"clients refused",
				name, error[0] ? error : tls);
			doctor_fix(l->report, "shuntctl show xds, shuntctl show certs");
		} else if (refusal[0]) {
			doctor_find(l->report, DOCTOR_WARNING,
				"frontend %s: its newest configuration was refused: %s; the one "
				"before serves",
				name, refusal);
			doctor_fix(l->report, "the resource on the xDS server");
		}
		waits = waits[0] ? waits : l->waiting(l->ctx, i);
		if (waits[0]) {
			doctor_find(l->report, DOCTOR_WARNING,
				"frontend %s waits for %s; its next configuration comes no sooner",
				name, waits);
			doctor_fix(l->report, "shuntctl show xds");
		}
	}
}

// TLS-259: API listeners are made for gRPC clients, which say nothing of it (HX-50).
static void check_forwarded(const struct doctor_live *l)
{
	for (uint32_t i = 0; i < l->config->n_frontends; i++) {
		const struct config_frontend *f = &l->config->frontends[i];
		struct assembler_routes serves;
		if (!f->target || !config_serves(l->config, i) ||
			!assembler_frontend_routes(l->assembler, i, &serves) ||
			serves.filters->forwarding.on)
			continue;
		doctor_find(l->report, f->tls && f->tls->ca ? DOCTOR_WARNING : DOCTOR_NOTE,
			"frontend %s: x-forwarded-for and x-forwarded-client-cert pass as clients "
			"write them, as its listener says nothing of them; backends that trust "
			"them can be lied to",
			f->name);
		doctor_fix(l->report, "use_remote_address in the listener's HttpConnectionManager: "
				      "true at an edge, false behind a proxy that writes them");
	}
}

static void check_members(const struct doctor_live *l, uint32_t port)
{
	const struct show_port *p = &l->ports[port];
	for (uint32_t k = 0; k < p->n_members; k++) {
		const struct show_member *m = &p->members[k];
		bool lost = strcmp(m->state, "down") == 0 || strcmp(m->state, "gone") == 0;
		bool alone = strcmp(m->state, "waiting") == 0;
		if (p->link != SHOW_LINK_UP || (!lost && !alone))
			continue;
		doctor_find(l->report, DOCTOR_WARNING,
			"port %u: %s of its bond is %s; the others carry all there is", port,
			l->config->ports[port].bond->members[k], m->state);
		doctor_fix(l->report, "%s",
			alone ? "LACP at the switch's port" : "the cable, or the switch's port");
	}
}

static void check_ports(const struct doctor_live *l)
{
	for (uint32_t i = 0; i < l->config->n_ports; i++) {
		const struct show_port *p = &l->ports[i];
		check_members(l, i);
		const char *device = l->config->ports[i].device;
		if (p->link == SHOW_LINK_GONE) {
			doctor_find(l->report, DOCTOR_ERROR,
				"port %u: %s is gone%s%s; its frontends are down", i, device,
				p->error[0] ? ": " : "", p->error);
			doctor_fix(l->report, "put it back, bound as docs/devices.md has it");
		} else if (p->link == SHOW_LINK_DOWN) {
			doctor_find(l->report, DOCTOR_ERROR,
				"port %u: %s has no link; its frontends are down", i, device);
			doctor_fix(l->report, "ip link set ... up at both ends; the cable, or the "
					      "switch's port");
		}
	}
}

static void look_at_dates(
	const struct doctor_live *l, const char *name, const struct cert_list *list)
{
	char where[128];
	snprintf(where, sizeof(where), "certificate provider %s", name);
	doctor_judge_end(l->report, where, list, l->now_s);
}

static void look_at_certificates(void *ctx, const struct certs_info *i)
{
	const struct doctor_live *l = ctx;
	const char *name = i->source->name;
	if (i->error[0]) {
		doctor_find(l->report, i->material ? DOCTOR_WARNING : DOCTOR_ERROR,
			"certificate provider %s: %s; %s", name, i->error,
			i->material ? "what was read before is used" : "what needs it is refused");
		doctor_fix(l->report, "the file: docs/certificates.md says what it has to be");
	}
	if (!i->material)
		return;
	look_at_dates(l, name, &i->material->chain);
	if (i->material->cas.n == 1) // of many some may be old, and others count
		look_at_dates(l, name, &i->material->cas);
}

static void check_certificates(const struct doctor_live *l)
{
	if (l->certs)
		certs_each(l->certs, look_at_certificates, (void *)(uintptr_t)l);
}

const struct doctor_live_check doctor_live_checks[] = {
	{"xds-stream",
		"each xDS server that is needed: whether it answers; a warning of one that "
		"is not in use",
		DOCTOR_ERROR, check_stream},
	{"xds-node", "the same: whether it refuses this node", DOCTOR_ERROR, check_node},
	{"xds-resource",
		"resources that were refused or are not there; a warning while an older "
		"version serves",
		DOCTOR_ERROR, check_resources},
	{"xds-state",
		"the state kept in `state_dir`: whether it is written, was read at the start, and "
		"what serves from it still, or from an older process",
		DOCTOR_WARNING, check_state},
	{"frontend", "each frontend: whether it serves, and what its next configuration waits for",
		DOCTOR_ERROR, check_frontends},
	{"forwarded",
		"frontends with a `target`: whether the listener says whom requests come from; a "
		"warning where clients may have certificates",
		DOCTOR_WARNING, check_forwarded},
	{"cluster", "each cluster that a route uses: whether its requests fail at once, and why",
		DOCTOR_ERROR, NULL, live_step_clusters},
	{"endpoint",
		"endpoints of clusters that serve: those that cannot be connected to, are ejected, "
		"or fail health checks",
		DOCTOR_WARNING, NULL, live_step_endpoints},
	{"answers",
		"clusters of which half or more of the backends' answers within a second blame "
		"the server, 20 at least",
		DOCTOR_WARNING, NULL, live_step_answers},
	{"port", "each port: whether device and link are there", DOCTOR_ERROR, check_ports},
	{"gateway",
		"whether a port's gateways answer ARP and neighbor discovery; a warning while "
		"another one of the port does",
		DOCTOR_ERROR, live_check_gateway},
	{"worker", "workers that hang, and turns of more than 1 ms", DOCTOR_ERROR,
		live_check_worker},
	{"pool", "pools that are nine tenths full", DOCTOR_WARNING, live_check_pools},
	{"loss", "what ports, TCP and the proxy lost within a second, by cause", DOCTOR_WARNING,
		live_check_losses},
	{"ending", "requests that Shunt ended within a second for want of a backend or of room",
		DOCTOR_WARNING, live_check_endings},
	{"access-log", "whether lines are lost, and the log can be written", DOCTOR_WARNING,
		live_check_log},
	{"log-reopened", "whether logs that were renamed could be opened again (SIGUSR1)",
		DOCTOR_WARNING, live_check_reopening},
	{"stats-socket", "whether connections were closed within a second for want of places",
		DOCTOR_WARNING, live_check_socket},
	{"certificate-served", "certificate providers: errors, and dates as above", DOCTOR_ERROR,
		check_certificates},
	{NULL, NULL, DOCTOR_NOTE, NULL},
};

bool doctor_live_step(struct doctor_live *l)
{
	const struct doctor_live_check *c = &doctor_live_checks[l->at];
	if (!c->id)
		return false;
	if (!l->is_begun)
		doctor_report_begin(l->report, c->id);
	l->is_begun = c->step && c->step(l);
	if (c->look)
		c->look(l);
	l->at += !l->is_begun;
	return true;
}

void doctor_live_fini(struct doctor_live *l)
{
	doctor_walk_fini(&l->walk);
}
