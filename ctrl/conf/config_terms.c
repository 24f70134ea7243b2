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
