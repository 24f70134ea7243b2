// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/node_error.h"

#include "lb/member/member.h"
#include "lb/pick/picker.h"

#include <stdio.h>

void lb_node_member_error(const struct lb_member *m, char text[LB_NODE_ERROR_MAX])
{
	const char *error = lb_member_last_error(m), *why = "unavailable";
	if (lb_member_health(m) == LB_MEMBER_UNHEALTHY)
		why = "fails its health check";
	else if (lb_member_is_ejected(m))
		why = "ejected by outlier detection";
	char address[IP_PORT_TEXT_MAX];
	if (*error)
		snprintf(text, LB_NODE_ERROR_MAX, "%s", error);
	else
		snprintf(text, LB_NODE_ERROR_MAX, "%s: %s",
			ip_port_print(lb_member_address(m, 0), address), why);
}

void lb_node_reresolve(const struct lb_node_env *env, const struct lb_member *m)
{
	if (env->services->reresolve && lb_member_wants_resolution(m))
		env->services->reresolve(env->ctx);
}

struct lb_picker *lb_node_fail_picker(
	const struct lb_node_env *env, uint32_t n_members, const char *last_error)
{
	char text[640];
	const char *note = env->note;
	const char *open = *note ? " (" : "", *close = *note ? ")" : "";
	if (n_members == 0)
		snprintf(text, sizeof(text), "cluster %s: no endpoints%s%s%s", env->cluster, open,
			note, close);
	else
		snprintf(text, sizeof(text),
			"cluster %s: none of %u endpoints is usable, last error: %s%s%s%s",
			env->cluster, n_members, last_error, open, note, close);
	return lb_picker_new_fail(text);
}
