// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/retry.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/leaf.h"
#include "dataplane/proxy/local_reply.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/upstream.h"
#include "lb/base/grpc_status.h"
#include "lb/base/time.h"

// A backend that wants more wants no retry: what it parks here takes memory.
#define LONGEST_TOLD_MS UINT64_C(3600000)

// That is waited out: the first one after a failure (lb/base/backoff.h). Meanwhile an endpoint may
// come, or the cluster go.
#define LONGEST_REST_NS (NS_PER_SECOND * 5 / 4)

// Between refusals; as for routes that don't say (RT-04).
static const struct lb_retry rests = {.base_ns = 25 * NS_PER_MS, .max_ns = 250 * NS_PER_MS};

static bool may_send_once_more(const struct proxy_request *r)
{
	return r->resend.n + 1u < r->proxy->conf.terms.max_attempts;
}

static bool enter_budget(struct proxy_request *r)
{
	bool has_room = proxy_leaf_begin_retry(r);
	if (!has_room)
		proxy_count(r->proxy, PROXY_retries_over_budget);
	return has_room;
}

// The backend did nothing with it (RT-11).
static bool retry_unseen(struct proxy_request *r, enum proxy_reach reach)
{
	struct proxy_resend *again = &r->resend;
	bool refused = reach == PROXY_REACH_REFUSED;
	if (reach != PROXY_REACH_NONE) {
		if (!may_send_once_more(r) || (refused && again->was_refused)) {
			proxy_count(r->proxy, PROXY_transparent_retries_exhausted);
			return false;
		}
		again->n++;
	}
	again->was_refused |= refused && r->is_grpc;
	proxy_count(r->proxy, PROXY_transparent_retries);
	return true;
}

static bool is_safe(struct proxy_request *r)
{
	struct h2_message m;
	proxy_replay_head(r->proxy, &r->replay, &m);
	return str_eq(m.method, STR("GET")) || str_eq(m.method, STR("HEAD")) ||
	       str_eq(m.method, STR("OPTIONS"));
}

// Its connection broke, and the backend may have done something with it.
static bool retry_lost(struct proxy_request *r)
{
	if (!r->proxy->conf.terms.retry_idempotent || r->is_grpc || r->resend.was_lost ||
		r->was_hinted || !may_send_once_more(r) || !is_safe(r) || !enter_budget(r))
		return false;
	r->resend.was_lost = true;
	r->resend.n++;
	proxy_count(r->proxy, PROXY_idempotent_retries);
	return true;
}

bool proxy_retry_transparent(struct proxy_request *r, const struct proxy_upstream_end *end)
{
	if (r->proxy->freeing || r->state != PROXY_REQUEST_SENT || !proxy_replay_stored(&r->replay))
		return false;
	bool unseen = end->reach != PROXY_REACH_UNKNOWN;
	if (unseen ? !retry_unseen(r, end->reach) : !end->conn_lost || !retry_lost(r))
		return false;
	r->resend.refuser = end->reach == PROXY_REACH_REFUSED ? end->conn_number : 0;
	r->resend.elsewhere = true;
	r->resend.has_rested = false;
	return true;
}

bool proxy_retry_unconnected(
	struct proxy_request *r, bool may_wait, uint64_t rest_ns, uint64_t *ret_delay_ns)
{
	struct proxy_resend *again = &r->resend;
	bool rests_out = rest_ns && (may_wait || rest_ns <= LONGEST_REST_NS);
	if (r->proxy->freeing || (!may_wait && !may_send_once_more(r)))
		return false;
	again->elsewhere = true;
	// Who may wait tries nothing meanwhile. Others are counted in any case: connections may
	// come about that leave at once.
	if (!rests_out || !may_wait) {
		again->n += again->n < UINT8_MAX;
		proxy_count(r->proxy, PROXY_unconnected_retries);
	}
	if (rests_out)
		*ret_delay_ns = rest_ns < LONGEST_REST_NS ? rest_ns : LONGEST_REST_NS;
	else
		*ret_delay_ns = lb_retry_delay_ns(&rests, again->n, &r->proxy->rand);
	return true;
}

bool proxy_retry_must_rest(
	struct proxy_request *r, const struct proxy_upstream *u, uint64_t *ret_delay_ns)
{
	struct proxy_resend *again = &r->resend;
	bool at_once = r->is_grpc || (again->n < 2 && u->number != again->refuser);
	if (at_once || again->has_rested)
		return false;
	again->has_rested = true;
	*ret_delay_ns = lb_retry_delay_ns(&rests, again->n, &r->proxy->rand);
	return true;
}

static const struct field *find(const struct h2_message *m, struct str name)
{
	return field_find(m->fields, m->n_fields, name);
}

bool proxy_retry_has_status(const struct h2_message *answer)
{
	return find(answer, STR("grpc-status"));
}

int proxy_retry_status_of(const struct h2_message *answer)
{
	const struct field *f = find(answer, STR("grpc-status"));
	uint64_t status;
	if (!f)
		return answer->status == 200 ? GRPC_UNKNOWN : proxy_grpc_of_http(answer->status);
	return str_number(f->value, 16, &status) ? (int)status : GRPC_UNKNOWN;
}

// RT-10. False = the backend wants no retry.
static bool wait_as_told(const struct field *pushback, uint64_t *ret_delay_ns)
{
	uint64_t ms;
	if (!str_number(pushback->value, LONGEST_TOLD_MS, &ms))
		return false;
	*ret_delay_ns = ms * NS_PER_MS;
	return true;
}

bool proxy_retry_status(struct proxy_request *r, int grpc_status, const struct h2_message *answer,
	uint64_t *ret_delay_ns)
{
	struct proxy *p = r->proxy;
	const struct lb_retry *policy = &r->plan.retry;
	if (!policy->statuses || !r->is_grpc || p->freeing || !lb_retry_covers(policy, grpc_status))
		return false;
	if (!proxy_replay_stored(&r->replay)) {
		proxy_count(p, PROXY_retries_abandoned);
		return false;
	}
	if (r->n_failed + 1 >= policy->max_attempts) {
		proxy_count(p, PROXY_retries_exhausted);
		return false;
	}
	if (proxy_queues_full(&p->queues)) {
		proxy_count(p, PROXY_retries_overflow);
		return false;
	}
	const struct field *pushback = answer ? find(answer, STR("grpc-retry-pushback-ms")) : NULL;
	if (!pushback) {
		r->n_waits++;
		*ret_delay_ns = lb_retry_delay_ns(policy, r->n_waits, &p->rand);
	} else if (wait_as_told(pushback, ret_delay_ns)) {
		r->n_waits = 0;
	} else {
		proxy_count(p, PROXY_retries_forbidden);
		return false;
	}
	if (!enter_budget(r))
		return false;
	r->n_failed++;
	proxy_count(p, PROXY_retries);
	return true;
}

bool proxy_retry_may_keep(const struct proxy_request *r, size_t body_len)
{
	const struct pool *chunks = r->proxy->chunks;
	if (body_len <= PROXY_REPLAY_BODY_LEAST)
		return true;
	if (!proxy_client_buffer_may_copy(&r->owner->buffer))
		return false;
	if (body_len <= PROXY_REPLAY_BODY_MAX)
		return true;
	// More than that is kept only while it is nobody else's need.
	return r->plan.retry.statuses && body_len <= PROXY_RETRY_BODY_MAX &&
	       pool_left(chunks) >= chunks->n_total / 2;
}

void proxy_retry_give_up(struct proxy_request *r)
{
	if (r->access.is_on)
		proxy_access_keep(r);
	proxy_replay_drop(r->proxy, &r->replay);
}
