// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_terms.h"

#include "ctrl/conf/config.h"
#include "lb/base/time.h"
#include "lb/route/timeouts.h"

static struct lb_silence silence_of(const struct config_silence *s)
{
	return (struct lb_silence){
		.user_timeout_ns = s->tcp_user_timeout_s * NS_PER_SECOND,
		.tcp_keepalive_ns = s->tcp_keepalive_time_s * NS_PER_SECOND,
		.ping_interval_ns = s->keepalive_interval_s * NS_PER_SECOND,
		.ping_timeout_ns = s->keepalive_timeout_s * NS_PER_SECOND,
	};
}

struct lb_terms config_terms(const struct config *c)
{
	uint64_t stream_idle_ns = c->stream_idle_timeout_s * NS_PER_SECOND;
	return (struct lb_terms){
		.client_silence = silence_of(&c->client_silence),
		.backend_silence = silence_of(&c->backend_silence),
		.idle_timeout_ns = c->idle_timeout_s * NS_PER_SECOND,
		.max_age_ns = c->max_connection_age_s * NS_PER_SECOND,
		.max_age_grace_ns = c->max_connection_age_grace_s * NS_PER_SECOND,
		.stream_idle_ns = stream_idle_ns ? stream_idle_ns : LB_NO_TIMEOUT,
		.listener_drain_ns = c->listener_drain_s * NS_PER_SECOND,
		.max_streams = c->max_streams,
		.client_buffer = c->client_buffer_kib * 1024,
		.max_attempts = c->max_attempts,
		.retry_idempotent = c->retry_idempotent,
	};
}

struct lb_frontend_conf config_frontend_terms(const struct config_frontend *f)
{
	static const enum lb_wait_for_ready wait_for_ready[] = {
		[CONFIG_WAIT_NEVER] = LB_WAIT_NEVER,
		[CONFIG_WAIT_ALWAYS] = LB_WAIT_ALWAYS,
		[CONFIG_WAIT_HEADER] = LB_WAIT_HEADER,
	};
	struct lb_frontend_conf c = {
		.address = f->address_ip,
		.port = f->port,
		.authority = f->authority,
		.wait_for_ready = wait_for_ready[f->wait_for_ready],
		.reply_details = f->reply_details,
		.by_listeners = f->by_listeners,
	};
	const struct config_proxy_protocol *h = f->proxy_protocol;
	if (h)
		c.header = (struct lb_header_conf){
			h->prefixes, h->n_allow, !h->v1 || *h->v1, !h->v2 || *h->v2};
	return c;
}
