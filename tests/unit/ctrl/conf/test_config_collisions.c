// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_collisions.h"
#include "ctrl/xds/state/state_dir.h"
#include "tests/support/check.h"

#include <string.h>

struct row {
	const char *log, *folder, *metrics, *csds; // NULL = absent
	const char *takeover, *state, *captures, *secret, *crls, *ready;
	const char *wrong; // NULL = it is good
};

static char *mutable(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void check(const struct row *r)
{
	struct config_stats stats = {.socket = mutable("/run/shunt/stats.sock"),
		.haproxy_socket = mutable("/run/shunt/haproxy.sock")};
	struct config_access_log log = {
		.path = mutable(r->log), .xds_directory = mutable(r->folder)};
	struct config_metrics metrics = {.listen = mutable(r->metrics)};
	struct config_csds csds = {.listen = mutable(r->csds)};
	struct config_capture capture = {.directory = mutable(r->captures)};
	struct config_tls tls = {
		.ticket_secret = mutable(r->secret), .crl_directory = mutable(r->crls)};
	const struct config c = {.stats = &stats,
		.access_log = r->log || r->folder ? &log : NULL,
		.metrics = r->metrics ? &metrics : NULL,
		.csds = r->csds ? &csds : NULL,
		.capture = r->captures ? &capture : NULL,
		.tls = r->secret || r->crls ? &tls : NULL,
		.takeover_socket = mutable(r->takeover),
		.ready_file = mutable(r->ready),
		.state_dir = mutable(r->state)};
	struct lb_err err = {.text = ""};
	int rc = config_check_collisions(&c, &err);
	if (!rc != !r->wrong || !strstr(err.text, r->wrong ? r->wrong : ""))
		fail_msg("wanted \"%s\", got \"%s\"", r->wrong ? r->wrong : "", err.text);
}

// OPS-245
static void a_path_is_of_one_field(void **state)
{
	static const struct row rows[] = {
		{.log = "stdout", .state = "/var/lib/shunt", .captures = "/var/lib/shunt"},
		{.log = "/run/shunt/log", .takeover = "/run/shunt/takeover.sock"},
		{.log = "/run/shunt/stats.sock",
			.wrong = "access_log.path: is what stats.socket has already: "
				 "/run/shunt/stats.sock"},
		{.log = "/run//./shunt/haproxy.sock",
			.wrong = "access_log.path: is what stats.haproxy_socket has already"},
		{.takeover = "/run/shunt/stats.sock",
			.wrong = "takeover_socket: is what stats.socket has already"},
		{.state = "/lib/",
			.log = "/lib/" XDS_STATE_NAME,
			.wrong = "state_dir: is what access_log.path has already: /lib/xds-state"},
		{.secret = "/log",
			.log = "/log",
			.wrong = "tls.ticket_secret: is what access_log.path has already: /log"},
		{.captures = "/run/shunt/stats.sock",
			.wrong = "capture.directory: is what stats.socket has already"},
		{.ready = "/log",
			.log = "/log",
			.wrong = "ready_file: is what access_log.path has already: /log"},
		{.state = "/lib",
			.ready = "/lib/xds-state",
			.wrong = "ready_file: is what state_dir has already"},
		{.folder = "/log",
			.ready = "/log/ready",
			.wrong = "ready_file: '/log/ready' is below access_log.xds_directory"},
		{.folder = "/log/a", .log = "/log/ab"},
		{.folder = "/log", .captures = "/log"},
		{.folder = "/lib",
			.state = "/lib",
			.wrong = "state_dir: '/lib/xds-state' is below access_log.xds_directory"},
		{.folder = "/log",
			.secret = "/log/./a/secret",
			.wrong = "tls.ticket_secret: '/log/a/secret' is below"},
		{.folder = "/log", .crls = "/crls"},
		{.folder = "/log/a", .crls = "/log"},
		{.folder = "/log",
			.crls = "/log/crls",
			.wrong = "tls.crl_directory: '/log/crls' is below"},
		{.folder = "/log",
			.crls = "/log/",
			.wrong = "access_log.xds_directory: is what tls.crl_directory has already"},
		{.captures = "/crls",
			.crls = "/crls",
			.wrong = "capture.directory: is what tls.crl_directory has already"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i]);
}

// OPS-245
static void an_address_is_of_one_field(void **state)
{
	static const char taken[] = "is taken by csds.listen";
	static const struct row rows[] = {
		{.metrics = "127.0.0.1:1", .csds = "127.0.0.1:2"},
		{.metrics = "127.0.0.1:1", .csds = "127.0.0.2:1"},
		{.metrics = "127.0.0.1:1", .csds = "[::1]:1"},
		{.metrics = "0.0.0.0:1", .csds = "[::1]:1"},
		{.metrics = "0.0.0.0:1", .csds = "0.0.0.0:2"},
		{.metrics = "127.0.0.1:1",
			.csds = "127.0.0.1:1",
			.wrong = "metrics.listen: 127.0.0.1:1 is taken by csds.listen "
				 "(127.0.0.1:1)"},
		{.metrics = "0.0.0.0:1", .csds = "127.0.0.1:1", .wrong = taken},
		{.metrics = "127.0.0.1:1", .csds = "0.0.0.0:1", .wrong = taken},
		{.metrics = "[::]:1", .csds = "127.0.0.1:1", .wrong = taken},
		{.metrics = "[::1]:1", .csds = "[::]:1", .wrong = taken},
		{.metrics = "[::]:1", .csds = "0.0.0.0:1", .wrong = taken},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i]);
}

RUN_SUITE("conf/config_collisions", cmocka_unit_test(a_path_is_of_one_field),
	cmocka_unit_test(an_address_is_of_one_field))
