// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/inflight_rows.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/endpoint_clusters.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/inflight_handle.h"
#include "ctrl/stats/row_query.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "tlshs/secrets.h"

#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS_F 1e6

struct lb_inflight_handle inflight_rows_handle(
	enum lb_inflight_kind kind, const struct inflight_told *told)
{
	bool is_conn = kind == LB_INFLIGHT_CONNS;
	return (struct lb_inflight_handle){.began_ns = told->row->began_ns,
		.slot = told->row->slot,
		.worker = (uint16_t)told->worker,
		.is_backend = is_conn && told->row->conn.endpoint != LB_INFLIGHT_ANY};
}

static json_t *begin_row(
	const struct show *s, const struct lb_inflight_row *from, const char *state)
{
	json_t *row = json_object();
	json_object_set_new(row, "age_s", json_real(show_age_s(s, from->began_ns)));
	show_set_text(row, "state", state);
	return row;
}

static void end_row(json_t *row, enum lb_inflight_kind kind, const struct inflight_told *told)
{
	const struct lb_inflight_handle h = inflight_rows_handle(kind, told);
	char text[INFLIGHT_HANDLE_MAX];
	show_set_u64(row, "worker", told->worker);
	show_set_text(row, "handle", inflight_handle_print(kind, &h, text));
}

static const char *frontend_of(const struct show *s, const struct lb_inflight_row *row)
{
	return s->conf.config->frontends[row->frontend].name;
}

static void set_ms(json_t *row, const char *key, uint64_t ns)
{
	json_object_set_new(row, key, ns ? json_real((double)ns / NS_PER_MS_F) : json_null());
}

static json_t *request_row(const struct show *s, const struct inflight_told *told)
{
	const struct lb_inflight_row *from = told->row;
	const struct lb_inflight_request *r = &from->request;
	json_t *row = begin_row(s, from, lb_inflight_state_name(LB_INFLIGHT_REQUESTS, from->state));
	show_set_text(row, "frontend", frontend_of(s, from));
	show_set_address(row, "client", &from->peer);
	show_set_text(row, "method", r->method);
	show_set_text(row, "authority", r->authority);
	show_set_text(row, "path", r->path);
	show_set_text(row, "virtual_host", r->vhost);
	show_set_text(row, "route", r->route);
	json_object_set_new(row, "route_index",
		r->route_index == UINT32_MAX ? json_null() : json_integer(r->route_index));
	show_set_text(row, "cluster", r->cluster);
	show_set_address(row, "endpoint", r->has_endpoint ? &r->endpoint : NULL);
	show_set_u64(row, "attempts", r->n_attempts);
	show_set_u64(row, "bytes_in", from->bytes_in);
	show_set_u64(row, "bytes_out", from->bytes_out);
	show_set_text(row, "id", r->id);
	end_row(row, LB_INFLIGHT_REQUESTS, told);
	return row;
}

static const char *tls_of(const struct lb_inflight_conn *c)
{
	return c->tls == TLS_1_3 ? "1.3" : c->tls == TLS_1_2 ? "1.2" : "";
}

static const char *http_of(const struct lb_inflight_conn *c)
{
	return c->http == 20 ? "2" : c->http == 11 ? "1.1" : c->http == 10 ? "1.0" : "";
}

// "cluster" is filled in for all rows at once.
static void set_ends(const struct show *s, json_t *row, const struct lb_inflight_row *from)
{
	const struct lb_inflight_conn *c = &from->conn;
	bool is_client = c->endpoint == LB_INFLIGHT_ANY;
	show_set_text(row, "side", is_client ? "client" : "backend");
	show_set_address(row, "peer", &from->peer);
	show_set_address(row, "local", &c->local);
	show_set_text(row, "frontend", is_client ? frontend_of(s, from) : "");
	show_set_text(row, "cluster", "");
}

static json_t *conn_row(const struct show *s, const struct inflight_told *told)
{
	const struct lb_inflight_row *from = told->row;
	const struct lb_inflight_conn *c = &from->conn;
	json_t *row = begin_row(s, from, lb_inflight_state_name(LB_INFLIGHT_CONNS, from->state));
	set_ends(s, row, from);
	show_set_text(row, "http", http_of(c));
	show_set_text(row, "tls", tls_of(c));
	show_set_u64(row, "streams", c->n_streams);
	show_set_u64(row, "bytes_in", from->bytes_in);
	show_set_u64(row, "bytes_out", from->bytes_out);
	show_set_u64(row, "waiting", c->waiting);
	set_ms(row, "rtt_ms", c->tcp.rtt_ns);
	show_set_u64(row, "cwnd", c->tcp.cwnd);
	show_set_u64(row, "retransmits", c->tcp.n_resent);
	end_row(row, LB_INFLIGHT_CONNS, told);
	return row;
}

// What `ss -ti` tells of the kernel's.
static json_t *tcp_row(const struct show *s, const struct inflight_told *told)
{
	const struct lb_tcp_info *t = &told->row->conn.tcp;
	json_t *row = begin_row(s, told->row, t->state);
	set_ends(s, row, told->row);
	show_set_u64(row, "recv_queue", t->recv_queue);
	show_set_u64(row, "send_queue", t->send_queue);
	show_set_u64(row, "in_flight", t->in_flight);
	show_set_u64(row, "cwnd", t->cwnd);
	json_object_set_new(row, "ssthresh",
		t->ssthresh == UINT32_MAX ? json_null() : json_integer(t->ssthresh));
	set_ms(row, "rtt_ms", t->rtt_ns);
	set_ms(row, "rttvar_ms", t->rttvar_ns);
	set_ms(row, "min_rtt_ms", t->min_rtt_ns);
	set_ms(row, "rto_ms", t->rto_ns);
	show_set_u64(row, "backoffs", t->n_backoff);
	show_set_u64(row, "retransmits", t->n_resent);
	json_object_set_new(
		row, "pace_bytes_s", t->pace ? json_integer((json_int_t)t->pace) : json_null());
	show_set_u64(row, "mss", t->mss);
	show_set_u64(row, "send_window", t->send_window);
	show_set_u64(row, "recv_window", t->recv_window);
	show_set_u64(row, "send_scale", t->send_scale);
	show_set_u64(row, "recv_scale", t->recv_scale);
	show_set_text(row, "congestion", t->congestion);
	end_row(row, LB_INFLIGHT_CONNS, told);
	return row;
}

static void name_endpoint(void *ctx, const char *cluster, uint32_t id)
{
	endpoint_clusters_add(ctx, cluster, id);
}

static void set_clusters(json_t *row, const struct endpoint_clusters *of, uint32_t id)
{
	char *text = endpoint_clusters_text(of, id);
	show_set_text(row, "cluster", text ? text : "");
	free(text);
}

static void name_clusters(const struct show *s, const struct inflight_sum *sum, json_t *rows)
{
	struct endpoint_clusters *of = endpoint_clusters_new(sum->n_rows);
	bool any = false;
	for (uint32_t i = 0; of && i < sum->n_rows; i++) {
		uint32_t id = sum->rows[i].row->conn.endpoint;
		if (id == LB_INFLIGHT_ANY)
			continue;
		endpoint_clusters_want(of, id);
		any = true;
	}
	if (any)
		assembler_each_endpoint_id(s->conf.assembler, NULL, name_endpoint, of);
	for (uint32_t i = 0; any && i < sum->n_rows; i++)
		set_clusters(json_array_get(rows, i), of, sum->rows[i].row->conn.endpoint);
	endpoint_clusters_free(of);
}

const char *inflight_rows_mac(const uint8_t mac[6], char text[INFLIGHT_MAC_MAX])
{
	snprintf(text, INFLIGHT_MAC_MAX, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
	return text;
}

// Of a gateway of shunt.yaml; "" = it is none.
static const char *watch_of(const struct show *s, uint32_t port, const struct ip_addr *ip)
{
	const struct config *c = s->conf.config;
	for (unsigned i = 0; port < c->n_ports && i < c->ports[port].n_gateway_ips; i++)
		if (ip_eq(&c->ports[port].gateway_ips[i], ip))
			return lb_gateway_state_name(s->conf.ports[port].gateways[i].state);
	return "";
}

static json_t *neighbor_row(const struct show *s, const struct inflight_told *told)
{
	const struct lb_inflight_row *from = told->row;
	const struct lb_inflight_neighbor *n = &from->neighbor;
	char text[IP_PORT_TEXT_MAX], mac[INFLIGHT_MAC_MAX];
	json_t *row = json_object();
	show_set_u64(row, "port", n->port);
	show_set_text(row, "address", ip_print(&from->peer.ip, text));
	show_set_text(row, "mac", n->has_mac ? inflight_rows_mac(n->mac, mac) : "");
	show_set_text(row, "state", lb_inflight_state_name(LB_INFLIGHT_NEIGHBORS, from->state));
	json_object_set_new(
		row, "age_s", n->has_mac ? json_real(show_age_s(s, from->began_ns)) : json_null());
	json_object_set_new(row, "gateway", json_boolean(n->is_gateway));
	show_set_text(row, "watch", watch_of(s, n->port, &from->peer.ip));
	show_set_u64(row, "asked", n->n_asks);
	show_set_u64(row, "held", n->n_held);
	show_set_u64(row, "worker", told->worker);
	return row;
}

static json_t *one_row(
	const struct show *s, enum inflight_form form, const struct inflight_told *told)
{
	switch (form) {
	case INFLIGHT_OF_REQUESTS:
		return request_row(s, told);
	case INFLIGHT_OF_CONNS:
		return conn_row(s, told);
	case INFLIGHT_OF_TCP:
		return tcp_row(s, told);
	case INFLIGHT_OF_NEIGHBORS:
		return neighbor_row(s, told);
	case INFLIGHT_OF_ADDRESSES:
		break;
	}
	return inflight_rows_address(s, told->row);
}

json_t *inflight_rows_build(
	const struct show *s, enum inflight_form form, const struct inflight_sum *sum)
{
	if (form == INFLIGHT_OF_ADDRESSES)
		return inflight_rows_addresses(s, sum);
	json_t *rows = json_array();
	for (uint32_t i = 0; rows && i < sum->n_rows; i++)
		json_array_append_new(rows, one_row(s, form, &sum->rows[i]));
	if (rows && inflight_rows_kind(form) == LB_INFLIGHT_CONNS)
		name_clusters(s, sum, rows);
	return rows;
}

enum lb_inflight_kind inflight_rows_kind(enum inflight_form form)
{
	static const enum lb_inflight_kind kinds[] = {
		[INFLIGHT_OF_REQUESTS] = LB_INFLIGHT_REQUESTS,
		[INFLIGHT_OF_CONNS] = LB_INFLIGHT_CONNS,
		[INFLIGHT_OF_TCP] = LB_INFLIGHT_CONNS,
		[INFLIGHT_OF_NEIGHBORS] = LB_INFLIGHT_NEIGHBORS,
		[INFLIGHT_OF_ADDRESSES] = LB_INFLIGHT_ADDRESSES,
	};
	return kinds[form];
}

const char *inflight_rows_all_key(enum inflight_form form)
{
	return inflight_rows_kind(form) <= LB_INFLIGHT_CONNS ? "in_flight" : "known";
}

const char *inflight_rows_key(enum inflight_form form)
{
	static const char *const keys[] = {
		[INFLIGHT_OF_REQUESTS] = "requests",
		[INFLIGHT_OF_CONNS] = "connections",
		[INFLIGHT_OF_TCP] = "connections",
		[INFLIGHT_OF_NEIGHBORS] = "neighbors",
		[INFLIGHT_OF_ADDRESSES] = "addresses",
	};
	return keys[form];
}

int inflight_rows_check(
	const struct show *s, enum inflight_form form, struct row_query *query, struct lb_err *err)
{
	static const struct lb_inflight_row any = {.conn.tcp = {.state = "", .congestion = ""}};
	json_t *row = one_row(s, form, &(struct inflight_told){.row = &any});
	row_query_matches(query, row);
	json_decref(row);
	return row_query_check(query, err);
}
