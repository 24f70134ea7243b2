// SPDX-License-Identifier: Apache-2.0
// A backend address that outlives snapshots: stable object, small dense id. Workers index their
// connection pools by the id; pickers point to the object.
// Thread: created, counted and freed by ctrl; workers read the constant fields.
// Lifetime: freed only after no snapshot that any worker may read holds it and every worker has
// reported LB_EVENT_RELEASED for its id (its connections are gone).
#pragma once

#include "lb/base/ip.h"

#include <stdint.h>

enum lb_state { LB_IDLE, LB_CONNECTING, LB_READY, LB_TRANSIENT_FAILURE };
const char *lb_state_name(enum lb_state); // "IDLE", "CONNECTING", …

struct lb_endpoint {
	uint32_t id; // constant
	struct ip_port addr; // constant
	char text[IP_PORT_TEXT_MAX]; // constant: "10.82.0.1:50051"
	uint32_t n_refs; // ctrl only
};

// All endpoints of the process, one per address.
struct lb_endpoint_table;
struct lb_endpoint_table *lb_endpoint_table_new(void); // NULL = no memory
void lb_endpoint_table_free(struct lb_endpoint_table *); // with all endpoints
// Finds or makes the endpoint of this address and counts one reference. NULL = no memory or
// LB_MAX_ENDPOINTS reached. *ret_new tells the caller that workers must learn of it.
struct lb_endpoint *lb_endpoint_get(
	struct lb_endpoint_table *, const struct ip_port *, bool *ret_new);
// Drops one reference. True = it was the last: tell the workers to release the id, and call
// lb_endpoint_free_released() when all have.
bool lb_endpoint_put(struct lb_endpoint_table *, struct lb_endpoint *);
// The id may be given to another address afterwards. Does nothing if it was taken up again
// meanwhile.
void lb_endpoint_free_released(struct lb_endpoint_table *, struct lb_endpoint *);
struct lb_endpoint *lb_endpoint_find(const struct lb_endpoint_table *, uint32_t id);
