// SPDX-License-Identifier: Apache-2.0
// Numbers are taken as JSON numbers and as text; a whole number may be written with a point or an
// exponent.
#include "proto/json_scalar.h"

#include "google/protobuf/struct.pb-c.h"
#include "lb/base/err.h"
#include "proto/json.h"
#include "proto/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_TEXT_MAX 256

static size_t print_place(const struct json_place *at, char *text, size_t room)
{
	if (!at->up)
		return 0;
	size_t n = print_place(at->up, text, room);
	int added = at->name ? snprintf(text + n, room - n, "%s%s", n ? "." : "", at->name)
	                     : snprintf(text + n, room - n, "[%zu]", at->index);
	n += (size_t)added;
	return n < room ? n : room - 1;
}

static int fail(const struct json_place *at, struct lb_err *err, const char *format, va_list args)
{
	char where[PATH_TEXT_MAX] = "";
	char what[PATH_TEXT_MAX];
	size_t n = print_place(at, where, sizeof(where));
	vsnprintf(what, sizeof(what), format, args);
	return lb_err_set(err, "%s%s%s", where, n ? ": " : "", what);
}

int json_fail(const struct json_place *at, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int rc = fail(at, at->err, format, args);
	va_end(args);
	return rc;
}

int json_leave_out(const struct json_place *at, const char *format, ...)
{
	struct lb_err err = {""};
	bool may = at->scope && at->scope->left_out;
	va_list args;
	va_start(args, format);
	int rc = fail(at, may ? &err : at->err, format, args);
	va_end(args);
	if (!may)
		return rc;
	at->scope->left_out(at->scope->ctx, err.text);
	return 0;
}

// A number as JSON, or as text of one.
int json_read_double(const struct json_place *at, json_t *v, double *ret)
{
	if (json_is_number(v)) {
		*ret = json_number_value(v);
		return 0;
	}
	if (!json_is_string(v))
		return json_fail(at, "not a number");
	const char *text = json_string_value(v);
	if (strcmp(text, "NaN") == 0 || strcmp(text, "Infinity") == 0 ||
		strcmp(text, "-Infinity") == 0) {
		*ret = text[0] == 'N' ? (double)NAN : text[0] == 'I' ? HUGE_VAL : -HUGE_VAL;
		return 0;
	}
	// strtod() alone would also take hexadecimal, "inf" and leading space.
	char *end;
	if (*text == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0' || *text == '+')
		return json_fail(at, "not a number");
	errno = 0;
	*ret = strtod(text, &end);
	if (*end != '\0')
		return json_fail(at, "not a number");
	return isfinite(*ret) ? 0 : json_fail(at, "out of range");
}

// An integer as its sign and size: wide enough for int64 and uint64 alike.
static int json_read_integer(
	const struct json_place *at, json_t *v, bool *ret_negative, uint64_t *ret)
{
	if (json_is_integer(v)) {
		json_int_t i = json_integer_value(v);
		*ret_negative = i < 0;
		*ret = i < 0 ? -(uint64_t)i : (uint64_t)i;
		return 0;
	}
	const char *text = json_is_string(v) ? json_string_value(v) : "";
	const char *digits = text + (*text == '-');
	if (*digits && digits[strspn(digits, "0123456789")] == '\0') {
		errno = 0;
		*ret_negative = digits > text;
		*ret = strtoull(digits, NULL, 10);
		return errno == ERANGE ? json_fail(at, "out of range") : 0;
	}
	double d;
	int r = json_read_double(at, v, &d);
	if (r < 0)
		return r;
	double size = d < 0 ? -d : d;
	if (size >= 18446744073709551616.0)
		return json_fail(at, "out of range");
	if (isnan(d) || (double)(uint64_t)size != size)
		return json_fail(at, "not a whole number");
	*ret_negative = d < 0;
	*ret = (uint64_t)size;
	return 0;
}

int json_read_signed(const struct json_place *at, json_t *v, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = false;
	uint64_t size = 0;
	int r = json_read_integer(at, v, &negative, &size);
	if (r < 0)
		return r;
	if (negative ? size > -(uint64_t)min : size > (uint64_t)max)
		return json_fail(at, "out of range");
	*ret = (int64_t)(negative ? -size : size);
	return 0;
}

int json_read_unsigned(const struct json_place *at, json_t *v, uint64_t max, uint64_t *ret)
{
	bool negative = false;
	uint64_t size = 0;
	int r = json_read_integer(at, v, &negative, &size);
	if (r < 0)
		return r;
	if ((negative && size > 0) || size > max)
		return json_fail(at, "out of range");
	*ret = size;
	return 0;
}

int json_read_enum(
	const struct json_place *at, const ProtobufCEnumDescriptor *desc, json_t *v, int *ret)
{
	if (json_is_null(v) && desc == &google__protobuf__null_value__descriptor) {
		*ret = 0;
		return 0;
	}
	if (json_is_string(v)) {
		const ProtobufCEnumValue *value =
			protobuf_c_enum_descriptor_get_value_by_name(desc, json_string_value(v));
		if (!value)
			return json_fail(at, "\"%.64s\" is not a value of %s", json_string_value(v),
				desc->short_name);
		*ret = value->value;
		return 0;
	}
	int64_t number;
	int r = json_read_signed(at, v, INT32_MIN, INT32_MAX, &number);
	if (r == 0)
		*ret = (int)number;
	return r;
}

int json_read_bytes(const struct json_place *at, json_t *v, ProtobufCBinaryData *ret)
{
	if (!json_is_string(v))
		return json_fail(at, "not text in base64");
	size_t len = json_string_length(v);
	uint8_t *bytes = malloc(len / 4 * 3 + 3);
	if (!bytes)
		return -ENOMEM;
	if (!proto_base64_decode(json_string_value(v), len, bytes, &len)) {
		free(bytes);
		return json_fail(at, "not text in base64");
	}
	*ret = (ProtobufCBinaryData){.len = len, .data = bytes};
	return 0;
}

int json_read_float(const struct json_place *at, json_t *v, float *ret)
{
	double d;
	int r = json_read_double(at, v, &d);
	if (r < 0)
		return r;
	if (isfinite(d) && !isfinite((float)d))
		return json_fail(at, "out of range");
	*ret = (float)d;
	return 0;
}

int json_read_text(const struct json_place *at, json_t *v, char **ret)
{
	if (!json_is_string(v))
		return json_fail(at, "not text");
	char *text = strdup(json_string_value(v));
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}
