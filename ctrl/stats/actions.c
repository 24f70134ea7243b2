// SPDX-License-Identifier: Apache-2.0
// The stats socket's commands that do something, and the level that each needs (OPS-70).
#include "ctrl/stats/show_inside.h"

const struct show_action show_actions[] = {
	// Of users, since it does nothing that would not happen a little later by itself.
	{"reconnect", "[CLUSTER[/ADDRESS]]",
		"ends the waits of endpoints that failed; how many there were", STATS_USER, true,
		show_reconnect},
	{"drain", "[frontend NAME | all]",
		"readiness goes, then clients are sent away, as by SIGTERM; how many frontends "
		"begin to",
		STATS_OPERATOR, true, show_drain},
	{"undrain", "[frontend NAME | all]",
		"takes that back, at any time; how many frontends serve again", STATS_OPERATOR,
		true, show_undrain},
	{"wait", "ready | drained | config VERSION [TIMEOUT_S]",
		"answers when it is so, or after TIMEOUT_S (30) says what is missing",
		STATS_OPERATOR, false, show_wait},
	{"set endpoint", "CLUSTER/ADDRESS drain | down | up | weight N",
		"says so in place of the endpoints' resource, whatever updates say", STATS_OPERATOR,
		true, show_set_endpoint},
	{"unset endpoint", "CLUSTER/ADDRESS", "takes that back", STATS_OPERATOR, true,
		show_unset_endpoint},
	{"set log level", "error | warn | info | debug",
		"the least severe lines that are logged, until a reload", STATS_OPERATOR, true,
		show_set_log_level},
	{"clear counters", NULL,
		"begins maxima anew: longest turns of workers, peaks of pools; counters stay",
		STATS_OPERATOR, true, show_clear_counters},
	{"ping", "ADDRESS [count N] [port N]",
		"sends echo requests from Shunt's own stack, and tells what came of each",
		STATS_OPERATOR, true, show_ping},
	{"kill request",
		"ID | [cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [state=S] "
		"[older=SECONDS] [limit=N]",
		"ends the requests in flight with this handle or x-request-id, or for which all "
		"conditions hold; how many",
		STATS_OPERATOR, true, show_kill_request, true},
	{"kill conn",
		"ID | [cluster=C] [frontend=F] [source=ADDRESS[/BITS]] [state=S] "
		"[older=SECONDS] [limit=N]",
		"ends the connections with this handle, or for which all conditions hold, and "
		"the requests on them; how many",
		STATS_OPERATOR, true, show_kill_conn, true},
	{"capture start",
		"FILE [host=ADDRESS] [port=N] [direction=rx|tx] [interface=N] [snaplen=BYTES] "
		"[count=N] [seconds=N] [size=MB] [keys]",
		"copies frames into a pcapng file below capture.directory; keys: and the secrets "
		"of TLS, with which it can be read",
		STATS_ADMIN, true, show_capture_start},
	{"capture stop", NULL, "ends it; what is in the file", STATS_ADMIN, true,
		show_capture_stop},
	{"reload", NULL,
		"reads shunt.yaml again, and the bootstrap for new certificate providers, as "
		"SIGHUP does; what needs a restart",
		STATS_ADMIN, true, show_reload},
	{NULL, NULL, NULL, STATS_ADMIN, false, NULL},
};
