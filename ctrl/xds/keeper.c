// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/keeper.h"

#include "ctrl/base/text.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/cache.h"
#include "ctrl/xds/state/state_dir.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_NS NS_PER_SECOND // changes that follow one another make one file
#define REST_NS (5 * NS_PER_SECOND) // between files, and for each MiB of one a second more
#define REST_OF_MIB_NS NS_PER_SECOND
#define RETRY_NS (30 * NS_PER_SECOND)
#define LOOK_NS (100 * NS_PER_MS) // whether the writer is done
#define FINISH_NS (5 * NS_PER_SECOND) // in all: a watchdog may be looking on

struct xds_keeper {
	struct xds_keeper_conf conf;
	struct xds_settled hook;
	xds_each_client_fn each;
	void *of;
	struct xds_state state; // what was read; empty once it is of no use any more
	struct xds_state_writer *writer;
	struct xds_gathered *out; // the writer's; NULL = none
	int claim; // of the directory; negative = it cannot be claimed
	struct twheel_timer timer; // for whatever is next
	bool is_dirty; // something has changed since the last file
	uint64_t not_before_ns; // the next file
	uint64_t held_until_ns; // what was read
	char *error; // of the last attempt; NULL = it succeeded
	char *read_error; // as the info has it, or NULL
	struct xds_keeper_info info;
};

static uint64_t now(const struct xds_keeper *k)
{
	return twheel_now(k->conf.wheel);
}

static void arm(struct xds_keeper *k, uint64_t at_ns)
{
	twheel_arm(k->conf.wheel, &k->timer, at_ns);
}

// Reading

static bool knows_server(const struct xds_bootstrap *b, struct str uri)
{
	for (uint32_t i = 0; i < b->n_servers; i++)
		if (str_eq(str_from(b->servers[i].uri), uri))
			return true;
	for (uint32_t a = 0; a < b->n_authorities; a++)
		for (uint32_t i = 0; i < b->authorities[a].n_servers; i++)
			if (str_eq(str_from(b->authorities[a].servers[i].uri), uri))
				return true;
	return false;
}

static void say_unused(const struct xds_keeper *k, const char *what, struct str of)
{
	char text[256];
	snprintf(text, sizeof(text), "%.*s", (int)(of.len < 255 ? of.len : 255), of.p);
	log_warn("xds state not used", "directory=%s reason=\"%s is not in the bootstrap\" was=%s",
		log_quote(k->conf.directory), what, log_quote(text));
}

// Of another node, or another server, nothing is taken.
static void check_origin(struct xds_keeper *k)
{
	struct xds_state *s = &k->state;
	if (!str_eq(s->node_id, str_from(k->conf.bootstrap->node_id))) {
		say_unused(k, "the node", s->node_id);
		xds_state_fini(s);
		return;
	}
	for (size_t i = 0; i < s->n_sections; i++) {
		bool is_next = i > 0 && str_eq(s->sections[i].server, s->sections[i - 1].server);
		if (!is_next && !knows_server(k->conf.bootstrap, s->sections[i].server))
			say_unused(k, "the server", s->sections[i].server);
	}
	k->info.read_s = s->n_sections ? s->written_s : 0;
}

static void read_state(struct xds_keeper *k)
{
	struct lb_err err = {""};
	int rc = xds_state_load(k->conf.directory, &k->state, &err);
	if (rc && rc != -ENOENT)
		k->read_error = strdup(*err.text ? err.text : strerror(-rc));
	if (rc == 0) {
		check_origin(k);
	} else if (rc == -EINVAL) {
		int failed = xds_state_set_aside(k->conf.directory);
		k->info.n_set_aside++;
		log_error("xds state set aside", "error=%s as=%s.corrupt%s%s", log_quote(err.text),
			XDS_STATE_NAME, failed ? " failed=" : "",
			failed ? log_quote(strerror(-failed)) : "");
	} else if (rc != -ENOENT) {
		log_warn("xds state not read", "error=%s",
			log_quote(*err.text ? err.text : strerror(-rc)));
	}
}

// Writing

static void note_standby(void *ctx, struct xds_client *client)
{
	bool *is_on = ctx;
	*is_on |= xds_client_cache(client)->stands_by;
}

// Nobody looks anything up any more: the servers have spoken.
static void drop_state(struct xds_keeper *k)
{
	bool is_on = false;
	k->each(k->of, note_standby, &is_on);
	if (!is_on)
		xds_state_fini(&k->state);
}

static void succeeded(struct xds_keeper *k, const struct xds_state_job *j)
{
	k->info.n_written++;
	k->info.written_ns = now(k);
	k->info.len = j->len;
	if (k->error)
		log_info("xds state written again", "directory=%s", log_quote(k->conf.directory));
	free(k->error);
	k->error = NULL;
	k->not_before_ns = now(k) + REST_NS + (j->len >> 20) * REST_OF_MIB_NS;
	drop_state(k);
}

// Each reason is said once: a full disk stays full.
static void failed(struct xds_keeper *k, const struct xds_state_job *j)
{
	*(j->rc == -EFBIG ? &k->info.n_too_large : &k->info.n_failed) += 1;
	if (!k->error || strcmp(k->error, j->err.text) != 0)
		log_warn("xds state not written", "error=%s", log_quote(j->err.text));
	free(k->error);
	k->error = strdup(j->err.text);
	k->is_dirty = true;
	k->not_before_ns = now(k) + RETRY_NS;
}

static void take_back(struct xds_keeper *k, struct xds_state_job *j)
{
	if (!j)
		return;
	if (j->rc)
		failed(k, j);
	else
		succeeded(k, j);
	xds_gathered_free(k->out);
	k->out = NULL;
}

// A directory that cannot be claimed for another reason than a process that has it (it is not there
// yet, say) is none for us to refuse: the file's own failures are told.
static int claim(struct xds_keeper *k, struct lb_err *err)
{
	k->claim = xds_state_claim(k->conf.directory, err);
	return k->claim == -EWOULDBLOCK ? -EWOULDBLOCK : 0;
}

// True = the writer has something to do.
static bool give(struct xds_keeper *k)
{
	if (k->claim == -EWOULDBLOCK && claim(k, NULL) != 0)
		return false;
	uint64_t wall_s = k->conf.wall_ns() / NS_PER_SECOND;
	struct xds_gathered *g =
		xds_gather(k->each, k->of, k->conf.bootstrap->node_id, wall_s, false);
	if (!g || g->n_fresh == 0) { // nobody has spoken, or not to the end
		xds_gathered_free(g);
		return false;
	}
	k->is_dirty = false;
	k->out = g;
	xds_state_writer_give(k->writer, &g->job);
	return true;
}

static void on_timer(struct twheel_timer *t)
{
	struct xds_keeper *k = CONTAINER_OF(t, struct xds_keeper, timer);
	if (k->out)
		take_back(k, xds_state_writer_take(k->writer));
	if (k->out)
		arm(k, now(k) + LOOK_NS);
	else if (k->is_dirty && now(k) < k->not_before_ns)
		arm(k, k->not_before_ns);
	else if (k->is_dirty)
		arm(k, now(k) + (give(k) ? LOOK_NS : REST_NS));
}

static void on_settled(struct xds_settled *hook)
{
	struct xds_keeper *k = CONTAINER_OF(hook, struct xds_keeper, hook);
	uint64_t soon = now(k) + FIRST_NS;
	k->is_dirty = true;
	if (!twheel_armed(&k->timer))
		arm(k, soon > k->not_before_ns ? soon : k->not_before_ns);
}

// The owner's side

int xds_keeper_new(const struct xds_keeper_conf *conf, struct xds_keeper **ret, struct lb_err *err)
{
	struct xds_keeper *k = calloc(1, sizeof(*k));
	*ret = NULL;
	if (!k) {
		lb_err_set(err, "out of memory");
		return -ENOMEM;
	}
	k->conf = *conf;
	k->hook.fn = on_settled;
	k->timer.fire = on_timer;
	int rc = claim(k, err);
	if (rc == -EWOULDBLOCK && conf->waits)
		rc = 0;
	if (!rc && !(k->writer = xds_state_writer_new(conf->directory))) {
		lb_err_set(err, "out of memory");
		rc = -ENOMEM;
	}
	if (rc) {
		xds_keeper_free(k);
		return rc;
	}
	read_state(k);
	if (k->info.read_s)
		k->not_before_ns = k->held_until_ns = now(k) + conf->hold_ns;
	*ret = k;
	return 0;
}

const struct xds_state *xds_keeper_state(const struct xds_keeper *k)
{
	return &k->state;
}

struct xds_settled *xds_keeper_follow(struct xds_keeper *k, xds_each_client_fn each, void *of)
{
	k->each = each;
	k->of = of;
	return &k->hook;
}

// The wheel's time stands still meanwhile.
static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static void wait_until(struct xds_keeper *k, uint64_t end_ns)
{
	uint64_t at_ns = clock_ns(), left_ns = end_ns > at_ns ? end_ns - at_ns : 0;
	take_back(k, xds_state_writer_wait(k->writer, (int)(left_ns / NS_PER_MS)));
}

void xds_keeper_finish(struct xds_keeper *k)
{
	if (!k || !k->each)
		return;
	uint64_t end_ns = clock_ns() + FINISH_NS;
	twheel_cancel(k->conf.wheel, &k->timer);
	if (k->out)
		wait_until(k, end_ns);
	if (!k->out && k->is_dirty && now(k) >= k->held_until_ns && give(k))
		wait_until(k, end_ns);
	if (k->out)
		log_warn("xds state not written", "error=\"the disk does not answer\"");
}

// What the writer still has is left to it, and the claim with that: the process ends.
void xds_keeper_free(struct xds_keeper *k)
{
	if (!k)
		return;
	twheel_cancel(k->conf.wheel, &k->timer);
	if (xds_state_writer_free(k->writer)) {
		xds_gathered_free(k->out);
		xds_state_release(k->claim);
	}
	xds_state_fini(&k->state);
	free(k->error);
	free(k->read_error);
	free(k);
}

void xds_keeper_info(const struct xds_keeper *k, struct xds_keeper_info *ret)
{
	*ret = k->info;
	ret->directory = k->conf.directory;
	ret->error = text_or_empty(k->error);
	ret->read_error = text_or_empty(k->read_error);
}
