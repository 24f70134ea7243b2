// SPDX-License-Identifier: Apache-2.0
#include "ctrl/control_plane.h"

#include "ctrl/access_log_start.h"
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/assemble/subset_seed.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/capture/capture.h"
#include "ctrl/conf/config.h"
#include "ctrl/dns/lookup.h"
#include "ctrl/dns/resolver.h"
#include "ctrl/dns_start.h"
#include "ctrl/ending.h"
#include "ctrl/failure_log.h"
#include "ctrl/frontends.h"
#include "ctrl/heap_trim.h"
#include "ctrl/hearsay.h"
#include "ctrl/live_config.h"
#include "ctrl/loop.h"
#include "ctrl/reach.h"
#include "ctrl/service.h"
#include "ctrl/shutdown.h"
#include "ctrl/signals.h"
#include "ctrl/stats/show.h"
#include "ctrl/steering_watch.h"
#include "ctrl/succession.h"
#include "ctrl/trace_start.h"
#include "ctrl/trust.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"
#include "ctrl/xds/keeper.h"
#include "ctrl/xds/transport_grpc.h"
#include "ctrl/xds_start.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WATCH_PORTS_NS (NS_PER_SECOND / 5)
// What is longer than a response may be is refused; only what is much longer ends the stream.
#define MESSAGE_PER_RESPONSE 2
#define SLICE_NS (5 * NS_PER_MS) // of a turn, for a large response

struct control_plane {
	struct control_plane_conf conf;
	struct rand rand;
	struct loop *loop;
	struct signals signals;
	struct workers *workers;
	struct failure_log *failure_log;
	struct xds_grpc *grpc;
	struct trust *trust;
	struct load_report *loads;
	struct dns_lookups *lookups;
	struct dns_resolver *dns;
	struct assembler *assembler;
	struct drains *drains;
	struct xds_live xds;
	struct frontends *frontends; // NULL = they are not made yet
	struct capture *capture; // NULL = there are none
	struct traces *traces; // likewise
	struct show *show;
	struct reach reach;
	struct live_config live;
	struct succession *succession; // NULL = off
	struct twheel_timer watch_timer, ports_timer; // every second; WATCH_PORTS_NS
	struct steering_watch steering;
	struct heap_trim trim;
	struct shutdown shutdown;
	struct service service;
	bool ready;
};

// Events of the loop.

static void on_worker_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
	struct control_plane *p = ctx;
	if (event->kind == LB_EVENT_DRAINED)
		shutdown_worker_drained(&p->shutdown, worker, event->n_cut);
	else
		assembler_event(p->assembler, worker, event);
}

// Probes hear of whoever is to go before clients do.
static void tell_serving(void *ctx)
{
	struct control_plane *p = ctx;
	reach_set_serving(&p->reach, p->ready && !p->shutdown.told && !drains_any(p->drains));
}

static void on_tick(void *arg)
{
	struct control_plane *p = arg;
	workers_poll(p->workers);
	assembler_tick(p->assembler);
	capture_tick(p->capture);
	traces_tick(p->traces);
	shutdown_look(&p->shutdown); // reports may have been what was waited for
	bool could = p->ready || (!p->shutdown.begun && assembler_ready(p->assembler));
	if (succession_tick(p->succession, could) && could && !p->ready) {
		p->ready = true;
		show_set_state(p->show, "ready");
		tell_serving(p);
		log_info("ready", "frontends=%u", config_n_serving(p->conf.config));
	}
}

static void tell_service(struct control_plane *p)
{
	service_look(&p->service, &(struct service_view){
					  .config = p->conf.config,
					  .ports = p->conf.ports,
					  .frontends = p->frontends,
					  .ready = p->ready,
					  .drains = drains_any(p->drains),
					  .newer_lacks = succession_newer_lacks(p->succession),
					  .shutdown = &p->shutdown,
				  });
}

static void on_second(struct twheel_timer *timer)
{
	struct control_plane *p = CONTAINER_OF(timer, struct control_plane, watch_timer);
	uint64_t now = twheel_now(loop_wheel(p->loop));
	workers_watch(p->workers, now);
	service_beat(&p->service, !workers_stalled(p->workers));
	failure_log_look(p->failure_log, now);
	signals_look(&p->signals, now);
	steering_watch_look(&p->steering, p->conf.ports);
	if (heap_trim_due(&p->trim, now))
		malloc_trim(0);
	twheel_arm(loop_wheel(p->loop), timer, now + NS_PER_SECOND);
}

static void on_watch_ports(struct twheel_timer *timer)
{
	struct control_plane *p = CONTAINER_OF(timer, struct control_plane, ports_timer);
	uint64_t now = twheel_now(loop_wheel(p->loop)), next = now + WATCH_PORTS_NS;
	uint32_t n = 0;
	if (p->conf.watch_ports(p->conf.ctx_ports, now, &next))
		n = assembler_link_up(p->assembler); // they may have failed for want of it
	if (n)
		log_info("backoff cut short", "reason=\"link up\" endpoints=%u", n);
	tell_service(p);
	reach_look(&p->reach);
	twheel_arm(loop_wheel(p->loop), timer, next);
}

static void on_drains(void *ctx)
{
	tell_serving(ctx);
	tell_service(ctx);
}

static void on_shutdown(void *ctx)
{
	show_set_state(((struct control_plane *)ctx)->show, "draining");
	on_drains(ctx);
}

static bool may_end(void *ctx)
{
	struct control_plane *p = ctx;
	return succession_may_end(p->succession) && load_report_finish(p->loads);
}

static void on_stop(void *ctx)
{
	shutdown_signal(&((struct control_plane *)ctx)->shutdown);
}

static void on_reresolve(void *ctx)
{
	struct control_plane *p = ctx;
	if (p->frontends)
		frontends_reresolve(p->frontends);
}

static void on_grpc_ready(void *arg)
{
	struct control_plane *p = arg;
	heap_trim_heard(&p->trim, xds_grpc_dispatch(p->grpc));
}

// Until the assembler is there, and after it is gone, nobody has an id.
static void on_credential(void *ctx, uint32_t id, struct lb_credential *credential)
{
	struct control_plane *p = ctx;
	if (p->assembler)
		assembler_credential(p->assembler, id, credential);
}

static int start_loop(struct control_plane *p, struct lb_err *err)
{
	uint64_t seed;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return lb_err_set(err, "no randomness: %s", strerror(errno));
	rand_init(&p->rand, seed);
	p->loop = loop_new();
	p->workers = workers_new(p->conf.links, p->conf.n_links, on_worker_event, p);
	if (!p->loop || !p->workers)
		return lb_err_set(err, "out of memory");
	p->failure_log = failure_log_new(p->workers);
	const struct drains_conf drains = {
		p->conf.config, p->workers, loop_wheel(p->loop), on_drains, p};
	p->drains = drains_new(&drains);
	p->signals = (struct signals){
		.on_stop = on_stop,
		.ctx = p,
		.on_follow = p->conf.config->takeover_socket ? p->conf.follow : NULL,
		.ctx_follow = p->conf.ctx_ports,
		.reloader = &p->live.reloader,
	};
	p->steering = (struct steering_watch){
		p->conf.steering, p->conf.ctx_ports, p->conf.config->n_ports, {NULL}};
	p->shutdown = (struct shutdown){
		.config = p->conf.config,
		.loop = p->loop,
		.workers = p->workers,
		.drains = p->drains,
		.on_begin = on_shutdown,
		.may_end = may_end,
		.ctx = p,
	};
	if (!p->drains || !p->failure_log || signals_watch(&p->signals, p->loop))
		return lb_err_set(err, "out of memory");
	return access_log_start(p->conf.config, p->conf.bootstrap, p->conf.links,
		rand_u64(&p->rand), &p->signals.access_log, err);
}

static int start_trust(struct control_plane *p, struct lb_err *err)
{
	struct trust_conf conf = {
		.config = p->conf.config,
		.bootstrap = p->conf.bootstrap,
		.loop = p->loop,
		.changed = on_credential,
		.ctx = p,
	};
	p->trust = trust_new(&conf);
	return p->trust ? 0 : lb_err_set(err, "out of memory");
}

static int start_transport(struct control_plane *p, struct lb_err *err)
{
	hearsay_begin();
	p->grpc = xds_grpc_new();
	if (!p->grpc || loop_watch_fd(p->loop, xds_grpc_fd(p->grpc), on_grpc_ready, p))
		return lb_err_set(err, "out of memory");
	xds_grpc_set_max_len(p->grpc, MESSAGE_PER_RESPONSE * xds_max_response_len(p->conf.config));
	if (traces_start(p->conf.config, p->conf.links, p->loop, &p->rand, &p->traces, err))
		return -EINVAL;
	struct load_report_conf conf = {
		.bootstrap = p->conf.bootstrap,
		.transport = xds_grpc_factory(p->grpc),
		.workers = p->workers,
		.wheel = loop_wheel(p->loop),
		.rand = &p->rand,
		.user_agent_version = SHUNT_VERSION,
		.log = hearsay_xds,
	};
	p->loads = load_report_new(&conf);
	return p->loads ? 0 : lb_err_set(err, "out of memory");
}

static int start_assembler(struct control_plane *p, struct lb_err *err)
{
	const char *compat = getenv("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT");
	struct assembler_conf conf = {
		.config = p->conf.config,
		.slot = p->conf.slot,
		.workers = p->workers,
		.wheel = loop_wheel(p->loop),
		.seed = rand_u64(&p->rand),
		.subset_seed =
			subset_seed(p->conf.config, p->conf.bootstrap->node_id, rand_u64(&p->rand)),
		.max_connections = p->conf.max_connections,
		.slice = {.clock_ns = loop_clock_ns, .len_ns = SLICE_NS},
		.loads = p->loads,
		.credentials = trust_credentials(p->trust),
		.access_log = p->signals.access_log,
		.aggregate_policy = compat && strcmp(compat, "true") == 0, // A75-G08
		.reresolve = on_reresolve,
		.ctx = p,
	};
	p->assembler = assembler_new(&conf);
	return p->assembler ? 0 : lb_err_set(err, "out of memory");
}

static int start_xds(struct control_plane *p, struct lb_err *err)
{
	struct xds_start_conf conf = {
		.config = p->conf.config,
		.bootstrap = p->conf.bootstrap,
		.transport = xds_grpc_factory(p->grpc),
		.loop = p->loop,
		.rand = &p->rand,
		.state_waits = p->conf.seat.fd >= 0,
		.legacy_fd = p->conf.seat.resources_fd,
		.slice_ns = SLICE_NS,
		.log = hearsay_xds,
	};
	if (xds_start(&conf, &p->xds, err))
		return -1;
	struct frontends_conf frontends = {
		.config = p->conf.config,
		.bootstrap = p->conf.bootstrap,
		.listener_names = p->conf.listener_names,
		.node_id = p->conf.bootstrap->node_id,
		.xds = p->xds.federation,
		.dns = p->dns,
		.wheel = loop_wheel(p->loop),
		.assembler = p->assembler,
		.access_log = p->signals.access_log,
		.traces = p->traces,
		.drains = p->drains,
	};
	p->frontends = frontends_new(&frontends);
	return p->frontends ? 0 : lb_err_set(err, "out of memory");
}

static int start_show(struct control_plane *p, struct lb_err *err)
{
	const struct capture_conf captures = {p->conf.config, p->workers, p->conf.ports,
		loop_clock_ns, loop_wall_ns, p->conf.keys};
	if (p->conf.config->capture && !(p->capture = capture_new(&captures)))
		return lb_err_set(err, "out of memory");
	struct show_conf conf = {
		.config = p->conf.config,
		.config_path = p->conf.config_path,
		.reloader = &p->live.reloader,
		.workers = p->workers,
		.assembler = p->assembler,
		.xds = p->xds.federation,
		.keeper = p->xds.keeper,
		.takeover = succession_takeover(p->succession),
		.drains = p->drains,
		.loads = p->loads,
		.certs = trust_certs(p->trust),
		.credentials = trust_credentials(p->trust),
		.access_log = p->signals.access_log,
		.capture = p->capture,
		.traces = traces_exporter(p->traces),
		.events = p->conf.events,
		.wall_ns = loop_wall_ns,
		.wheel = loop_wheel(p->loop),
		.waiting = frontends_waiting,
		.refused = frontends_refused,
		.each_listener = frontends_each_listener,
		.ctx = p->frontends,
		.ports = p->conf.ports,
		.steering = p->conf.steering,
		.ctx_ports = p->conf.ctx_ports,
		.examiner = "/proc/self/exe", // this version, whatever its file is by now
		.started_s = (double)loop_wall_ns() / (double)NS_PER_SECOND,
		.slice = {.clock_ns = loop_clock_ns, .len_ns = SLICE_NS},
	};
	p->show = show_new(&conf);
	return p->show ? 0 : lb_err_set(err, "out of memory");
}

static int start_reach(struct control_plane *p, struct lb_err *err)
{
	struct reach_conf conf = {
		.config = p->conf.config,
		.bootstrap = p->conf.bootstrap,
		.xds = p->xds.federation,
		.credentials = trust_credentials(p->trust),
		.show = p->show,
		.loop = p->loop,
		.slice = {.clock_ns = loop_clock_ns, .len_ns = SLICE_NS},
		.generation = p->conf.seat.generation,
	};
	return reach_start(&p->reach, &conf, p->conf.seat.fd < 0, err);
}

// Before the stats sockets, which a process that nobody let in must not take.
static int start_succession(struct control_plane *p, struct lb_err *err)
{
	struct succession_conf conf = {
		.config = p->conf.config,
		.seat = p->conf.seat,
		.loop = p->loop,
		.workers = p->workers,
		.assembler = p->assembler,
		.trust = p->trust,
		.xds = &p->xds,
		.reach = &p->reach,
		.service = &p->service,
		.shutdown = &p->shutdown,
		.devices = p->conf.devices,
		.reopened = tell_serving,
		.ctx = p,
	};
	return succession_new(&conf, &p->succession, err);
}

struct control_plane *control_plane_new(const struct control_plane_conf *conf)
{
	struct control_plane *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->conf = *conf;
	p->watch_timer.fire = on_second;
	p->ports_timer.fire = on_watch_ports;
	return p;
}

int control_plane_start(struct control_plane *p, struct lb_err *err)
{
	if (start_loop(p, err) || start_trust(p, err) || start_transport(p, err) ||
		dns_start(p->conf.config, p->loop, &p->rand, &p->lookups, &p->dns, err) ||
		start_assembler(p, err) || start_xds(p, err) || start_succession(p, err) ||
		start_show(p, err) || start_reach(p, err))
		return -EINVAL;
	live_config_init(&p->live, p->conf.config, p->conf.config_path, p->trust, p->assembler,
		p->frontends, &p->reach, succession_takeover(p->succession), loop_wheel(p->loop));
	struct twheel *wheel = loop_wheel(p->loop);
	steering_watch_look(&p->steering, p->conf.ports);
	twheel_arm(wheel, &p->watch_timer, twheel_now(wheel) + NS_PER_SECOND);
	on_watch_ports(&p->ports_timer);
	loop_set_tick(p->loop, on_tick, p);
	return 0;
}

bool control_plane_run(struct control_plane *p)
{
	loop_run(p->loop);
	return service_is_ending(&p->service);
}

const char *control_plane_error(const struct control_plane *p)
{
	return succession_error(p->succession);
}

bool control_plane_drained(const struct control_plane *p, uint64_t *retcut)
{
	*retcut = p->shutdown.n_cut;
	return shutdown_is_drained(&p->shutdown);
}

void control_plane_stop(struct control_plane *p)
{
	if (!p)
		return;
	ending_part("the file in state_dir");
	xds_keeper_finish(p->xds.keeper); // while all are watched still
	ending_part("the ports of status and metrics");
	reach_stop(&p->reach);
	ending_part("streams of xDS, and names");
	live_config_fini(&p->live);
	show_free(p->show);
	struct frontends *frontends = p->frontends;
	p->frontends = NULL; // a tree that asks for addresses while they go finds none
	frontends_free(frontends);
	xds_live_fini(&p->xds);
	if (p->dns)
		p->dns->ops->free(p->dns);
	if (p->lookups)
		p->lookups->ops->free(p->lookups);
}

// Clusters give their places in load reports back, whose stream needs the transport.
void control_plane_free(struct control_plane *p)
{
	if (!p)
		return;
	ending_part("access logs and captures");
	succession_free(p->succession);
	access_log_free(p->signals.access_log);
	capture_free(p->capture);
	ending_part("the collector of traces");
	traces_free(p->traces);
	ending_part("the configuration");
	struct assembler *assembler = p->assembler;
	p->assembler = NULL;
	assembler_free(assembler);
	load_report_free(p->loads);
	ending_part("certificates");
	trust_free(p->trust);
	ending_part("the connections of xDS");
	if (p->grpc)
		xds_grpc_free(p->grpc);
	failure_log_free(p->failure_log);
	drains_free(p->drains);
	workers_free(p->workers);
	loop_free(p->loop);
	free(p);
}
