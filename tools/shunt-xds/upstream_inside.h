// SPDX-License-Identifier: Apache-2.0
// What upstream.c (subscriptions at the server) and upstream_names.c (the catalog's variants of a
// name) share. Private to them.
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
	uint64_t change; // number of the change in the client's cache that last set it
};

struct name {
	struct strmap_link link;
	uint32_t type;
	struct list_link views;
	struct list_link at; // dirty or edited; in no list = the catalog is up to date
	struct shown *shown; // what the catalog has of it
	size_t n_shown;
	struct shown *next; // what the catalog will have after the change
	size_t n_next;
	// With newest_wins: the last of the client's changes applied to the catalog, while later
	// ones remain; else 0.
	uint64_t turn, next_turn;
	bool is_left; // a part remains for the next change
	bool is_full,
		is_edited; // takes several changes of the catalog; a part of it is in this one
	char text[];
};

struct view {
	struct xds_watcher watcher; // first member
	struct upstream *upstream;
	struct name *of;
	struct list_link by_name;
	struct want *want; // NULL = part of a wildcard
};

// A subscription at the server, with or without clients.
struct want {
	struct catalog_word word; // first member: the subscription's owner
	char *error_text;
	struct view view;
	struct xds_sub *sub; // counted
	uint32_t type;
	uint32_t n_users;
	size_t len; // of its bytes in a request
	struct twheel_timer grace;
	struct list_link all;
	struct list_link parts; // of a wildcard: the names received through it
};

// A name received through a wildcard.
struct part {
	struct view view; // first member
	struct list_link of_want;
};

struct upstream {
	struct catalog_source source; // first member
	struct upstream_conf conf;
	struct catalog *catalog;
	struct xds_client *client;
	struct xds_type types[CATALOG_TYPES_MAX]; // as the catalog's; "" = unused
	const struct xds_type *type_list[CATALOG_TYPES_MAX];
	struct strmap names[CATALOG_TYPES_MAX];
	size_t names_len[CATALOG_TYPES_MAX]; // bytes of names in a request
	struct list_link wants;
	struct list_link dirty, edited;
	struct twheel_timer retry;
	uint64_t n_errors; // counter; numbers errors
	struct upstream_counts counts;
};

// Its views have changed.
void upstream_mark_dirty(struct upstream *, struct name *);
// Finds or makes it; NULL = out of memory.
struct name *upstream_name_get(struct upstream *, uint32_t type, const char *text);
void upstream_name_free(struct upstream *, struct name *); // it must have no views
void upstream_part_free(struct part *);
