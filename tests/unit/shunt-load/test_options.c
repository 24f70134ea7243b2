// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check.h"
#include "tools/shunt-load/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 64

static struct options options;
static struct lb_err err;

// The words of one command line, by blanks.
static int read_line(const char *line)
{
	static char text[1024];
	char *words[MAX_WORDS] = {"shunt-load"}, *rest = text;
	int n = 1;
	snprintf(text, sizeof(text), "%s", line);
	for (char *w; (w = strtok_r(rest, " ", &rest));) {
		assert_true(n < MAX_WORDS - 1);
		words[n++] = w;
	}
	err.text[0] = '\0';
	return options_read(n, words, &options, &err);
}

#define MUST "run -d net_x -a 10.0.0.1/24 -t 10.0.0.2:80 "

static void a_run_needs_a_device_an_address_a_target_and_an_end(void **state)
{
	static const char *const cases[][2] = {
		{"run -a 10.0.0.1/24 -t 10.0.0.2:80 -n 1", "--device is needed"},
		{"run -d net_x -t 10.0.0.2:80 -n 1", "--address is needed"},
		{"run -d net_x -a 10.0.0.1/24 -n 1", "--to is needed"},
		{MUST, "--requests or --duration"},
		{MUST "-n 1 -D 1", "one of them"},
		{MUST "-n 1 --echo-address 10.0.0.3/24", "--echo-device is needed"},
		{MUST "-n 1 --echo-device net_y", "--echo-address is needed"},
		{"echo -a 10.0.0.1/24", "--device is needed"},
		{"echo -d net_x", "--address is needed"},
		{"echo -d net_x -a 10.0.0.1/24 --echo-key k", "both or none"},
		{MUST "-n 1 --echo-device net_y --echo-address 10.0.0.3/24 --echo-certificate c",
			"both or none"},
		{"", "run or echo"},
		{"go", "run or echo"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_line(cases[i][0]), -EINVAL);
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.text);
	}
	assert_int_equal(read_line(MUST "-n 1"), 0);
	assert_int_equal(read_line("echo -d net_x -a 10.0.0.1/24"), 0);
}

static void wrong_words_are_named(void **state)
{
	static const char *const cases[][2] = {
		{"-n x", "--requests x: no number"},
		{"-n 0", "not within"},
		{"-n 20000000000000000000", "no number"},
		{"-n 18446744073709552k", "no number"},
		{"-n -1", "no number"},
		{"-c 0 -n 1", "not within"},
		{"-c 1000001 -n 1", "not within"},
		{"-D 1y", "no time"},
		{"-D s", "no time"},
		{"-D 0", "too little"},
		{"-D nan", "too little"},
		{"-D inf", "too little"},
		{"-D 1 -a 10.0.0.1", "not an IP address"},
		{"-D 1 -a 10.0.0.1/33", "not an IP address"},
		{"-D 1 -a fd00::1/129", "not an IP address"},
		{"-D 1 -t 10.0.0.1", "not an IP address with a port"},
		{"-D 1 -t 10.0.0.1:0", "not an IP address with a port"},
		{"-D 1 -t 10.0.0.1:65536", "not an IP address with a port"},
		{"-D 1 -t fd00::1:80", "not an IP address with a port"},
		{"-D 1 -t [fd00::1]80", "not an IP address with a port"},
		{"-D 1 -t [fd00::1", "not an IP address with a port"},
		{"-D 1 -t [10.0.0.1]:80", "not an IP address with a port"},
		{"-D 1 -t host:80", "not an IP address with a port"},
		{"-D 1 -g x", "no address"},
		{"-D 1 --check all", "content, same or status"},
		{"-D 1 --check same -A 10", "--answer"},
		{"-D 1 --echo-fault alter", "KIND:N"},
		{"-D 1 --echo-fault alter:0", "KIND:N"},
		{"-D 1 --echo-fault none:1", "KIND:N"},
		{"-D 1 --nope", "--nope: no such option"},
		{"-D 1 -z", "no such option"},
		{"-D", "-D: needs an argument"},
		{"-D 1 --rate", "--rate: needs an argument"},
		{"-D 1 --json=1", "--json=1: no such option"},
		{"-D 1 -jz", "-jz: no such option"},
		{"-D 1 --http1 -m 2", "--http1: one request at a time"},
		{"-D 1 --http1 --grpc", "--http1 and --grpc"},
		{"-D 1 --http1 --authority a\r\nb:c", "--authority: a blank or a control"},
		{"-D 1 -", "unexpected argument -"},
		{"-D 1 more", "unexpected argument more"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[256];
		snprintf(line, sizeof(line), MUST "%s", cases[i][0]);
		int r = read_line(line);
		if (r != -EINVAL || !strstr(err.text, cases[i][1]))
			fail_msg("%s: %d, %s", line, r, err.text);
	}
}

static void values_arrive_where_they_belong(void **state)
{
	assert_int_equal(
		read_line(
			MUST "-a 10.0.0.9/16 -c 8 -m 32 -D 1.5s -r 20k -w 200ms --grpc -b 100 -A 7 "
			     "-p /a -p 3:/b --requests-per-connection 5 --idle 20k --hold 3s -T 2m "
			     "--seed 9 "
			     "--check content --core 1 --nap -j -q --eal -m --eal 64"),
		0);
	assert_int_equal(options.client.n_addresses, 2);
	assert_int_equal(options.client.addresses[1].len, 16);
	assert_int_equal(options.to.port, 80);
	assert_int_equal(options.n_conns, 8);
	assert_int_equal(options.n_streams, 32);
	assert_int_equal(options.duration_ns, 1500000000);
	assert_int_equal(options.warm_up_ns, 200000000);
	assert_int_equal(options.rate, 20000);
	assert_true(options.is_grpc && options.nap && options.json && options.quiet);
	assert_int_equal(options.body_size, 100);
	assert_int_equal(options.answer_size, 7);
	assert_int_equal(options.n_paths, 2);
	assert_string_equal(options.paths[1], "3:/b");
	assert_int_equal(options.per_conn, 5);
	assert_int_equal(options.n_idle, 20000);
	assert_int_equal(options.hold_ns, 3000000000);
	assert_int_equal(options.timeout_ns, 120000000000);
	assert_true(options.has_seed && options.seed == 9);
	assert_int_equal(options.core, 1);
	assert_int_equal(options.n_eal, 2);
	assert_string_equal(options.eal[0], "-m");
	assert_false(options.is_http1);
	assert_int_equal(read_line(MUST "-n 1 -c 9 --http1 --authority a.test:80"), 0);
	assert_true(options.is_http1);
}

static void the_backends_options_are_its_own(void **state)
{
	assert_int_equal(read_line("echo -d net_x -a 10.0.0.1/24 -l 80 -D 3 --echo-fault cut:9 "
				   "--echo-streams 100 --echo-answer 5"),
		0);
	assert_string_equal(options.echo.device, "net_x");
	assert_null(options.client.device);
	assert_int_equal(options.listen, 80);
	assert_int_equal(options.duration_ns, 3000000000);
	assert_int_equal(options.fault, ECHO_FAULT_CUT);
	assert_int_equal(options.fault_every, 9);
	assert_int_equal(options.max_streams, 100);
	assert_int_equal(options.echo_size, 5);
	assert_int_equal(read_line("echo -d net_x -a 10.0.0.1/24 -c 3"), -EINVAL);
}

static void an_answer_is_as_long_as_the_body_unless_said(void **state)
{
	assert_int_equal(read_line(MUST "-n 1"), 0);
	assert_int_equal(options.answer_size, 64);
	assert_int_equal(read_line(MUST "-n 1 -b 1000"), 0);
	assert_int_equal(options.answer_size, 1000);
	assert_int_equal(read_line(MUST "-n 1 -b 1000 -A 0"), 0);
	assert_int_equal(options.answer_size, 0);
}

static void help_names_every_option_of_both_commands(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	options_help(out);
	fclose(out);
	static const char *const names[] = {"--device", "--rate", "--idle", "--echo-fault",
		"--json", "--requests-per-connection", "Exit status"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(strstr(text, names[i]));
	free(text);
	assert_int_equal(read_line("--help"), 1);
	assert_int_equal(read_line("run -h"), 1);
}

RUN_SUITE("shunt-load/options",
	cmocka_unit_test(a_run_needs_a_device_an_address_a_target_and_an_end),
	cmocka_unit_test(wrong_words_are_named), cmocka_unit_test(values_arrive_where_they_belong),
	cmocka_unit_test(the_backends_options_are_its_own),
	cmocka_unit_test(an_answer_is_as_long_as_the_body_unless_said),
	cmocka_unit_test(help_names_every_option_of_both_commands))
