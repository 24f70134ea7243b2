// SPDX-License-Identifier: Apache-2.0
#include "lb/route/header_value.h"

#include "lb/base/check.h"
#include "lb/route/req.h"

// Names that start with "grpc-" are gRPC's own (grpc/grpc doc/PROTOCOL-HTTP2.md).
enum lb_header_source lb_header_source(struct str name)
{
	static const struct {
		struct str name;
		enum lb_header_source source;
	} special[] = {
		{STR(":method"), LB_HEADER_METHOD},
		{STR(":scheme"), LB_HEADER_SCHEME},
		{STR(":authority"), LB_HEADER_AUTHORITY},
		{STR("host"), LB_HEADER_AUTHORITY}, // it became the authority (VH-11)
		{STR(":path"), LB_HEADER_PATH},
		{STR("user-agent"), LB_HEADER_TRANSPORT},
		// A28-H12: stay with the connection.
		{STR("te"), LB_HEADER_NOWHERE},
		{STR("connection"), LB_HEADER_NOWHERE},
		{STR("keep-alive"), LB_HEADER_NOWHERE},
		{STR("proxy-connection"), LB_HEADER_NOWHERE},
		{STR("transfer-encoding"), LB_HEADER_NOWHERE},
		{STR("upgrade"), LB_HEADER_NOWHERE},
	};
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (str_eq(name, special[i].name))
			return special[i].source;
	if (str_ends(name, STR("-bin"))) // A28-H10
		return LB_HEADER_NOWHERE;
	return str_starts(name, STR("grpc-")) ? LB_HEADER_TRANSPORT : LB_HEADER_FIELDS;
}

bool lb_header_pseudo(const struct lb_req *req, enum lb_header_source source, bool hides_transport,
	struct str *ret)
{
	switch (source) {
	case LB_HEADER_METHOD:
		*ret = req->method;
		break;
	case LB_HEADER_SCHEME:
		*ret = req->scheme;
		break;
	case LB_HEADER_AUTHORITY:
		*ret = req->authority;
		break;
	case LB_HEADER_PATH:
		*ret = req->path;
		break;
	default:
		return false;
	}
	return ret->len && !hides_transport;
}

struct str lb_header_separator(struct str name)
{
	return str_eq(name, STR("cookie")) ? STR("; ") : STR(",");
}

void lb_header_append(struct str *to, struct str more, const char *end)
{
	char *p = (char *)(uintptr_t)to->p + to->len;
	size_t room = (size_t)(end - p);
	size_t len = more.len < room ? more.len : room;
	DCHECK(more.p >= p + len || more.p + len <= p);
	if (len)
		memcpy(p, more.p, len);
	to->len += len;
}

bool lb_header_find_field(
	const struct lb_req *req, struct str name, char *buf, size_t buf_size, struct str *ret)
{
	const char *end = buf + buf_size;
	size_t n = 0;
	for (size_t i = 0; i < req->n_fields; i++) {
		const struct field *f = &req->fields[i];
		if (!str_eq(f->name, name))
			continue;
		if (n++ == 0) {
			*ret = f->value;
			continue;
		}
		if (n == 2) {
			struct str first = *ret;
			*ret = (struct str){buf, 0};
			lb_header_append(ret, first, end);
		}
		lb_header_append(ret, lb_header_separator(name), end);
		lb_header_append(ret, f->value, end);
	}
	return n > 0;
}

bool lb_header_find(const struct lb_req *req, struct str name, bool hides_transport, char *buf,
	size_t buf_size, struct str *ret)
{
	enum lb_header_source source = lb_header_source(name);
	return lb_header_in_fields(source, hides_transport)
	               ? lb_header_find_field(req, name, buf, buf_size, ret)
	               : lb_header_pseudo(req, source, hides_transport, ret);
}
