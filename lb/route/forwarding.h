// SPDX-License-Identifier: Apache-2.0
// What a listener makes of the fields that say whom a request comes from: x-forwarded-for,
// x-forwarded-proto, x-forwarded-client-cert and x-envoy-* (HX-50..HX-61). As Envoy's
// HttpConnectionManager says it.
// Thread: any; a plain value.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// forward_client_cert_details, in its order.
enum lb_cert_forwarding {
	LB_CERT_SANITIZE,
	LB_CERT_FORWARD_ONLY,
	LB_CERT_APPEND_FORWARD,
	LB_CERT_SANITIZE_SET,
	LB_CERT_ALWAYS_FORWARD_ONLY,
	LB_N_CERT_FORWARDINGS,
};

struct lb_forwarding {
	bool on; // false = all of these fields pass as they come, and the rest is empty
	bool use_remote_address; // the client is the other end of the connection: an edge
	bool skip_xff_append;
	bool cert_subject, cert_uri, cert_dns; // set_current_client_cert_details
	uint8_t cert; // enum lb_cert_forwarding
	uint32_t trusted_hops; // xff_num_trusted_hops
};
