// SPDX-License-Identifier: Apache-2.0
// Any bytes as a transport socket, of a cluster (first byte even) or a listener: a context that was
// read keeps what ctrl/res/tls.h promises, and its names to match can be built and asked.
#include "ctrl/res/tls.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "envoy/config/core/v3/base.pb-c.h"
#include "lb/base/check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_names(const struct res_tls *t)
{
	const struct lb_san sans[] = {{LB_SAN_DNS, STR("*.example")},
		{LB_SAN_URI, STR("spiffe://a/b")}, {LB_SAN_IP, STR("\x0a\x01\x02\x03")}};
	struct lb_err err = {""};
	struct lb_san_matchers *m = lb_san_matchers_new(t->sans, t->n_sans, &err);
	CHECK(m);
	bool all = lb_san_matchers_match(m, sans, 3);
	bool one = false;
	for (uint32_t i = 0; i < 3; i++)
		one |= lb_san_matchers_match(m, &sans[i], 1);
	CHECK(all == one);
	lb_san_matchers_free(m);
}

static void check_context(const struct res_tls *t, bool is_server)
{
	CHECK(!t->identity || strcmp(t->identity, "p") == 0);
	CHECK(!t->ca || strcmp(t->ca, "p") == 0);
	CHECK(!(t->ca && t->system_roots) && t->sni && strlen(t->sni) <= RES_TLS_MAX_SNI);
	if (is_server)
		CHECK(t->identity && !t->n_sans && !t->system_roots &&
			(t->ca || !t->require_client_certificate));
	else
		CHECK((t->ca || t->system_roots) && !t->require_client_certificate);
	check_names(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "p";
	static struct xds_cert_provider_conf provider = {.name = name};
	static const struct xds_bootstrap bootstrap = {
		.cert_providers = &provider, .n_cert_providers = 1};
	struct lb_arena arena = {0};
	struct lb_err err = {""};
	struct res_reader rd = {.arena = &arena, .err = &err, .bootstrap = &bootstrap};
	const struct res_tls *t;
	if (size == 0)
		return 0;
	bool is_server = data[0] & 1;
	Envoy__Config__Core__V3__TransportSocket *s = proto_unpack(
		&envoy__config__core__v3__transport_socket__descriptor, data + 1, size - 1, &err);
	if (!s)
		return 0;
	int rc =
		is_server ? res_tls_read_downstream(&rd, s, &t) : res_tls_read_upstream(&rd, s, &t);
	proto_free(s);
	CHECK(!rc == !*err.text);
	if (!rc && t)
		check_context(t, is_server);
	lb_arena_fini(&arena);
	return 0;
}
