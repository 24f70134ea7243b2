// SPDX-License-Identifier: Apache-2.0
#include "lb/base/ip.h"

#include <arpa/inet.h>
#include <stdio.h>

bool ip_parse(const char *text, struct ip_addr *ret)
{
	struct in_addr v4;
	struct ip_addr v6;
	if (inet_pton(AF_INET, text, &v4) == 1) {
		*ret = ip_from_v4(ntohl(v4.s_addr));
		return true;
	}
	if (inet_pton(AF_INET6, text, v6.b) != 1)
		return false;
	*ret = v6;
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
