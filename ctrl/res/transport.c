// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/transport.h"

#include "ctrl/res/tls.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb-c.h"

#include <errno.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Core__V3__TransportSocket Socket;
typedef Envoy__Extensions__TransportSockets__Http11Proxy__V3__Http11ProxyUpstreamTransport Proxy;
#define PROXY_TYPE                                                                                 \
	(&envoy__extensions__transport_sockets__http_11_proxy__v3__http11_proxy_upstream_transport__descriptor)

// HC-01, HC-02. The one inside is what is behind the proxy, or used without one; none is plain
// text.
static int read_wrapper(struct res_reader *rd, const struct res_any *any, struct res_transport *t)
{
	Proxy *m = res_any_decode(any, PROXY_TYPE, rd->err);
	if (!m)
		return *rd->err->text ? -EINVAL : -ENOMEM;
	int rc = 0;
	t->uses_proxies = true;
	if (m->transport_socket)
		rc = res_tls_read_upstream(rd, m->transport_socket, &t->tls);
	proto_free(m);
	return rc;
}

static int read_socket(struct res_reader *rd, const Socket *s, struct res_transport *t)
{
	struct res_any any;
	if (!s->typed_config || !res_any_stands_for(s->typed_config, PROXY_TYPE))
		return res_tls_read_upstream(rd, s, &t->tls);
	int rc = res_any_open(s->typed_config, &any, rd->err);
	if (!rc) {
		rc = read_wrapper(rd, &any, t);
		res_any_close(&any);
	}
	return rc == -EINVAL ? lb_err_within(rd->err, "transport_socket") : rc;
}

// Which of the matches an endpoint has is not looked at: whichever it is, it must be plain, as the
// cluster's own is then (TLS-120).
static int read_match(struct res_reader *rd, const Socket *s)
{
	const struct res_tls *tls;
	if (!s)
		return lb_err_set(rd->err, "no transport_socket");
	int rc = res_tls_read_upstream(rd, s, &tls);
	if (!rc && tls)
		rc = lb_err_set(rd->err, "transport_socket: TLS is not supported here");
	return rc;
}

int res_transport_read(struct res_reader *rd, const Cluster *m, struct res_transport *t)
{
	int rc = 0;
	*t = (struct res_transport){NULL};
	if (m->transport_socket)
		rc = read_socket(rd, m->transport_socket, t);
	if (!rc && (t->tls || t->uses_proxies) && m->n_transport_socket_matches)
		rc = lb_err_set(rd->err, "transport_socket_matches: are not supported beside %s",
			t->tls ? "TLS" : "Http11ProxyUpstreamTransport");
	for (size_t i = 0; !rc && i < m->n_transport_socket_matches; i++) {
		rc = read_match(rd, m->transport_socket_matches[i]->transport_socket);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "transport_socket_matches[%zu]", i);
	}
	return rc;
}
