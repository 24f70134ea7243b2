// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/cidr.h"

int res_cidr_read(struct res_reader *rd, const Envoy__Config__Core__V3__CidrRange *m,
	enum res_cidr_too_long too_long, struct ip_prefix *ret)
{
	if (!ip_parse(m->address_prefix, &ret->ip))
		return lb_err_set(rd->err, "address_prefix: \"%.128s\" is not an IP address",
			m->address_prefix);
	bool is_v6 = strchr(m->address_prefix, ':'); // v4-mapped ones are
	uint32_t bits = m->prefix_len ? m->prefix_len->value : 0, most = is_v6 ? 128 : 32;
	if (bits > most && too_long == RES_CIDR_REFUSE)
		return lb_err_set(rd->err, "prefix_len: %u is more than %u", bits, most);
	ret->bits = (uint8_t)((bits < most ? bits : most) + (is_v6 ? 0 : IP_V4_BITS));
	return 0;
}
