// SPDX-License-Identifier: Apache-2.0
// `listeners: wildcard` (A36-64 to A36-70): all socket Listeners that the xDS server has, of which
// those with an address in `vips` are served at it. Each has its filter chains (ctrl/chains.h), and
// each of its addresses a place in the snapshot's table (lb/vips.h).
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct chain_places;
struct frontends_conf;
struct ip_port;
struct listeners;
struct show_listener;

// conf and places are borrowed and outlive them. frontend: whose name and settings their clients
// have. NULL = out of memory.
struct listeners *listeners_new(
	const struct frontends_conf *, struct chain_places *, uint32_t frontend);
void listeners_free(struct listeners *); // NULL is fine
void listeners_reresolve(struct listeners *); // as frontends_reresolve()

// Whose the address is; NULL = no Listener's.
const char *listeners_at(const struct listeners *, const struct ip_port *);
// Frontends have left addresses, maybe: who was refused for it may be served now.
void listeners_have_room(struct listeners *);
// Other vips are in force: the same, and who was served may be refused.
void listeners_look_again(struct listeners *);

// As frontends_waiting() and frontends_refused(), of the first that has something to say.
const char *listeners_waiting(const struct listeners *);
const char *listeners_refused(const struct listeners *);

// For display.
void listeners_each(
	const struct listeners *, void (*fn)(void *ctx, const struct show_listener *), void *ctx);
