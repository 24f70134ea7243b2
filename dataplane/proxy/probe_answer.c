// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/probe_answer.h"

#include "dataplane/h2/h2.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_LEN 5 // of a gRPC message: a flag and its length
#define SERVING 1 // grpc.health.v1.HealthCheckResponse.ServingStatus
#define NO_STATUS UINT32_MAX

// Decimal; anything else is UNKNOWN (2), as gRPC takes it.
static uint32_t read_number(struct str s)
{
	uint32_t n = 0;
	if (!s.len || s.len > 9)
		return 2;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return 2;
		n = 10 * n + (uint32_t)(s.p[i] - '0');
	}
	return n;
}

struct proxy_verdict proxy_verdict_failed(const char *why)
{
	struct proxy_verdict v = {.result = LB_PROBE_NETWORK};
	snprintf(v.why, sizeof(v.why), "%s", why);
	return v;
}

void proxy_probe_answer_head(struct proxy_probe_answer *a, const struct h2_message *m)
{
	if (m->kind == H2_RESPONSE)
		a->status = m->status;
	for (size_t i = 0; i < m->n_fields; i++) {
		if (!str_eq(m->fields[i].name, STR("grpc-status")))
			continue;
		a->has_grpc_status = true;
		a->grpc_status = read_number(m->fields[i].value);
	}
}

bool proxy_probe_answer_body(struct proxy_probe_answer *a, const uint8_t *data, size_t len)
{
	size_t room = sizeof(a->bytes) - a->len, n = len < room ? len : room;
	memcpy(a->bytes + a->len, data, n);
	a->len += (uint32_t)n;
	a->is_too_long |= n < len;
	return n == len;
}

struct reader {
	const uint8_t *at, *end;
};

static bool take_varint(struct reader *r, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (r->at == r->end)
			return false;
		uint8_t b = *r->at++;
		*ret |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

// A field that is not known. False = it is malformed, or of a kind that nobody sends any more.
static bool skip(struct reader *r, uint64_t tag)
{
	uint64_t len;
	switch (tag & 7) {
	case 0:
		return take_varint(r, &len);
	case 1:
		len = 8;
		break;
	case 2:
		if (!take_varint(r, &len))
			return false;
		break;
	case 5:
		len = 4;
		break;
	default:
		return false;
	}
	if (len > (uint64_t)(r->end - r->at))
		return false;
	r->at += len;
	return true;
}

// HealthCheckResponse.status; NO_STATUS = it is none.
static uint32_t serving_status(const struct proxy_probe_answer *a)
{
	if (a->is_too_long || a->len < PREFIX_LEN || a->bytes[0] != 0)
		return NO_STATUS;
	uint32_t len = (uint32_t)a->bytes[1] << 24 | (uint32_t)a->bytes[2] << 16 |
	               (uint32_t)a->bytes[3] << 8 | a->bytes[4];
	if (len != a->len - PREFIX_LEN)
		return NO_STATUS;
	struct reader r = {a->bytes + PREFIX_LEN, a->bytes + a->len};
	uint64_t tag, status = 0;
	while (r.at < r.end) {
		bool ok = take_varint(&r, &tag);
		ok = ok && (tag == 1 << 3 ? take_varint(&r, &status) : skip(&r, tag));
		if (!ok)
			return NO_STATUS;
	}
	return status < NO_STATUS ? (uint32_t)status : NO_STATUS;
}

static struct proxy_verdict judge_http(
	const struct lb_check *check, const struct proxy_probe_answer *a)
{
	struct proxy_verdict v = {.result = LB_PROBE_PASSED};
	if (lb_status_is_in(check->expected, a->status)) {
		if (lb_check_finds(check, proxy_probe_answer_bytes(a)))
			return v;
		v.result = LB_PROBE_UNHEALTHY;
		snprintf(v.why, sizeof(v.why), "unexpected body");
		return v;
	}
	v.result = lb_status_is_in(check->retriable, a->status) ? LB_PROBE_RETRIABLE
	                                                        : LB_PROBE_UNHEALTHY;
	snprintf(v.why, sizeof(v.why), "status %u", a->status);
	return v;
}

static struct proxy_verdict judge_grpc(const struct proxy_probe_answer *a)
{
	static const char *const names[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
	struct proxy_verdict v = {.result = LB_PROBE_UNHEALTHY};
	uint32_t serving = serving_status(a);
	if (a->status != 200)
		snprintf(v.why, sizeof(v.why), "status %u", a->status);
	else if (!a->has_grpc_status)
		snprintf(v.why, sizeof(v.why), "no grpc-status");
	else if (a->grpc_status)
		snprintf(v.why, sizeof(v.why), "grpc-status %" PRIu32, a->grpc_status);
	else if (serving == NO_STATUS)
		snprintf(v.why, sizeof(v.why), "malformed answer");
	else if (serving == SERVING)
		v.result = LB_PROBE_PASSED;
	else
		snprintf(v.why, sizeof(v.why), "%s",
			serving < sizeof(names) / sizeof(names[0]) ? names[serving] : "UNKNOWN");
	return v;
}

struct proxy_verdict proxy_probe_judge(
	const struct lb_check *check, const struct proxy_probe_answer *a)
{
	return check->kind == LB_CHECK_GRPC ? judge_grpc(a) : judge_http(check, a);
}
