// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/load/lrs.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/load/load.h"
#include "ctrl/xds/load/lrs_wire.h"
#include "lb/base/backoff.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Clusters that are gone and could not be reported: beyond this the oldest are given up.
#define MAX_GONE 4096
// A stream that is ended at once takes along what its server has not read yet.
#define LINGER_NS NS_PER_SECOND
// The last report, and the server's end of the stream behind it.
#define LAST_NS NS_PER_SECOND

static const char METHOD[] = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

enum message { NONE, HELLO, REPORT };

struct xds_lrs {
	struct xds_lrs_conf conf;
	struct xds_load load;
	struct xds_transport *transport; // NULL = no stream, or none yet
	struct xds_stream *stream; // NULL = none
	enum message sending; // since send() and until on_sent
	bool had_response; // on this stream
	bool were_zero; // the counts of the last report on this stream
	bool harvesting;
	bool finishing, finished;
	bool said_all; // the last report is on its way, or has left
	struct xds_lrs_settings settings; // of this stream, when it had a response
	uint64_t opened_ns; // this stream
	uint64_t told_ns; // when the last report on it left; 0 = none has
	struct backoff backoff; // FM-03
	struct twheel_timer retry;
	struct twheel_timer report;
	struct twheel_timer last; // until the end waits no longer
	enum xds_server_state state;
	char *error; // why the last stream ended; NULL = none
	struct xds_lrs_info counters;
};

static const struct xds_stream_events stream_events;
static void lost(struct xds_lrs *r, const char *why);

static uint64_t now(const struct xds_lrs *r)
{
	return twheel_now(r->conf.wheel);
}

static void say(const struct xds_lrs *r, const char *what, const char *why)
{
	char line[512];
	snprintf(line, sizeof(line), "load reports: xDS server %s %s: %s", r->conf.server->uri,
		what, why);
	if (r->conf.log)
		r->conf.log(r->conf.ctx, line);
}

static void set_error(struct xds_lrs *r, const char *why)
{
	free(r->error);
	r->error = why ? strdup(why) : NULL;
}

// The stream

static void send_message(struct xds_lrs *r, enum message what)
{
	uint8_t *bytes = NULL;
	size_t len = 0;
	int rc = what == HELLO
	                 ? xds_lrs_encode_hello(r->conf.node, &bytes, &len)
	                 : xds_lrs_encode_report(TAILQ_FIRST(&r->load.clusters), &bytes, &len);
	if (rc || r->transport->ops->stream_send(r->stream, bytes, len))
		lost(r, "out of memory");
	else
		r->sending = what;
	free(bytes);
}

static void open_stream(struct xds_lrs *r)
{
	struct lb_err err = {""};
	r->state = XDS_SERVER_CONNECTING;
	r->opened_ns = now(r);
	r->counters.n_streams++;
	if (!r->transport) {
		int rc = r->conf.transport.connect(
			r->conf.transport.ctx, r->conf.server, &r->transport, &err);
		if (rc) {
			lost(r, *err.text ? err.text : "out of memory");
			return;
		}
	}
	r->stream = r->transport->ops->stream_new(r->transport, METHOD, &stream_events, r);
	if (!r->stream) {
		lost(r, "out of memory");
		return;
	}
	r->transport->ops->stream_read(r->stream);
	send_message(r, HELLO);
}

// What was on its way counts as not sent.
static void close_stream(struct xds_lrs *r)
{
	if (r->stream)
		r->transport->ops->stream_free(r->stream);
	r->stream = NULL;
	twheel_cancel(r->conf.wheel, &r->report);
	xds_lrs_settings_fini(&r->settings);
	r->sending = NONE;
	r->had_response = r->were_zero = false;
	r->told_ns = 0;
	for (struct xds_load_cluster *c = TAILQ_FIRST(&r->load.clusters); c;
		c = TAILQ_NEXT(c, order)) {
		if (!c->sending)
			continue;
		xds_load_move(c, XDS_LOAD_GIVE_BACK);
		c->sending = c->leaving = false;
	}
}

// LR-01: nobody is left to report on.
static void stop(struct xds_lrs *r)
{
	close_stream(r);
	twheel_cancel(r->conf.wheel, &r->retry);
	twheel_cancel(r->conf.wheel, &r->last);
	if (r->transport)
		r->transport->ops->free(r->transport);
	r->transport = NULL;
	backoff_reset(&r->backoff);
	set_error(r, NULL);
	r->state = XDS_SERVER_IDLE;
}

// What is untold by now stays so.
static void finished(struct xds_lrs *r, const char *why)
{
	char what[64];
	close_stream(r);
	r->finished = true;
	uint64_t n = xds_load_n_untold(&r->load);
	snprintf(what, sizeof(what), "was not told of %" PRIu64 " requests", n);
	if (n)
		say(r, what, why);
	stop(r);
}

// As with ADS (FM-03): attempts without an answer are spaced by the backoff, and a stream that had
// worked is replaced at once, unless it lived for less than the first wait.
static void lost(struct xds_lrs *r, const char *why)
{
	bool had_response = r->had_response;
	if (r->finishing) {
		finished(r, why);
		return;
	}
	if (r->load.n == 0) { // all was told
		stop(r);
		return;
	}
	close_stream(r);
	if (had_response)
		say(r, "ended the stream", why);
	else if (!r->error || strcmp(r->error, why) != 0) // once an outage
		say(r, "takes none", why);
	set_error(r, why);
	uint64_t wait = backoff_next_ns(&r->backoff, r->conf.rand);
	uint64_t lived = now(r) - r->opened_ns;
	if (had_response)
		wait = wait > lived ? wait - lived : 0;
	r->state = XDS_SERVER_BACKOFF;
	twheel_arm(r->conf.wheel, &r->retry, now(r) + wait);
}

static void retry_fired(struct twheel_timer *t)
{
	open_stream(CONTAINER_OF(t, struct xds_lrs, retry));
}

// Lets a cluster go that nobody holds and that has been told, or cannot be.
static void settle_one(struct xds_lrs *r, struct xds_load_cluster *c)
{
	bool told = xds_load_is_told(c);
	if (c->n_refs || !(told || r->load.n_gone > MAX_GONE))
		return;
	r->counters.n_given_up += !told;
	xds_load_cluster_remove(&r->load, c);
}

// Without clusters the stream ends, in a moment if something has just been told. One that finishes
// does so by itself.
static void end(struct xds_lrs *r)
{
	if (r->finishing)
		return;
	if (r->told_ns && now(r) < r->told_ns + LINGER_NS)
		twheel_arm(r->conf.wheel, &r->report, r->told_ns + LINGER_NS);
	else
		stop(r);
}

static void settle(struct xds_lrs *r)
{
	for (struct xds_load_cluster *c = TAILQ_FIRST(&r->load.clusters), *next; c; c = next) {
		next = TAILQ_NEXT(c, order);
		settle_one(r, c);
	}
	if (r->load.n == 0)
		end(r);
}

// Reports

static void arm_report(struct xds_lrs *r)
{
	twheel_arm(r->conf.wheel, &r->report, now(r) + r->settings.interval_ns);
}

// Takes the counts of those that the server wants to hear of; of others they are void, so that what
// it wants later starts there (LR-04). True = all are zero.
static bool take(struct xds_lrs *r)
{
	bool zero = true;
	for (struct xds_load_cluster *c = TAILQ_FIRST(&r->load.clusters); c;
		c = TAILQ_NEXT(c, order)) {
		c->taken_ns = now(r);
		xds_load_tidy(c); // a locality that is gone and told is in no report
		c->sending = xds_lrs_settings_want(&r->settings, c->name);
		xds_load_move(c, c->sending ? XDS_LOAD_TAKE : XDS_LOAD_FORGET);
		if (!c->sending)
			c->since_ns = c->taken_ns;
		else
			zero &= xds_load_is_zero(c);
	}
	return zero;
}

static void finish_cluster(struct xds_load_cluster *c)
{
	xds_load_move(c, XDS_LOAD_DONE);
	c->since_ns = c->taken_ns;
	c->sending = c->leaving = false;
}

// What was under way has left. True = it was the last of the report.
static bool finish_message(struct xds_lrs *r)
{
	bool last = true;
	for (struct xds_load_cluster *c = TAILQ_FIRST(&r->load.clusters); c;
		c = TAILQ_NEXT(c, order)) {
		if (c->leaving)
			finish_cluster(c);
		last &= !c->sending;
	}
	return last;
}

static void finish_report(struct xds_lrs *r)
{
	for (struct xds_load_cluster *c = TAILQ_FIRST(&r->load.clusters); c;
		c = TAILQ_NEXT(c, order))
		if (c->sending)
			finish_cluster(c);
	if (r->finishing)
		return;
	arm_report(r);
	settle(r);
}

static void harvest(struct xds_lrs *r)
{
	xds_load_begin_harvest(&r->load);
	r->harvesting = true;
	r->conf.harvest(r->conf.ctx);
	r->harvesting = false;
}

static void report_fired(struct twheel_timer *t)
{
	struct xds_lrs *r = CONTAINER_OF(t, struct xds_lrs, report);
	if (r->load.n == 0) {
		stop(r);
		return;
	}
	harvest(r);
	bool zero = take(r);
	if (zero && r->were_zero) { // LR-08: the second such report says nothing
		finish_report(r);
		return;
	}
	r->were_zero = zero;
	send_message(r, REPORT);
}

static void last_fired(struct twheel_timer *t)
{
	finished(CONTAINER_OF(t, struct xds_lrs, last), "it does not read");
}

// The end, when nothing is on its way.
static void go_on_finishing(struct xds_lrs *r)
{
	if (!r->said_all) {
		r->said_all = true;
		harvest(r);
		if (!take(r)) {
			send_message(r, REPORT);
			return;
		}
		finish_report(r);
	}
	if (r->told_ns && now(r) < r->told_ns + LINGER_NS)
		r->transport->ops->stream_end(r->stream);
	else
		finished(r, "");
}

// Events

static void on_sent(void *ctx)
{
	struct xds_lrs *r = ctx;
	enum message what = r->sending;
	r->sending = NONE;
	if (what == REPORT) {
		r->told_ns = now(r);
		if (!finish_message(r)) {
			send_message(r, REPORT);
			return;
		}
		r->counters.n_reports++;
		finish_report(r);
	} else if (r->had_response && !r->finishing) { // else the answer starts the time (LR-03)
		arm_report(r);
	}
	if (r->finishing)
		go_on_finishing(r);
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	struct xds_lrs *r = ctx;
	struct xds_lrs_settings settings;
	struct lb_err err = {""};
	int rc = xds_lrs_decode_settings(bytes, len, &settings, &err);
	r->transport->ops->stream_read(r->stream); // the bytes are gone
	if (rc) {
		// The server may never say more: without settings the stream is of no use.
		r->counters.n_undecodable++;
		if (r->had_response)
			say(r, "sent a malformed response", err.text);
		else
			lost(r, *err.text ? err.text : "out of memory");
		return;
	}
	r->counters.n_responses++;
	if (xds_lrs_settings_eq(&r->settings, &settings)) { // LR-04
		xds_lrs_settings_fini(&settings);
		return;
	}
	bool new_interval = r->settings.interval_ns != settings.interval_ns;
	xds_lrs_settings_fini(&r->settings);
	r->settings = settings;
	if (!r->had_response) {
		r->had_response = true;
		backoff_reset(&r->backoff);
		set_error(r, NULL);
		r->state = XDS_SERVER_CONNECTED;
	}
	if (new_interval && !r->sending && r->load.n &&
		!r->finishing) // else on_sent does, or the end is near
		arm_report(r);
}

static void on_closed(void *ctx, const char *why)
{
	lost(ctx, why);
}

static const struct xds_stream_events stream_events = {on_sent, on_message, on_closed};

// The owner's side

struct xds_lrs *xds_lrs_new(const struct xds_lrs_conf *conf)
{
	struct xds_lrs *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->conf = *conf;
	r->retry.fire = retry_fired;
	r->report.fire = report_fired;
	r->last.fire = last_fired;
	xds_load_init(&r->load);
	r->state = XDS_SERVER_IDLE;
	return r;
}

void xds_lrs_free(struct xds_lrs *r)
{
	if (!r)
		return;
	stop(r);
	xds_load_fini(&r->load);
	free(r);
}

bool xds_lrs_finish(struct xds_lrs *r)
{
	if (r->finishing)
		return r->finished;
	r->finishing = true;
	twheel_cancel(r->conf.wheel, &r->retry);
	twheel_cancel(r->conf.wheel, &r->report);
	if (!r->had_response) { // it may never come
		harvest(r);
		finished(r, r->error ? r->error : "it has not answered yet");
		return true;
	}
	twheel_arm(r->conf.wheel, &r->last, now(r) + LAST_NS);
	if (!r->sending)
		go_on_finishing(r);
	return r->finished;
}

struct xds_load_cluster *xds_lrs_cluster_get(
	struct xds_lrs *r, const char *cluster, const char *eds_service)
{
	DCHECK(!r->harvesting);
	bool ending = r->load.n == 0 && r->stream;
	struct xds_load_cluster *c = xds_load_cluster_add(&r->load, cluster, eds_service, now(r));
	if (!c)
		return NULL;
	r->load.n_gone -= c->n_refs++ == 0;
	if (r->finishing)
		return c;
	if (r->state == XDS_SERVER_IDLE)
		open_stream(r);
	else if (ending)
		arm_report(r);
	return c;
}

void xds_lrs_cluster_put(struct xds_lrs *r, struct xds_load_cluster *c)
{
	DCHECK(!r->harvesting);
	if (!c || --c->n_refs > 0)
		return;
	r->load.n_gone++;
	settle_one(r, c);
	if (r->load.n == 0 || r->load.n_gone > MAX_GONE)
		settle(r);
}

void xds_lrs_info(const struct xds_lrs *r, struct xds_lrs_info *ret)
{
	*ret = r->counters;
	ret->uri = r->conf.server->uri;
	ret->state = r->state;
	ret->error = r->error ? r->error : "";
	ret->interval_ns = r->settings.interval_ns;
	ret->n_clusters = r->load.n;
}
