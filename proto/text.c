// SPDX-License-Identifier: Apache-2.0
// Days are counted in the proleptic Gregorian calendar, as RFC 3339 has it.
#include "proto/text.h"

#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NANOS_PER_SECOND 1000000000
#define TIMESTAMP_MIN (-62135596800) // 0001-01-01T00:00:00Z
#define TIMESTAMP_MAX 253402300799 // 9999-12-31T23:59:59Z

const char *proto_camel_name(const char *name, char text[PROTO_NAME_MAX])
{
	size_t n = 0;
	bool upper = false;
	for (; *name && n + 1 < PROTO_NAME_MAX; name++) {
		if (*name == '_') {
			upper = true;
			continue;
		}
		text[n++] =
			upper && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
		upper = false;
	}
	text[n] = '\0';
	return text;
}

bool proto_is_utf8(const char *text)
{
	size_t left = strlen(text);
	while (left) {
		size_t n = proto_utf8_len((const uint8_t *)text, left);
		if (n == 0)
			return false;
		text += n;
		left -= n;
	}
	return true;
}

// Between `min` and `max` digits. False = fewer, or more.
static bool read_digits(const char **at, int min, int max, int64_t *ret)
{
	int64_t x = 0;
	int n = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++, n++) {
		if (n == max)
			return false;
		x = x * 10 + (**at - '0');
	}
	*ret = x;
	return n >= min;
}

// ".5" as 500000000; nothing when there is no point.
static bool read_fraction(const char **at, int32_t *ret_nanos)
{
	*ret_nanos = 0;
	if (**at != '.')
		return true;
	const char *start = ++*at;
	int64_t x;
	if (!read_digits(at, 1, 9, &x))
		return false;
	for (long n = *at - start; n < 9; n++)
		x *= 10;
	*ret_nanos = (int32_t)x;
	return true;
}

// Zero, three, six or nine digits, whichever shows all.
static int print_fraction(int32_t nanos, char *text, size_t room)
{
	if (nanos == 0)
		return 0;
	if (nanos % 1000000 == 0)
		return snprintf(text, room, ".%03" PRId32, nanos / 1000000);
	if (nanos % 1000 == 0)
		return snprintf(text, room, ".%06" PRId32, nanos / 1000);
	return snprintf(text, room, ".%09" PRId32, nanos);
}

bool proto_duration_parse(const char *text, int64_t *ret_seconds, int32_t *ret_nanos)
{
	bool negative = *text == '-';
	int64_t seconds;
	int32_t nanos;
	text += negative;
	if (!read_digits(&text, 1, 12, &seconds) || !read_fraction(&text, &nanos))
		return false;
	if (text[0] != 's' || text[1] != '\0' || seconds > PROTO_SECONDS_MAX ||
		(seconds == PROTO_SECONDS_MAX && nanos > 0))
		return false;
	*ret_seconds = negative ? -seconds : seconds;
	*ret_nanos = negative ? -nanos : nanos;
	return true;
}

const char *proto_duration_print(int64_t seconds, int32_t nanos, char text[PROTO_TIME_TEXT_MAX])
{
	uint64_t s = seconds < 0 ? -(uint64_t)seconds : (uint64_t)seconds;
	int32_t f = nanos > -NANOS_PER_SECOND && nanos < NANOS_PER_SECOND ? nanos : 0;
	int n = snprintf(
		text, PROTO_TIME_TEXT_MAX, "%s%" PRIu64, seconds < 0 || f < 0 ? "-" : "", s);
	n += print_fraction(f < 0 ? -f : f, text + n, PROTO_TIME_TEXT_MAX - (size_t)n);
	snprintf(text + n, PROTO_TIME_TEXT_MAX - (size_t)n, "s");
	return text;
}

// Days from 1970-01-01; a year begins in March here, so that the leap day is its last.
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t in_era = y - era * 400;
	int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static void civil_from_days(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
	days += 719468;
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	int64_t in_era = days - era * 146097;
	int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * in_year + 2) / 153;
	*ret_day = in_year - (153 * month + 2) / 5 + 1;
	*ret_month = month < 10 ? month + 3 : month - 9;
	*ret_year = year + era * 400 + (*ret_month <= 2);
}

static bool is_day(int64_t year, int64_t month, int64_t day)
{
	static const int64_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	if (year < 1 || month < 1 || month > 12 || day < 1)
		return false;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return day <= days[month - 1] + (month == 2 && leap);
}

static bool read_char(const char **at, char c)
{
	if (**at != c)
		return false;
	(*at)++;
	return true;
}

// "Z", "+05:30" or "-08:00", to the end of the text.
static bool read_offset(const char *at, int64_t *ret_seconds)
{
	*ret_seconds = 0;
	if (read_char(&at, 'Z'))
		return *at == '\0';
	bool negative = *at == '-';
	int64_t hours, minutes;
	if (!negative && *at != '+')
		return false;
	at++;
	if (!read_digits(&at, 2, 2, &hours) || !read_char(&at, ':') ||
		!read_digits(&at, 2, 2, &minutes) || *at != '\0' || hours > 23 || minutes > 59)
		return false;
	*ret_seconds = (hours * 3600 + minutes * 60) * (negative ? -1 : 1);
	return true;
}

bool proto_timestamp_parse(const char *text, int64_t *ret_seconds, int32_t *ret_nanos)
{
	int64_t year, month, day, hour, minute, second, offset;
	int32_t nanos;
	if (!read_digits(&text, 4, 4, &year) || !read_char(&text, '-') ||
		!read_digits(&text, 2, 2, &month) || !read_char(&text, '-') ||
		!read_digits(&text, 2, 2, &day) || !read_char(&text, 'T') ||
		!read_digits(&text, 2, 2, &hour) || !read_char(&text, ':') ||
		!read_digits(&text, 2, 2, &minute) || !read_char(&text, ':') ||
		!read_digits(&text, 2, 2, &second) || !read_fraction(&text, &nanos) ||
		!read_offset(text, &offset))
		return false;
	if (!is_day(year, month, day) || hour > 23 || minute > 59 || second > 59)
		return false;
	int64_t t = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second -
	            offset;
	if (t < TIMESTAMP_MIN || t > TIMESTAMP_MAX)
		return false;
	*ret_seconds = t;
	*ret_nanos = nanos;
	return true;
}

const char *proto_timestamp_print(int64_t seconds, int32_t nanos, char text[PROTO_TIME_TEXT_MAX])
{
	int64_t t = seconds < TIMESTAMP_MIN   ? TIMESTAMP_MIN
	            : seconds > TIMESTAMP_MAX ? TIMESTAMP_MAX
	                                      : seconds;
	int64_t in_day = ((t % 86400) + 86400) % 86400;
	int64_t year, month, day;
	civil_from_days((t - in_day) / 86400, &year, &month, &day);
	int n = snprintf(text, PROTO_TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", (int)year,
		(int)month, (int)day, (int)(in_day / 3600), (int)(in_day / 60 % 60),
		(int)(in_day % 60));
	if (nanos > 0 && nanos < NANOS_PER_SECOND)
		n += print_fraction(nanos, text + n, PROTO_TIME_TEXT_MAX - (size_t)n);
	snprintf(text + n, PROTO_TIME_TEXT_MAX - (size_t)n, "Z");
	return text;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

bool proto_base64_decode(const char *text, size_t len, uint8_t *ret, size_t *ret_len)
{
	size_t n = 0, n_padding = 0;
	uint32_t bits = 0;
	unsigned n_bits = 0;
	while (len > 0 && text[len - 1] == '=' && n_padding < 2) {
		len--;
		n_padding++;
	}
	if (len % 4 == 1 || (n_padding > 0 && (len + n_padding) % 4 != 0))
		return false;
	for (size_t i = 0; i < len; i++) {
		int digit = base64_digit(text[i]);
		if (digit < 0)
			return false;
		bits = bits << 6 | (uint32_t)digit;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			ret[n++] = (uint8_t)(bits >> n_bits);
		}
	}
	*ret_len = n;
	return true;
}

void proto_base64_encode(const uint8_t *bytes, size_t len, char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < len; i += 3) {
		uint32_t x = (uint32_t)bytes[i] << 16;
		if (i + 1 < len)
			x |= (uint32_t)bytes[i + 1] << 8;
		if (i + 2 < len)
			x |= bytes[i + 2];
		*text++ = digits[x >> 18];
		*text++ = digits[x >> 12 & 63];
		*text++ = i + 1 < len ? digits[x >> 6 & 63] : '=';
		*text++ = i + 2 < len ? digits[x & 63] : '=';
	}
	*text = '\0';
}
