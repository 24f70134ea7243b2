// SPDX-License-Identifier: Apache-2.0
// Addresses and prefixes as shunt.yaml writes them.
// Thread: any; pure.
#pragma once

#include "lb/base/err.h"
#include "lb/base/ip.h"

#include <stdbool.h>

bool config_is_loopback(const struct ip_addr *);
// A host may have it: neither a group nor loopback, nor of 0.0.0.0/8.
bool config_is_of_host(const struct ip_addr *);
// "10.0.0.0/8", "fd00::/8". Returns 0, or -EINVAL with reterr, which has the text.
[[nodiscard]] int config_prefix_parse(
	const char *text, struct ip_prefix *ret, struct lb_err *reterr);
// The same of addresses that hosts may have, and without bits behind the prefix's length.
[[nodiscard]] int config_prefix_parse_of_hosts(
	const char *text, struct ip_prefix *ret, struct lb_err *reterr);
// Whom libgrpc is to find: HOST:PORT or [IPv6]:PORT. Returns 0, or -EINVAL with reterr, which names
// the field.
[[nodiscard]] int config_check_host_port(
	const char *field, const char *text, struct lb_err *reterr);
bool config_prefixes_overlap(const struct ip_prefix *, const struct ip_prefix *);
