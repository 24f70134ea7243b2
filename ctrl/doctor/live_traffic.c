// SPDX-License-Identifier: Apache-2.0
// What the workers' counters tell.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/place.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/log_file.h"
#include "ctrl/base/show_port.h"
#include "ctrl/base/socket_counts.h"
#include "ctrl/conf/config.h"
#include "ctrl/doctor/live.h"
#include "lb/base/twheel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LONG_TURNS 10 // so many within the time of a look are no accident
#define FULL_PERCENT 90

// Counters that stand still where all is well.
static const struct loss {
	const char *group; // "port": of each
	const char *counter;
	const char *what, *fix;
} losses[] = {
	{"port", "rx_missed", "frames that the device had no buffer for: workers are too slow",
		"shuntctl show workers; more cores in workers"},
	{"port", "rx_cut", "segments of many frames that a sender of this machine never split",
		"where they are sent: ethtool -K IF tso off gso off"},
	{"port", "tx_no_mbuf", "frames that there was no buffer for",
		"shuntctl show pools; more memory in eal, or fewer ports"},
	{"port", "tx_too_long", "frames longer than the device takes", "mtu of the port"},
	{"port", "tx_dropped", "frames that the device did not take in time",
		"shuntctl show ports; a faster link, or more workers"},
	{"net", "tx_no_route", "packets to where no port leads",
		"gateway and addresses of ports; the endpoints' resource"},
	{"net", "neigh_full", "hosts on our links that there is no room to know",
		"a router between them and Shunt"},
	{"net", "neigh_failed", "hosts on our links that do not answer ARP",
		"the endpoints' resource, or those hosts"},
	{"net", "arp_conflict", "claims of another host to an address of ours",
		"arping -D -I IF ADDRESS there; take the address from one of the two"},
	{"net", "nd_conflict", "claims of another host to an IPv6 address of ours",
		"take the address from one of the two"},
	{"tcp", "drop_checksum", "segments with a wrong checksum", "the link, its cable or switch"},
	{"tcp", "drop_checksum_unmade", "segments whose checksum was left to hardware",
		"where they are sent: ethtool -K IF tx off"},
	{"tcp", "drop_conns_full", "segments for which no connection was free",
		"limits: {connections: ...}"},
	{"tcp", "drop_no_chunk", "segments for which no memory was free",
		"limits: {buffers_mib: ...}"},
	{"handover", "ring_full", "frames that another worker did not take in time",
		"shuntctl show workers; more cores in workers"},
	{"proxy", "clients_refused", "clients that there is no room for",
		"limits: {connections: ...}"},
	{"proxy", "queue_overflows", "requests that there is no room to wait for",
		"shuntctl show clusters; limits: {requests: ...}"},
	{"proxy", "clients_cut_for_memory", "clients that were cut as memory ran out",
		"limits: {buffers_mib: ...}"},
	{"proxy", "streams_cut_for_memory", "requests that were cut as memory ran out",
		"limits: {buffers_mib: ...}"},
};
#define N_LOSSES (sizeof(losses) / sizeof(losses[0]))
_Static_assert(N_LOSSES <= DOCTOR_MAX_LOSSES, "a sample has room");

static uint64_t count_loss(const struct doctor_live *l, const struct loss *loss)
{
	if (strcmp(loss->group, "port") != 0)
		return workers_counter(l->workers, loss->group, loss->counter);
	uint64_t sum = 0;
	for (unsigned i = 0; i < l->config->n_ports; i++) {
		char group[16];
		snprintf(group, sizeof(group), "port%u", i);
		sum += workers_counter(l->workers, group, loss->counter);
	}
	return sum;
}

void doctor_live_sample(const struct doctor_live *l, struct doctor_sample *ret)
{
	*ret = (struct doctor_sample){.at_ns = twheel_now(l->wheel)};
	for (size_t i = 0; i < N_LOSSES; i++)
		ret->losses[i] = count_loss(l, &losses[i]);
	for (uint32_t w = 0; w < workers_count(l->workers); w++) {
		const struct lb_worker_counters *k = &workers_link(l->workers, w)->counters;
		for (int c = 0; c < LB_N_CAUSES; c++)
			ret->ended[c] += counter_read(&k->ended[c]);
		ret->long_turns += counter_read(&k->long_turns);
	}
	ret->sockets_cut = l->sockets->n_cut;
	if (l->access_log) {
		struct access_log_numbers n = access_log_numbers(l->access_log);
		ret->log_lost = n.n_ring + n.n_cut + n.n_failed;
	}
}

static double seconds_between(const struct doctor_live *l)
{
	return (double)(l->now.at_ns - l->before.at_ns) / (double)NS_PER_SECOND;
}

// Where nobody watches, traffic tells of one of them.
static bool has_silent(const struct doctor_live *l)
{
	return workers_counter(l->workers, "net", "gateways_silent");
}

// Of one port and family; those that do not answer are named together.
static void look_at_gateways(const struct doctor_live *l, unsigned port, bool v4)
{
	const struct config_port *c = &l->config->ports[port];
	char list[CONFIG_MAX_GATEWAYS * (IP_PORT_TEXT_MAX + 4)] = "", text[IP_PORT_TEXT_MAX];
	unsigned n_up = 0;
	size_t len = 0;
	for (unsigned i = 0; i < c->n_gateway_ips; i++) {
		enum lb_gateway_state state = l->ports[port].gateways[i].state;
		if (ip_is_v4(&c->gateway_ips[i]) != v4)
			continue;
		n_up += state == LB_GATEWAY_UP;
		if (state == LB_GATEWAY_DOWN || (state == LB_GATEWAY_UNKNOWN && has_silent(l)))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
				len ? " or " : "", ip_print(&c->gateway_ips[i], text));
	}
	if (!len)
		return;
	doctor_find(l->report, n_up ? DOCTOR_WARNING : DOCTOR_ERROR,
		"gateway %s does not answer ARP or neighbor discovery; what is behind it is %s",
		list, n_up ? "reached by another one" : "not reached");
	doctor_fix(l->report, "gateway of the port, its vlan, or that router");
}

void live_check_gateway(const struct doctor_live *l)
{
	for (unsigned i = 0; i < l->config->n_ports; i++) {
		look_at_gateways(l, i, true);
		look_at_gateways(l, i, false);
	}
}

void live_check_worker(const struct doctor_live *l)
{
	uint64_t now_ns = twheel_now(l->wheel);
	for (uint32_t w = 0; w < workers_count(l->workers); w++) {
		const struct lb_link *link = workers_link(l->workers, w);
		uint64_t beat_ns = counter_read(&link->counters.beat_ns);
		if (!beat_ns || !workers_stalls(beat_ns, now_ns))
			continue;
		doctor_find(l->report, DOCTOR_ERROR,
			"worker %u has not finished a turn for %.1f s; its clients wait", w,
			(double)(now_ns - beat_ns) / (double)NS_PER_SECOND);
		doctor_fix(
			l->report, "what else runs on core %d (ps -eLo psr,pcpu,comm)", link->core);
	}
	uint64_t n = l->now.long_turns - l->before.long_turns;
	if (n < LONG_TURNS)
		return;
	doctor_find(l->report, DOCTOR_WARNING,
		"%" PRIu64 " turns of workers took more than 1 ms within %.1f s; requests wait for "
		"that long",
		n, seconds_between(l));
	doctor_fix(
		l->report, "isolate the workers' cores, or more of them (shuntctl show workers)");
}

void live_check_pools(const struct doctor_live *l)
{
	for (uint32_t w = 0; w < workers_count(l->workers); w++) {
		const struct pool_list *list = &workers_link(l->workers, w)->pools;
		for (uint32_t i = 0; i < list->n; i++) {
			const struct pool_view *v = &list->views[i];
			uint64_t used = gauge_read(v->n_used);
			if (!v->n_total || used * 100 < (uint64_t)v->n_total * FULL_PERCENT)
				continue;
			doctor_find(l->report, DOCTOR_WARNING,
				"worker %u has %" PRIu64 " of %u of %s in use; what finds none is "
				"refused",
				w, used, v->n_total, v->name);
			doctor_fix(l->report, "limits in shunt.yaml, or more workers");
		}
	}
}

void live_check_losses(const struct doctor_live *l)
{
	for (size_t i = 0; i < N_LOSSES; i++) {
		uint64_t n = l->now.losses[i] - l->before.losses[i];
		if (!n)
			continue;
		doctor_find(l->report, DOCTOR_WARNING,
			"%" PRIu64 " within %.1f s: %s (%s.%s); they are lost", n,
			seconds_between(l), losses[i].what, losses[i].group, losses[i].counter);
		doctor_fix(l->report, "%s", losses[i].fix);
	}
}

void live_check_endings(const struct doctor_live *l)
{
	static const enum lb_cause causes[] = {LB_CAUSE_NO_CONFIG, LB_CAUSE_NO_HEALTHY,
		LB_CAUSE_UPSTREAM_LOST, LB_CAUSE_OVERFLOW, LB_CAUSE_OVERLOAD};
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		uint64_t n = l->now.ended[causes[i]] - l->before.ended[causes[i]];
		const struct lb_cause_info *info = lb_cause_info(causes[i]);
		if (!n)
			continue;
		doctor_find(l->report, DOCTOR_WARNING,
			"%" PRIu64 " requests ended with %s within %.1f s; their clients were told "
			"%d/%d",
			n, info->name, seconds_between(l), info->grpc_status, info->http_status);
		doctor_fix(l->report, "shuntctl show failures cause=%s", info->name);
	}
}

void live_check_log(const struct doctor_live *l)
{
	if (!l->access_log)
		return;
	int error = access_log_numbers(l->access_log).error;
	if (error) {
		doctor_find(l->report, DOCTOR_WARNING,
			"the access log cannot be written: %s; its lines are lost",
			access_place_error(error));
		doctor_fix(l->report,
			"room on its disk, its permissions, or its collector (access_log)");
	}
	if (l->now.log_lost > l->before.log_lost) {
		doctor_find(l->report, DOCTOR_WARNING,
			"%" PRIu64 " lines of access logs were lost within %.1f s",
			l->now.log_lost - l->before.log_lost, seconds_between(l));
		doctor_fix(l->report, "a faster disk or reader; access_log.filter");
	}
}

static void tell_unopened(const struct doctor_live *l, const char *which, const char *error)
{
	doctor_find(l->report, DOCTOR_WARNING,
		"%s cannot be opened again: %s; its lines go on into the file that was renamed, "
		"and it is tried each second",
		which, error);
	doctor_fix(l->report, "what is at its path: it has to be a file, or nothing, in a folder "
			      "that shuntd's user may write to");
}

void live_check_reopening(const struct doctor_live *l)
{
	int error = log_file_numbers().error;
	if (error)
		tell_unopened(l, "the daemon's log", strerror(error));
	error = l->access_log ? access_log_numbers(l->access_log).reopen_error : 0;
	if (error)
		tell_unopened(l, "an access log", access_place_error(error));
}

void live_check_socket(const struct doctor_live *l)
{
	uint64_t n = l->now.sockets_cut - l->before.sockets_cut;
	if (!n)
		return;
	doctor_find(l->report, DOCTOR_WARNING,
		"all places of the stats socket are taken; %" PRIu64 " connections were closed for "
		"newcomers within %.1f s",
		n, seconds_between(l));
	doctor_fix(l->report, "ss -xp names who is connected; fewer that follow (-w, -f)");
}
