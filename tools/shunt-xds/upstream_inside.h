// SPDX-License-Identifier: Apache-2.0
// What upstream.c (subscriptions at the server) and upstream_names.c (what the catalog has of a
// name) share. Nobody else's.
// Thread: one owner.
#pragma once

#include "ctrl/base/strmap.h"
#include "ctrl/xds/client.h"
#include "lb/base/list.h"
#include "lb/base/twheel.h"
#include "tools/shunt-xds/upstream.h"

#include <stddef.h>

struct shown {
	struct resource *resource; // counted
	uint64_t change; // that set it last, in the client's cache
};

struct name {
	struct strmap_link link;
	uint32_t type;
	struct list_link views;
	struct list_link at; // dirty or edited; nowhere = the catalog has what the views see
	struct shown *shown; // what the catalog has of it
	size_t n_shown;
	struct shown *next; // what it has when the change takes effect
	size_t n_next;
	// Where the newest wins: up to which of the client's changes the catalog has been brought,
	// while later ones are left; else 0.
	uint64_t turn, next_turn;
	bool is_left; // something, for the next change
	bool is_full,
		is_edited; // more than one change of the catalog takes; some of it is in this one
	char text[];
};

struct view {
	struct xds_watcher watcher; // first member
	struct upstream *upstream;
	struct name *of;
	struct list_link by_name;
	struct want *want; // whose it is; NULL = it is a part of a wildcard
};

// A subscription at the server, for clients or for none any more.
struct want {
	struct catalog_word word; // first member: the subscription's owner
	char *error_text;
	struct view view;
	struct xds_sub *sub; // counted
	uint32_t type;
	uint32_t n_users;
	size_t len; // in a request
	struct twheel_timer grace;
	struct list_link all;
	struct list_link parts; // of a wildcard
};

// A name that has come by a wildcard.
struct part {
	struct view view; // first member
	struct list_link of_want;
};

struct upstream {
	struct catalog_source source; // first member
	struct upstream_conf conf;
	struct catalog *catalog;
	struct xds_client *client;
	struct xds_type types[CATALOG_TYPES_MAX]; // as the catalog's; "" = not used yet
	const struct xds_type *type_list[CATALOG_TYPES_MAX];
	struct strmap names[CATALOG_TYPES_MAX];
	size_t names_len[CATALOG_TYPES_MAX]; // what a request may have to list
	struct list_link wants;
	struct list_link dirty, edited;
	struct twheel_timer retry;
	uint64_t n_errors; // ever, to number them
	struct upstream_counts counts;
};

// Its views have heard something, or are others.
void upstream_mark_dirty(struct upstream *, struct name *);
// Found or made; NULL = out of memory.
struct name *upstream_name_get(struct upstream *, uint32_t type, const char *text);
void upstream_name_free(struct upstream *, struct name *); // it has no views
void upstream_part_free(struct part *);
