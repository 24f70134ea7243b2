// SPDX-License-Identifier: Apache-2.0
// Clusters that served and now fail: the beginning and the end of each such outage is a line of the
// log (OPS-274). What a cluster does before it served for the first time is its start, and none.
// Bounded in lines and memory: a cluster that changes faster than it may be told of is told of as
// it is then, and what many clusters do at once is told of one after the other.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct lb_cluster;
struct outages;

struct outages *outages_new(void); // NULL = out of memory
void outages_free(struct outages *); // NULL is fine
// A new state of the cluster with this object's id, of which it takes its own reference if a line
// is due.
void outages_note(struct outages *, struct lb_cluster *);
// There is no such cluster any more; its id may be another's next.
void outages_forget(struct outages *, uint32_t id);
// Writes the lines that are due and have room. why says, of an object that fails, what its requests
// hear; "" = unknown. Call every turn.
void outages_tell(struct outages *, uint64_t now_ns,
	const char *(*why)(const void *ctx, const struct lb_cluster *), const void *ctx);
