// SPDX-License-Identifier: Apache-2.0
// shuntd: the order in which everything is born, and its mirror image. The only file that sees both
// the control plane and the data plane.
#include "ctrl/assemble.h"
#include "ctrl/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/loop.h"
#include "ctrl/res/types.h"
#include "ctrl/show.h"
#include "ctrl/stats_server.h"
#include "ctrl/workers.h"
#include "ctrl/xds/bootstrap.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/transport_grpc.h"
#include "dataplane/eal.h"
#include "dataplane/port.h"
#include "dataplane/worker.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

// What config.h lets through must fit the data plane, which it does not know.
_Static_assert(CONFIG_MAX_PORTS <= NET_MAX_PORTS, "ports");
_Static_assert(CONFIG_MAX_ADDRESSES <= NET_MAX_ADDRESSES, "addresses of a port");
_Static_assert(CONFIG_MAX_MTU <= PORT_MAX_MTU, "mtu");

#define SECOND_NS UINT64_C(1000000000)
// After the drain's deadline workers get this long to cut what is left and report.
#define DRAIN_SLACK_NS SECOND_NS

struct frontend {
	struct daemon *daemon;
	uint32_t index;
	char *listener_name; // owned
	struct depmgr *depmgr; // owned
};

struct daemon {
	struct config *config;
	struct xds_bootstrap *bootstrap;
	bool eal_started;
	struct port *ports[NET_MAX_PORTS];
	struct proxy_frontend *proxy_frontends;
	struct lb_slot *slot;
	struct lb_link *links[LB_MAX_WORKERS];
	struct lb_shared *shared;
	struct worker *threads[LB_MAX_WORKERS];
	struct loop *loop;
	struct workers *workers;
	struct assembler *assembler;
	struct rand rand;
	struct xds_grpc *grpc;
	struct xds_client *xds;
	struct frontend *frontends;
	struct show *show;
	struct stats_server *stats;
	struct twheel_timer watch_timer; // every second
	struct twheel_timer drain_timer;
	bool ready, draining;
	uint32_t n_drained;
};

static struct daemon *daemon_of_watch(struct twheel_timer *t)
{
	return (struct daemon *)((char *)t - offsetof(struct daemon, watch_timer));
}

static struct daemon *daemon_of_drain(struct twheel_timer *t)
{
	return (struct daemon *)((char *)t - offsetof(struct daemon, drain_timer));
}

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
	const struct config *c = d->config;
	int cores[LB_MAX_WORKERS];
	for (unsigned i = 0; i < c->n_workers; i++)
		cores[i] = c->workers[i];
	struct eal_conf conf = {
		.args = (const char *const *)c->eal,
		.n_args = c->n_eal,
		.cores = cores,
		.n_cores = c->n_workers,
		.log = log_eal,
	};
	int ret = eal_start(&conf, err);
	d->eal_started = ret == 0;
	return ret;
}

static int open_ports(struct daemon *d, struct lb_err *err)
{
	for (unsigned i = 0; i < d->config->n_ports; i++) {
		const struct config_port *p = &d->config->ports[i];
		struct port_conf conf = {
			.index = i,
			.device = p->device,
			.mtu = p->mtu,
			.n_queues = d->config->n_workers,
		};
		d->ports[i] = port_new(&conf, err);
		if (!d->ports[i])
			return -EINVAL;
	}
	return 0;
}

static void describe_ports(const struct daemon *d, struct worker_conf *conf)
{
	conf->n_ports = d->config->n_ports;
	for (unsigned i = 0; i < conf->n_ports; i++) {
		const struct config_port *p = &d->config->ports[i];
		struct worker_port_conf *to = &conf->ports[i];
		to->port = d->ports[i];
		to->gateway = p->gateway_ip;
		to->n_addresses = p->n_addresses;
		for (unsigned j = 0; j < p->n_addresses; j++)
			to->addresses[j] =
				(struct net_prefix){p->address_ips[j], p->address_lens[j]};
	}
}

static int make_workers(struct daemon *d, struct lb_err *err)
{
	const struct config *c = d->config;
	d->shared = lb_shared_new();
	if (!d->shared)
		return lb_err_set(err, "out of memory for the workers");
	for (unsigned i = 0; i < c->n_workers; i++) {
		d->links[i] = lb_link_new(i, c->workers[i], d->shared);
		if (!d->links[i])
			return lb_err_set(err, "out of memory for worker %u", i);
		struct worker_conf conf = {
			.index = i,
			.idle = c->idle == CONFIG_IDLE_POLL ? WORKER_IDLE_POLL
		                                            : WORKER_IDLE_BACKOFF,
			.limits = worker_limits_default(),
			.listener_drain_ns = c->listener_drain_s * SECOND_NS,
			.frontends = d->proxy_frontends,
			.n_frontends = c->n_frontends,
			.link = d->links[i],
			.slot = d->slot,
		};
		describe_ports(d, &conf);
		d->threads[i] = worker_new(&conf, err);
		if (!d->threads[i])
			return -EINVAL;
	}
	return 0;
}

static int describe_frontends(struct daemon *d, struct lb_err *err)
{
	d->proxy_frontends = calloc(d->config->n_frontends, sizeof(*d->proxy_frontends));
	if (!d->proxy_frontends)
		return lb_err_set(err, "out of memory");
	for (unsigned i = 0; i < d->config->n_frontends; i++) {
		const struct config_frontend *f = &d->config->frontends[i];
		d->proxy_frontends[i] =
			(struct proxy_frontend){f->address_ip, f->port, f->authority};
	}
	return 0;
}

static int make_slot(struct daemon *d, struct lb_err *err)
{
	struct lb_snapshot *first =
		lb_snapshot_new(d->config->n_frontends, "no configuration has been received yet");
	d->slot = first ? lb_slot_new(first) : NULL;
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
	if (make_slot(d, err) || describe_frontends(d, err) || open_ports(d, err) ||
		make_workers(d, err))
		return -EINVAL;
	for (unsigned i = 0; i < d->config->n_workers; i++)
		if (worker_start(d->threads[i]))
			return lb_err_set(
				err, "workers[%u]: core %u is busy", i, d->config->workers[i]);
	return 0;
}

static void stop_data_plane(struct daemon *d)
{
	for (unsigned i = 0; i < d->config->n_workers; i++)
		if (d->threads[i])
			worker_stop(d->threads[i]);
	for (unsigned i = 0; i < d->config->n_workers; i++) {
		if (!d->threads[i])
			continue;
		worker_join(d->threads[i]);
		worker_free(d->threads[i]);
	}
	for (unsigned i = 0; i < d->config->n_ports; i++)
		port_free(d->ports[i]);
	if (d->eal_started)
		eal_stop();
	free(d->proxy_frontends);
}

// Events of the loop.

static void on_worker_event(void *ctx, uint32_t worker, const struct lb_event *event)
{
	struct daemon *d = ctx;
	if (event->kind != LB_EVENT_DRAINED) {
		assembler_event(d->assembler, worker, event);
		return;
	}
	log_info("worker drained", "worker=%u", worker);
	if (++d->n_drained == workers_count(d->workers))
		loop_stop(d->loop);
}

static void on_tick(void *arg)
{
	struct daemon *d = arg;
	workers_poll(d->workers);
	assembler_tick(d->assembler);
	if (!d->ready && !d->draining && assembler_ready(d->assembler)) {
		d->ready = true;
		show_set_state(d->show, "ready");
		log_info("ready", "frontends=%u", d->config->n_frontends);
	}
}

static void on_second(struct twheel_timer *timer)
{
	struct daemon *d = daemon_of_watch(timer);
	uint64_t now = twheel_now(loop_wheel(d->loop));
	workers_watch(d->workers, now);
	twheel_arm(loop_wheel(d->loop), timer, now + SECOND_NS);
}

static void on_drain_overdue(struct twheel_timer *timer)
{
	log_warn("stopping", "reason=\"drain overdue\"");
	loop_stop(daemon_of_drain(timer)->loop);
}

static void on_signal(void *arg)
{
	struct daemon *d = arg;
	if (d->draining) {
		log_warn("stopping", "reason=\"second signal\"");
		loop_stop(d->loop);
		return;
	}
	d->draining = true;
	uint64_t deadline = twheel_now(loop_wheel(d->loop)) + d->config->drain_s * SECOND_NS;
	log_info("draining", "deadline_s=%u", d->config->drain_s);
	show_set_state(d->show, "draining");
	struct lb_command drain = {.kind = LB_COMMAND_DRAIN, .deadline_ns = deadline};
	workers_send_all(d->workers, &drain);
	twheel_arm(loop_wheel(d->loop), &d->drain_timer, deadline + DRAIN_SLACK_NS);
}

static void on_config(void *ctx, struct xds_config *config)
{
	struct frontend *f = ctx;
	assembler_update(f->daemon->assembler, f->index, config);
}

static void on_config_error(void *ctx, const char *text)
{
	struct frontend *f = ctx;
	log_warn("frontend without configuration", "frontend=%s error=%s",
		log_quote(f->daemon->config->frontends[f->index].name), log_quote(text));
	assembler_fail(f->daemon->assembler, f->index, text);
}

static void on_xds_log(void *ctx, const char *line)
{
	log_warn("xds", "text=%s", log_quote(line));
}

static void on_grpc_ready(void *arg)
{
	xds_grpc_dispatch(arg);
}

// Control plane.

static int name_frontends(struct daemon *d, struct lb_err *err)
{
	d->frontends = calloc(d->config->n_frontends, sizeof(*d->frontends));
	if (!d->frontends)
		return lb_err_set(err, "out of memory");
	for (uint32_t i = 0; i < d->config->n_frontends; i++) {
		struct frontend *f = &d->frontends[i];
		f->daemon = d;
		f->index = i;
		int ret = xds_bootstrap_listener_name(
			d->bootstrap, d->config->frontends[i].target, &f->listener_name, err);
		if (ret == -ENOMEM) // which has no text
			return ret;
		if (ret)
			return lb_err_within(err, "frontends[%u].target", i);
	}
	return 0;
}

static int start_xds(struct daemon *d, struct lb_err *err)
{
	d->grpc = xds_grpc_new();
	if (!d->grpc || loop_watch_fd(d->loop, xds_grpc_fd(d->grpc), on_grpc_ready, d->grpc))
		return lb_err_set(err, "out of memory");
	struct xds_client_conf conf = {
		.bootstrap = d->bootstrap,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = xds_grpc_factory(d->grpc),
		.wheel = loop_wheel(d->loop),
		.rand = &d->rand,
		.user_agent_version = SHUNT_VERSION,
		.log = on_xds_log,
	};
	d->xds = xds_client_new(&conf);
	if (!d->xds)
		return lb_err_set(err, "out of memory");
	for (uint32_t i = 0; i < d->config->n_frontends; i++) {
		struct frontend *f = &d->frontends[i];
		struct depmgr_conf deps = {
			.client = d->xds,
			.wheel = loop_wheel(d->loop),
			.listener_name = f->listener_name,
			.authority = d->config->frontends[i].authority,
			.node_id = d->bootstrap->node_id,
			.on_update = on_config,
			.on_error = on_config_error,
			.ctx = f,
		};
		f->depmgr = depmgr_new(&deps);
		if (!f->depmgr)
			return lb_err_set(err, "out of memory");
	}
	return 0;
}

static const char *frontend_waiting(void *ctx, uint32_t frontend)
{
	const struct daemon *d = ctx;
	return depmgr_waiting(d->frontends[frontend].depmgr);
}

static const char *frontend_refused(void *ctx, uint32_t frontend)
{
	const struct daemon *d = ctx;
	return depmgr_refused(d->frontends[frontend].depmgr);
}

static int start_show(struct daemon *d, struct lb_err *err)
{
	struct show_conf conf = {
		.config = d->config,
		.workers = d->workers,
		.assembler = d->assembler,
		.xds = d->xds,
		.wheel = loop_wheel(d->loop),
		.waiting = frontend_waiting,
		.refused = frontend_refused,
		.ctx = d,
	};
	d->show = show_new(&conf);
	if (!d->show)
		return lb_err_set(err, "out of memory");
	const struct config_stats *stats = d->config->stats;
	d->stats = stats_server_new(
		loop_base(d->loop), stats->socket, stats->mode_bits, show_answer, d->show, err);
	return d->stats ? 0 : lb_err_within(err, "stats.socket");
}

static int start_control_plane(struct daemon *d, struct lb_err *err)
{
	uint64_t seed;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return lb_err_set(err, "no randomness: %s", strerror(errno));
	rand_init(&d->rand, seed);
	d->loop = loop_new();
	d->workers = workers_new(d->links, d->config->n_workers, on_worker_event, d);
	if (!d->loop || !d->workers || loop_watch_signals(d->loop, on_signal, d))
		return lb_err_set(err, "out of memory");
	struct assembler_conf conf = {
		.config = d->config,
		.slot = d->slot,
		.workers = d->workers,
		.wheel = loop_wheel(d->loop),
		.seed = rand_u64(&d->rand),
		.trusts_server = d->bootstrap->servers[0].trusted,
	};
	d->assembler = assembler_new(&conf);
	if (!d->assembler)
		return lb_err_set(err, "out of memory");
	if (start_xds(d, err) || start_show(d, err))
		return -EINVAL;
	d->watch_timer.fire = on_second;
	d->drain_timer.fire = on_drain_overdue;
	twheel_arm(
		loop_wheel(d->loop), &d->watch_timer, twheel_now(loop_wheel(d->loop)) + SECOND_NS);
	loop_set_tick(d->loop, on_tick, d);
	return 0;
}

static void stop_control_plane(struct daemon *d)
{
	stats_server_free(d->stats);
	show_free(d->show);
	for (uint32_t i = 0; i < d->config->n_frontends; i++)
		depmgr_free(d->frontends[i].depmgr);
	if (d->xds)
		xds_client_free(d->xds);
	if (d->grpc)
		xds_grpc_free(d->grpc);
}

// The workers have stopped: nobody reads a snapshot any more.
static void free_shared(struct daemon *d)
{
	if (d->slot)
		lb_slot_free(d->slot);
	assembler_free(d->assembler);
	workers_free(d->workers);
	loop_free(d->loop);
	for (unsigned i = 0; i < d->config->n_workers; i++)
		lb_link_free(d->links[i]);
	lb_shared_free(d->shared);
}

// Signals go to the control thread alone, since the workers inherit a mask that blocks them.
static void block_signals(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(how, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int run(struct daemon *d, struct lb_err *err)
{
	block_signals(SIG_BLOCK);
	int ret = start_data_plane(d, err);
	if (ret == 0)
		ret = start_control_plane(d, err);
	block_signals(SIG_UNBLOCK);
	if (ret == 0) {
		log_info("started", "version=%s workers=%u ports=%u frontends=%u xds=%s",
			SHUNT_VERSION, d->config->n_workers, d->config->n_ports,
			d->config->n_frontends, d->bootstrap->servers[0].uri);
		loop_run(d->loop);
	}
	stop_control_plane(d);
	stop_data_plane(d);
	free_shared(d);
	if (ret == 0)
		log_info("stopped", "requests_cut=%s", d->n_drained ? "no" : "maybe");
	return ret;
}

// Command line.

struct args {
	const char *config;
	bool check;
};

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "The configuration (shunt.yaml)", 0},
	{"check", 'k', NULL, 0,
		"Check the configuration and the bootstrap, touch no device, and exit", 0},
	{0},
};

static error_t take_arg(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	switch (key) {
	case 'c':
		a->config = arg;
		return 0;
	case 'k':
		a->check = true;
		return 0;
	case ARGP_KEY_END:
		if (!a->config)
			argp_error(state, "-c FILE is needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const char *argp_program_version = "shuntd " SHUNT_VERSION;

static const struct argp argp = {
	.options = options,
	.parser = take_arg,
	.doc = "Shunt: a kernel-bypass load balancer for HTTP/2 and gRPC.\v"
	       "The xDS server is named by gRPC's bootstrap: the file in GRPC_XDS_BOOTSTRAP or the "
	       "JSON in "
	       "GRPC_XDS_BOOTSTRAP_CONFIG.",
};

int main(int argc, char **argv)
{
	struct args args = {0};
	argp_parse(&argp, argc, argv, 0, NULL, &args);
	struct daemon d = {0};
	struct lb_err err = {0};
	int ret = -EINVAL;
	d.config = config_load(args.config, &err);
	if (d.config) {
		log_set_level(d.config->log_level);
		ret = xds_bootstrap_load(&d.bootstrap, &err);
	}
	if (ret == 0) {
		ret = name_frontends(&d, &err);
		if (ret == 0 && !args.check)
			ret = run(&d, &err);
		if (ret != 0 && err.text[0])
			lb_err_within(&err, "%s", args.config); // the fields it names are there
	}
	if (ret != 0)
		fprintf(stderr, "shuntd: %s\n", err.text[0] ? err.text : strerror(-ret));
	else if (args.check)
		printf("%s: fine\n", args.config);
	for (uint32_t i = 0; d.frontends && i < d.config->n_frontends; i++)
		free(d.frontends[i].listener_name);
	free(d.frontends);
	xds_bootstrap_free(d.bootstrap);
	config_free(d.config);
	return ret == 0 ? 0 : 1;
}
