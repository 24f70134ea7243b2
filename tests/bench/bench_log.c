// SPDX-License-Identifier: Apache-2.0
// bench_log: what the access log's thread takes for a line of JSON, from the record in a worker's
// ring to the file, in CPU time of that thread. tools/bench proxy runs it, since the worker's part
// is measured there.
#include "ctrl/access_log/access_log.h"
#include "ctrl/access_log/place.h"
#include "ctrl/loop.h"
#include "lb/base/check.h"
#include "lb/base/err.h"
#include "lb/base/time.h"
#include "lb/pick/access.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define N_REPEATS 7

static char path[] = "/tmp/shunt-bench-XXXXXX";

static void make_record(struct lb_access_record *a)
{
	lb_access_begin(a);
	a->logs = LB_ACCESS_OWN;
	a->brief = (struct lb_access_brief){.began_ns = NS_PER_SECOND,
		.ended_ns = NS_PER_SECOND + 1234567,
		.status = 200,
		.cause = LB_CAUSE_OK};
	a->received_ns = a->brief.began_ns + 1000;
	a->answered_ns = a->brief.ended_ns - 1000;
	a->body_in = a->body_out = 64;
	a->client = (struct ip_port){ip_from_v4(0x0a000001), 40000};
	a->backend = (struct ip_port){ip_from_v4(0x0a000201), 50051};
	a->n_attempts = 1;
	a->protocol = 20;
	lb_access_put(a, LB_ACCESS_METHOD, STR("POST"));
	lb_access_put(a, LB_ACCESS_PATH, STR("/one/helloworld.greeter.v1.Greeter/SayHello"));
	lb_access_put(a, LB_ACCESS_AUTHORITY, STR("greeter.default.svc.cluster.local:50051"));
	lb_access_put(a, LB_ACCESS_USER_AGENT, STR("grpc-go/1.62.0"));
	lb_access_put(a, LB_ACCESS_REQUEST_ID, STR("5f0c5a1c3e2b4d6f"));
	lb_access_put(a, LB_ACCESS_CLUSTER, STR("greeter"));
}

static double process_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * NS_PER_SECOND + (double)t.tv_nsec;
}

// CPU time of the thread for so many lines.
static double write_lines(struct access_log *log, struct lb_access *ring,
	const struct lb_access_record *a, uint64_t n)
{
	uint64_t end = access_log_numbers(log).n_lines + n;
	double begun = process_ns() - bench_now_ns();
	for (uint64_t i = 0; i < n;) {
		for (; i < n && spsc_room(&ring->ring) > 1; i++)
			lb_access_tell(ring, a);
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	}
	while (access_log_numbers(log).n_lines < end)
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	CHECK(counter_read(&ring->n_dropped) == 0);
	double ns = process_ns() - bench_now_ns() - begun;
	CHECK(truncate(path, 0) == 0);
	return ns;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	static const struct lb_access_filter all = {.sample = LB_ACCESS_SAMPLE_ALL};
	static const struct access_log_frontend front = {.name = "front"};
	struct lb_err err;
	struct lb_access_record record;
	double ns_op[N_REPEATS];
	int fd = mkstemp(path);
	struct lb_access *ring = lb_access_new(&all);
	CHECK(fd >= 0 && ring);
	const struct access_place own = {.kind = ACCESS_FILE, .path = path};
	const struct access_log_conf conf = {.logs.own = &own,
		.frontends = &front,
		.n_frontends = 1,
		.workers = &ring,
		.n_workers = 1,
		.clock_ns = loop_clock_ns,
		.wall_ns = loop_wall_ns};
	struct access_log *log;
	if (access_log_new(&conf, &log, &err)) {
		fprintf(stderr, "bench_log: %s\n", err.text);
		return 1;
	}
	make_record(&record);
	(void)write_lines(log, ring, &record, n);
	for (int i = 0; i < N_REPEATS; i++)
		ns_op[i] = write_lines(log, ring, &record, n) / (double)n;
	access_log_free(log);
	lb_access_free(ring);
	close(fd);
	unlink(path);
	printf("{\"bench\":\"log\",\"impl\":\"thread\",\"case\":\"json\",\"n\":1,\"ns_op\":%.1f}\n",
		bench_median(ns_op, N_REPEATS));
	return 0;
}
