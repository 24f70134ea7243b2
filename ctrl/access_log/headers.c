// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/headers.h"

#include <stdio.h>
#include <string.h>

struct header {
	const char *name;
	unsigned char what;
};

static const struct header request[] = {
	{":method", LB_ACCESS_METHOD},
	{":path", LB_ACCESS_PATH},
	{":authority", LB_ACCESS_AUTHORITY},
	{"user-agent", LB_ACCESS_USER_AGENT},
	{"x-request-id", LB_ACCESS_REQUEST_ID},
	{"traceparent", LB_ACCESS_TRACEPARENT},
	{"x-forwarded-for", LB_ACCESS_FORWARDED_FOR},
	{"x-envoy-original-path", ACCESS_NEVER},
	{NULL, 0},
};
static const struct header response[] = {
	{":status", ACCESS_STATUS},
	{"grpc-status", ACCESS_GRPC_STATUS},
	{"x-envoy-upstream-service-time", ACCESS_NEVER},
	{NULL, 0},
};
static const struct header trailers[] = {
	{"grpc-status", ACCESS_GRPC_STATUS},
	{NULL, 0},
};
static const struct header *const tables[] = {
	[ACCESS_REQUEST] = request, [ACCESS_RESPONSE] = response, [ACCESS_TRAILERS] = trailers};

int access_header_find(
	enum access_headers of, struct str name, unsigned char *ret, struct lb_err *reterr)
{
	const struct header *h = tables[of];
	while (h->name && !str_eq_fold(name, str_from(h->name)))
		h++;
	if (h->name) {
		*ret = h->what;
		return 0;
	}
	char kept[256] = "";
	for (h = tables[of]; h->name; h++)
		if (h->what != ACCESS_NEVER)
			snprintf(kept + strlen(kept), sizeof(kept) - strlen(kept), "%s%s",
				kept[0] ? ", " : "", h->name);
	return lb_err_set(reterr, "'%.*s' is not kept; kept are %s", (int)name.len, name.p, kept);
}

const char *access_header_word(enum access_headers of)
{
	static const char *const words[] = {[ACCESS_REQUEST] = "request",
		[ACCESS_RESPONSE] = "response",
		[ACCESS_TRAILERS] = "trailers"};
	return words[of];
}

bool access_header_number(const struct lb_access_record *r, unsigned char what, unsigned *ret)
{
	bool is_status = what == ACCESS_STATUS && r->brief.status;
	bool is_grpc = what == ACCESS_GRPC_STATUS && r->brief.grpc_status != LB_ACCESS_NO_GRPC;
	if (is_status || is_grpc)
		*ret = is_status ? r->brief.status : r->brief.grpc_status;
	return is_status || is_grpc;
}
