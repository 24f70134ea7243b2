// SPDX-License-Identifier: Apache-2.0
// What a reload changes while the worker runs (lb/pick/terms.h): the proxy's copy, and what is made
// of it. Nothing of it is allocated, or looks at each connection.
// Thread: the owning worker.
#pragma once

struct h2_conf;
struct lb_terms;
struct proxy;

// Those of proxy_conf; puts into the configuration of HTTP/2 what it sees to.
void proxy_terms_begin(struct proxy *, struct h2_conf *);
// Those of the turn's snapshot, if they are other ones.
void proxy_terms_follow(struct proxy *, const struct lb_terms *);
