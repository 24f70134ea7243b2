// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/address.h"

int res_address_read(const struct eds_address *in, struct ip_port *ret, struct lb_err *err)
{
	struct ip_addr ip;
	int len = in->text.len < 64 ? (int)in->text.len : 64;
	if (!in->is_socket)
		return lb_err_set(err, "no socket_address");
	if (!ip_parse_str(in->text, &ip))
		return lb_err_set(err, "\"%.*s\" is not an IP address", len, in->text.p);
	if (ip_is_link_local(&ip)) // there is no place for its zone
		return lb_err_set(err, "%.*s: link-local, without a zone", len, in->text.p);
	if (!in->has_port)
		return lb_err_set(err, "%.*s: no port_value", len, in->text.p);
	if (in->port == 0 || in->port > UINT16_MAX)
		return lb_err_set(err, "%.*s: port %u", len, in->text.p, in->port);
	*ret = (struct ip_port){ip, (uint16_t)in->port};
	return 0;
}

int res_address_read_proxy(const struct eds_any *any, struct ip_port *ret, struct lb_err *err)
{
	struct eds_address a;
	*ret = (struct ip_port){.port = 0};
	if (!eds_any_is_address(any))
		return 0;
	int rc = eds_read_proxy(any, &a, err);
	if (!rc)
		rc = res_address_read(&a, ret, err);
	return rc ? lb_err_within(err, "metadata: typed_filter_metadata: " EDS_PROXY_KEY) : 0;
}
