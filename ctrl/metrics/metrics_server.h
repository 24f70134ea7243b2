// SPDX-License-Identifier: Apache-2.0
// The metrics' HTTP port: GET /metrics in the form that Prometheus asks for, GET /ready for probes,
// and a page for people. It only reads, by GET and HEAD.
// Connections and their times, answers under way and bytes that wait for a reader or come from one
// are bounded; an answer is made in slices, one a turn of the loop (docs/decisions/slices.md).
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

#include <stdbool.h>

struct connections;
struct event_base;
struct evhttp_request;
struct metrics_server;
struct scrape_conf;

#define METRICS_MAX_CONNECTIONS 32
#define METRICS_MAX_ANSWERS 4 // under way; who asks for more is told to come again (503)

// What answers GET / and GET /events (ctrl/page/page.h).
struct metrics_page {
	void (*answer)(void *ctx, struct evhttp_request *);
	void (*follow)(void *ctx, struct evhttp_request *, struct connections *);
	void *ctx;
};

struct metrics_server_conf {
	struct event_base *base; // borrowed, like the rest
	int listener; // taken, on failure too (ctrl/listen_port.h)
	const struct scrape_conf *scrape;
	const struct metrics_page *page; // NULL = there is none
	// It is reached from this host alone: a browser that asks for another name than localhost
	// has been led here by that name's owner, and is told nothing (OPS-175).
	bool is_local;
	struct slice slice; // its clock is the connections', too: not NULL
};

// NULL with reterr: out of memory.
struct metrics_server *metrics_server_new(
	const struct metrics_server_conf *, struct lb_err *reterr);
void metrics_server_begin(struct metrics_server *); // accepts from now on
int metrics_server_listener(const struct metrics_server *); // borrowed; -1 = it has left
// Another process has the listener: nobody is accepted, and who is here goes, once answered.
void metrics_server_leave(struct metrics_server *);
// Cuts what is under way. NULL is fine.
void metrics_server_free(struct metrics_server *);
