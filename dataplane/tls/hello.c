// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tls/hello.h"

#include "dataplane/tls/record.h"
#include "lb/base/min.h"

#include <string.h>

#define MESSAGE_HEAD 4
#define MAX_RECORD 16384
#define HANDSHAKE 22
#define CLIENT_HELLO 1
#define MAJOR_VERSION 3
#define VERSION_AND_RANDOM (2 + 32)
#define SERVER_NAME 0
#define HOST_NAME 0
#define APPLICATION_PROTOCOLS 16

// What is yet to be read. Once something is not there, nothing is: `bad`.
struct reader {
	uint8_t *p, *end;
	bool bad;
};

static uint32_t read_number(struct reader *r, size_t n)
{
	uint32_t v = 0;
	r->bad = r->bad || (size_t)(r->end - r->p) < n;
	for (size_t i = 0; !r->bad && i < n; i++)
		v = v << 8 | *r->p++;
	return v;
}

static struct reader read_bytes(struct reader *r, size_t n)
{
	r->bad = r->bad || (size_t)(r->end - r->p) < n;
	if (r->bad)
		return (struct reader){r->end, r->end, true};
	struct reader ret = {r->p, r->p + n, false};
	r->p += n;
	return ret;
}

// Behind its length, a number of so many bytes.
static struct reader read_vector(struct reader *r, size_t n_length)
{
	return read_bytes(r, read_number(r, n_length));
}

static bool is_read(const struct reader *r)
{
	return !r->bad && r->p == r->end;
}

static struct str text_of(const struct reader *r)
{
	return (struct str){(const char *)r->p, (size_t)(r->end - r->p)};
}

// Of the list the first host name counts. False = malformed.
static bool read_server_name(struct reader *r, struct str *ret)
{
	struct reader list = read_vector(r, 2);
	uint32_t type = read_number(&list, 1);
	struct reader name = read_vector(&list, 2);
	if (!is_read(r) || list.bad || type != HOST_NAME)
		return false;
	for (uint8_t *p = name.p; p < name.end; p++)
		*p = (uint8_t)str_fold((char)*p);
	*ret = text_of(&name);
	return ret->len && ret->len <= 255 && !memchr(ret->p, 0, ret->len);
}

// What is malformed is left to the handshake, as Envoy does.
static void read_protocols(struct reader *r, struct str *ret)
{
	struct reader list = read_vector(r, 2);
	struct str all = text_of(&list);
	bool good = is_read(r) && all.len;
	while (good && list.p < list.end) {
		struct reader name = read_vector(&list, 1);
		good = !name.bad && name.p < name.end;
	}
	if (good)
		*ret = all;
}

static bool read_extensions(struct reader *r, struct tls_hello *ret)
{
	bool good = true;
	while (good && !r->bad && r->p < r->end) {
		uint32_t type = read_number(r, 2);
		struct reader e = read_vector(r, 2);
		if (e.bad)
			return false;
		if (type == SERVER_NAME)
			good = read_server_name(&e, &ret->server_name);
		else if (type == APPLICATION_PROTOCOLS)
			read_protocols(&e, &ret->protocols);
	}
	return good && is_read(r);
}

// RFC 8446 4.1.2; a hello of TLS 1.2 may end without extensions (RFC 5246 7.4.1.2).
static bool read_message(struct reader *r, struct tls_hello *ret)
{
	read_bytes(r, VERSION_AND_RANDOM);
	read_vector(r, 1); // the session
	read_vector(r, 2); // cipher suites
	read_vector(r, 1); // compressions
	if (is_read(r))
		return true;
	struct reader extensions = read_vector(r, 2);
	return is_read(r) && read_extensions(&extensions, ret);
}

// Records at the beginning that are whole, with their contents in a row.
struct records {
	size_t len; // theirs
	size_t n; // of their contents
	size_t need; // bytes with which another one would be whole; 0 = none stands there
};

static struct records join_records(uint8_t *bytes, size_t len)
{
	struct records r = {.need = TLS_HEADER};
	while (len - r.len >= TLS_HEADER) {
		const uint8_t *head = bytes + r.len;
		size_t in_record = tls_body_len(head);
		bool good = head[0] == HANDSHAKE && head[1] == MAJOR_VERSION;
		r.need = r.len + TLS_HEADER + in_record;
		if (!good || !in_record || in_record > MAX_RECORD)
			r.need = 0;
		if (!r.need || r.need > len)
			return r;
		memmove(bytes + r.n, head + TLS_HEADER, in_record);
		r.n += in_record;
		r.len = r.need;
	}
	r.need = r.len + TLS_HEADER;
	return r;
}

// For a message of so many bytes: what it lacks stands in one more record at the least. So many
// small ones are not looked at one by one.
static size_t need_of(const struct records *r, size_t n_message)
{
	if (!r->need || r->n >= MESSAGE_HEAD + n_message)
		return r->need;
	size_t least = r->len + TLS_HEADER + MESSAGE_HEAD + n_message - r->n;
	return least > r->need ? least : r->need;
}

// What does not begin as a record is known to be none by less than its head.
static bool may_be_record(const uint8_t *bytes, size_t len)
{
	return (len < 1 || bytes[0] == HANDSHAKE) && (len < 2 || bytes[1] == MAJOR_VERSION);
}

enum tls_hello_state tls_hello_read(uint8_t *bytes, size_t len, size_t max, struct tls_hello *ret)
{
	size_t most = max ? min_size(max, TLS_HELLO_STREAM_MAX) : TLS_HELLO_STREAM_MAX;
	*ret = (struct tls_hello){.need = 0};
	len = min_size(len, most);
	if (!may_be_record(bytes, len))
		return TLS_HELLO_NONE;
	struct records records = join_records(bytes, len);
	struct reader r = {bytes, bytes + records.n, false};
	ret->need = records.need;
	if (records.n && *bytes != CLIENT_HELLO)
		return TLS_HELLO_NONE;
	read_number(&r, 1);
	uint32_t n_message = read_number(&r, MESSAGE_HEAD - 1);
	if (!r.bad && n_message > TLS_HELLO_MAX)
		return TLS_HELLO_TOO_LARGE;
	if (!r.bad)
		ret->need = need_of(&records, n_message);
	struct reader message = read_bytes(&r, n_message);
	if (r.bad && ret->need)
		return ret->need > most ? TLS_HELLO_TOO_LARGE : TLS_HELLO_MORE;
	return !r.bad && read_message(&message, ret) ? TLS_HELLO_DONE : TLS_HELLO_NONE;
}
