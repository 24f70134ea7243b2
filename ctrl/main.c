// SPDX-License-Identifier: Apache-2.0
// shuntd: the order in which everything is born, and its mirror image. It and data_plane.c are the
// only files that see both the control plane and the data plane.
#include "ctrl/args.h"
#include "ctrl/base/events.h"
#include "ctrl/base/log_file.h"
#include "ctrl/base/log_out.h"
#include "ctrl/base/std_out.h"
#include "ctrl/bond_watch.h"
#include "ctrl/check.h"
#include "ctrl/check_dump.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_bond.h"
#include "ctrl/conf/config_rows.h"
#include "ctrl/control_plane.h"
#include "ctrl/data_plane.h"
#include "ctrl/ending.h"
#include "ctrl/frontends.h"
#include "ctrl/gateway_watch.h"
#include "ctrl/heap_trim.h"
#include "ctrl/service.h"
#include "ctrl/signals.h"
#include "ctrl/stats/show.h"
#include "ctrl/status_start.h"
#include "ctrl/takeover/spawn.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "dataplane/eal.h"
#include "dataplane/exception.h"
#include "dataplane/handover.h"
#include "dataplane/net/steer.h"
#include "dataplane/net/tunnel_list.h"
#include "dataplane/port.h"
#include "dataplane/telemetry.h"
#include "dataplane/worker.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tlshs/keylog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define URGENT_NS (20 * NS_PER_MS) // between two looks at ports that are on their way back

struct daemon {
	struct events *events; // owned
	struct config *config;
	const char *config_path;
	struct xds_bootstrap *bootstrap;
	char **listener_names; // of the frontends
	bool eal_started;
	struct takeover_spawn spawn;
	struct takeover_seat seat; // at the ports, beside another process of ours
	struct steer steer;
	struct net_tunnels tunnels; // the steering's, and all workers'
	struct handover *handover;
	struct exception *exception; // NULL = no port has a kernel behind it
	struct port *ports[NET_MAX_PORTS];
	struct relayed_ports relayed; // those that one process has alone
	struct show_port shown_ports[NET_MAX_PORTS];
	struct bond_watch bonds;
	struct gateway_watch gateways; // of them
	struct lb_frontend_conf *proxy_frontends;
	struct lb_slot *slot;
	struct lb_link *links[LB_MAX_WORKERS];
	struct lb_shared *shared;
	struct worker *threads[LB_MAX_WORKERS];
	struct tlshs_threads *handshakes;
	struct tlshs_keylog keys; // of them, while a capture asks
	struct control_plane *control;
};

// Data plane.

static void log_eal(void *ctx, int level, const char *line)
{
	enum log_level ours = level <= EAL_LOG_ERR       ? LOG_LEVEL_ERROR
	                      : level <= EAL_LOG_WARNING ? LOG_LEVEL_WARN
	                                                 : LOG_LEVEL_DEBUG;
	log_write(ours, "dpdk", "text=%s", log_quote(line));
}

static int start_eal(struct daemon *d, struct lb_err *err)
{
	struct data_plane_eal_lists lists;
	struct eal_conf conf = data_plane_describe_eal(d->config, &lists);
	conf.log = log_eal;
	int ret = eal_start(&conf, err);
	d->eal_started = ret == 0;
	return ret;
}

static int make_steering(struct daemon *d, struct lb_err *err)
{
	uint8_t key[STEER_KEY_MAX];
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return lb_err_set(err, "getrandom() failed");
	steer_init(&d->steer, d->config->n_workers, key);
	if (data_plane_describe_tunnels(d->config, &d->tunnels))
		d->steer.tunnels = &d->tunnels;
	d->handover = handover_new(d->config->n_workers, d->config->idle != CONFIG_IDLE_POLL);
	return d->handover ? 0 : lb_err_set(err, "out of memory");
}

static const char *steering_of(void *ctx, uint32_t port)
{
	const struct daemon *d = ctx;
	if (d->config->n_workers == 1)
		return "none";
	return steer_by_device(&d->steer, port) ? "device" : "software";
}

static void log_port(const struct daemon *d, unsigned i, enum port_event event)
{
	const struct port_status *s = port_status(d->ports[i]);
	const char *device = log_quote(d->config->ports[i].device);
	switch (event) {
	case PORT_EVENT_LINK:
		if (s->state == PORT_UP && s->mbps)
			log_info("link up", "port=%u device=%s speed_mbps=%u", i, device, s->mbps);
		else if (s->state == PORT_UP)
			log_info("link up", "port=%u device=%s", i, device);
		else
			log_warn("link down", "port=%u device=%s", i, device);
		break;
	case PORT_EVENT_LOST:
		log_error("device gone", "port=%u device=%s", i, device);
		break;
	case PORT_EVENT_RESET:
		log_error("device reset", "port=%u device=%s", i, device);
		break;
	case PORT_EVENT_SILENT:
		log_error("device silent",
			"port=%u device=%s reason=\"it was reset, hangs, or nobody is there\"", i,
			device);
		break;
	case PORT_EVENT_BACK:
		log_warn("device back", "port=%u device=%s mac=%s", i, device,
			d->shown_ports[i].mac);
		break;
	case PORT_EVENT_REFUSED:
		log_error("device back, but refused", "port=%u error=%s", i, log_quote(s->error));
		break;
	case PORT_EVENT_SPLIT:
		log_info("frames too long", "port=%u done=%s", i, log_quote(s->merged));
		break;
	case PORT_EVENT_CUT:
		log_warn("frames too long", "port=%u remedy=%s", i, log_quote(s->merged));
		break;
	case PORT_EVENT_NONE:
		break;
	}
}

// It may have ended before it came as far as the takeover's socket: for a file that is wrong, say.
static void tell_of_newer(struct daemon *d)
{
	pid_t pid;
	int status;
	if (takeover_spawn_ended(&d->spawn, &pid, &status))
		log_warn("newer process exited", "pid=%d exit_status=%d signal=%d", (int)pid,
			WIFEXITED(status) ? WEXITSTATUS(status) : -1,
			WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static bool watch_ports(void *ctx, uint64_t now_ns, uint64_t *next_ns)
{
	struct daemon *d = ctx;
	bool came_up = false;
	tell_of_newer(d);
	for (unsigned i = 0; i < d->config->n_ports; i++) {
		enum port_event event = port_watch(d->ports[i], now_ns);
		data_plane_show_port(d->ports[i], &d->shown_ports[i]);
		log_port(d, i, event);
		if (port_is_urgent(d->ports[i], now_ns))
			*next_ns = now_ns + URGENT_NS;
		exception_follow(d->exception, i, port_mac(d->ports[i]),
			port_status(d->ports[i])->state == PORT_UP);
		came_up |= (event == PORT_EVENT_LINK || event == PORT_EVENT_BACK) &&
		           port_status(d->ports[i])->state == PORT_UP;
	}
	gateway_watch_look(&d->gateways, d->shown_ports);
	bond_watch_look(&d->bonds, d->shown_ports);
	return came_up;
}

static int open_ports(struct daemon *d, struct lb_err *err)
{
	int rc = data_plane_init_relays(
		d->config, d->seat.relay_fd > 0 ? d->seat.relay_fd : -1, &d->relayed, err);
	if (rc)
		return rc;
	for (unsigned i = 0; i < d->config->n_ports; i++) {
		struct port_conf conf = {
			.steer = &d->steer, .shared = d->seat.fd >= 0, .cables = &d->seat.cables};
		unsigned carrier = d->config->ports[i].carrier;
		data_plane_describe_port(d->config, i, &conf);
		conf.carrier = carrier == i ? NULL : d->ports[carrier];
		conf.relayed = relayed_ports_find(&d->relayed, i);
		d->ports[i] = port_new(&conf, err);
		if (!d->ports[i])
			return -EINVAL;
		data_plane_show_port(d->ports[i], &d->shown_ports[i]);
		if (d->config->n_workers > 1)
			log_info("port", "index=%u driver=%s steering=%s", i,
				d->shown_ports[i].driver, steering_of(d, i));
	}
	steer_settle(&d->steer);
	rc = relayed_ports_begin(&d->relayed, d->ports);
	return rc ? lb_err_set(err, "out of memory for the relay") : 0;
}

static int make_workers(struct daemon *d, struct lb_err *err)
{
	const struct config *c = d->config;
	d->shared = lb_shared_new();
	d->handshakes = data_plane_make_handshakes(c, &d->keys);
	if (!d->shared || !d->handshakes)
		return lb_err_set(err, "out of memory for the workers");
	d->bonds = (struct bond_watch){.config = c};
	d->gateways = (struct gateway_watch){.config = c, .gateways = &d->shared->gateways};
	for (unsigned i = 0; i < c->n_workers; i++) {
		d->links[i] = lb_link_new(i, c->workers[i], d->shared);
		if (!d->links[i])
			return lb_err_set(err, "out of memory for worker %u", i);
		bool has_own = c->access_log && (c->access_log->path || c->access_log->collector);
		if (c->access_log || c->tracing)
			d->links[i]->access = lb_access_new(has_own ? &c->access_filter : NULL);
		if (c->tracing)
			d->links[i]->trace = lb_trace_new();
		if (c->capture)
			d->links[i]->capture = lb_capture_new(LB_CAPTURE_RING);
		if (((c->access_log || c->tracing) && !d->links[i]->access) ||
			(c->tracing && !d->links[i]->trace) ||
			(c->capture && !d->links[i]->capture))
			return lb_err_set(err, "out of memory for worker %u", i);
		struct worker_conf conf = {
			.index = i,
			.steer = &d->steer,
			.handover = d->handover,
			.exception = d->exception,
			.relays = d->relayed.relays,
			.handshakes = d->handshakes,
			.frontends = d->proxy_frontends,
			.n_frontends = c->n_frontends,
			.link = d->links[i],
			.slot = d->slot,
			.company = takeover_first_company(&d->seat),
		};
		data_plane_take_source_ports(c, d->seat.generation, &conf);
		data_plane_describe_worker(c, d->ports, &conf);
		d->threads[i] = worker_new(&conf, err);
		if (!d->threads[i])
			return -EINVAL;
	}
	return 0;
}

static int make_frontends(struct daemon *d, struct lb_err *err)
{
	d->proxy_frontends = data_plane_describe_frontends(d->config);
	return d->proxy_frontends ? 0 : lb_err_set(err, "out of memory");
}

// A frontend with TLS refuses until it has a context: it never speaks in the clear; nor does one
// whose Listener has yet to say what it speaks.
static bool refuse_plain_text(const struct config *c, struct lb_snapshot *s)
{
	for (uint32_t i = 0; i < c->n_frontends; i++)
		if ((c->frontends[i].tls || !c->frontends[i].target) &&
			lb_snapshot_set_frontend_credential(s, i, LB_NO_CREDENTIAL))
			return false;
	return true;
}

static int make_slot(struct daemon *d, struct lb_err *err)
{
	struct lb_snapshot *first = lb_snapshot_new(
		config_n_places(d->config), "no configuration has been received yet");
	bool ok = first && refuse_plain_text(d->config, first);
	d->slot = ok ? lb_slot_new(first) : NULL;
	if (d->slot)
		return 0;
	lb_snapshot_free(first);
	return lb_err_set(err, "out of memory");
}

// EAL first: it takes this thread off the workers' cores, and threads started later inherit that
// (the slot's helper).
static int start_data_plane(struct daemon *d, struct lb_err *err)
{
	int ret = start_eal(d, err);
	if (ret)
		return ret;
	if (make_slot(d, err) || make_frontends(d, err) || make_steering(d, err) ||
		open_ports(d, err) ||
		data_plane_make_exception(d->config, d->ports, &d->exception, err) ||
		make_workers(d, err))
		return -EINVAL;
	if (telemetry_start(d->links, d->config->n_workers))
		return lb_err_set(err, "eal: DPDK's telemetry takes no commands");
	for (unsigned i = 0; i < d->config->n_workers; i++)
		if (worker_start(d->threads[i]))
			return lb_err_set(
				err, "workers[%u]: core %u is busy", i, d->config->workers[i]);
	return 0;
}

static void stop_data_plane(struct daemon *d)
{
	ending_part("workers");
	for (unsigned i = 0; i < d->config->n_workers; i++)
		if (d->threads[i])
			worker_stop(d->threads[i]);
	for (unsigned i = 0; i < d->config->n_workers; i++)
		if (d->threads[i])
			worker_join(d->threads[i]);
	ending_part("DPDK's telemetry");
	telemetry_stop();
	ending_part("handshakes of TLS");
	for (unsigned i = 0; i < d->config->n_workers; i++)
		worker_free(d->threads[i]);
	tlshs_threads_free(d->handshakes);
	ending_part("ports");
	exception_free(d->exception);
	relayed_ports_fini(&d->relayed);
	handover_free(d->handover, port_drop_frame);
	for (unsigned i = d->config->n_ports; i > 0; i--) // carriers after what they carry
		port_free(d->ports[i - 1]);
	ending_part("EAL");
	if (d->eal_started)
		eal_stop();
	data_plane_free_frontends(d->config, d->proxy_frontends);
}

static void follow(void *ctx)
{
	struct daemon *d = ctx;
	tell_of_newer(d); // or nobody hears of that one any more
	int rc = takeover_spawn_run(&d->spawn);
	if (rc)
		log_error("no newer process", "error=%s", log_quote(takeover_spawn_why_not(rc)));
	else
		log_info("newer process started", "pid=%d", (int)d->spawn.last);
}

static int start_control_plane(struct daemon *d, struct lb_err *err)
{
	struct control_plane_conf conf = {
		.config = d->config,
		.config_path = d->config_path,
		.bootstrap = d->bootstrap,
		.listener_names = d->listener_names,
		.slot = d->slot,
		.links = d->links,
		.n_links = d->config->n_workers,
		.max_connections = d->config->max_connections,
		.ports = d->shown_ports,
		.steering = steering_of,
		.watch_ports = watch_ports,
		.ctx_ports = d,
		.follow = follow,
		.devices = data_plane_devices(&d->relayed),
		.seat = d->seat,
		.events = d->events,
		.keys = &d->keys,
	};
	d->control = control_plane_new(&conf);
	return d->control ? control_plane_start(d->control, err) : lb_err_set(err, "out of memory");
}

static void free_links(struct daemon *d)
{
	for (unsigned i = 0; i < d->config->n_workers; i++)
		lb_link_free(d->links[i]);
	lb_shared_free(d->shared);
}

static int run(struct daemon *d, struct lb_err *err)
{
	bool drained = false;
	uint64_t n_cut = 0;
	signals_block();
	tlshs_keylog_init(&d->keys);
	d->events = events_new();
	if (!d->events)
		return lb_err_set(err, "out of memory");
	log_set_sink(events_add, d->events);
	int ret = start_data_plane(d, err);
	if (ret == 0)
		ret = start_control_plane(d, err);
	if (ret == 0) {
		signals_unblock();
		log_info("started", "version=%s workers=%u ports=%u frontends=%u iova=%s xds=%s",
			SHUNT_VERSION, d->config->n_workers, d->config->n_ports,
			config_n_serving(d->config), eal_iova_mode(), d->bootstrap->servers[0].uri);
		bool is_awaited = control_plane_run(d->control);
		signals_block(); // nothing hastens the end
		ending_begin(ENDING_LOOK_MS, is_awaited ? service_ask_time : NULL);
		drained = control_plane_drained(d->control, &n_cut);
		if (control_plane_error(d->control)[0])
			ret = lb_err_set(
				err, "takeover_socket: %s", control_plane_error(d->control));
	}
	control_plane_stop(d->control);
	stop_data_plane(d);
	ending_part("grace periods");
	if (d->slot) // nobody reads a snapshot any more
		lb_slot_free(d->slot);
	control_plane_free(d->control);
	tlshs_keylog_fini(&d->keys);
	free_links(d);
	if (ret == 0 && drained)
		log_info("stopped", "requests_cut=%" PRIu64, n_cut);
	else if (ret == 0) // the workers didn't get to say it
		log_info("stopped", "requests_cut=unknown");
	return ret;
}

// Without --takeover, or with nobody to follow, this is the first.
static int join(struct daemon *d, bool wanted, struct lb_err *err)
{
	if (wanted && !d->config->takeover_socket)
		return lb_err_set(err, "takeover_socket: --takeover needs it");
	d->seat = (struct takeover_seat){.fd = -1, .generation = 1};
	if (!wanted || data_plane_check_shared(d->config, err) != 0)
		return wanted ? -EINVAL : 0;
	int rc = takeover_join(
		d->config->takeover_socket, SHUNT_VERSION, d->config->n_workers, &d->seat, err);
	return rc ? rc : config_check_cables(d->config, &d->seat.cables, err);
}

int main(int argc, char **argv)
{
	struct args args;
	std_out_watch("shuntd", EXIT_FAILURE);
	heap_trim_begin();
	args_parse(argc, argv, &args);
	if (args.device)
		return check_host(args.config, args.json);
	if (!args.check)
		signals_block_harmless();
	log_file_begin();
	log_out_begin();
	struct daemon d = {.config_path = args.config};
	struct lb_err err = {0};
	int ret = -EINVAL;
	d.config =
		takeover_spawn_init(&d.spawn, argc, argv) ? NULL : config_load(args.config, &err);
	if (d.config) {
		log_set_level(d.config->log_level);
		ret = xds_bootstrap_load(args.config, &d.bootstrap, &err);
		if (ret == 0 && !args.check)
			ret = config_rows_reserve(d.config, &err);
	}
	if (ret == 0) {
		ret = frontends_name_listeners(d.config, d.bootstrap, &d.listener_names, &err);
		if (ret == 0)
			ret = frontends_check_providers(d.config, d.bootstrap, &err);
		if (ret == 0)
			ret = status_check_providers(d.config, d.bootstrap, &err);
		if (ret == 0)
			ret = args.check ? check_print(d.config, d.bootstrap, args.config, &err)
			                 : join(&d, args.takeover, &err);
		if (ret == 0 && !args.check)
			ret = run(&d, &err);
		if (ret != 0 && err.text[0])
			lb_err_within(&err, "%s", args.config); // the fields it names are there
		if (ret == 0 && args.resources)
			ret = check_dump(args.resources, d.bootstrap, &err);
	}
	if (ret != 0)
		fprintf(stderr, "shuntd: %s\n", err.text[0] ? err.text : strerror(-ret));
	ending_part("what is left of libraries");
	frontends_free_names(d.config, d.listener_names);
	xds_bootstrap_free(d.bootstrap);
	config_free(d.config);
	if (d.seat.relay_fd > 0)
		close(d.seat.relay_fd);
	takeover_spawn_fini(&d.spawn);
	return ret == 0 ? 0 : 1;
}
