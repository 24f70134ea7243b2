// SPDX-License-Identifier: Apache-2.0
// What a service manager hears, in its own words (sd_notify(3)), over its socket.
#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"
#include "ctrl/service.h"
#include "ctrl/shutdown.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager = -1;

static int start_manager(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "shunt-test-%d", getpid());
	char name[64];
	(void)state;
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	snprintf(name, sizeof(name), "@%s", a.sun_path + 1);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return manager < 0 || bind(manager, (struct sockaddr *)&a, len) ||
	       setenv("NOTIFY_SOCKET", name, 1);
}

static int stop_manager(void **state)
{
	(void)state;
	return close(manager);
}

// "" = nothing was said
static const char *heard(void)
{
	static char text[512];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);
	text[n < 0 ? 0 : n] = 0;
	return text;
}

static void each_phase_is_told_once_and_each_status_when_it_changes(void **state)
{
	struct service s = {0};
	(void)state;
	service_tell(&s, SERVICE_STARTING, "waiting for configuration");
	assert_string_equal(heard(), "STATUS=waiting for configuration");
	service_tell(&s, SERVICE_STARTING, "waiting for configuration");
	assert_string_equal(heard(), "");
	service_tell(&s, SERVICE_READY, "serving");
	assert_string_equal(heard(), "READY=1\nSTATUS=serving");
	service_tell(&s, SERVICE_STARTING, "no port has a link");
	assert_string_equal(heard(), "STATUS=no port has a link");
	service_tell(&s, SERVICE_READY, "serving");
	assert_string_equal(heard(), "STATUS=serving");
	service_tell(&s, SERVICE_STOPPING, "draining");
	assert_string_equal(heard(), "STOPPING=1\nSTATUS=draining");
}

static void a_status_is_one_line_and_adds_no_word_of_its_own(void **state)
{
	struct service s = {0};
	char text[2 * SERVICE_MAX_STATUS];
	(void)state;
	service_tell(&s, SERVICE_STARTING, "waits for a\nREADY=1\nb");
	assert_string_equal(heard(), "STATUS=waits for a READY=1 b");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	service_tell(&s, SERVICE_STARTING, text);
	assert_int_equal(strlen(heard()), strlen("STATUS=") + SERVICE_MAX_STATUS - 1);
}

static void the_watchdog_is_fed_while_all_loops_run(void **state)
{
	(void)state;
	struct service s = {0};
	service_beat(&s, true);
	assert_string_equal(heard(), "WATCHDOG=1");
	service_beat(&s, false);
	assert_string_equal(heard(), "");
}

static void the_end_asks_for_more_time_while_it_takes_some(void **state)
{
	struct service s = {0};
	(void)state;
	service_tell(&s, SERVICE_STOPPING, "draining");
	heard();
	service_beat(&s, true);
	assert_string_equal(heard(), "WATCHDOG=1");
	assert_string_equal(heard(), "EXTEND_TIMEOUT_USEC=30000000");
}

// OPS-72: it stays up, and says why it is not ready for others.
static void a_drain_of_an_operator_is_a_status_and_no_end(void **state)
{
	struct config_port config_port = {.mtu = 1500};
	const struct config config = {.ports = &config_port, .n_ports = 1};
	const struct show_port port = {.link = SHOW_LINK_UP};
	const struct shutdown shutdown = {.begun = false};
	struct service_view view = {
		.config = &config, .ports = &port, .ready = true, .shutdown = &shutdown};
	struct service s = {0};
	(void)state;
	service_look(&s, &view);
	assert_string_equal(heard(), "READY=1\nSTATUS=serving");
	view.drains = true;
	service_look(&s, &view);
	assert_string_equal(heard(), "STATUS=an operator drains frontends");
	view.drains = false;
	service_look(&s, &view);
	assert_string_equal(heard(), "STATUS=serving");
	view.newer_lacks = "certificate provider \"p\": no key"; // FL-204
	service_look(&s, &view);
	assert_string_equal(heard(),
		"STATUS=serving; a newer process waits: certificate provider \"p\": no key");
}

static void fl_13_one_that_takes_over_is_the_services_main_process_from_then_on(void **state)
{
	struct service s = {.is_silent = true, .main_pid = 4711};
	(void)state;
	service_tell(&s, SERVICE_STARTING, "waiting for configuration");
	service_beat(&s, true);
	assert_string_equal(heard(), "");
	s.is_silent = false;
	service_tell(&s, SERVICE_READY, "serving");
	assert_string_equal(heard(), "MAINPID=4711\nREADY=1\nSTATUS=serving");
	s.is_silent = true; // the next one has come
	service_tell(&s, SERVICE_STOPPING, "draining");
	service_beat(&s, true);
	assert_string_equal(heard(), "");
}

// FL-13: the older one ends whether or not the newer one is ready, and is to be nobody by then.
static void fl_13_the_main_process_is_told_before_it_is_ready(void **state)
{
	struct service s = {.is_silent = true, .main_pid = 4711};
	(void)state;
	s.is_silent = false;
	service_tell(&s, SERVICE_STARTING, "no port has a link");
	assert_string_equal(heard(), "MAINPID=4711\nSTATUS=no port has a link");
	service_tell(&s, SERVICE_STARTING, "no port has a link");
	assert_string_equal(heard(), "");
	service_tell(&s, SERVICE_READY, "serving");
	assert_string_equal(heard(), "READY=1\nSTATUS=serving");
}

// FL-13: the service is stopped, and whoever was followed before has streams still.
static void one_that_was_followed_asks_for_time_once_the_service_ends(void **state)
{
	struct service s = {.is_silent = true, .told = SERVICE_READY};
	struct shutdown shutdown = {.begun = true, .left = true, .draining = true};
	const struct service_view v = {.shutdown = &shutdown};
	(void)state;
	service_look(&s, &v);
	service_beat(&s, true);
	assert_string_equal(heard(), "");
	shutdown.left = false; // the signal came
	service_look(&s, &v);
	service_beat(&s, true);
	assert_string_equal(heard(), "EXTEND_TIMEOUT_USEC=30000000");
}

static void without_a_manager_nothing_happens(void **state)
{
	struct service s = {0};
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	service_tell(&s, SERVICE_READY, "serving");
	service_beat(&s, true);
	assert_string_equal(heard(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_phase_is_told_once_and_each_status_when_it_changes),
		cmocka_unit_test(a_status_is_one_line_and_adds_no_word_of_its_own),
		cmocka_unit_test(the_watchdog_is_fed_while_all_loops_run),
		cmocka_unit_test(the_end_asks_for_more_time_while_it_takes_some),
		cmocka_unit_test(a_drain_of_an_operator_is_a_status_and_no_end),
		cmocka_unit_test(
			fl_13_one_that_takes_over_is_the_services_main_process_from_then_on),
		cmocka_unit_test(fl_13_the_main_process_is_told_before_it_is_ready),
		cmocka_unit_test(one_that_was_followed_asks_for_time_once_the_service_ends),
		cmocka_unit_test(without_a_manager_nothing_happens),
	};
	return cmocka_run_group_tests(tests, start_manager, stop_manager);
}
