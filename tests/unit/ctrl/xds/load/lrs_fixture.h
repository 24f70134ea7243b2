// SPDX-License-Identifier: Apache-2.0
// Load reporting against a scripted server, in virtual time. The server's side CHECKs that one
// message is sent and one asked for at a time.
// Thread: the test's.
#pragma once

#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/load/lrs.h"
#include "envoy/service/load_stats/v3/lrs.pb-c.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"

#include <stdbool.h>

#define S NS_PER_SECOND
#define LRS_MAX_SENT 64
#define LRS_MAX_SOURCES 8

// What harvest() adds to a cluster: all but the gauge is gone after that, if it was taken.
struct source {
	struct xds_load_cluster *cluster; // NULL = free
	struct xds_load_place place;
	struct xds_load_requests requests;
	const char *category; // NULL = none dropped
	uint64_t n_dropped;
	const char *metric; // NULL = none
	uint64_t n_metric;
	double total;
};

struct lrs_fixture {
	// The server's side
	const struct xds_stream_events *events; // of the open stream
	void *stream_ctx;
	struct xds_stream *stream; // NULL = none open
	bool sending; // a message was taken and on_sent not called yet
	bool reading;
	bool ended; // by the client, who says no more
	bool refuse; // connect() fails
	unsigned n_streams, n_transports;
	Envoy__Service__LoadStats__V3__LoadStatsRequest *sent[LRS_MAX_SENT];
	unsigned n_sent, n_read;
	// The client's
	struct xds_bootstrap *bootstrap;
	struct xds_node node;
	struct twheel *wheel;
	struct rand rand;
	uint64_t now_ns;
	struct xds_lrs *lrs;
	struct source sources[LRS_MAX_SOURCES];
	unsigned n_harvests, n_logged;
	char logged[512]; // the last line
	char text[4096];
};

void lrs_init(struct lrs_fixture *);
void lrs_fini(struct lrs_fixture *);
// For what makes load reports of its own, in place of f->lrs.
struct xds_transport_factory lrs_factory(struct lrs_fixture *);
// Frees what the test has seen.
void lrs_forget(struct lrs_fixture *);
void lrs_pass_time(struct lrs_fixture *, uint64_t ns);

// The message under way has left.
void lrs_settle(struct lrs_fixture *);
// The next message that the test has not seen, "" = none: "hello", or for each cluster, in any
// order, "name/service 10s" and, each if it is there, " region/zone/sub_zone issued ok error
// in_progress" of each locality in strcmp order with " metric=n:total", " cpu=n:total" …, and
// " drops all category=n". Clusters are separated by "; ", a report without any is "nothing".
const char *lrs_sent(struct lrs_fixture *);
void lrs_close(struct lrs_fixture *, const char *why);
void lrs_say(struct lrs_fixture *, const uint8_t *bytes, size_t len);
// A response: names separated by blanks, NULL = all clusters.
void lrs_settings(struct lrs_fixture *, const char *clusters, uint64_t interval_ns);

struct xds_load_cluster *lrs_get(struct lrs_fixture *, const char *cluster, const char *service);
// A source for the locality "r/z/s" of the cluster.
struct source *lrs_source(struct lrs_fixture *, struct xds_load_cluster *);
