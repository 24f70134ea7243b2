// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/report.h"

#include <inttypes.h>
#include <stddef.h>

static const struct {
	const char *name;
	double q;
} quantiles[] = {{"p50", .5}, {"p90", .9}, {"p99", .99}, {"p99.9", .999}, {"max", 1}};
#define N_QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

static uint64_t failed(const struct client_result *r)
{
	uint64_t n = 0;
	for (int o = OUTCOME_OK + 1; o < N_OUTCOMES; o++)
		n += o == OUTCOME_CUT ? 0 : r->ended[o];
	return n;
}

static double per_second(const struct client_result *r)
{
	return r->window_ns ? (double)r->measured * 1e9 / (double)r->window_ns : 0;
}

static double share(const struct usage *u, int side)
{
	return u->ns ? (double)u->busy_ns[side] / (double)u->ns : 0;
}

static double cpu_share(const struct usage *u)
{
	return u->ns ? (double)u->cpu_ns / (double)u->ns : 0;
}

static void print_latency(const char *what, const struct histogram *h, FILE *out)
{
	fprintf(out, "%-12s", what);
	for (size_t i = 0; i < N_QUANTILES; i++)
		fprintf(out, " %s %.1f us", quantiles[i].name,
			(double)histogram_quantile(h, quantiles[i].q) / 1e3);
	fprintf(out, ", mean %.1f us\n", histogram_mean(h) / 1e3);
}

static void print_client(const struct client_result *r, double rate, FILE *out)
{
	fprintf(out,
		"requests     %" PRIu64 " sent, %" PRIu64 " answered rightly, %" PRIu64 " failed\n",
		r->sent, r->ended[OUTCOME_OK], failed(r));
	if (failed(r) || r->ended[OUTCOME_CUT]) {
		fprintf(out, "  of those  ");
		for (int o = OUTCOME_OK + 1; o < N_OUTCOMES; o++)
			if (r->ended[o])
				fprintf(out, " %s %" PRIu64, outcome_name((enum outcome)o),
					r->ended[o]);
		putc('\n', out);
	}
	if (r->odd_http || r->ended[OUTCOME_STATUS]) {
		fprintf(out, "  first      HTTP status %u", r->odd_http);
		if (r->odd_grpc >= 0)
			fprintf(out, ", gRPC status %d", r->odd_grpc);
		putc('\n', out);
	}
	if (r->resent)
		fprintf(out, "  sent again %" PRIu64 " (not processed by the peer)\n", r->resent);
	fprintf(out, "rate         %.0f answers/s in %.3f s", per_second(r),
		(double)r->window_ns / 1e9);
	if (rate > 0)
		fprintf(out, " (%.0f asked for)", rate);
	fprintf(out, "; %.1f MB of bodies out, %.1f MB in\n", (double)r->content_out / 1e6,
		(double)r->content_in / 1e6);
	print_latency("latency", &r->latency, out);
	fprintf(out,
		"connections  %" PRIu64 " opened, %" PRIu64 " failed to, %" PRIu64 " lost, %" PRIu64
		" told to go",
		r->opened, r->connect_failed, r->conns_lost, r->goaways);
	if (r->unasked)
		fprintf(out, ", %" PRIu64 " with BYTES THAT NOBODY ASKED FOR", r->unasked);
	if (r->idle_held || r->idle_lost)
		fprintf(out, "; idle: %u held, %u lost", r->idle_held, r->idle_lost);
	if (r->why)
		fprintf(out, "; last: %s", r->why);
	putc('\n', out);
	if (r->opened)
		print_latency("  opened in", &r->connect, out);
	if (r->gave_up)
		fprintf(out, "GAVE UP      no connections, or no right answer to a probe, within "
			     "the timeout\n");
}

static void print_echo(const struct echo_result *e, FILE *out)
{
	fprintf(out,
		"echo         %" PRIu64 " requests, %" PRIu64 " answered, %" PRIu64
		" aborted; %" PRIu64 " altered, %" PRIu64 " doubled",
		e->requests, e->answered, e->aborted, e->altered, e->doubled);
	if (e->faults)
		fprintf(out, "; %" PRIu64 " spoiled on purpose", e->faults);
	if (e->no_memory)
		fprintf(out, "; %" PRIu64 " REFUSED for want of memory", e->no_memory);
	fprintf(out, "; %" PRIu64 " connections", e->accepted);
	if (e->refused)
		fprintf(out, ", %" PRIu64 " REFUSED", e->refused);
	putc('\n', out);
}

void report_print(const struct report *r, FILE *out)
{
	if (r->client)
		print_client(r->client, r->rate, out);
	if (r->echo)
		print_echo(r->echo, out);
	fprintf(out, "this thread  busy %.0f %%",
		100 * (share(&r->usage, 0) + share(&r->usage, 1)));
	if (r->client && r->echo)
		fprintf(out, " (client %.0f, echo %.0f)", 100 * share(&r->usage, 0),
			100 * share(&r->usage, 1));
	fprintf(out, ", on the CPU %.0f %%; frames: %" PRIu64 " missed, %" PRIu64 " dropped\n",
		100 * cpu_share(&r->usage), r->rx_missed, r->tx_dropped);
}

static void json_histogram(const char *name, const struct histogram *h, FILE *out)
{
	fprintf(out, "\"%s\":{\"n\":%" PRIu64 ",\"min\":%" PRIu64 ",\"mean\":%.1f", name, h->n,
		h->min, histogram_mean(h));
	for (size_t i = 0; i < N_QUANTILES; i++)
		fprintf(out, ",\"%s\":%" PRIu64, quantiles[i].name,
			histogram_quantile(h, quantiles[i].q));
	fputs("},", out);
}

static void json_client(const struct client_result *r, double rate, FILE *out)
{
	fprintf(out, "\"sent\":%" PRIu64 ",\"resent\":%" PRIu64 ",\"failed\":%" PRIu64 ",", r->sent,
		r->resent, failed(r));
	fputs("\"outcomes\":{", out);
	for (int o = 0; o < N_OUTCOMES; o++)
		fprintf(out, "%s\"%s\":%" PRIu64, o ? "," : "", outcome_name((enum outcome)o),
			r->ended[o]);
	fprintf(out,
		"},\"measured\":%" PRIu64
		",\"seconds\":%.6f,\"per_second\":%.1f,\"asked_per_second\":%.1f,",
		r->measured, (double)r->window_ns / 1e9, per_second(r), rate);
	fprintf(out, "\"first_odd_status\":{\"http\":%u,\"grpc\":%d},", r->odd_http, r->odd_grpc);
	json_histogram("latency_ns", &r->latency, out);
	json_histogram("connect_ns", &r->connect, out);
	fprintf(out,
		"\"connections\":{\"opened\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"lost\":%" PRIu64
		",\"goaways\":%" PRIu64 ",\"unasked\":%" PRIu64
		",\"idle_held\":%u,\"idle_lost\":%u},",
		r->opened, r->connect_failed, r->conns_lost, r->goaways, r->unasked, r->idle_held,
		r->idle_lost);
	fprintf(out, "\"body_bytes_out\":%" PRIu64 ",\"body_bytes_in\":%" PRIu64 ",\"gave_up\":%s,",
		r->content_out, r->content_in, r->gave_up ? "true" : "false");
}

static void json_echo(const struct echo_result *e, FILE *out)
{
	fprintf(out,
		"\"echo\":{\"requests\":%" PRIu64 ",\"answered\":%" PRIu64 ",\"aborted\":%" PRIu64
		",\"altered\":%" PRIu64 ",\"doubled\":%" PRIu64 ",\"spoiled\":%" PRIu64
		",\"no_memory\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"refused\":%" PRIu64 "},",
		e->requests, e->answered, e->aborted, e->altered, e->doubled, e->faults,
		e->no_memory, e->accepted, e->refused);
}

void report_print_json(const struct report *r, FILE *out)
{
	putc('{', out);
	if (r->client)
		json_client(r->client, r->rate, out);
	if (r->echo)
		json_echo(r->echo, out);
	fprintf(out,
		"\"busy\":{\"client\":%.4f,\"echo\":%.4f,\"cpu\":%.4f},\"rx_missed\":%" PRIu64
		",\"tx_dropped\":%" PRIu64 ",\"good\":%s}\n",
		share(&r->usage, 0), share(&r->usage, 1), cpu_share(&r->usage), r->rx_missed,
		r->tx_dropped, report_is_good(r) ? "true" : "false");
}

bool report_is_good(const struct report *r)
{
	if (r->client && !client_result_is_good(r->client))
		return false;
	return !r->echo || (r->echo->altered == 0 && r->echo->doubled == 0);
}
