// SPDX-License-Identifier: Apache-2.0
// What may begin at each stage of a takeover.
#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover_inside.h"
#include "tests/support/check.h"

#include <event2/event.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct row {
	enum stage stage;
	bool has_newer, may_reload, may_change;
} rows[] = {
	{STAGE_WAITING, false, true, true}, // for what may be wrong in the file
	{STAGE_ASKING, false, false, true},
	{STAGE_OPENED, false, false, true}, // ports of the file are open
	{STAGE_STEPPING, false, false, true},
	{STAGE_FRONT, false, true, true},
	{STAGE_SHARING, true, false, true}, // the newer one has read the file
	{STAGE_SHARED, true, false, true}, // it is refused for a drain, and hears of overrides
	{STAGE_CLOSING, true, false, true},
	{STAGE_GIVEN, true, false, false}, // it has heard of them
	{STAGE_GIVING, true, false, false},
	{STAGE_FREE, true, false, false},
	{STAGE_LEFT, true, true, true}, // for who is here still
	{STAGE_LEFT, false, true, true},
	{STAGE_OVER, false, true, true},
};

static void fl_183_fl_184_what_another_process_would_not_know_of_is_refused(void **state)
{
	static const struct takeover_peer_events deaf = {NULL, NULL};
	struct event_base *base = event_base_new();
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	struct takeover_peer *newer = takeover_peer_new(base, fds[1], &deaf, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct takeover t = {
			.stage = rows[i].stage, .newer = rows[i].has_newer ? newer : NULL};
		struct lb_err reload = {""}, change = {""};
		bool may_reload = takeover_check_reload(&t, &reload) == 0;
		bool may_change = takeover_check_change(&t, &change) == 0;
		if (may_reload != rows[i].may_reload || may_change != rows[i].may_change)
			fail_msg("row %zu: '%s', '%s'", i, reload.text, change.text);
		assert_true(may_reload || strstr(reload.text, "once it serves"));
		assert_true(may_change || strstr(change.text, "once it serves"));
	}
	takeover_peer_free(newer);
	close(fds[0]);
	event_base_free(base);
}

static void without_takeover_socket_nothing_is_refused(void **state)
{
	struct lb_err err = {""};
	assert_int_equal(takeover_check_reload(NULL, &err), 0);
	assert_int_equal(takeover_check_change(NULL, &err), 0);
}

RUN_SUITE("takeover/takeover_look",
	cmocka_unit_test(fl_183_fl_184_what_another_process_would_not_know_of_is_refused),
	cmocka_unit_test(without_takeover_socket_nothing_is_refused))
