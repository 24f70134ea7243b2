// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/proxy_header.h"

#include "envoy/config/core/v3/proxy_protocol.pb-c.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Core__V3__ProxyProtocolConfig Config;
typedef Envoy__Config__Core__V3__TlvEntry Tlv;
typedef Envoy__Config__Core__V3__ProxyProtocolPassThroughTLVs Passed;
#define VERSION(x) ENVOY__CONFIG__CORE__V3__PROXY_PROTOCOL_CONFIG__VERSION__##x
#define PASS(x) ENVOY__CONFIG__CORE__V3__PROXY_PROTOCOL_PASS_THROUGH_TLVS__PASS_TLVS_MATCH_TYPE__##x

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

// A checksum is that of the header which its sender wrote: whoever verifies it would refuse ours.
static void leave_checksum(struct res_reader *rd, const Passed *m, struct tlv_types *types)
{
	if (m->match_type == PASS(INCLUDE) && tlv_types_have(types, TLV_CRC32C))
		res_warn(rd, "pass_through_tlvs: tlv_type 3 is ignored: a header's checksum");
	tlv_types_remove(types, TLV_CRC32C);
}

int res_passed_tlvs_read(struct res_reader *rd, const Passed *m, struct tlv_types *ret)
{
	*ret = (struct tlv_types){0};
	if (!m)
		return 0;
	if (m->match_type != PASS(INCLUDE_ALL) && m->match_type != PASS(INCLUDE))
		return lb_err_set(rd->err, "match_type: %d is not known", (int)m->match_type);
	for (size_t i = 0; i < m->n_tlv_type; i++) {
		if (m->tlv_type[i] > UINT8_MAX)
			return lb_err_set(rd->err, "tlv_type[%zu]: must be below 256", i);
		tlv_types_add(ret, (uint8_t)m->tlv_type[i]);
	}
	if (m->match_type == PASS(INCLUDE_ALL))
		memset(ret, 0xff, sizeof(*ret));
	leave_checksum(rd, m, ret);
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
	int rc = res_passed_tlvs_read(rd, m->pass_through_tlvs, &ret->passed);
	if (rc)
		return lb_err_within(rd->err, "pass_through_tlvs");
	if (m->n_added_tlvs)
		rc = read_tlvs(rd, m, ret);
	if (!rc && ret->version == 1 && (m->n_added_tlvs || m->pass_through_tlvs)) {
		res_warn(rd, "TLVs are ignored: version 1 has none");
		*ret = (struct lb_header){.version = 1};
	}
	return rc;
}
