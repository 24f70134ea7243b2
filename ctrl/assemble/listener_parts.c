// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/listener_parts.h"

#include "ctrl/assemble/assembled_frontend.h"
#include "ctrl/conf/config.h"
#include "ctrl/res/listener.h"

// Listeners are asked only if shunt.yaml permits it: who serves xDS may not make this machine tell
// more of its requests than whoever runs it wants (OPS-163).
static const struct lb_tracing *tracing_of(const struct config *c, const struct res_listener *l)
{
	bool asks = c->tracing && c->tracing->xds && l->tracing.on;
	return asks ? &l->tracing : &c->traced;
}

// shunt.yaml's idle timeout, which workers know, is for plain HTTP alone: gRPC's streams may be
// silent (TH-98).
struct lb_filter_chain *listener_parts_filters(
	const struct assembled_frontend *f, const struct res_listener *l)
{
	uint64_t own_ns = l->stream_idle_ns;
	const struct lb_listener_timeouts t = {
		l->max_stream_duration_ns, {own_ns, own_ns ? own_ns : LB_NO_TIMEOUT}};
	struct lb_filter_chain *c = lb_filter_chain_new(l->filters, l->n_filters, &t);
	if (!c)
		return NULL;
	c->forwarding = l->forwarding;
	if (!lb_tracing_copy(&c->arena, tracing_of(f->env->config, l), &c->tracing))
		return c;
	lb_filter_chain_put(c);
	return NULL;
}
