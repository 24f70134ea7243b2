// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/proxy_header.h"

#include "envoy/config/core/v3/proxy_protocol.pb-c.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Core__V3__ProxyProtocolConfig Config;
typedef Envoy__Config__Core__V3__TlvEntry Tlv;
#define VERSION(x) ENVOY__CONFIG__CORE__V3__PROXY_PROTOCOL_CONFIG__VERSION__##x

#define TLV_FIXED 3 // type, length

// What one of its values says depends on a request would have to be known before the first one.
static int check_tlv(const Tlv *m, struct lb_err *err)
{
	if (m->type > UINT8_MAX)
		return lb_err_set(err, "type: must be below 256");
	if (m->format_string)
		return lb_err_set(err, "format_string: is not supported");
	if (!m->value.len)
		return lb_err_set(err, "value: must not be empty");
	return 0;
}

// Envoy: the first one of a type counts.
static bool is_said(const Config *m, size_t n, uint32_t type)
{
	for (size_t i = 0; i < n; i++)
		if (m->added_tlvs[i]->type == type)
			return true;
	return false;
}

static int read_tlvs(struct res_reader *rd, const Config *m, struct lb_header *ret)
{
	uint8_t *to = lb_arena_alloc(rd->arena, LB_HEADER_TLVS_MAX, 1);
	size_t len = 0;
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_added_tlvs; i++) {
		const Tlv *tlv = m->added_tlvs[i];
		if (check_tlv(tlv, rd->err))
			return lb_err_within(rd->err, "added_tlvs[%zu]", i);
		if (is_said(m, i, tlv->type)) {
			res_warn(rd, "added_tlvs: the second one of a type is ignored");
			continue;
		}
		size_t n = tlv->value.len;
		if (n > LB_HEADER_TLVS_MAX - TLV_FIXED || len + TLV_FIXED + n > LB_HEADER_TLVS_MAX)
			return lb_err_set(
				rd->err, "added_tlvs: have more than %d bytes", LB_HEADER_TLVS_MAX);
		to[len] = (uint8_t)tlv->type;
		to[len + 1] = (uint8_t)(n >> 8);
		to[len + 2] = (uint8_t)n;
		memcpy(to + len + TLV_FIXED, tlv->value.data, n);
		len += TLV_FIXED + n;
	}
	ret->tlvs = (struct str){(const char *)to, len};
	return 0;
}

int res_proxy_header_read(struct res_reader *rd, const Config *m, struct lb_header *ret)
{
	*ret = (struct lb_header){.version = 1};
	if (!m)
		return 0;
	if (m->version != VERSION(V1) && m->version != VERSION(V2))
		return lb_err_set(rd->err, "version: %d is not known", (int)m->version);
	ret->version = m->version == VERSION(V1) ? 1 : 2;
	// A backend that is to have them would take their absence for their client's doing.
	if (m->pass_through_tlvs)
		return lb_err_set(rd->err, "pass_through_tlvs: is not supported");
	if (!m->n_added_tlvs)
		return 0;
	int rc = read_tlvs(rd, m, ret);
	if (!rc && ret->version == 1) {
		res_warn(rd, "added_tlvs are ignored: version 1 has none");
		ret->tlvs = (struct str){0};
	}
	return rc;
}
