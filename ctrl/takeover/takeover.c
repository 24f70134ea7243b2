// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/takeover.h"

#include "ctrl/takeover/gifts.h"
#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover_inside.h"
#include "lb/base/log.h"

#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void enter(struct takeover *t, enum stage stage, uint64_t for_ns)
{
	t->stage = stage;
	t->info.lacks[0] = 0;
	t->deadline_ns = for_ns ? t->now_ns + for_ns : 0;
}

static void drop_devices(struct takeover *t, bool newer)
{
	if (!t->conf.devices.ops)
		return;
	takeover_devices_drop(&t->conf.devices, newer, t->now_ns);
	t->conf.ops->follow_relays(t->conf.ctx);
}

static void settle(struct takeover *t)
{
	enum lb_company company = stage_company(t->stage, t->older, t->newer);
	if (company == t->company)
		return;
	t->company = company;
	t->conf.ops->set_company(t->conf.ctx, company);
	if (company != LB_BEHIND)
		takeover_devices_follow(&t->conf.devices, NULL);
}

static bool is_settled(const struct takeover *t)
{
	return t->conf.ops->has_company(t->conf.ctx, t->company);
}

// The newer one's end of a talk

static void tell_chain(struct takeover *t)
{
	if (t->newer && t->stage >= STAGE_SHARED)
		takeover_peer_tell(t->newer, &(struct takeover_message){.kind = TAKEOVER_CHAIN,
						     .n_behind = t->info.n_behind + 1});
}

// Those that have our devices, too, are to send by the same cables as who is in front; one behind
// that is told passes it on to the one behind itself.
static void tell_cables(struct takeover *t)
{
	struct takeover_message m = {.kind = TAKEOVER_CABLES};
	takeover_devices_cables(&t->conf.devices, &m.cables);
	if (memcmp(&m.cables, &t->told, sizeof(t->told)) == 0)
		return;
	t->told = m.cables;
	if (t->newer && t->stage >= STAGE_SHARED && t->stage < STAGE_LEFT)
		takeover_peer_tell(t->newer, &m);
	if (t->older && t->stage >= STAGE_FRONT)
		takeover_peer_tell(t->older, &m);
}

static void give_up(struct takeover *t, const char *why)
{
	log_error("takeover failed", "reason=%s", log_quote(why));
	enter(t, STAGE_OVER, 0);
	settle(t);
	t->conf.ops->give_up(t->conf.ctx, why);
}

static void step_forward(struct takeover *t)
{
	enter(t, STAGE_STEPPING, 0);
	settle(t);
}

// What takes time or may fail comes before the workers change places. If we hung, the older one may
// have its place back.
static void open_ports(struct takeover *t)
{
	struct lb_err err = {""};
	if (t->older && takeover_peer_refuses(t->older))
		return;
	int rc = takeover_devices_take(&t->conf.devices, &err);
	if (rc != 0 && !t->older && t->now_ns < t->asked_ns + DEVICES_NS) {
		enter(t, STAGE_ASKING, RETRY_NS);
		return;
	}
	if (rc != 0 || t->conf.ops->open(t->conf.ctx, &err) != 0) {
		give_up(t, err.text);
		return;
	}
	// The gap of devices began when they were asked for.
	t->opened_ns = t->has_relay ? t->asked_ns : t->now_ns;
	if (!t->older) {
		step_forward(t);
		return;
	}
	enter(t, STAGE_OPENED, ANSWER_NS + (t->has_relay ? DEVICES_NS : 0));
	takeover_peer_tell(t->older, &(struct takeover_message){.kind = TAKEOVER_OPENED});
}

static void on_older_message(void *ctx, const struct takeover_message *m, int fd)
{
	struct takeover *t = ctx;
	if (m->kind == TAKEOVER_CHAIN) {
		t->info.n_behind =
			m->n_behind < TAKEOVER_PORT_PARTS ? m->n_behind : TAKEOVER_MAX_BEHIND;
		tell_chain(t);
	} else if (m->kind == TAKEOVER_REFUSED) {
		give_up(t, m->text);
	} else if (m->kind == TAKEOVER_LISTENER && t->stage == STAGE_ASKING) {
		// Without one our limit of descriptors is reached: opening that port will tell.
		if (fd >= 0)
			t->conf.ops->inherit_listener(t->conf.ctx, fd);
	} else if (m->kind == TAKEOVER_GIVEN && t->stage == STAGE_ASKING) {
		if (fd >= 0)
			t->conf.ops->inherit(t->conf.ctx, fd);
		open_ports(t);
	} else if (m->kind == TAKEOVER_CABLES) {
		// Later we choose, which the older one hears when we serve.
		if (t->stage < STAGE_STEPPING)
			takeover_devices_follow(&t->conf.devices, &m->cables);
	} else if (m->kind == TAKEOVER_SOURCE) {
		t->n_unnamed -= t->n_unnamed > 0;
		if (t->conf.ops->expect)
			t->conf.ops->expect(t->conf.ctx, m->text);
	} else if (m->kind == TAKEOVER_FREE && t->stage == STAGE_OPENED) {
		step_forward(t);
	} else if (m->kind == TAKEOVER_UNKNOWN || t->stage >= STAGE_FRONT) {
		log_warn("older process: message ignored", "pid=%d kind=%d",
			(int)takeover_peer_pid_of(t->older), (int)m->kind);
	} else {
		give_up(t, "the older process said what is not its turn");
	}
}

// It has ended, by itself or not. If we were to follow it, we do.
static void on_older_end(void *ctx)
{
	struct takeover *t = ctx;
	log_info("older process ended", "pid=%d", (int)takeover_peer_pid_of(t->older));
	takeover_peer_free(t->older);
	t->older = NULL;
	t->info.n_behind = 0;
	drop_devices(t, false);
	tell_chain(t);
	if (t->stage == STAGE_ASKING)
		open_ports(t);
	else if (t->stage == STAGE_OPENED)
		step_forward(t);
	else
		settle(t);
	if (t->stage >= STAGE_FRONT)
		t->conf.ops->free_to_go(t->conf.ctx);
}

static const struct takeover_peer_events older_events = {on_older_message, on_older_end};

// The older one's

// Who serves, and nobody else: whoever fails before has left them where they were.
static void take_names(struct takeover *t)
{
	struct lb_err err = {""};
	if (takeover_door_take(&t->door, &err) != 0)
		log_error("no takeover possible", "error=%s", log_quote(err.text));
	if (t->conf.ops->take(t->conf.ctx, &err) != 0)
		log_error("takeover", "error=%s", log_quote(err.text));
}

// All is as if it had not come.
static void go_on_without_newer(struct takeover *t, const char *why)
{
	struct lb_err err = {""};
	takeover_peer_refuse(t->newer, why);
	log_warn("newer process failed", "pid=%d reason=%s", (int)takeover_peer_pid_of(t->newer),
		log_quote(why));
	takeover_peer_free(t->newer);
	t->newer = NULL;
	t->info.n_failed++;
	t->info.newer_version[0] = 0;
	bool was_given = t->stage >= STAGE_GIVEN, has_shared = t->has_shared;
	t->has_shared = false;
	drop_devices(t, true);
	enter(t, STAGE_FRONT, 0);
	settle(t);
	if (was_given && t->conf.ops->open(t->conf.ctx, &err) != 0)
		log_error("takeover", "error=%s", log_quote(err.text));
	if (has_shared)
		take_names(t);
}

static void give(struct takeover *t)
{
	const char *why = t->conf.ops->busy(t->conf.ctx); // since it came
	if (why) {
		go_on_without_newer(t, why);
		return;
	}
	if (t->hello.passes_listeners)
		takeover_gifts_listeners(&t->conf, t->newer);
	int fd = t->conf.ops->bequeath(t->conf.ctx);
	bool opens = takeover_devices_are_lent(&t->conf.devices);
	enter(t, STAGE_GIVEN, opens ? DEVICES_NS : BEGIN_NS);
	takeover_peer_give(t->newer, &(struct takeover_message){.kind = TAKEOVER_GIVEN}, fd);
	if (fd >= 0)
		close(fd);
}

// It may have changed since it was lent. Nobody could open then what has to stay.
static bool may_leave(struct takeover *t)
{
	struct lb_err err = {""};
	if (takeover_devices_may_leave(&t->conf.devices, &err) == 0)
		return true;
	go_on_without_newer(t, err.text);
	return false;
}

// Before anything else changes. In a folder without room for a name, say, nobody could have ours.
static bool share_names(struct takeover *t)
{
	struct lb_err err = {""};
	t->has_shared = true;
	if (t->conf.ops->share(t->conf.ctx, !t->hello.passes_listeners, &err) == 0 &&
		takeover_door_share(&t->door, &err) == 0)
		return true;
	go_on_without_newer(t, err.text);
	return false;
}

static void begin_to_give(struct takeover *t)
{
	if (!share_names(t))
		return;
	if (!takeover_devices_are_lent(&t->conf.devices) || t->conf.ops->busy(t->conf.ctx)) {
		give(t);
	} else if (may_leave(t)) {
		enter(t, STAGE_CLOSING, DEVICES_NS);
		takeover_devices_pass_on(&t->conf.devices);
	}
}

static void go_on_closing(struct takeover *t)
{
	if (may_leave(t) && takeover_devices_are_passed_on(&t->conf.devices, t->now_ns))
		give(t);
}

_Static_assert(TAKEOVER_LACK == TAKEOVER_TEXT, "room");

static void hear_lack(struct takeover *t, const char *why)
{
	memcpy(t->info.lacks, why, sizeof(t->info.lacks));
	if (*why)
		log_warn("newer process waits", "pid=%d reason=%s",
			(int)takeover_peer_pid_of(t->newer), log_quote(why));
}

static void on_newer_message(void *ctx, const struct takeover_message *m, int fd)
{
	struct takeover *t = ctx;
	if (m->kind == TAKEOVER_TAKE && t->stage == STAGE_SHARED) {
		begin_to_give(t);
	} else if (m->kind == TAKEOVER_LACKS && t->stage == STAGE_SHARED) {
		hear_lack(t, m->text);
	} else if (m->kind == TAKEOVER_OPENED && t->stage == STAGE_GIVEN) {
		enter(t, STAGE_GIVING, BEGIN_NS);
		settle(t);
	} else if (m->kind == TAKEOVER_SERVING && t->stage == STAGE_FREE) {
		log_info("newer process serves", "pid=%d", (int)takeover_peer_pid_of(t->newer));
		t->info.n_given++;
		enter(t, STAGE_LEFT, 0);
		takeover_door_close(&t->door);
		t->conf.ops->leave(t->conf.ctx);
	} else if (m->kind == TAKEOVER_CABLES && t->stage == STAGE_LEFT) {
		takeover_devices_follow(&t->conf.devices, &m->cables);
	} else if (t->stage != STAGE_LEFT) {
		go_on_without_newer(t, "it said what is not its turn");
	}
}

static void on_newer_end(void *ctx)
{
	struct takeover *t = ctx;
	if (t->stage != STAGE_LEFT) {
		go_on_without_newer(t, "it ended, or spoke nonsense");
		return;
	}
	log_warn("newer process ended", "pid=%d", (int)takeover_peer_pid_of(t->newer));
	takeover_peer_free(t->newer);
	t->newer = NULL;
	if (takeover_devices_are_lent(&t->conf.devices)) {
		// Whoever is started now is to have them, for new clients.
		give_up(t, "the newer process ended, and with it what goes through its devices");
		return;
	}
	settle(t);
}

static const struct takeover_peer_events newer_events = {on_newer_message, on_newer_end};

// NULL = somebody may come.
static const char *why_nobody(const struct takeover *t)
{
	if (t->stage < STAGE_FRONT || t->stage > STAGE_LEFT)
		return "this process does not serve yet";
	if (t->newer)
		return "another process is taking over";
	if (t->info.n_behind >= TAKEOVER_MAX_BEHIND)
		return "too many processes are behind this one already";
	return t->conf.ops->busy(t->conf.ctx);
}

static void on_first_word(void *ctx, struct takeover_peer *p, const struct takeover_message *m)
{
	struct takeover *t = ctx;
	int pid = (int)takeover_peer_pid_of(p);
	const char *why = m->kind == TAKEOVER_HELLO ? why_nobody(t) : "it did not begin with hello";
	if (why) {
		t->info.n_refused++;
		log_warn("takeover refused", "pid=%d reason=%s", pid, log_quote(why));
		takeover_peer_refuse(p, why);
		takeover_peer_free(p);
		return;
	}
	t->newer = p;
	takeover_peer_hand_on(p, &newer_events, t);
	snprintf(t->info.newer_version, sizeof(t->info.newer_version), "%.*s", TAKEOVER_VERSION - 1,
		m->text);
	log_info("newer process", "pid=%d version=%s", pid, log_quote(m->text));
	t->hello = *m;
	enter(t, STAGE_SHARING, ANSWER_NS);
	settle(t);
}

static void welcome(struct takeover *t)
{
	struct takeover_message m = {.kind = TAKEOVER_WELCOME,
		.generation = t->info.generation + 1,
		.n_behind = t->info.n_behind + 1,
		.passes_listeners = 1};
	struct lb_err err = {""};
	int fd = -1;
	snprintf(m.text, sizeof(m.text), "%s", t->conf.version);
	m.n_sources = takeover_gifts_n_sources(&t->conf);
	takeover_devices_cables(&t->conf.devices, &m.cables);
	if (takeover_devices_lend(&t->conf.devices, t->hello.n_workers, &fd, &err) != 0) {
		go_on_without_newer(t, err.text);
		return;
	}
	enter(t, STAGE_SHARED, READY_NS);
	if (t->hello.takes_resources)
		takeover_gifts_resources(&t->conf, t->newer);
	takeover_peer_give(t->newer, &m, fd);
	takeover_gifts_sources(&t->conf, t->newer);
	if (fd < 0)
		return;
	close(fd);
	t->conf.ops->follow_relays(t->conf.ctx);
}

void takeover_set_lack(struct takeover *t, const char *why)
{
	struct takeover_message m = {.kind = TAKEOVER_LACKS};
	takeover_wire_fit(why, m.text);
	if (!takeover_is_waiting(t) || strcmp(m.text, t->info.lacks) == 0)
		return;
	memcpy(t->info.lacks, m.text, sizeof(t->info.lacks));
	if (*why)
		log_warn("takeover waits", "reason=%s", log_quote(why));
	takeover_peer_tell(t->older, &m);
}

static void ask(struct takeover *t)
{
	t->asked_ns = t->now_ns;
	if (!t->older) {
		open_ports(t);
		return;
	}
	enter(t, STAGE_ASKING, ANSWER_NS + (t->has_relay ? DEVICES_NS : 0));
	takeover_peer_tell(t->older, &(struct takeover_message){.kind = TAKEOVER_TAKE});
}

static void begin_to_serve(struct takeover *t)
{
	if (t->older && takeover_peer_refuses(t->older))
		return; // as in open_ports()
	take_names(t);
	if (t->older)
		takeover_peer_tell(t->older, &(struct takeover_message){.kind = TAKEOVER_SERVING});
	enter(t, STAGE_FRONT, 0);
	t->told = (struct lb_cables){0}; // the older one is to know in any case
	t->info.gap_ns = t->now_ns - t->opened_ns;
	log_info("took over", "generation=%u gap_us=%u behind=%u", t->info.generation,
		(unsigned)(t->info.gap_ns / NS_PER_US), t->info.n_behind);
}

static void free_place(struct takeover *t)
{
	enter(t, STAGE_FREE, BEGIN_NS);
	takeover_peer_tell(t->newer, &(struct takeover_message){.kind = TAKEOVER_FREE});
}

static void on_deadline(struct takeover *t)
{
	if (t->stage >= STAGE_SHARING)
		go_on_without_newer(t, "it took too long");
	else if (t->stage == STAGE_ASKING && !t->older)
		open_ports(t);
	else
		give_up(t, "the older process does not answer");
}

void takeover_tick(struct takeover *t, uint64_t now_ns, bool could_serve)
{
	t->now_ns = now_ns;
	takeover_guests_tick(&t->door.guests, now_ns);
	takeover_devices_tidy(&t->conf.devices);
	tell_cables(t);
	if (t->deadline_ns && now_ns >= t->deadline_ns)
		on_deadline(t);
	else if (t->stage == STAGE_WAITING && could_serve && (!t->n_unnamed || !t->older))
		ask(t);
	else if (t->stage == STAGE_STEPPING && is_settled(t))
		begin_to_serve(t);
	else if (t->stage == STAGE_SHARING && is_settled(t))
		welcome(t);
	else if (t->stage == STAGE_CLOSING)
		go_on_closing(t);
	else if (t->stage == STAGE_GIVING && is_settled(t))
		free_place(t);
}

// The owner's side

struct takeover *takeover_new(const struct takeover_conf *conf, struct lb_err *reterr)
{
	int fd = conf->seat.fd;
	struct takeover *t = calloc(1, sizeof(*t));
	if (!t) {
		if (fd >= 0)
			close(fd);
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	t->conf = *conf;
	t->now_ns = conf->now_ns;
	t->company = takeover_first_company(&conf->seat);
	t->has_relay = conf->seat.relay_fd > 0;
	t->n_unnamed = conf->seat.n_sources;
	t->info.generation = conf->seat.generation;
	enter(t, fd < 0 ? STAGE_FRONT : STAGE_WAITING, 0);
	t->info.n_behind = conf->seat.n_behind;
	memcpy(t->info.older_version, conf->seat.version, sizeof(conf->seat.version));
	if (fd >= 0)
		t->older = takeover_peer_new(conf->base, fd, &older_events, t);
	if (fd >= 0 && !t->older)
		lb_err_set(reterr, "out of memory");
	else if (takeover_door_open(&t->door, conf->path, conf->seat.generation, fd >= 0,
			 conf->base, on_first_word, t, reterr) == 0)
		return t;
	else
		lb_err_within(reterr, "takeover_socket");
	takeover_free(t);
	return NULL;
}

void takeover_free(struct takeover *t)
{
	if (!t)
		return;
	takeover_door_close(&t->door);
	takeover_peer_free(t->older);
	takeover_peer_free(t->newer);
	free(t);
}
