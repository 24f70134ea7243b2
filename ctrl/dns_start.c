// SPDX-License-Identifier: Apache-2.0
#include "ctrl/dns_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/dns/lookup_ares.h"
#include "ctrl/dns/names.h"
#include "ctrl/loop.h"

#include <errno.h>

int dns_start(const struct config *config, struct loop *loop, struct rand *rand,
	struct dns_lookups **ret_lookups, struct dns_resolver **ret, struct lb_err *err)
{
	struct dns_ares_conf conf = {
		.events = loop_base(loop),
		.wheel = loop_wheel(loop),
		.servers = config->dns_servers,
	};
	int rc = dns_ares_new(&conf, ret_lookups, err);
	if (rc == -EINVAL)
		return lb_err_within(err, "dns.servers");
	if (rc)
		return lb_err_set(err, "out of memory");
	struct dns_names_conf names = {
		.wheel = loop_wheel(loop), .rand = rand, .lookups = *ret_lookups};
	*ret = dns_names_new(&names);
	return *ret ? 0 : lb_err_set(err, "out of memory");
}
