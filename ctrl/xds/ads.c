// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/ads.h"

#include "ctrl/base/text.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/response.h"
#include "ctrl/xds/subs.h"
#include "lb/base/backoff.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct type_state {
	char *version; // last accepted; "" = none. Survives the stream (SW-07)
	char *nonce; // of the last response on this stream; "" = none
	bool requested; // on this stream
	bool answer; // the last response is to be ACKed or, with error, NACKed
	char *error;
};

struct xds_ads {
	struct xds_ads_conf conf;
	struct xds_transport *transport; // NULL until the first stream
	struct xds_stream *stream; // NULL = none
	struct type_state *types; // [conf.n_types]
	bool sending; // since send() and until on_sent
	uint32_t sending_type;
	bool read_due; // the next message has not been asked for yet
	bool node_sent; // on this stream
	bool had_response; // on this stream
	uint64_t opened_ns; // this stream
	// The last message is being taken in, over several turns of the wheel if need be. Until
	// then nothing is sent, as if it had not come yet.
	bool receiving;
	struct xds_response response;
	bool head_read; // of it
	uint32_t response_type;
	bool recovered; // it is the first of the stream
	struct twheel_timer resume;
	struct backoff backoff; // FM-03
	struct twheel_timer retry;
	enum xds_server_state state;
	uint64_t since_ns;
	char *error; // why the last stream ended; NULL = none
	struct xds_server_info counters;
};

static uint64_t now(const struct xds_ads *a)
{
	return twheel_now(a->conf.wheel);
}

static void set_state(struct xds_ads *a, enum xds_server_state state)
{
	if (a->state != state)
		a->since_ns = now(a);
	a->state = state;
}

static const struct xds_stream_events stream_events;
static void lost(struct xds_ads *a, const char *why);

static bool wanted(const struct xds_ads *a)
{
	for (uint32_t t = 0; t < a->conf.n_types; t++)
		if (a->conf.subs[t].n)
			return true;
	return false;
}

static void set_text(char **at, char *text)
{
	free(*at);
	*at = text;
}

// SW-07, SW-08: a new stream starts without nonces, keeps versions, and asks again for all.
static void reset_stream_state(struct xds_ads *a)
{
	for (uint32_t t = 0; t < a->conf.n_types; t++) {
		struct type_state *s = &a->types[t];
		set_text(&s->nonce, NULL);
		set_text(&s->error, NULL);
		s->requested = s->answer = false;
		xds_subs_lost(&a->conf.subs[t]);
	}
	a->sending = a->read_due = a->node_sent = a->had_response = false;
}

static void open_stream(struct xds_ads *a)
{
	struct lb_err err = {""};
	set_state(a, XDS_SERVER_CONNECTING);
	reset_stream_state(a);
	a->opened_ns = now(a);
	a->counters.n_streams++;
	if (!a->transport) {
		int rc = a->conf.transport.connect(
			a->conf.transport.ctx, a->conf.server, &a->transport, &err);
		if (rc) {
			lost(a, *err.text ? err.text : "out of memory");
			return;
		}
	}
	a->stream = a->transport->ops->stream_new(
		a->transport, a->conf.protocol->method, &stream_events, a);
	if (!a->stream) {
		lost(a, "out of memory");
		return;
	}
	a->transport->ops->stream_read(a->stream);
}

static void retry_fired(struct twheel_timer *t)
{
	struct xds_ads *a = CONTAINER_OF(t, struct xds_ads, retry);
	set_state(a, XDS_SERVER_IDLE);
	a->conf.owner->begin(a->conf.ctx);
	a->conf.owner->end(a->conf.ctx);
}

static void end_receiving(struct xds_ads *a)
{
	twheel_cancel(a->conf.wheel, &a->resume);
	xds_response_fini(&a->response);
	a->receiving = a->head_read = a->recovered = false;
}

// Attempts without an answer are spaced by the backoff (FM-03). A stream that had worked is
// replaced at once, unless it lived for less than the first wait: a server that answers and hangs
// up must not make us spin.
static void lost(struct xds_ads *a, const char *why)
{
	bool had_response = a->had_response;
	if (a->receiving && a->head_read)
		a->conf.owner->on_response_lost(a->conf.ctx);
	end_receiving(a);
	if (a->stream)
		a->transport->ops->stream_free(a->stream);
	a->stream = NULL;
	reset_stream_state(a);
	set_text(&a->error, strdup(why));

	uint64_t wait = backoff_next_ns(&a->backoff, a->conf.rand);
	uint64_t lived = now(a) - a->opened_ns;
	if (had_response)
		wait = wait > lived ? wait - lived : 0;
	set_state(a, XDS_SERVER_BACKOFF);
	twheel_arm(a->conf.wheel, &a->retry, now(a) + wait);
	a->conf.owner->on_lost(a->conf.ctx, why, had_response);
}

static void send_request(struct xds_ads *a, uint32_t type)
{
	struct type_state *s = &a->types[type];
	const struct xds_ask ask = {
		.node = a->node_sent ? NULL : a->conf.node,
		.type = a->conf.types[type],
		.subs = &a->conf.subs[type],
		.first = !s->requested,
		.answer = s->answer,
		.error = s->error,
		.version = text_or_empty(s->version),
		.nonce = text_or_empty(s->nonce),
	};
	uint8_t *bytes = NULL;
	size_t len;
	if (a->conf.protocol->encode(&ask, &bytes, &len) ||
		a->transport->ops->stream_send(a->stream, bytes, len)) {
		free(bytes);
		lost(a, "out of memory");
		return;
	}
	free(bytes);
	a->counters.n_requests++;
	if (s->answer)
		*(s->error ? &a->counters.n_nacks : &a->counters.n_acks) += 1;
	set_text(&s->error, NULL);
	s->answer = false;
	s->requested = true;
	a->sending = true;
	a->sending_type = type;
	a->node_sent = true;
	xds_subs_sending(&a->conf.subs[type]);
}

// Nothing is pending on a new stream but what is wanted, and only a type that was asked for is
// answered: the first request of a type is never empty (SW-09, DL-11).
static void send_next(struct xds_ads *a)
{
	for (uint32_t t = 0; t < a->conf.n_types; t++)
		if (a->types[t].answer) {
			send_request(a, t);
			return;
		}
	for (uint32_t t = 0; t < a->conf.n_types; t++)
		if (!list_empty(&a->conf.subs[t].pending)) {
			send_request(a, t);
			return;
		}
}

static bool answer_due(const struct xds_ads *a)
{
	for (uint32_t t = 0; t < a->conf.n_types; t++)
		if (a->types[t].answer)
			return true;
	return false;
}

void xds_ads_flush(struct xds_ads *a)
{
	if (a->receiving)
		return;
	if (a->state == XDS_SERVER_IDLE && wanted(a))
		open_stream(a);
	if (a->stream && !a->sending)
		send_next(a);
	// PC-06: the next response is read when the last one's answer is on its way, so that none
	// goes without its own.
	if (a->stream && a->read_due && !answer_due(a)) {
		a->read_due = false;
		a->transport->ops->stream_read(a->stream);
	}
}

static void on_sent(void *ctx)
{
	struct xds_ads *a = ctx;
	a->conf.owner->begin(a->conf.ctx);
	a->sending = false;
	a->conf.owner->on_sent(a->conf.ctx, a->sending_type);
	a->conf.owner->end(a->conf.ctx);
}

static void on_closed(void *ctx, const char *why)
{
	struct xds_ads *a = ctx;
	a->conf.owner->begin(a->conf.ctx);
	lost(a, why);
	a->conf.owner->end(a->conf.ctx);
}

// What a response of any type says about the server (FM-03: the backoff starts anew). True = the
// server had been failing.
static bool heard(struct xds_ads *a)
{
	bool first = !a->had_response;
	a->had_response = true;
	a->counters.n_responses++;
	if (!first)
		return false;
	backoff_reset(&a->backoff);
	set_text(&a->error, NULL);
	set_state(a, XDS_SERVER_CONNECTED);
	return true;
}

// The text of the NACK, the caller's; NULL = it is within the limits.
static char *check_limits(struct xds_ads *a)
{
	const struct xds_limits *most = &a->conf.limits;
	const struct xds_response *r = &a->response;
	char *text = NULL;
	int rc = 0;
	if (most->n_resources && r->n_parts > most->n_resources)
		rc = asprintf(&text,
			"the response has %zu resources, and xds_resources is %zu: nothing of it "
			"is used",
			r->n_parts, most->n_resources);
	else if (most->len && r->bytes.len > most->len)
		rc = asprintf(&text,
			"the response has %zu bytes, and xds_response_mib is %zu: nothing of it is "
			"used",
			r->bytes.len, most->len >> 20);
	if (rc < 0 || !text)
		return NULL;
	a->counters.n_over_limit++;
	char line[512];
	snprintf(line, sizeof(line), "NACK of %s from xDS server %s: %s",
		a->conf.types[a->response_type]->label, a->conf.server->uri, text);
	a->conf.owner->log(a->conf.ctx, line);
	return text;
}

// It was applied, or refused as a whole.
static void answer(struct xds_ads *a, char *error)
{
	struct type_state *s = &a->types[a->response_type];
	char *nonce = strdup(a->response.nonce), *version = strdup(a->response.version);
	if (!nonce || !version) {
		free(nonce);
		free(version);
		free(error);
		end_receiving(a);
		lost(a, "out of memory");
		return;
	}
	set_text(&s->nonce, nonce);
	set_text(&s->error, error);
	s->answer = true;
	if (s->error) // SW-03: the version stays the last accepted one
		free(version);
	else
		set_text(&s->version, version);
}

// False = the slice is over.
static bool apply(struct xds_ads *a)
{
	char *error = NULL;
	int rc = a->conf.owner->on_response(
		a->conf.ctx, a->response_type, &a->response, &a->conf.slice, &error);
	if (rc == -EAGAIN)
		return false;
	if (rc) {
		end_receiving(a);
		lost(a, "out of memory");
	} else {
		answer(a, error);
	}
	return true;
}

static void log_malformed(struct xds_ads *a, const char *why)
{
	// PC-05: there is no nonce to answer to; the stream goes on.
	a->counters.n_undecodable++;
	char line[512];
	snprintf(line, sizeof(line), "xDS server %s sent a malformed response: %s",
		a->conf.server->uri, why);
	a->conf.owner->log(a->conf.ctx, line);
}

// The head is known. False = there is more to be done with it.
static bool is_dealt_with(struct xds_ads *a)
{
	uint32_t type = 0;
	a->recovered = heard(a);
	while (type < a->conf.n_types &&
		strcmp(a->conf.types[type]->url, a->response.type_url) != 0)
		type++;
	// PC-04. Or a type never asked for on this stream: an answer would be the first request,
	// and with its empty list a wildcard (SW-09).
	if (type == a->conf.n_types || !a->types[type].requested) {
		a->counters.n_unknown_type++;
		return true;
	}
	a->response_type = type;
	char *error = check_limits(a);
	if (!error)
		return false;
	a->conf.owner->on_refused(a->conf.ctx, type, a->response.version, error);
	answer(a, error);
	return true;
}

// False = the slice is over.
static bool receive(struct xds_ads *a)
{
	struct lb_err err = {""};
	slice_begin(&a->conf.slice);
	if (!a->head_read) {
		int rc = xds_response_read_head(&a->response, &a->conf.slice, &err);
		if (rc == -EAGAIN)
			return false;
		if (rc) {
			log_malformed(a, *err.text ? err.text : "out of memory");
			return true;
		}
		if (is_dealt_with(a))
			return true;
		a->head_read = true;
	}
	return apply(a);
}

static void go_on(struct xds_ads *a)
{
	a->conf.owner->begin(a->conf.ctx);
	if (receive(a)) {
		bool recovered = a->recovered;
		end_receiving(a);
		if (recovered && a->stream)
			a->conf.owner->on_recovered(a->conf.ctx);
	} else {
		twheel_arm(a->conf.wheel, &a->resume, now(a));
	}
	a->conf.owner->end(a->conf.ctx);
}

static void resumed(struct twheel_timer *t)
{
	go_on(CONTAINER_OF(t, struct xds_ads, resume));
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	struct xds_ads *a = ctx;
	a->read_due = a->receiving = true;
	xds_response_init(
		&a->response, &a->conf.protocol->response, (struct str){(const char *)bytes, len});
	go_on(a);
}

static const struct xds_stream_events stream_events = {on_sent, on_message, on_closed};

struct xds_ads *xds_ads_new(const struct xds_ads_conf *conf)
{
	struct xds_ads *a = calloc(1, sizeof(*a));
	struct type_state *types = calloc(conf->n_types, sizeof(*types));
	if (!a || !types) {
		free(a);
		free(types);
		return NULL;
	}
	a->conf = *conf;
	a->types = types;
	a->retry.fire = retry_fired;
	a->resume.fire = resumed;
	a->since_ns = now(a);
	return a;
}

void xds_ads_free(struct xds_ads *a)
{
	if (!a)
		return;
	twheel_cancel(a->conf.wheel, &a->retry);
	if (a->receiving && a->head_read)
		a->conf.owner->on_response_lost(a->conf.ctx);
	end_receiving(a);
	if (a->stream)
		a->transport->ops->stream_free(a->stream);
	if (a->transport)
		a->transport->ops->free(a->transport);
	for (uint32_t t = 0; t < a->conf.n_types; t++) {
		free(a->types[t].version);
		free(a->types[t].nonce);
		free(a->types[t].error);
	}
	free(a->types);
	free(a->error);
	free(a);
}

bool xds_ads_forget_version(struct xds_ads *a, uint32_t type)
{
	bool had = *text_or_empty(a->types[type].version);
	set_text(&a->types[type].version, NULL);
	return had;
}

void xds_ads_reset_type(struct xds_ads *a, uint32_t type)
{
	struct type_state *s = &a->types[type];
	set_text(&s->version, NULL);
	set_text(&s->nonce, NULL);
	set_text(&s->error, NULL);
	s->requested = s->answer = false;
}

void xds_ads_info(const struct xds_ads *a, struct xds_server_info *ret)
{
	*ret = a->counters;
	ret->uri = a->conf.server->uri;
	ret->protocol = a->conf.protocol->name;
	ret->state = a->state;
	ret->error = text_or_empty(a->error);
	ret->since_ns = a->since_ns;
}
