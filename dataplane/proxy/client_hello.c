// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/client_hello.h"

#include "dataplane/proxy/admit.h"
#include "dataplane/proxy/state.h"
#include "dataplane/tls/hello.h"
#include "lb/base/check.h"
#include "lb/base/min.h"
#include "lb/chain_set.h"

#include <string.h>

#define BYTES_PER_INSTRUCTION 8 // of a copy

int proxy_client_hellos_init(struct proxy *p)
{
	return pool_init(&p->client_hellos, sizeof(struct proxy_client_hello), p->conf.max_clients);
}

void proxy_client_hello_drop(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	buf_clear(&c->hello->bytes, p->chunks);
	pool_put(&p->client_hellos, c->hello);
	c->hello = NULL;
}

// As if it had gone away by itself; then RST.
static void refuse(struct proxy_client *c, enum proxy_counter why)
{
	struct tcp_conn *tcp = c->conn.tcp;
	proxy_count(c->conn.proxy, why);
	c->hello->ops->tcp->on_closed(tcp, c, TCP_CLOSE_RESET);
	tcp_conn_abort(tcp);
}

// Looks at the first bytes, the last of which TCP shows. A good hello of no chain that wants TLS
// may still get one in the clear, and other bytes one with TLS, as Envoy has it.
static enum tls_hello_state look(
	struct proxy_client *c, const uint8_t *data, size_t len, struct lb_chain_hello *ret)
{
	uint8_t *bytes = c->conn.proxy->hello_bytes;
	struct tls_hello read = {.need = 0};
	size_t n = c->hello->bytes.len, more = min_size(len, TLS_HELLO_STREAM_MAX - n);
	buf_copy_out(&c->hello->bytes, 0, bytes, n);
	memcpy(bytes + n, data, more);
	c->conn.proxy->work.allowance -= (int64_t)(n + more) / BYTES_PER_INSTRUCTION;
	enum tls_hello_state state =
		tls_hello_read(bytes, n + more, c->hello->inspector.max_hello, &read);
	c->hello->need = read.need;
	*ret = (struct lb_chain_hello){.tls = state == TLS_HELLO_DONE,
		.server_name = read.server_name,
		.protocols = read.protocols};
	return state;
}

// False = the connection is gone.
static bool choose(struct proxy_client *c, const uint8_t *data, size_t len)
{
	struct lb_chain_hello hello;
	enum tls_hello_state state = look(c, data, len, &hello);
	if (state == TLS_HELLO_TOO_LARGE) {
		refuse(c, PROXY_hellos_too_large);
		return false;
	}
	if (state == TLS_HELLO_NONE && c->hello->inspector.closes) {
		refuse(c, PROXY_hellos_malformed);
		return false;
	}
	if (state == TLS_HELLO_MORE)
		return true;
	uint32_t place = proxy_admit_by(c->hello->listener, c->conn.tcp, &hello);
	if (place == LB_NO_PLACE) {
		refuse(c, PROXY_clients_unmatched);
		return false;
	}
	c->hello->known = true;
	if (c->hello->ops->settle(c, place))
		return true;
	refuse(c, PROXY_clients_refused);
	return false;
}

// What has come before. Whoever takes it may end the connection. False = some of it is left.
static bool feed_bytes(struct proxy_client *c, struct tcp_conn *tcp)
{
	struct pool *chunks = c->conn.proxy->chunks;
	const struct tcp_conn_ops *behind = c->hello->ops->tcp;
	struct buf bytes = c->hello->bytes;
	c->hello->bytes = (struct buf){0};
	for (size_t n = 1; bytes.len && n;) {
		size_t len;
		const uint8_t *p = buf_peek(&bytes, &len);
		n = behind->on_data(tcp, c, p, len);
		buf_consume(&bytes, chunks, n);
	}
	if (c->hello)
		c->hello->bytes = bytes;
	else
		buf_clear(&bytes, chunks);
	return !proxy_client_hello_len(c);
}

// TCP keeps the bytes that decided until those before them are gone, so that it asks again.
size_t proxy_client_hello_feed(
	struct proxy_client *c, struct tcp_conn *tcp, const uint8_t *data, size_t len)
{
	struct proxy_client_hello *h = c->hello;
	const struct tcp_conn_ops *behind = h->ops->tcp;
	if (!h->known && h->bytes.len + len >= h->need && !choose(c, data, len))
		return len;
	if (!h->known) {
		struct pool *chunks = c->conn.proxy->chunks;
		if (buf_is_short(chunks) || !buf_append(&h->bytes, chunks, data, len))
			refuse(c, PROXY_clients_refused);
		return len;
	}
	if (!feed_bytes(c, tcp))
		return 0;
	proxy_client_hello_end(c);
	return behind->on_data(tcp, c, data, len);
}

void proxy_client_hello_begin(struct proxy_client *c, const struct proxy_listener *l,
	const struct lb_inspector *inspector, const struct proxy_client_hello_ops *ops)
{
	c->hello = pool_take(&c->conn.proxy->client_hellos);
	CHECK(c->hello); // there are as many as clients
	*c->hello = (struct proxy_client_hello){.listener = l, .ops = ops, .inspector = *inspector};
}
