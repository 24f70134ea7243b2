// SPDX-License-Identifier: Apache-2.0
#include "ctrl/succession.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/bequest.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/certs/material.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/reach.h"
#include "ctrl/service.h"
#include "ctrl/shutdown.h"
#include "ctrl/takeover/wire.h"
#include "ctrl/trust.h"
#include "ctrl/xds_start.h"
#include "lb/base/log.h"
#include "lb/base/time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REOPEN_NS NS_PER_SECOND
#define CONNECTS_NS (NS_PER_SECOND / 5) // to backends: some round trips, each through two processes
#define ANSWERED_NS (2 * NS_PER_SECOND) // what a client of a port that we left takes, and more

struct succession {
	struct succession_conf conf;
	struct takeover *takeover;
	bool lacks; // names or ports that another process has still
	uint64_t reopen_ns; // when to try again
	bool has_inherited; // and opens ports next
	uint64_t asks_ns; // for the place, at the earliest; 0 = there was no configuration yet
	bool has_lacked; // certificates that the older process has
	uint64_t away_ns; // when who is left at our ports is sent away; 0 = nobody is
	char error[sizeof(struct lb_err)]; // of the takeover
};

// A newer one would take clients where an operator wants none. Once we are to end none is wanted
// here, and any may be there.
static const char *busy(void *ctx)
{
	const struct shutdown *end = ((struct succession *)ctx)->conf.shutdown;
	return !end->begun && drains_any(end->drains) ? "frontends are drained: undrain first"
	                                              : NULL;
}

static void set_company(void *ctx, enum lb_company company)
{
	struct succession *s = ctx;
	struct lb_command command = {.kind = LB_COMMAND_COMPANY, .company = company};
	workers_send_all(s->conf.workers, &command);
}

static bool has_company(void *ctx, enum lb_company company)
{
	const struct succession *s = ctx;
	for (uint32_t i = 0; i < workers_count(s->conf.workers); i++) {
		const struct lb_link *link = workers_link(s->conf.workers, i);
		if (__atomic_load_n(&link->company, __ATOMIC_ACQUIRE) != company)
			return false;
	}
	return true;
}

static void follow_relays(void *ctx)
{
	workers_send_all(((const struct succession *)ctx)->conf.workers,
		&(struct lb_command){.kind = LB_COMMAND_RELAYS});
}

static int lack(struct succession *s, int rc)
{
	s->lacks |= rc != 0;
	s->reopen_ns = twheel_now(loop_wheel(s->conf.loop)) + REOPEN_NS;
	return rc;
}

static int open_ports(void *ctx, struct lb_err *err)
{
	struct succession *s = ctx;
	bool is_beside = s->conf.seat.fd >= 0 && !s->conf.seat.passes_listeners;
	int rc = reach_open_ports(s->conf.reach, is_beside, err);
	s->conf.reopened(s->conf.ctx);
	if (s->has_inherited) // so that the first client's ticket is good; devices came meanwhile
		credentials_await(trust_credentials(s->conf.trust));
	s->has_inherited = false;
	return lack(s, rc);
}

static int take_names(void *ctx, struct lb_err *err)
{
	struct succession *s = ctx;
	return lack(s, reach_take_names(s->conf.reach, err));
}

// Who had our place and hangs may have them until it is killed.
static void open_what_lacks(struct succession *s)
{
	struct lb_err err = {""};
	s->lacks = false;
	(void)open_ports(s, &err);
	(void)take_names(s, &err);
	if (!s->lacks)
		log_info(
			"names and ports are ours again", "generation=%u", s->conf.seat.generation);
}

static int share_reach(void *ctx, bool opens, struct lb_err *err)
{
	struct succession *s = ctx;
	s->lacks = false;
	return reach_share(s->conf.reach, opens, err);
}

_Static_assert((int)TAKEOVER_MAX_LISTENERS == LISTEN_PORTS_MAX, "a takeover passes all ports");

static uint32_t listeners(void *ctx, int ret[TAKEOVER_MAX_LISTENERS])
{
	return reach_listeners(((const struct succession *)ctx)->conf.reach, ret);
}

static void inherit_listener(void *ctx, int fd)
{
	reach_inherit(((struct succession *)ctx)->conf.reach, fd);
}

static int bequeath(void *ctx)
{
	const struct succession *s = ctx;
	return bequest_make(s->conf.assembler, trust_credentials(s->conf.trust));
}

static int resources(void *ctx)
{
	return xds_live_bequeath(((const struct succession *)ctx)->conf.xds);
}

struct teller {
	void (*tell)(void *to, const char *name);
	void *to;
};

static void tell_source(void *ctx, const struct certs_info *i)
{
	const struct teller *t = ctx;
	if (i->material)
		t->tell(t->to, i->source->name);
}

static void sources(void *ctx, void (*tell)(void *to, const char *name), void *to)
{
	struct teller t = {tell, to};
	certs_each(trust_certs(((const struct succession *)ctx)->conf.trust), tell_source, &t);
}

struct expected {
	struct certs *certs;
	const char *name; // as it arrived
};

static void expect_one(void *ctx, const struct certs_info *i)
{
	const struct expected *e = ctx;
	char name[TAKEOVER_TEXT];
	takeover_wire_fit(i->source->name, name);
	if (strcmp(name, e->name) == 0)
		certs_expect(e->certs, i->source->name);
}

static void expect(void *ctx, const char *source)
{
	struct expected e = {trust_certs(((const struct succession *)ctx)->conf.trust), source};
	certs_each(e.certs, expect_one, &e);
}

static void inherit(void *ctx, int fd)
{
	struct succession *s = ctx;
	bequest_take(s->conf.assembler, trust_credentials(s->conf.trust), fd);
	s->has_inherited = true;
}

static void leave(void *ctx)
{
	struct succession *s = ctx;
	s->lacks = false;
	reach_step_back(s->conf.reach);
	s->away_ns = twheel_now(loop_wheel(s->conf.loop)) + ANSWERED_NS;
	shutdown_leave(s->conf.shutdown);
}

// There is no client yet, but what may have come in the last milliseconds.
static void give_up(void *ctx, const char *why)
{
	struct succession *s = ctx;
	snprintf(s->error, sizeof(s->error), "%s", why);
	loop_stop(s->conf.loop);
}

static void free_to_go(void *ctx)
{
	shutdown_look(((struct succession *)ctx)->conf.shutdown);
}

int succession_new(const struct succession_conf *conf, struct succession **ret, struct lb_err *err)
{
	static const struct takeover_ops ops = {.busy = busy,
		.set_company = set_company,
		.has_company = has_company,
		.share = share_reach,
		.listeners = listeners,
		.inherit_listener = inherit_listener,
		.resources = resources,
		.sources = sources,
		.expect = expect,
		.bequeath = bequeath,
		.inherit = inherit,
		.open = open_ports,
		.take = take_names,
		.leave = leave,
		.give_up = give_up,
		.free_to_go = free_to_go,
		.follow_relays = follow_relays};
	*ret = NULL;
	if (!conf->config->takeover_socket)
		return 0;
	struct succession *s = calloc(1, sizeof(*s));
	if (!s)
		return lb_err_set(err, "out of memory");
	s->conf = *conf;
	struct takeover_conf takeover = {
		.path = conf->config->takeover_socket,
		.version = SHUNT_VERSION,
		.seat = conf->seat,
		.base = loop_base(conf->loop),
		.ops = &ops,
		.ctx = s,
		.devices = conf->devices,
		.now_ns = twheel_now(loop_wheel(conf->loop)),
	};
	s->takeover = takeover_new(&takeover, err);
	if (!s->takeover) {
		free(s);
		return -EINVAL;
	}
	conf->service->is_silent = conf->seat.fd >= 0;
	conf->service->main_pid = conf->seat.fd >= 0 ? getpid() : 0;
	*ret = s;
	return 0;
}

void succession_free(struct succession *s)
{
	if (!s)
		return;
	takeover_free(s->takeover);
	free(s);
}

// Clients would be refused here whom the older process serves. Endpoints that failed for it are
// tried again once their contexts are made (FL-204).
static bool lacks_certificates(struct succession *s, uint64_t now_ns)
{
	struct lb_err why = {""};
	if (!takeover_is_waiting(s->takeover))
		return false;
	bool lacks = certs_lacks(trust_certs(s->conf.trust), &why);
	bool waits = lacks || (s->has_lacked &&
				      credentials_are_being_made(trust_credentials(s->conf.trust)));
	if (lacks || !waits)
		takeover_set_lack(s->takeover, why.text);
	if (s->has_lacked && !waits) {
		assembler_reconnect(s->conf.assembler, NULL);
		s->asks_ns = now_ns + CONNECTS_NS;
		s->has_lacked = false;
	}
	s->has_lacked |= lacks;
	return s->has_lacked;
}

// Connections to backends begin with the first configuration. What is on its way to them through
// the older process when its devices move is lost, and is sent again a second later.
static bool may_ask(struct succession *s, bool could_serve, uint64_t now_ns)
{
	if (could_serve && !s->asks_ns)
		s->asks_ns = now_ns + (s->conf.seat.relay_fd > 0 ? CONNECTS_NS : 0);
	return could_serve && !lacks_certificates(s, now_ns) && now_ns >= s->asks_ns;
}

bool succession_tick(struct succession *s, bool could_serve)
{
	if (!s)
		return true;
	uint64_t now_ns = twheel_now(loop_wheel(s->conf.loop));
	takeover_tick(s->takeover, now_ns, may_ask(s, could_serve, now_ns));
	bool is_in_front = takeover_is_in_front(s->takeover);
	if (s->lacks && is_in_front && now_ns >= s->reopen_ns)
		open_what_lacks(s);
	if (s->away_ns && now_ns >= s->away_ns) {
		reach_send_away(s->conf.reach);
		s->away_ns = 0;
	}
	s->conf.service->is_silent = !is_in_front;
	return is_in_front;
}

const char *succession_newer_lacks(const struct succession *s)
{
	return s ? takeover_newer_lacks(s->takeover) : NULL;
}

bool succession_may_end(const struct succession *s)
{
	return !s || !takeover_must_stay(s->takeover);
}

const char *succession_error(const struct succession *s)
{
	return s ? s->error : "";
}

const struct takeover *succession_takeover(const struct succession *s)
{
	return s ? s->takeover : NULL;
}
