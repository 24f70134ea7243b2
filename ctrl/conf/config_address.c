// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_address.h"

#include <errno.h>
#include <stdio.h>

#define LEAST_LEN 8 // a shorter prefix is a mistake

bool config_is_loopback(const struct ip_addr *ip)
{
	static const struct ip_addr one = {{[15] = 1}};
	return ip_is_v4(ip) ? ip_to_v4(ip) >> 24 == 127 : ip_eq(ip, &one);
}

bool config_is_of_host(const struct ip_addr *ip)
{
	if (ip_is_v4(ip))
		return ip_to_v4(ip) >> 24 != 0 && ip_to_v4(ip) >> 28 < 14 &&
		       !config_is_loopback(ip);
	return !ip_is_none(ip) && ip->b[0] != 0xff && !config_is_loopback(ip);
}

int config_prefix_parse(const char *text, struct ip_prefix *ret, struct lb_err *reterr)
{
	char ip[64];
	unsigned len;
	int end = 0;
	if (sscanf(text, "%63[^/]/%u%n", ip, &len, &end) != 2 || text[end] != 0 ||
		!ip_parse(ip, &ret->ip) || len > (ip_is_v4(&ret->ip) ? 32 : 128))
		return lb_err_set(
			reterr, "'%s' is not a prefix, like 10.0.0.0/8 or fd00::/8", text);
	ret->bits = (uint8_t)(len + (ip_is_v4(&ret->ip) ? IP_V4_BITS : 0));
	return 0;
}

bool config_prefixes_overlap(const struct ip_prefix *a, const struct ip_prefix *b)
{
	return ip_in_prefix(&a->ip, &b->ip, a->bits < b->bits ? a->bits : b->bits);
}

static bool has_rest(const struct ip_prefix *p)
{
	for (unsigned bit = p->bits; bit < 128; bit++)
		if (p->ip.b[bit / 8] & (0x80 >> bit % 8))
			return true;
	return false;
}

int config_prefix_parse_of_hosts(const char *text, struct ip_prefix *ret, struct lb_err *reterr)
{
	static const struct ip_prefix link_local = {{{0xfe, 0x80}}, 10};
	if (config_prefix_parse(text, ret, reterr))
		return -EINVAL;
	unsigned len = ret->bits - (ip_is_v4(&ret->ip) ? IP_V4_BITS : 0u);
	if (has_rest(ret))
		return lb_err_set(reterr, "%s has bits behind its length", text);
	if (len < LEAST_LEN || !config_is_of_host(&ret->ip) ||
		config_prefixes_overlap(ret, &link_local))
		return lb_err_set(reterr, "%s is not a prefix of hosts", text);
	return 0;
}

// What libgrpc could take for another scheme is refused here, by name.
static bool is_host_port(struct str s)
{
	uint64_t port;
	size_t at = s.len;
	while (at && s.p[at - 1] != ':')
		at--;
	if (at < 2 || !str_number((struct str){s.p + at, s.len - at}, UINT16_MAX, &port) || !port)
		return false;
	struct str host = {s.p, at - 1};
	if (host.p[0] == '[')
		return host.len > 2 && host.p[host.len - 1] == ']';
	return !memchr(host.p, ':', host.len) && !memchr(host.p, '/', host.len);
}

int config_check_host_port(const char *field, const char *text, struct lb_err *reterr)
{
	if (is_host_port(str_from(text)))
		return 0;
	return lb_err_set(
		reterr, "%s: '%s' is not a host with a port, like 127.0.0.1:4317", field, text);
}
