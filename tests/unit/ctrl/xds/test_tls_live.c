// SPDX-License-Identifier: Apache-2.0
// TLS to an xDS server (BT-05, gRFC A65): real handshakes of the libgrpc transport with a gRPC
// server that wants a certificate of its clients, tls_server.py (argv[1]), over loopback. Keys are
// made by openssl.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/transport_grpc.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define S NS_PER_SECOND
#define BOUND_NS (30 * S)

static const char *server_path;
static char root[] = "/tmp/shunt-tls-XXXXXX"; // of the tests' folders

// Two authorities: "ca" signs the server and "client", "alien" signs "stranger".
static const char MAKE_KEYS[] =
	"cd '%s' && exec 2>openssl.log && set -e\n"
	"ca() { openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=$1 -keyout $1.key "
	"-out $1.pem -addext basicConstraints=critical,CA:TRUE; }\n"
	"leaf() { openssl req -newkey rsa:2048 -nodes -subj /CN=$2 -keyout $2.key -out $2.csr\n"
	"echo subjectAltName=IP:127.0.0.1 >ext\n"
	"openssl x509 -req -days 2 -in $2.csr -CA $1.pem -CAkey $1.key -CAcreateserial -out $2.pem "
	"-extfile ext; }\n"
	"ca ca; ca alien; leaf ca server; leaf ca client; leaf alien stranger\n";

struct live {
	char dir[64];
	pid_t server;
	FILE *said;
	char uri[64];
	struct xds_grpc *grpc;
	char heard[16];
	char why[512]; // the stream ended; "" = it has not
};

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static void run(struct live *l, const char *fmt)
{
	char *command;
	assert_true(asprintf(&command, fmt, l->dir) > 0);
	int status = system(command);
	free(command);
	assert_int_equal(status, 0);
}

static void start(struct live *l)
{
	*l = (struct live){.dir = ""};
	snprintf(l->dir, sizeof(l->dir), "%s/XXXXXX", root);
	assert_non_null(mkdtemp(l->dir));
	run(l, MAKE_KEYS);
	int in[2], out[2];
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	l->server = fork();
	assert_true(l->server >= 0);
	if (l->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); // also when an assertion ends the test
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl("/usr/bin/python3", "python3", server_path, l->dir, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	l->said = fdopen(out[0], "r");
	unsigned port;
	assert_non_null(l->said);
	assert_int_equal(fscanf(l->said, "%u", &port), 1);
	snprintf(l->uri, sizeof(l->uri), "127.0.0.1:%u", port);
	l->grpc = xds_grpc_new();
	assert_non_null(l->grpc);
}

static void stop(struct live *l)
{
	xds_grpc_free(l->grpc);
	kill(l->server, SIGKILL);
	waitpid(l->server, NULL, 0);
	fclose(l->said);
}

static void on_sent(void *ctx)
{
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	struct live *l = ctx;
	snprintf(l->heard, sizeof(l->heard), "%.*s", (int)len, (const char *)bytes);
}

static void on_closed(void *ctx, const char *why)
{
	struct live *l = ctx;
	snprintf(l->why, sizeof(l->why), "%s", why);
}

static const struct xds_stream_events events = {on_sent, on_message, on_closed};

// One stream: true = a message came back, else l->why says why not.
static bool talk(struct live *l, struct xds_transport *t)
{
	l->heard[0] = l->why[0] = '\0';
	struct xds_stream *s = t->ops->stream_new(t, "/echo/Echo", &events, l);
	assert_non_null(s);
	assert_int_equal(t->ops->stream_send(s, (const uint8_t *)"hello", 5), 0);
	t->ops->stream_read(s);
	uint64_t end = clock_ns() + BOUND_NS;
	while (!*l->heard && !*l->why) {
		assert_true(clock_ns() < end);
		struct pollfd fd = {.fd = xds_grpc_fd(l->grpc), .events = POLLIN};
		poll(&fd, 1, 100);
		xds_grpc_dispatch(l->grpc);
	}
	t->ops->stream_free(s);
	return *l->heard;
}

// ca: the file of whom we trust; name: whose key and certificate are shown.
static struct xds_transport *connect_as(struct live *l, const char *ca, const char *name)
{
	char files[3][128];
	snprintf(files[0], sizeof(files[0]), "%s/%s", l->dir, ca);
	snprintf(files[1], sizeof(files[1]), "%s/%s.pem", l->dir, name);
	snprintf(files[2], sizeof(files[2]), "%s/%s.key", l->dir, name);
	struct xds_server_conf conf = {
		.uri = l->uri,
		.creds = XDS_CREDS_TLS,
		.files = {.ca = files[0], .cert = files[1], .key = files[2], .refresh_ns = S},
	};
	struct xds_transport_factory factory = xds_grpc_factory(l->grpc);
	struct xds_transport *t = NULL;
	struct lb_err err = {""};
	if (factory.connect(factory.ctx, &conf, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

// TH-63
static void bt_05_both_sides_prove_who_they_are(void **state)
{
	struct live l;
	start(&l);
	struct xds_transport *t = connect_as(&l, "ca.pem", "client");
	if (!talk(&l, t))
		fail_msg("%s", l.why);
	assert_string_equal(l.heard, "hello");
	t->ops->free(t);

	t = connect_as(&l, "alien.pem", "client"); // a server that we do not trust
	assert_false(talk(&l, t));
	if (!strstr(l.why, "UNAVAILABLE") || !strcasestr(l.why, "certificate"))
		fail_msg("%s", l.why);
	t->ops->free(t);

	t = connect_as(&l, "ca.pem", "stranger"); // a client that the server does not trust
	assert_false(talk(&l, t));
	assert_non_null(strstr(l.why, "UNAVAILABLE"));
	t->ops->free(t);
	stop(&l);
}

static void bt_05_files_that_change_are_read_again(void **state)
{
	struct live l;
	start(&l);
	run(&l, "cd '%s' && cp alien.pem trusted.pem");
	struct xds_transport *t = connect_as(&l, "trusted.pem", "client");
	assert_false(talk(&l, t));
	run(&l, "cd '%s' && cp ca.pem trusted.new && mv trusted.new trusted.pem");
	uint64_t end = clock_ns() + BOUND_NS;
	while (!talk(&l, t)) {
		assert_true(clock_ns() < end);
		usleep(200000);
	}
	t->ops->free(t);
	stop(&l);
}

static void bt_05_a_file_that_is_not_there_is_named(void **state)
{
	struct live l = {.grpc = xds_grpc_new()};
	assert_non_null(l.grpc);
	struct xds_server_conf conf = {.uri = (char[]){"127.0.0.1:1"},
		.creds = XDS_CREDS_TLS,
		.files = {.ca = (char[]){"/nonexistent/ca.pem"}, .refresh_ns = S}};
	struct xds_transport_factory factory = xds_grpc_factory(l.grpc);
	struct xds_transport *t = NULL;
	struct lb_err err = {""};
	assert_true(factory.connect(factory.ctx, &conf, &t, &err) < 0);
	assert_string_equal(err.text, "/nonexistent/ca.pem: No such file or directory");
	xds_grpc_free(l.grpc);
}

int main(int argc, char **argv)
{
	server_path = argc > 1 ? argv[1] : "tls_server.py";
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(bt_05_both_sides_prove_who_they_are),
		cmocka_unit_test(bt_05_files_that_change_are_read_again),
		cmocka_unit_test(bt_05_a_file_that_is_not_there_is_named),
	};
	if (!mkdtemp(root))
		return 1;
	int failed = cmocka_run_group_tests_name("xds/tls_live", suite, NULL, NULL);
	char command[64];
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command) ? 1 : failed;
}
