// SPDX-License-Identifier: Apache-2.0
// The client's connections: opened, ready for requests, closed.
#include "lb/base/min.h"
#include "lb/base/time.h"
#include "tools/shunt-load/client_inside.h"

#define MAX_CLOSING 64 // in one turn: more FINs than a device holds would be lost
#define RETRY_CONNECT_NS (100 * NS_PER_MS)

void client_conn_make_ready(struct client *c, struct client_conn *k)
{
	if (k->ready || k->is_idle || k->leaving || !k->conn.session)
		return;
	k->ready = true;
	STAILQ_INSERT_TAIL(&c->ready, k, ready_next);
}

static void release(struct client *c, struct client_conn *k)
{
	if (k->gone && !k->ready && !k->in_closing)
		pool_put(&c->conns, k);
}

struct client_conn *client_conn_take_ready(struct client *c)
{
	struct client_conn *k;
	while ((k = STAILQ_FIRST(&c->ready))) {
		STAILQ_REMOVE_HEAD(&c->ready, ready_next);
		k->ready = false;
		if (!k->gone)
			return k;
		release(c, k);
	}
	return NULL;
}

bool client_conn_has_room(const struct client *c, const struct client_conn *k)
{
	const struct client_conf *conf = &c->conf;
	return k->conn.session && !k->leaving && k->n_open < conf->n_streams &&
	       c->protocol->room(k->conn.session) > 0;
}

void client_leave(struct client *c, struct client_conn *k)
{
	if (k->leaving)
		return;
	k->leaving = true;
	if (k->up && !k->is_idle)
		c->n_up--;
	if (k->up && k->is_idle)
		c->n_idle_up--;
	if (k->is_idle)
		c->n_idle--;
	else
		c->n_active--;
}

void client_conn_close_soon(struct client *c, struct client_conn *k)
{
	if (k->in_closing)
		return;
	k->in_closing = true;
	SLIST_INSERT_HEAD(&c->closing, k, closing_next);
}

void client_conn_freed(struct client *c, struct client_conn *k)
{
	if (k->leaving && k->n_open == 0 && k->conn.session)
		client_conn_close_soon(c, k);
	else
		client_conn_make_ready(c, k);
}

static void on_up(struct conn *conn)
{
	struct client_conn *k = client_conn_of(conn);
	struct client *c = k->client;
	k->up = true;
	c->n_connecting--;
	c->result.opened++;
	c->progress_ns = c->now_ns;
	histogram_add(&c->result.connect, c->now_ns - k->begun_ns);
	if (k->is_idle)
		c->n_idle_up++;
	else
		c->n_up++;
	client_conn_make_ready(c, k);
}

static void on_over(struct conn *conn, const char *why)
{
	struct client_conn *k = client_conn_of(conn);
	struct client *c = k->client;
	bool was_wanted = !k->leaving;
	client_leave(c, k);
	if (!k->up) {
		c->n_connecting--;
		c->result.connect_failed++;
		c->next_connect_ns = c->now_ns + RETRY_CONNECT_NS;
	} else if (was_wanted && c->phase < CLIENT_ENDING) {
		c->result.conns_lost++;
		c->result.idle_lost += k->is_idle;
	}
	if (was_wanted)
		c->result.why = why;
}

static void on_gone(struct conn *conn)
{
	struct client_conn *k = client_conn_of(conn);
	struct client *c = k->client;
	LIST_REMOVE(k, link);
	c->n_closing -= k->closes_last;
	k->gone = true;
	release(c, k);
}

static const struct conn_ops conn_ops = {.up = on_up, .over = on_over, .gone = on_gone};

static bool connect_one(struct client *c, bool is_idle)
{
	struct client_conn *k = pool_take(&c->conns);
	if (!k)
		return false;
	*k = (struct client_conn){.client = c, .is_idle = is_idle, .begun_ns = c->now_ns};
	struct tcp_flow flow = {
		.local = c->sources[c->next_source++ % c->conf.n_sources],
		.remote = c->conf.to.ip,
		.remote_port = c->conf.to.port,
	};
	if (!conn_connect(&k->conn, &c->side, &conn_ops, &flow, c->conf.timeout_ns)) {
		pool_put(&c->conns, k);
		c->result.why = "no free port, or out of memory";
		c->next_connect_ns = c->now_ns + RETRY_CONNECT_NS;
		return false;
	}
	LIST_INSERT_HEAD(&c->all, k, link);
	c->n_connecting++;
	if (is_idle)
		c->n_idle++;
	else
		c->n_active++;
	return true;
}

// Connections that go after so many requests are replaced only while there are requests left for
// those that come: one that is opened in vain costs whoever is measured, and counts nowhere.
static uint32_t n_wanted(const struct client *c)
{
	const struct client_conf *conf = &c->conf;
	uint64_t n_left = conf->n_requests - c->n_begun;
	if (!conf->per_conn || !conf->n_requests || c->phase < CLIENT_WARMING)
		return conf->n_conns;
	uint64_t n_each = min_u64(conf->per_conn, conf->n_streams); // at one time
	uint64_t most = conf->n_conns * n_each;
	const struct request *r = TAILQ_FIRST(&c->resend);
	for (; r && n_left < most; r = TAILQ_NEXT(r, link))
		n_left++;
	return (uint32_t)min_u64(conf->n_conns, (n_left + n_each - 1) / n_each);
}

bool client_conns_open(struct client *c)
{
	bool any = false;
	if (c->now_ns < c->next_connect_ns)
		return false;
	uint32_t n = n_wanted(c);
	while (c->n_active < n && c->n_connecting < CLIENT_MAX_CONNECTING && connect_one(c, false))
		any = true;
	while (c->n_idle < c->conf.n_idle && c->n_connecting < CLIENT_MAX_CONNECTING &&
		connect_one(c, true))
		any = true;
	return any;
}

void client_conns_close(struct client *c)
{
	bool last = c->phase == CLIENT_CLOSING;
	for (int n = 0; !SLIST_EMPTY(&c->closing) && n < MAX_CLOSING; n++) {
		if (last && c->n_closing == CLIENT_MAX_CONNECTING)
			return;
		struct client_conn *k = SLIST_FIRST(&c->closing);
		SLIST_REMOVE_HEAD(&c->closing, closing_next);
		k->in_closing = false;
		if (k->conn.session) {
			k->closes_last = last;
			c->n_closing += last;
			conn_close(&k->conn, "done");
		}
		release(c, k);
	}
}
