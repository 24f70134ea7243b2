// SPDX-License-Identifier: Apache-2.0
// SIGHUP: what of a changed shunt.yaml takes effect, what is said to need a restart; SIGUSR1: the
// log's file is opened again.
#include "ctrl/base/log_file.h"
#include "ctrl/base/whole_file.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_diff.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/conf/reload.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/route/timeouts.h"
#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const whole =
	"eal: [--in-memory, --no-huge]\n"
	"workers: [0]\n"
	"ports:\n"
	"  - {device: net_a, addresses: [10.81.0.10/24]}\n"
	"  - {device: net_b, addresses: [10.82.0.10/16, 10.83.0.1/16]}\n"
	"frontends:\n"
	"  - {name: web, address: 10.81.0.10, port: 8080, target: web}\n"
	"  - {name: api, address: 10.81.0.10, port: 8081, target: api, authority: api}\n"
	"log: {level: info}\n"
	"csds: {listen: 127.0.0.1:5}\n"
	"drain_s: 30\n";

static struct reload_report report; // of the last reload

// What the rest of the daemon is asked, and says.
static struct {
	unsigned n_prepared, n_applied;
	bool had_csds, refuses, is_taken_over;
	const char *learns, *learned_badly; // a field; an error; NULL = none
} parts;

static int prepare(void *ctx, const struct config *new, const struct reload_parts *wanted,
	struct lb_err *reterr)
{
	parts.n_prepared++;
	assert_ptr_equal(ctx, &parts);
	return parts.refuses ? lb_err_set(reterr, "csds.listen: is taken") : 0;
}

static void apply(void *ctx, struct config *new, const struct reload_parts *wanted)
{
	parts.n_applied++;
	parts.had_csds = wanted->has_csds;
}

static int check(void *ctx, struct lb_err *reterr)
{
	assert_ptr_equal(ctx, &parts);
	return parts.is_taken_over ? lb_err_set(reterr, "another one takes over") : 0;
}

static int learn(
	void *ctx, void (*note)(void *, const char *, bool), void *note_ctx, struct lb_err *reterr)
{
	assert_ptr_equal(ctx, &parts);
	if (parts.learned_badly)
		return lb_err_set(reterr, "%s", parts.learned_badly);
	if (parts.learns)
		note(note_ctx, parts.learns, false);
	return 0;
}

static void again(struct config *running, const char *path)
{
	const struct reloader r = {.config = running,
		.path = path,
		.learn = learn,
		.prepare = prepare,
		.apply = apply,
		.ctx = &parts,
		.check = check};
	reload(&r, "by=somebody", &report);
}

struct files {
	char dir[32], config[64], log[64], moved[64];
	int stderr_before;
};

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static char *read_file(const char *path)
{
	static char text[8192];
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	return text;
}

// `whole` with one piece replaced; good until the next call.
static const char *with(const char *piece, const char *instead)
{
	static char text[2048];
	const char *at = strstr(whole, piece);
	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, instead,
		at + strlen(piece));
	return text;
}

static int set_up(void **state)
{
	static struct files f;
	strcpy(f.dir, "/tmp/shunt-reload-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.config, sizeof(f.config), "%s/shunt.yaml", f.dir);
	snprintf(f.log, sizeof(f.log), "%s/log", f.dir);
	snprintf(f.moved, sizeof(f.moved), "%s/log.1", f.dir);
	write_file(f.config, whole);
	memset(&parts, 0, sizeof(parts));
	f.stderr_before = dup(STDERR_FILENO);
	int fd = open(f.log, O_WRONLY | O_APPEND | O_CREAT, 0640);
	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct files *f = *state;
	dup2(f->stderr_before, STDERR_FILENO);
	close(f->stderr_before);
	unlink(f->config);
	unlink(f->log);
	unlink(f->moved);
	rmdir(f->dir);
	log_set_level(LOG_LEVEL_INFO);
	return 0;
}

static struct config *load(const struct files *f)
{
	struct lb_err err = {.text = ""};
	struct config *c = config_load(f->config, &err);
	assert_string_equal(err.text, "");
	return c;
}

static void join(void *ctx, const char *field)
{
	char *text = ctx;
	strcat(text, field);
	strcat(text, " ");
}

static void differences_are_named_as_the_file_names_them(void **state)
{
	static const struct {
		const char *piece, *instead, *fields;
	} rows[] = {
		{"", "", ""},
		{"--no-huge", "--huge", "eal[1] "},
		{"[--in-memory, --no-huge]", "[--no-huge]", "eal "},
		{"workers: [0]", "workers: [0]\nidle: poll", "idle "},
		{"10.83.0.1/16", "10.83.0.2/16", "ports[1].addresses[1] "},
		{"net_b", "net_c", "ports[1].device "},
		{"net_b,", "net_b, mtu: 1400,", "ports[1].mtu "},
		{"net_b,", "net_b, mtu: 1500,", ""}, // the default
		{"authority: api", "authority: x", "frontends[1].authority "},
		{"target: web", "target: web, authority: x", "frontends[0].authority "},
		{"port: 8080", "port: 8082", "frontends[0].port "},
		{"level: info", "level: warn", "log.level "},
		{"csds: {listen: 127.0.0.1:5}\n", "", "csds "},
		{"127.0.0.1:5}", "127.0.0.1:5, allow_remote: true}", "csds.allow_remote "},
		{"127.0.0.1:5}", "127.0.0.1:5, tls: {certificate: a}}", "csds.tls "},
		{"drain_s: 30", "drain_s: 31", "drain_s "},
		{"drain_s: 30", "limits: {requests: 100}\ndrain_s: 30", "limits "},
		{"drain_s: 30", "lame_duck_s: 5\ndrain_s: 30", "lame_duck_s "},
		{"drain_s: 30", "dns: {servers: [10.0.0.1]}\ndrain_s: 30", "dns "},
	};
	struct files *f = *state;
	struct config *before = load(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char fields[512] = "";
		write_file(f->config, with(rows[i].piece, rows[i].instead));
		struct config *now = load(f);
		config_diff(before, now, join, fields);
		if (strcmp(fields, rows[i].fields) != 0)
			fail_msg("'%s' for '%s': '%s'", rows[i].instead, rows[i].piece, fields);
		config_free(now);
	}
	config_free(before);
}

static void nothing_different_is_nothing_to_do(void **state)
{
	struct files *f = *state;
	struct config *c = load(f);
	again(c, f->config);
	assert_non_null(
		strstr(read_file(f->log), "level=info msg=\"reload\" text=\"nothing to do"));
	config_free(c);
}

static void level_and_drain_follow_and_all_else_is_named(void **state)
{
	struct files *f = *state;
	struct config *c = load(f);
	write_file(f->config, with("log: {level: info}", "log: {level: debug}\nidle: poll"));
	again(c, f->config);
	assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(c->idle, CONFIG_IDLE_BACKOFF);
	log_debug("seen", "n=1");
	const char *text = read_file(f->log);
	assert_non_null(strstr(text, "level=warn msg=\"reload\" needs_restart=\"idle\""));
	assert_non_null(strstr(text, "msg=\"reloaded\" log_level=debug drain_s=30"));
	assert_non_null(strstr(text, "msg=\"seen\""));
	// Back, and the line that says so can still be read; what needs a restart still does.
	write_file(f->config, with("drain_s: 30", "drain_s: 5\nlame_duck_s: 6"));
	again(c, f->config);
	log_debug("unseen", "n=1");
	text = read_file(f->log);
	assert_non_null(strstr(text, "msg=\"reloaded\" log_level=info drain_s=5"));
	assert_null(strstr(text, "msg=\"unseen\""));
	assert_int_equal(c->drain_s, 5);
	assert_int_equal(c->lame_duck_s, 6);
	config_free(c);
}

// OPS-320
static void ops_320_limits_and_times_follow_and_sizes_of_memory_are_named(void **state)
{
	static const struct {
		const char *instead, *changed, *needs_restart;
	} rows[] = {
		{"limits: {idle_timeout_s: 7}", "limits.idle_timeout_s", ""},
		{"limits: {idle_timeout_s: 300}", "", ""}, // the default
		{"limits: {streams: 7, connections: 17}", "limits.streams", "limits.connections"},
		{"limits: {requests: 17, buffers_mib: 17}", "",
			"limits.requests, limits.buffers_mib"},
		{"limits: {xds_resources: 1001}", "", "limits.xds_resources"},
		{"limits: {client_buffer_kib: 513}", "limits.client_buffer_kib", ""},
		{"limits: {max_connection_age_s: 1, max_connection_age_grace_s: 2}",
			"limits.max_connection_age_s, limits.max_connection_age_grace_s", ""},
		{"limits: {stream_idle_timeout_s: 0}", "limits.stream_idle_timeout_s", ""},
		{"listener_drain_s: 1", "listener_drain_s", ""},
		{"clients: {keepalive_interval_s: 1}", "clients.keepalive_interval_s", ""},
		{"backends: {tcp_user_timeout_s: 1}", "backends.tcp_user_timeout_s", ""},
		{"retries: {max_attempts: 1, idempotent: false}",
			"retries.max_attempts, retries.idempotent", ""},
	};
	struct files *f = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];
		write_file(f->config, whole);
		struct config *c = load(f);
		snprintf(text, sizeof(text), "drain_s: 30\n%s", rows[i].instead);
		write_file(f->config, with("drain_s: 30", text));
		again(c, f->config);
		assert_string_equal(report.err.text, "");
		assert_string_equal(report.changed.text, rows[i].changed);
		assert_string_equal(report.needs_restart.text, rows[i].needs_restart);
		again(c, f->config); // what has changed is as the file says, what has not is named
		assert_string_equal(report.changed.text, "");
		assert_string_equal(report.needs_restart.text, rows[i].needs_restart);
		write_file(f->config, whole);
		again(c, f->config);
		assert_string_equal(report.changed.text, rows[i].changed);
		assert_string_equal(report.needs_restart.text, "");
		config_free(c);
	}
	assert_int_equal(parts.n_prepared, 0);
}

// OPS-320
static void ops_320_what_workers_are_told_is_what_the_file_says(void **state)
{
	struct files *f = *state;
	struct config *c = load(f);
	write_file(f->config,
		with("drain_s: 30",
			"limits: {idle_timeout_s: 7, streams: 8, stream_idle_timeout_s: 0}\n"
			"retries: {idempotent: false}\nlistener_drain_s: 9"));
	assert_int_equal(config_terms(c).idle_timeout_ns, 300 * NS_PER_SECOND);
	again(c, f->config);
	struct lb_terms terms = config_terms(c);
	assert_int_equal(terms.idle_timeout_ns, 7 * NS_PER_SECOND);
	assert_int_equal(terms.max_streams, 8);
	assert_true(terms.stream_idle_ns == LB_NO_TIMEOUT);
	assert_int_equal(terms.listener_drain_ns, 9 * NS_PER_SECOND);
	assert_false(terms.retry_idempotent);
	assert_int_equal(terms.client_silence.tcp_keepalive_ns, 60 * NS_PER_SECOND);
	assert_int_equal(parts.n_applied, 1);
	const char *text = read_file(f->log);
	assert_non_null(strstr(text, "changed=\"listener_drain_s, limits.streams, "));
	assert_non_null(strstr(text, " by=somebody\n"));
	config_free(c);
}

// OPS-321
static void ops_321_all_of_a_reload_takes_effect_or_nothing(void **state)
{
	struct files *f = *state;
	struct config *c = load(f);
	write_file(f->config, with("127.0.0.1:5}", "127.0.0.1:6}\nlimits: {idle_timeout_s: 7}"));
	parts.refuses = true;
	again(c, f->config);
	assert_non_null(strstr(report.err.text, "/shunt.yaml: csds.listen: is taken"));
	assert_string_equal(report.changed.text, "");
	assert_string_equal(c->csds->listen, "127.0.0.1:5");
	assert_int_equal(c->idle_timeout_s, 300);
	assert_int_equal(parts.n_applied, 0);
	assert_non_null(strstr(read_file(f->log), "level=error msg=\"reload refused\""));
	parts.refuses = false;
	again(c, f->config);
	assert_string_equal(report.changed.text, "limits.idle_timeout_s, csds.listen");
	assert_string_equal(c->csds->listen, "127.0.0.1:6");
	assert_int_equal(c->idle_timeout_s, 7);
	assert_int_equal(parts.n_prepared, 2);
	assert_true(parts.had_csds);
	write_file(f->config, with("csds: {listen: 127.0.0.1:5}\n", ""));
	again(c, f->config);
	assert_string_equal(report.changed.text, "limits.idle_timeout_s, csds");
	assert_null(c->csds);
	config_free(c);
}

// OPS-328, OPS-321
static void ops_328_what_is_new_in_the_bootstrap_is_told_or_refuses_all(void **state)
{
	struct files *f = *state;
	struct config *c = load(f);
	parts.learns = "certificate_providers[\"p\"]";
	again(c, f->config);
	assert_string_equal(report.changed.text, "certificate_providers[\"p\"]");
	assert_int_equal(parts.n_applied, 1);
	write_file(f->config, with("drain_s: 30", "drain_s: 31"));
	parts.learned_badly = "bootstrap /b.json: line 1 column 1: no";
	again(c, f->config);
	assert_string_equal(report.err.text, parts.learned_badly);
	assert_string_equal(report.changed.text, "");
	assert_int_equal(c->drain_s, 30);
	config_free(c);
}

static void fl_183_a_reload_is_refused_while_another_process_takes_over(void **state)
{
	struct files *f = *state;
	struct config *running = load(f);
	write_file(f->config, with("drain_s: 30", "drain_s: 31"));
	parts.is_taken_over = true;
	again(running, f->config);
	assert_string_equal(report.err.text, "another one takes over");
	assert_int_equal(running->drain_s, 30);
	assert_non_null(strstr(read_file(f->log), "msg=\"reload refused\""));
	parts.is_taken_over = false;
	again(running, f->config);
	assert_string_equal(report.err.text, "");
	assert_int_equal(running->drain_s, 31);
	config_free(running);
}

static void of_a_wrong_file_nothing_is_taken(void **state)
{
	struct files *f = *state;
	struct config *c = load(f);
	write_file(f->config, with("level: info", "level: loud"));
	again(c, f->config);
	const char *text = read_file(f->log);
	assert_non_null(strstr(text, "level=error msg=\"reload refused\""));
	assert_non_null(strstr(text, "/shunt.yaml:9: log.level: 'loud' is not one of"));
	assert_int_equal(c->log_level, LOG_LEVEL_INFO);
	write_file(f->config, with("drain_s: 30", "farewell_s: 1"));
	again(c, f->config);
	assert_non_null(strstr(read_file(f->log), "farewell_s: 1 leaves no time"));
	unlink(f->config);
	again(c, f->config);
	assert_non_null(strstr(read_file(f->log), "/shunt.yaml: No such file"));
	config_free(c);
}

// OPS-287: a FIFO that nobody writes to, a device without an end, and a file that is too long.
static void a_reload_waits_for_no_file(void **state)
{
	struct files *f = *state;
	write_file(f->config, whole);
	struct config *c = load(f);
	unlink(f->config);
	assert_int_equal(mkfifo(f->config, 0600), 0);
	again(c, f->config);
	assert_non_null(strstr(report.err.text, "/shunt.yaml: is not a regular file"));
	unlink(f->config);
	assert_int_equal(symlink("/dev/zero", f->config), 0);
	again(c, f->config);
	assert_non_null(strstr(report.err.text, "/shunt.yaml: is not a regular file"));
	unlink(f->config);
	write_file(f->config, whole);
	assert_int_equal(truncate(f->config, WHOLE_FILE_MAX + 1), 0);
	again(c, f->config);
	assert_non_null(strstr(report.err.text, "/shunt.yaml: File too large"));
	assert_int_equal(c->drain_s, 30);
	config_free(c);
}

// OPS-289: a hundred thousand brackets took libyaml minutes.
static void a_reload_takes_no_time_for_what_is_too_deep(void **state)
{
	struct files *f = *state;
	enum { DEPTH = 100000 };
	static char deep[2 * DEPTH + 16];
	write_file(f->config, whole);
	struct config *c = load(f);
	int n = snprintf(deep, sizeof(deep), "workers:\n  ");
	memset(deep + n, '[', DEPTH);
	write_file(f->config, deep);
	again(c, f->config);
	assert_non_null(strstr(report.err.text, "/shunt.yaml:2: no option is so deep"));
	for (int i = 0; i < DEPTH; i++)
		memcpy(deep + n + 2 * (size_t)i, "- ", 2);
	write_file(f->config, deep);
	again(c, f->config);
	assert_non_null(strstr(report.err.text, "/shunt.yaml:2: no option is so deep"));
	config_free(c);
}

// OPS-296: libcyaml reads the first one, and says nothing of others.
static void a_second_document_is_refused(void **state)
{
	struct files *f = *state;
	char text[4096];
	write_file(f->config, whole);
	struct config *c = load(f);
	int n = snprintf(text, sizeof(text), "---\n%s---\nworkers: [1]\n", whole);
	assert_true(n > 0 && n < (int)sizeof(text));
	write_file(f->config, text);
	again(c, f->config);
	assert_non_null(strstr(report.err.text, ": a second document begins, and only one is"));
	snprintf(text, sizeof(text), "---\n%s...\n# the end\n", whole);
	write_file(f->config, text);
	again(c, f->config);
	assert_string_equal(report.err.text, "");
	config_free(c);
}

static void the_logs_file_is_opened_again_by_its_name(void **state)
{
	struct files *f = *state;
	struct stat s;
	log_file_begin();
	log_info("first", "n=1");
	assert_int_equal(rename(f->log, f->moved), 0);
	log_info("second", "n=1");
	assert_true(log_file_reopen());
	log_info("third", "n=1");
	assert_non_null(strstr(read_file(f->moved), "msg=\"second\""));
	const char *text = read_file(f->log);
	assert_null(strstr(text, "msg=\"second\""));
	assert_non_null(strstr(text, "msg=\"third\""));
	assert_int_equal(stat(f->log, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0640);
}

// OPS-243
static void a_log_that_cannot_be_opened_again_is_tried_until_it_can(void **state)
{
	struct files *f = *state;
	log_file_begin();
	uint64_t before = log_file_numbers().n_unopened;
	assert_int_equal(rename(f->log, f->moved), 0);
	assert_int_equal(mkdir(f->log, 0700), 0);
	assert_false(log_file_reopen());
	assert_int_equal(log_file_numbers().error, EISDIR);
	log_file_look();
	assert_int_equal(log_file_numbers().n_unopened, before + 2);
	const char *text = strstr(read_file(f->moved), "reopening failed");
	assert_non_null(text);
	assert_null(strstr(text + 1, "reopening failed")); // is said once
	assert_int_equal(rmdir(f->log), 0);
	log_file_look();
	assert_int_equal(log_file_numbers().error, 0);
	log_info("after", "n=1");
	assert_non_null(strstr(read_file(f->log), "msg=\"after\""));
}

// OPS-287: a path that has become a FIFO which nobody reads.
static void a_rotation_waits_for_no_reader(void **state)
{
	struct files *f = *state;
	log_file_begin();
	assert_int_equal(rename(f->log, f->moved), 0);
	assert_int_equal(mkfifo(f->log, 0600), 0);
	assert_false(log_file_reopen());
	assert_int_equal(log_file_numbers().error, ENXIO);
	log_info("meanwhile", "n=1");
	assert_non_null(strstr(read_file(f->moved), "msg=\"meanwhile\""));
	assert_int_equal(unlink(f->log), 0);
	log_file_look();
	assert_int_equal(log_file_numbers().error, 0);
}

static void a_log_that_is_no_file_stays(void **state)
{
	int pipes[2], before = dup(STDERR_FILENO);
	char text[512] = "";
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	log_file_begin();
	bool opened = log_file_reopen();
	dup2(before, STDERR_FILENO);
	assert_false(opened);
	assert_true(read(pipes[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "nothing to reopen"));
	close(before);
	close(pipes[0]);
	close(pipes[1]);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/reload", CASE(differences_are_named_as_the_file_names_them),
	CASE(nothing_different_is_nothing_to_do),
	CASE(level_and_drain_follow_and_all_else_is_named),
	CASE(ops_320_limits_and_times_follow_and_sizes_of_memory_are_named),
	CASE(ops_320_what_workers_are_told_is_what_the_file_says),
	CASE(ops_321_all_of_a_reload_takes_effect_or_nothing),
	CASE(ops_328_what_is_new_in_the_bootstrap_is_told_or_refuses_all),
	CASE(fl_183_a_reload_is_refused_while_another_process_takes_over),
	CASE(of_a_wrong_file_nothing_is_taken), CASE(a_reload_waits_for_no_file),
	CASE(a_reload_takes_no_time_for_what_is_too_deep), CASE(a_second_document_is_refused),
	CASE(the_logs_file_is_opened_again_by_its_name),
	CASE(a_log_that_cannot_be_opened_again_is_tried_until_it_can),
	CASE(a_rotation_waits_for_no_reader), CASE(a_log_that_is_no_file_stays))
