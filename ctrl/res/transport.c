// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/transport.h"

#include "ctrl/res/proxy_header.h"
#include "ctrl/res/tls.h"
#include "envoy/config/cluster/v3/cluster.pb-c.h"
#include "envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb-c.h"
#include "envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol.pb-c.h"

#include <errno.h>

// Short names; protobuf-c's own are typedefs.
#define SOCKETS_T(x) Envoy__Extensions__TransportSockets__##x
#define SOCKETS(x) (&envoy__extensions__transport_sockets__##x##__descriptor)
typedef Envoy__Config__Cluster__V3__Cluster Cluster;
typedef Envoy__Config__Core__V3__TransportSocket Socket;
typedef SOCKETS_T(Http11Proxy__V3__Http11ProxyUpstreamTransport) Proxy;
typedef SOCKETS_T(ProxyProtocol__V3__ProxyProtocolUpstreamTransport) Header;
#define PROXY_TYPE SOCKETS(http_11_proxy__v3__http11_proxy_upstream_transport)
#define HEADER_TYPE SOCKETS(proxy_protocol__v3__proxy_protocol_upstream_transport)

static bool is(const Socket *s, const ProtobufCMessageDescriptor *type)
{
	return s->typed_config && res_any_stands_for(s->typed_config, type);
}

// PP-15 to PP-17. The one inside is what the header is sent in front of.
static int read_header(struct res_reader *rd, const Socket *s, struct res_transport *t)
{
	Header *m = res_any_unpack(s->typed_config, HEADER_TYPE, rd->err);
	if (!m)
		return *rd->err->text ? -EINVAL : -ENOMEM;
	int rc = res_proxy_header_read(rd, m->config, &t->header);
	if (rc == -EINVAL)
		lb_err_within(rd->err, "config");
	// Envoy has the fields, and does nothing with them.
	if (m->allow_unspecified_address || m->tlv_as_pool_key)
		res_warn(rd, "allow_unspecified_address and tlv_as_pool_key are ignored");
	if (!rc && !m->transport_socket)
		rc = lb_err_set(rd->err, "no transport_socket");
	else if (!rc)
		rc = res_tls_read_upstream(rd, m->transport_socket, &t->tls);
	proto_free(m);
	return rc;
}

// All but a way through proxies.
static int read_behind(struct res_reader *rd, const Socket *s, struct res_transport *t)
{
	if (!is(s, HEADER_TYPE))
		return res_tls_read_upstream(rd, s, &t->tls);
	int rc = read_header(rd, s, t);
	return rc == -EINVAL ? lb_err_within(rd->err, "transport_socket") : rc;
}

// HC-01, HC-02. The one inside is what is behind the proxy, or used without one; none is plain
// text.
static int read_socket(struct res_reader *rd, const Socket *s, struct res_transport *t)
{
	if (!is(s, PROXY_TYPE))
		return read_behind(rd, s, t);
	Proxy *m = res_any_unpack(s->typed_config, PROXY_TYPE, rd->err);
	int rc = m ? 0 : *rd->err->text ? -EINVAL : -ENOMEM;
	t->uses_proxies = true;
	if (m && m->transport_socket)
		rc = read_behind(rd, m->transport_socket, t);
	proto_free(m);
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

// NULL = plain text alone.
static const char *name_of(const struct res_transport *t)
{
	if (t->tls)
		return "TLS";
	if (t->header.version)
		return "ProxyProtocolUpstreamTransport";
	return t->uses_proxies ? "Http11ProxyUpstreamTransport" : NULL;
}

int res_transport_read(struct res_reader *rd, const Cluster *m, struct res_transport *t)
{
	int rc = 0;
	*t = (struct res_transport){NULL};
	if (m->transport_socket)
		rc = read_socket(rd, m->transport_socket, t);
	const char *beside = name_of(t);
	if (!rc && beside && m->n_transport_socket_matches)
		rc = lb_err_set(
			rd->err, "transport_socket_matches: are not supported beside %s", beside);
	for (size_t i = 0; !rc && i < m->n_transport_socket_matches; i++) {
		rc = read_match(rd, m->transport_socket_matches[i]->transport_socket);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "transport_socket_matches[%zu]", i);
	}
	return rc;
}
