// SPDX-License-Identifier: Apache-2.0
#include "lb/base/ip.h"

#include <arpa/inet.h>
#include <stdio.h>

// a.b.c.d as inet_pton() has it (no leading zeros), which is most of what a large cluster's
// endpoints are made of: inet_pton() takes longer than the rest of decoding one.
static bool parse_v4(struct str text, uint32_t *ret)
{
	uint32_t v4 = 0, digit;
	const char *at = text.p, *end = at + text.len;
	for (unsigned n_parts = 0; n_parts < 4; n_parts++) {
		if (n_parts && (at == end || *at++ != '.'))
			return false;
		uint32_t part = at < end ? (uint32_t)*at++ - '0' : 10;
		if (part > 9)
			return false;
		if (part && at < end && (digit = (uint32_t)*at - '0') <= 9) {
			part = 10 * part + digit;
			at++;
			if (at < end && (digit = (uint32_t)*at - '0') <= 9) {
				part = 10 * part + digit;
				at++;
			}
		}
		if (part > 255)
			return false;
		v4 = v4 << 8 | part;
	}
	*ret = v4;
	return at == end;
}

int ip_port_cmp(const struct ip_port *a, const struct ip_port *b)
{
	int order = memcmp(a->ip.b, b->ip.b, sizeof(a->ip.b));
	return order ? order : (a->port > b->port) - (a->port < b->port);
}

bool ip_parse_str(struct str text, struct ip_addr *ret)
{
	uint32_t v4;
	struct ip_addr v6;
	char copy[IP_PORT_TEXT_MAX];
	if (parse_v4(text, &v4)) {
		*ret = ip_from_v4(v4);
		return true;
	}
	if (text.len == 0 || text.len >= sizeof(copy) || memchr(text.p, 0, text.len))
		return false;
	memcpy(copy, text.p, text.len);
	copy[text.len] = 0;
	if (inet_pton(AF_INET6, copy, v6.b) != 1)
		return false;
	*ret = v6;
	return true;
}

bool ip_parse(const char *text, struct ip_addr *ret)
{
	return ip_parse_str(str_from(text), ret);
}

bool ip_port_parse(struct str text, struct ip_port *ret)
{
	uint64_t port;
	size_t end = text.len;
	while (end && text.p[end - 1] != ':')
		end--;
	struct str digits = {text.p + end, text.len - end}, host = {text.p, end ? end - 1 : 0};
	if (!host.len || digits.len > 5 || !str_number(digits, UINT16_MAX, &port))
		return false;
	bool v6 = host.len >= 2 && host.p[0] == '[' && host.p[host.len - 1] == ']';
	if (v6)
		host = (struct str){host.p + 1, host.len - 2};
	struct ip_addr ip;
	if ((memchr(host.p, ':', host.len) != NULL) != v6 || !ip_parse_str(host, &ip))
		return false;
	*ret = (struct ip_port){ip, (uint16_t)port};
	return true;
}

const char *ip_print(const struct ip_addr *a, char *text)
{
	const void *bytes = ip_is_v4(a) ? a->b + 12 : a->b;
	if (!inet_ntop(ip_is_v4(a) ? AF_INET : AF_INET6, bytes, text, IP_PORT_TEXT_MAX))
		text[0] = 0;
	return text;
}

const char *ip_port_print(const struct ip_port *a, char *text)
{
	char ip[IP_PORT_TEXT_MAX];
	ip_print(&a->ip, ip);
	const char *form = ip_is_v4(&a->ip) ? "%s:%u" : "[%s]:%u";
	// The longest form is 1 + 45 + 1 + 1 + 5 characters.
	snprintf(text, IP_PORT_TEXT_MAX, form, ip, a->port);
	return text;
}
