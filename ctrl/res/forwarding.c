// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/forwarding.h"

#include "ctrl/res/common.h"

#define HCM(x) Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__##x
#define HCM_E(x) ENVOY__EXTENSIONS__FILTERS__NETWORK__HTTP_CONNECTION_MANAGER__V3__##x
typedef HCM(HttpConnectionManager) Hcm;
typedef HCM(HttpConnectionManager__SetCurrentClientCertDetails) Details;
#define CERT(x) HCM_E(HTTP_CONNECTION_MANAGER__FORWARD_CLIENT_CERT_DETAILS__##x)

_Static_assert((int)LB_CERT_SANITIZE == (int)CERT(SANITIZE), "as Envoy");
_Static_assert((int)LB_CERT_FORWARD_ONLY == (int)CERT(FORWARD_ONLY), "as Envoy");
_Static_assert((int)LB_CERT_APPEND_FORWARD == (int)CERT(APPEND_FORWARD), "as Envoy");
_Static_assert((int)LB_CERT_SANITIZE_SET == (int)CERT(SANITIZE_SET), "as Envoy");
_Static_assert((int)LB_CERT_ALWAYS_FORWARD_ONLY == (int)CERT(ALWAYS_FORWARD_ONLY), "as Envoy");

// A listener made for gRPC clients says nothing of all this (docs/decisions/forwarded.md).
static bool speaks_of_it(const Hcm *m)
{
	return m->use_remote_address || m->skip_xff_append ||
	       m->forward_client_cert_details != CERT(SANITIZE);
}

int res_forwarding_read(struct res_reader *rd, const Hcm *m, bool is_api, struct lb_forwarding *ret)
{
	const Details *d = m->set_current_client_cert_details;
	if (is_api && m->xff_num_trusted_hops) // FLT-10
		return lb_err_set(rd->err, "xff_num_trusted_hops: must be 0");
	if (m->n_original_ip_detection_extensions)
		return lb_err_set(rd->err, "original_ip_detection_extensions: must be empty");
	// HX-60
	int cert = (int)m->forward_client_cert_details;
	if (cert < 0 || cert >= LB_N_CERT_FORWARDINGS)
		return lb_err_set(rd->err, "forward_client_cert_details: unknown value %d", cert);
	if (d && (d->cert || d->chain))
		res_warn(rd, "set_current_client_cert_details: cert and chain are ignored");
	*ret = (struct lb_forwarding){
		.on = !is_api || speaks_of_it(m),
		.use_remote_address = m->use_remote_address && m->use_remote_address->value,
		.skip_xff_append = m->skip_xff_append,
		.cert_subject = d && d->subject && d->subject->value,
		.cert_uri = d && d->uri,
		.cert_dns = d && d->dns,
		.cert = (uint8_t)cert,
		.trusted_hops = m->xff_num_trusted_hops,
	};
	return 0;
}
