// SPDX-License-Identifier: Apache-2.0
// What one client has of one endpoint whose connections begin with a PROXY header: connections that
// are nobody else's, and its requests that wait for them (PP-13). They end when the client has
// gone, when they were idle, or when others need the place. How many there may be is fixed at
// start, and from half of that on a source gets its share: what it asks for beyond that takes the
// place of what it has idle (PP-19).
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/backend.h"
#include "lb/base/list.h"
#include "lb/base/pool.h"
#include "lb/base/twheel.h"
#include "lb/pick/cause.h"

#include <stdint.h>
#include <sys/queue.h>

struct proxy;
struct proxy_client;

struct proxy_client_backend {
	struct proxy_backend backend; // first
	struct proxy_client_backend *next; // in its bucket
	struct proxy_client *client; // NULL = it is given up
	LIST_ENTRY(proxy_client_backend) mine; // in the client's list, while there is one
	struct list_link used; // in proxy_client_backends.used, likewise
	struct list_link of_source; // in the client's source's backends, likewise
	struct twheel_timer rest; // looks whether it is still of use, likewise
};

struct proxy_client_backends { // of a worker
	struct pool pool;
	struct proxy_client_backend **buckets; // owned; [mask + 1]
	uint32_t mask;
	struct list_link used; // the longest unused first
	uint32_t n_conns; // connections of all of them; backend.c counts
};

// For one in so many of a worker's connections there is a place: half of the quarter that clients
// leave to backends. A place has one connection, and more only while all together have no more
// connections than there are places.
#define PROXY_CLIENT_BACKENDS_PART 8
#define PROXY_CLIENT_BACKENDS_MIN 4

// 0 or -ENOMEM; call fini() in either case.
[[nodiscard]] int proxy_client_backends_init(struct proxy_client_backends *, uint32_t max_conns);
void proxy_client_backends_fini(struct proxy_client_backends *); // all zero is fine

// What the client has of the endpoint, made if it has nothing yet. NULL = *ret_why says why it may
// not, which is counted.
struct proxy_backend *proxy_client_backend_find(
	struct proxy_backend *endpoints, struct proxy_client *, enum lb_cause *ret_why);
// proxy_attempt_events.on_rest: without a connection it ends some time after that.
void proxy_client_backend_rests(struct proxy_backend *);
// proxy_attempt_events.on_over.
void proxy_client_backend_free(struct proxy_backend *);
// The client is going: none of them gets another request.
void proxy_client_backends_leave(struct proxy_client *);
