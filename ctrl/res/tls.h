// SPDX-License-Identifier: Apache-2.0
// Envoy's UpstreamTlsContext and DownstreamTlsContext as gRPC reads them (gRFC A29, A82, A101):
// certificates by providers of the bootstrap alone, and a refusal of what must not be left out.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/route/san_match.h"

#include <stdbool.h>
#include <stdint.h>

struct Envoy__Config__Core__V3__TransportSocket;

// All texts are in the resource's arena. Providers are names of the bootstrap's.
struct res_tls {
	const char *identity; // whose certificate we show; NULL = none (of a cluster only)
	const char *ca; // whose CAs peers must have; NULL = see system_roots, or clients show none
	bool system_roots; // A82; of a cluster only
	const struct lb_san_matcher_conf
		*sans; // of which the server's certificate has one; none = any
	uint32_t n_sans;
	// Of a cluster (A101):
	const char *sni; // "" = none
	bool auto_host_sni; // the endpoint's hostname goes before sni
	bool auto_sni_san_validation; // what was sent as SNI is compared, not `sans`
	uint32_t max_sessions; // that are kept of an endpoint; 0 = none is resumed
	// Of a listener:
	bool require_client_certificate;
};

#define RES_TLS_MAX_SNI 255 // A101
#define RES_TLS_SESSIONS 16 // where nothing is said
#define RES_TLS_MAX_SESSIONS 256 // whatever is said

// *ret stays NULL for plain text (RawBuffer). Returns 0, -ENOMEM, or -EINVAL with field and reason
// (TLS-120 to TLS-129); `reader` must know the bootstrap.
[[nodiscard]] int res_tls_read_upstream(struct res_reader *reader,
	const struct Envoy__Config__Core__V3__TransportSocket *, const struct res_tls **ret);
[[nodiscard]] int res_tls_read_downstream(struct res_reader *reader,
	const struct Envoy__Config__Core__V3__TransportSocket *, const struct res_tls **ret);
