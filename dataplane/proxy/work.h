// SPDX-License-Identifier: Apache-2.0
// A fair part of each turn for every source (TH-84). What comes in is served as it comes until a
// turn's allowance for it is used up. From then on each source has a quantum in that turn, so that
// who sends little never waits for who sends much. What goes beyond is left with TCP, and its
// source stands in line: at the end of each turn those in line are served by deficit round robin
// (Shreedhar and Varghese, 1995), a quantum each, until they have had the line's part together.
// Whoever stands in line is served nowhere else, so that its input keeps its order; only handshakes
// begin beside the line.
// Thread: the owning worker.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct proxy;
struct proxy_client;
struct proxy_source;
struct proxy_work;

void proxy_work_init(struct proxy_work *);
// What the source may have then: before its input is served, that becomes w->allowance, and what is
// left of it is s->allowance again afterwards.
int64_t proxy_work_grant(const struct proxy_work *, struct proxy_source *);
// Some of the client's input is left. False = not for want of an allowance.
bool proxy_work_put_off(struct proxy_client *);
// The client waits no more.
void proxy_work_forget(struct proxy_client *);
// Serves the line, which is not empty, as far as the turn goes, and asks for another turn for what
// is left.
__attribute__((cold)) void proxy_work_serve_line(struct proxy *);
