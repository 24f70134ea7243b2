// SPDX-License-Identifier: Apache-2.0
// bench_workers [MS [REPEATS]]: what two workers do on two cores beside what each of them does
// alone, MS milliseconds a run. Each is a whole proxy (pipe_world.h) in a thread of its own, with
// its core to itself as far as the machine lets it; nothing else is at work, so that what slows two
// of them down is what they share. tools/bench runs it.
//
// shared: two of one program, with one snapshot, its breaker and pickers. apart: two that have
// nothing in common, which shows what the machine itself has for two threads.
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/slot.h"
#include "tests/bench/measure.h"
#include "tests/bench/pipe_control.h"
#include "tests/bench/pipe_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_WORKERS 2
#define MAX_REPEATS 41
#define BATCH 256 // requests between two looks at the clock
#define REST 8 // a part so large of a run: the kernel stops real-time threads that never rest

struct workers {
	const char *name, *what;
	struct pipe_world *worlds[N_WORKERS];
};

struct run {
	struct pipe_world *world;
	int core;
	uint64_t ns;
	pthread_barrier_t *start;
	pthread_t thread;
	double n_ops, wall_ns, cpu_ns;
};

static double wall_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * (double)NS_PER_SECOND + (double)t.tv_nsec;
}

static void *work(void *arg)
{
	struct run *r = arg;
	lb_slot_reader_start();
	pipe_world_run(r->world, BATCH); // its lines come over
	pthread_barrier_wait(r->start);
	double begun = wall_ns(), cpu = bench_now_ns();
	do {
		pipe_world_run(r->world, BATCH);
		r->n_ops += BATCH;
		r->wall_ns = wall_ns() - begun;
	} while (r->wall_ns < (double)r->ns);
	r->cpu_ns = bench_now_ns() - cpu;
	lb_slot_reader_stop();
	return NULL;
}

// Real-time where that is allowed, so that others who are at work take none of the core.
static void start(struct run *r)
{
	struct sched_param high = {.sched_priority = 1};
	pthread_attr_t attr;
	cpu_set_t cores;
	CPU_ZERO(&cores);
	CPU_SET(r->core, &cores);
	CHECK(pthread_attr_init(&attr) == 0);
	CHECK(pthread_attr_setaffinity_np(&attr, sizeof(cores), &cores) == 0);
	CHECK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED) == 0);
	CHECK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO) == 0);
	CHECK(pthread_attr_setschedparam(&attr, &high) == 0);
	if (pthread_create(&r->thread, &attr, work, r) != 0) {
		CHECK(pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED) == 0);
		CHECK(pthread_create(&r->thread, &attr, work, r) == 0);
	}
	pthread_attr_destroy(&attr);
}

// Of all that ran at once.
struct rate {
	double per_s; // of the clock
	double per_cpu_s; // mean of the threads
};

// Those of the workers whose bit is in who, at once.
static struct rate measure(const struct workers *all, const int *cores, unsigned who, uint64_t ns)
{
	struct run runs[N_WORKERS];
	struct rate rate = {0};
	pthread_barrier_t barrier;
	unsigned n = (unsigned)__builtin_popcount(who);
	CHECK(pthread_barrier_init(&barrier, NULL, n) == 0);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		runs[i] = (struct run){all->worlds[i], cores[i], ns, .start = &barrier};
		if (who >> i & 1)
			start(&runs[i]);
	}
	for (unsigned i = 0; i < N_WORKERS; i++) {
		if (!(who >> i & 1))
			continue;
		CHECK(pthread_join(runs[i].thread, NULL) == 0);
		rate.per_s += runs[i].n_ops / runs[i].wall_ns * (double)NS_PER_SECOND;
		rate.per_cpu_s += runs[i].n_ops / runs[i].cpu_ns * (double)NS_PER_SECOND / n;
	}
	pthread_barrier_destroy(&barrier);
	nanosleep(&(struct timespec){.tv_nsec = (long)(ns / REST)}, NULL);
	return rate;
}

struct samples {
	double one[MAX_REPEATS], two[MAX_REPEATS]; // requests a second
	double one_ns[MAX_REPEATS], two_ns[MAX_REPEATS]; // of CPU for each
	double times[MAX_REPEATS], cpu_times[MAX_REPEATS]; // what two do / what one does
};

// The first alone, the second alone, both: in turns.
static void sample(
	const struct workers *all, const int *cores, uint64_t ns, int i, struct samples *s)
{
	struct rate first = measure(all, cores, 1, ns), both = measure(all, cores, 3, ns),
		    second = measure(all, cores, 2, ns);
	double one_cpu = (first.per_cpu_s + second.per_cpu_s) / 2;
	s->one[i] = (first.per_s + second.per_s) / 2;
	s->two[i] = both.per_s;
	s->one_ns[i] = (double)NS_PER_SECOND / one_cpu;
	s->two_ns[i] = (double)NS_PER_SECOND / both.per_cpu_s;
	s->times[i] = s->two[i] / s->one[i];
	s->cpu_times[i] = N_WORKERS * both.per_cpu_s / one_cpu;
}

static void report(const struct workers *all, struct samples *s, size_t n)
{
	printf("{\"bench\":\"workers\",\"case\":\"%s\",\"impl\":\"%s\",\"one_s\":%.0f,"
	       "\"two_s\":%.0f,\"one_ns\":%.1f,\"two_ns\":%.1f,\"times\":%.3f,"
	       "\"cpu_times\":%.3f}\n",
		all->name, all->what, bench_median(s->one, n), bench_median(s->two, n),
		bench_median(s->one_ns, n), bench_median(s->two_ns, n), bench_median(s->times, n),
		bench_median(s->cpu_times, n));
	fflush(stdout);
}

static struct workers workers_new(
	const char *name, const struct pipe_world_conf *conf, bool is_shared)
{
	struct workers all = {name, is_shared ? "shared" : "apart", {0}};
	struct pipe_control *c = NULL;
	for (int i = 0; i < N_WORKERS; i++) {
		if (!c || !is_shared)
			c = pipe_control_new(is_shared ? N_WORKERS : 1, SECOND);
		all.worlds[i] = pipe_world_new(c, conf);
		if (!is_shared || i == N_WORKERS - 1)
			pipe_control_publish(c);
	}
	return all;
}

// The first cores that we may use. Returns false when there are too few.
static bool find_cores(int *ret)
{
	cpu_set_t mine;
	int n = 0;
	CHECK(sched_getaffinity(0, sizeof(mine), &mine) == 0);
	for (int i = 0; i < CPU_SETSIZE && n < N_WORKERS; i++)
		if (CPU_ISSET(i, &mine))
			ret[n++] = i;
	return n == N_WORKERS;
}

int main(int argc, char **argv)
{
	static const struct pipe_world_conf alone = {64, 1, false}, together = {8, 32, true};
	static struct workers all[4]; // static: leak checkers find the worlds by it
	static struct samples samples[4];
	uint64_t ns = (argc > 1 ? strtoull(argv[1], NULL, 10) : 25) * NS_PER_MS;
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : MAX_REPEATS;
	CHECK(n > 0 && n <= MAX_REPEATS);
	int cores[N_WORKERS];
	if (!find_cores(cores)) {
		fprintf(stderr, "bench_workers: needs two cores\n");
		return 77;
	}
	for (int shared = 1; shared >= 0; shared--) {
		all[2 - 2 * shared] = workers_new("64x1", &alone, shared);
		all[3 - 2 * shared] = workers_new("8x32", &together, shared);
	}
	for (int i = 0; i < (int)n; i++)
		for (int k = 0; k < 4; k++)
			sample(&all[k], cores, ns, i, &samples[k]);
	for (int k = 0; k < 4; k++)
		report(&all[k], &samples[k], n);
	return 0;
}
