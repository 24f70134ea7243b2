// SPDX-License-Identifier: Apache-2.0
// The status page on the metrics' port (docs/status-page.md): GET / is one document that is whole
// by itself, GET /events what it becomes, by server-sent events. Both take ?cluster=NAME. It only
// reads. What it holds for its readers is bounded: a few who follow, and for each of them one event
// at a time, which waits until it is taken.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"

struct connections;
struct event_base;
struct evhttp_request;
struct page;
struct show;
struct twheel;

#define PAGE_MAX_FOLLOWERS 8 // at a time; who comes next is told so (503)
#define PAGE_MAX_VIEWS 8 // pages that are looked at, or were within a minute

struct page_conf { // all borrowed, outlives it
	struct event_base *base;
	struct twheel *wheel;
	const struct show *show;
	struct slice slice;
};

struct page *page_new(const struct page_conf *); // NULL = out of memory
// Another process answers who comes: who follows is to come back, and finds that one.
void page_leave(struct page *);
// After the HTTP server, which ends what is under way. NULL is fine.
void page_free(struct page *);

// Answer a request for the page, and one for its events, now or later. The reader of events has the
// connections' time for an answer anew with each event that it has taken.
void page_answer(struct page *, struct evhttp_request *);
void page_follow(struct page *, struct evhttp_request *, struct connections *);
