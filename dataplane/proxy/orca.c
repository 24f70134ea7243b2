// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/orca.h"

#include "lb/base/base64.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Protobuf, as far as a report needs it.

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum {
	CPU_UTILIZATION = 1,
	MEM_UTILIZATION = 2,
	RPS_FRACTIONAL = 6,
	EPS = 7,
	NAMED_METRICS = 8,
	APPLICATION_UTILIZATION = 9,
};

struct wire {
	uint64_t tag, varint; // field number << 3 | wire type
	double number; // of WIRE_64
	struct str bytes;
};

static bool take_varint(struct str *in, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (!in->len)
			return false;
		uint8_t b = (uint8_t)*in->p++;
		in->len--;
		if (shift < 64)
			*ret |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

static bool skip(struct str *in, uint64_t n)
{
	if (n > in->len)
		return false;
	in->p += n;
	in->len -= n;
	return true;
}

// The next field; the input is not at its end.
static bool take_wire(struct str *in, struct wire *ret)
{
	if (!take_varint(in, &ret->tag) || ret->tag >> 3 == 0)
		return false;
	const char *at = in->p;
	switch (ret->tag & 7) {
	case WIRE_VARINT:
		return take_varint(in, &ret->varint);
	case WIRE_64: {
		uint64_t bits = 0;
		if (!skip(in, 8))
			return false;
		for (int i = 7; i >= 0; i--)
			bits = bits << 8 | (uint8_t)at[i];
		memcpy(&ret->number, &bits, sizeof(bits));
		return isfinite(ret->number);
	}
	case WIRE_BYTES:
		if (!take_varint(in, &ret->varint))
			return false;
		ret->bytes = (struct str){in->p, ret->varint};
		return skip(in, ret->varint);
	case WIRE_32:
		return skip(in, 4);
	default:
		return false;
	}
}

static bool read_entry(struct str in, struct str *ret_name, double *ret_value)
{
	struct wire w;
	*ret_name = STR("");
	*ret_value = 0;
	while (in.len) {
		if (!take_wire(&in, &w))
			return false;
		if (w.tag == (1 << 3 | WIRE_BYTES))
			*ret_name = w.bytes;
		else if (w.tag == (2 << 3 | WIRE_64))
			*ret_value = w.number;
	}
	return true;
}

static void tell(const struct proxy_orca_listener *l, struct str name, double value)
{
	if (l)
		l->named(l->ctx, name, value);
}

static double *place_of(struct proxy_orca *o, uint64_t number)
{
	switch (number) {
	case CPU_UTILIZATION:
		return &o->report.cpu_utilization;
	case MEM_UTILIZATION:
		return &o->mem_utilization;
	case RPS_FRACTIONAL:
		return &o->report.qps;
	case EPS:
		return &o->report.eps;
	case APPLICATION_UTILIZATION:
		return &o->report.application_utilization;
	default:
		return NULL;
	}
}

static bool read_binary(
	struct str in, struct proxy_orca *ret, const struct proxy_orca_listener *listener)
{
	struct wire w;
	while (in.len) {
		if (!take_wire(&in, &w))
			return false;
		double *place = (w.tag & 7) == WIRE_64 ? place_of(ret, w.tag >> 3) : NULL;
		struct str name;
		double value;
		if (place) {
			*place = w.number;
		} else if (w.tag == (NAMED_METRICS << 3 | WIRE_BYTES)) {
			if (!read_entry(w.bytes, &name, &value))
				return false;
			tell(listener, name, value);
		}
	}
	return true;
}

// gRPC sends base64 without padding and takes both.
static bool decode(struct str text, char *scratch, size_t scratch_size, struct str *ret)
{
	if (scratch_size < 3 || text.len > scratch_size - 3)
		return false;
	memcpy(scratch, text.p, text.len);
	size_t len = text.len;
	while (len % 4 && len - text.len < 2)
		scratch[len++] = '=';
	ret->p = scratch;
	return base64_decode((struct str){scratch, len}, scratch, &ret->len);
}

// Text.

#define NAMED STR("named_metrics.")

static bool parse_number(struct str s, double *ret)
{
	char text[64], *end;
	if (!s.len || s.len >= sizeof(text))
		return false;
	memcpy(text, s.p, s.len);
	text[s.len] = '\0';
	*ret = strtod(text, &end);
	return *end == '\0' && end == text + s.len && isfinite(*ret);
}

static double *place_named(struct proxy_orca *o, struct str name)
{
	static const struct {
		struct str name;
		uint64_t number;
	} names[] = {
		{{"cpu_utilization", 15}, CPU_UTILIZATION},
		{{"mem_utilization", 15}, MEM_UTILIZATION},
		{{"rps_fractional", 14}, RPS_FRACTIONAL},
		{{"eps", 3}, EPS},
		{{"application_utilization", 23}, APPLICATION_UTILIZATION},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(name, names[i].name))
			return place_of(o, names[i].number);
	return NULL;
}

// Unknown names are passed over.
static bool read_text(
	struct str in, struct proxy_orca *ret, const struct proxy_orca_listener *listener)
{
	while (in.len) {
		struct str item = str_until(in, ',');
		skip(&in, item.len < in.len ? item.len + 1 : item.len);
		struct str name = str_until(item, '=');
		double value;
		if (name.len == item.len)
			return false;
		struct str rest = {item.p + name.len + 1, item.len - name.len - 1};
		name = str_trim(name);
		if (!name.len || !parse_number(str_trim(rest), &value))
			return false;
		double *place = place_named(ret, name);
		if (place)
			*place = value;
		else if (str_starts(name, NAMED) && name.len > NAMED.len)
			tell(listener, (struct str){name.p + NAMED.len, name.len - NAMED.len},
				value);
	}
	return true;
}

static bool after(struct str *s, struct str prefix)
{
	if (!str_starts(*s, prefix))
		return false;
	return skip(s, prefix.len);
}

enum proxy_orca_kind proxy_orca_read(const struct field *fields, size_t n, char *scratch,
	size_t scratch_size, struct proxy_orca *ret, const struct proxy_orca_listener *listener)
{
	const struct str plain = STR("endpoint-load-metrics"),
			 bin = STR("endpoint-load-metrics-bin");
	const struct field *found = NULL;
	for (size_t i = 0; i < n; i++) {
		size_t len = fields[i].name.len;
		if (len == bin.len && str_eq(fields[i].name, bin)) {
			found = &fields[i];
			break;
		}
		if (len == plain.len && !found && str_eq(fields[i].name, plain))
			found = &fields[i];
	}
	if (!found)
		return PROXY_ORCA_NONE;
	struct str value = found->value;
	*ret = (struct proxy_orca){0};
	bool is_text = found->name.len == plain.len && after(&value, STR("TEXT "));
	bool (*const read)(struct str, struct proxy_orca *, const struct proxy_orca_listener *) =
		is_text ? read_text : read_binary;
	if (!is_text) {
		if (found->name.len == plain.len && !after(&value, STR("BIN ")))
			return PROXY_ORCA_BAD;
		if (!decode(value, scratch, scratch_size, &value))
			return PROXY_ORCA_BAD;
	}
	if (!read(value, ret, NULL))
		return PROXY_ORCA_BAD;
	if (listener)
		(void)read(value, ret, listener);
	return PROXY_ORCA_READ;
}
