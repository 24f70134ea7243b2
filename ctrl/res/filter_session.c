// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/filter_session.h"

#include "envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb-c.h"
#include "envoy/extensions/http/stateful_session/cookie/v3/cookie.pb-c.h"
#include "lb/base/time.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Extensions__Filters__Http__StatefulSession__V3__StatefulSession Session;
typedef Envoy__Extensions__Filters__Http__StatefulSession__V3__StatefulSessionPerRoute PerRoute;
typedef Envoy__Extensions__Http__StatefulSession__Cookie__V3__CookieBasedSessionState CookieState;
typedef Envoy__Type__Http__V3__Cookie Cookie;
#define COOKIE_TYPE                                                                                \
	(&envoy__extensions__http__stateful_session__cookie__v3__cookie_based_session_state__descriptor)
#define SESSION_OVERRIDE                                                                           \
	ENVOY__EXTENSIONS__FILTERS__HTTP__STATEFUL_SESSION__V3__STATEFUL_SESSION_PER_ROUTE__OVERRIDE_STATEFUL_SESSION

// They go out in Set-Cookie as they are: what RFC 6265 4.1.1 has no room for is refused, and blanks
// at the ends, which would end the field (RFC 9113 8.2.1) or not come back.
static bool fits_in_set_cookie(const char *text, const char *not_these)
{
	size_t len = strlen(text);
	if (len && (text[0] == ' ' || text[len - 1] == ' '))
		return false;
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f || strchr(not_these, *p))
			return false;
	return true;
}

// SA-02.
static int read_cookie(struct res_reader *rd, const Cookie *m, struct lb_session *s)
{
	if (!m)
		return lb_err_set(rd->err, "no cookie");
	if (!*m->name)
		return lb_err_set(rd->err, "cookie.name: empty");
	if (!fits_in_set_cookie(m->name, " ()<>@,;:\\\"/[]?={}"))
		return lb_err_set(
			rd->err, "cookie.name: \"%.128s\" is not a valid cookie name", m->name);
	if (!fits_in_set_cookie(m->path, ";"))
		return lb_err_set(
			rd->err, "cookie.path: \"%.128s\" is not a valid cookie path", m->path);
	if (res_check_duration(m->ttl, "cookie.ttl", rd->err))
		return -EINVAL;
	s->enabled = true;
	s->ttl_s = m->ttl ? res_duration_ns(m->ttl) / NS_PER_SECOND : 0;
	int rc = res_copy(rd, m->name, &s->cookie);
	return rc ? rc : res_copy(rd, m->path, &s->path);
}

// SA-01.
static int read_state(struct res_reader *rd, const Session *m, struct lb_session *s)
{
	const Google__Protobuf__Any *any = m->session_state->typed_config;
	struct res_any a;
	if (!any)
		return lb_err_set(rd->err, "no typed_config");
	if (res_any_open(any, &a, rd->err))
		return -EINVAL;
	CookieState *state = NULL;
	int rc = -EINVAL;
	if (!proto_any_is(a.type_url, COOKIE_TYPE))
		lb_err_set(rd->err, "type \"%.128s\" is not supported", a.type_url);
	else
		state = res_any_decode(&a, COOKIE_TYPE, rd->err);
	if (state)
		rc = read_cookie(rd, state->cookie, s);
	proto_free(state);
	res_any_close(&a);
	return rc;
}

int res_session_read(struct res_reader *rd, const void *message, struct lb_filter *ret)
{
	const Session *m = message;
	ret->kind = LB_FILTER_SESSION;
	ret->session = (struct lb_session){0};
	if (m->strict)
		res_warn(rd, "stateful_session: strict is ignored");
	if (!m->session_state) // SA-01: does nothing
		return 0;
	int rc = read_state(rd, m, &ret->session);
	return rc == -EINVAL ? lb_err_within(rd->err, "session_state") : rc;
}

int res_session_read_override(struct res_reader *rd, const void *message, struct lb_filter *ret)
{
	const PerRoute *m = message;
	ret->kind = LB_FILTER_SESSION;
	ret->session = (struct lb_session){0};
	if (m->override_case != SESSION_OVERRIDE) // SA-19
		return 0;
	int rc = res_session_read(rd, m->stateful_session, ret);
	return rc == -EINVAL ? lb_err_within(rd->err, "stateful_session") : rc;
}
