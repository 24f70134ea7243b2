// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/terms.h"

#include "dataplane/h2/h2.h"
#include "dataplane/proxy/client_buffer.h"
#include "dataplane/proxy/idle.h"
#include "dataplane/proxy/state.h"

// Returns the window of a client's connection, which sees to a part of the bound.
static uint32_t bound_client_buffer(struct proxy *p)
{
	if (p->conf.terms.client_buffer)
		return proxy_client_buffer_window(p->conf.terms.client_buffer);
	p->conf.terms.client_buffer = UINT32_MAX;
	return p->unbound_window;
}

void proxy_terms_begin(struct proxy *p, struct h2_conf *h2)
{
	h2->answer_stream_window = PROXY_FIRST_WINDOW;
	h2->answer_conn_window = h2->conn_window;
	p->unbound_window = h2->conn_window;
	p->client_stream_window = h2->stream_window;
	h2->conn_window = bound_client_buffer(p);
}

void proxy_terms_follow(struct proxy *p, const struct lb_terms *terms)
{
	if (terms->number == p->conf.terms.number)
		return;
	p->conf.terms = *terms;
	h2_context_set_bounds(p->h2, terms->max_streams, bound_client_buffer(p));
	proxy_idle_follow(p);
}
