// SPDX-License-Identifier: Apache-2.0
// A running configuration of frontends, and reloads of it. Certificates, memory and what routes
// become are what a test says.
// Thread: the test's.
#pragma once

#include "tests/unit/ctrl/frontends_world.h"

#include <stdbool.h>
#include <stdint.h>

#define HEAD                                                                                       \
	"eal: [--in-memory]\nworkers: [0]\nlistener_drain_s: 5\nports:\n"                          \
	"  - {device: net_a, addresses: [10.81.0.10/24]}\n"
#define FRONTENDS HEAD "frontends:\n"
#define WEB "  - {name: web, address: 10.81.0.10, port: 80, target: web}\n"
#define API "  - {name: api, address: 10.81.0.10, port: 81, target: web}\n"
#define OWN "  - {name: own, address: 10.81.0.10, port: 82, listener: sock}\n"
#define VIPS "vips: [{prefix: 10.9.0.0/24}]\n"
#define TLS_ID 7 // of certificates, with fake.has_tls

extern struct reload_fake {
	bool has_tls, tls_is_new;
	const char *tls_error;
	unsigned n_lacking; // sources that are not made, and frontends that do not start
	unsigned n_freed_amid_use; // sources that were their frontend's until they were gone
	bool holds_routes; // they are being compiled
	const char *routes_error; // they are refused; "" = they are not
} fake;

// shunt.yaml's text; the server's features as in deps_init().
void set_up(struct world *, const char *text, const char *features);
// web → rc → blue, all of it serves.
void set_up_web_of(struct world *, const char *text, const char *features);
void set_up_web(struct world *, const char *text);
void tear_down(struct world *);

// A reload to this text, and a while.
void again(struct world *, const char *text);
void assert_changed(const struct world *, const char *fields); // by the last one, at once or later
void assert_refused(struct world *, const char *text, const char *error); // with this in it

// Turns that take real time, as the end of a snapshot does. False = it is not so in ten seconds.
bool passes_until(struct world *, bool (*is_so)(struct world *, const void *), const void *what);

// What the server has been told to hold is asked for and said.
void settle(struct world *);
void hold_api_listener(struct world *, const char *name, const char *routes);
void hold_socket(struct world *, const char *name, const char *ip, unsigned port);
// With more of JSON: ",'listenerFilters':[]".
void hold_socket_with(
	struct world *, const char *name, const char *ip, unsigned port, const char *more);
void hold_other(struct world *); // all that the target "other" needs: rc2 → green

const struct lb_frontend *row(const struct world *, uint32_t); // in the published snapshot
