// SPDX-License-Identifier: Apache-2.0
// A client with two toy resource types against a scripted server, in virtual time. A toy resource
// is the text "name=content"; content that starts with "BAD" is refused. "cluster" lists all of its
// type in each response (as CDS), "endpoints" does not (as EDS).
// Thread: the test's.
#pragma once

#include "ctrl/xds/client.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/support/fake_ads.h"

#include <stdbool.h>

#define CLUSTER_URL "type.googleapis.com/toy.Cluster"
#define ENDPOINTS_URL "type.googleapis.com/toy.Endpoints"
#define S NS_PER_SECOND

extern const struct xds_type toy_cluster, toy_endpoints;
extern unsigned n_toys_decoded; // ever
// For federations alone: endpoints that mean something else when another server sends them.
extern const struct xds_type toy_origin;
#define ORIGIN_URL "type.googleapis.com/toy.Origin"

struct fixture {
	struct fake_ads server;
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	struct rand rand;
	uint64_t now_ns;
	struct xds_client *client;
	unsigned n_logged;
	char log_line[256]; // the last one
	unsigned n_noted; // what is no trouble
	char note_line[256]; // the last of these
};

// features: the contents of the JSON array server_features, "" = none.
void fixture_init(struct fixture *, const char *features);
void fixture_init_delta(struct fixture *, const char *features); // speaks incremental ADS
// params: the contents of the JSON object dynamic_parameters (xRFC TP2).
void fixture_init_params(struct fixture *, const struct xds_protocol *, const char *params);
// Drops what was deleted (gRFC A53).
void fixture_init_dropping(struct fixture *, const struct xds_protocol *, const char *features);
// An earlier run kept this.
void fixture_init_kept(struct fixture *, const struct xds_protocol *, const char *features,
	const struct xds_state *);
void fixture_fini(struct fixture *);
void pass_time(struct fixture *, uint64_t ns);

// A watcher that writes down what it hears: "=content", "!<code>" for errors, "~<code>" for ambient
// ones, "~ok" for their end; separated by blanks.
struct ear {
	struct xds_watcher watcher; // first member
	char heard[256];
	char text[512]; // of the last error
};
void prepare_ear(struct ear *); // to be watched with by hand
void listen_to(struct fixture *, const struct xds_type *, const char *name, struct ear *);
// What was heard since the last call.
const char *heard(struct ear *);

// Responds with up to 8 texts, NULL ends the list.
void respond(struct fixture *, const struct xds_type *, const char *version, const char *nonce, ...)
	__attribute__((sentinel));

// CHECKs the next request: names in order, separated by blanks ("" = none).
void expect_request(struct fixture *, const struct xds_type *, const char *names,
	const char *version, const char *nonce);
// The same with an error_detail whose text contains `why`.
void expect_nack(struct fixture *, const struct xds_type *, const char *names, const char *version,
	const char *nonce, const char *why);
void expect_silence(struct fixture *);

// The incremental ones. Resources are "name=content@version" and, removed, "-name".
void respond_delta(struct fixture *, const struct xds_type *, const char *nonce, ...)
	__attribute__((sentinel));
// changes: "+a -b" in order of the lists, then initial versions as "a@v1" in order of names.
void expect_delta(
	struct fixture *, const struct xds_type *, const char *changes, const char *nonce);
void expect_delta_nack(struct fixture *, const struct xds_type *, const char *changes,
	const char *nonce, const char *why);

const char *state_of(struct fixture *, const char *name); // "ACKED v1"; "" = not watched
