// SPDX-License-Identifier: Apache-2.0
// The access logs that a frontend's listener asks for (OPS-40): the set that workers have of those
// that can be. What is refused is told in the daemon's log once, and what only found no room is
// asked for again, since logs that nobody wants any more take a while to go (OPS-47).
// Thread: ctrl.
#pragma once

struct assembled_frontend;
struct lb_access_set;
struct res_listener;

// For a listener that is about to serve. Counted; NULL = it has none that can be.
struct lb_access_set *frontend_logs_want(struct assembled_frontend *, const struct res_listener *);
// Asks again, when it is time, for what found no room.
void frontend_logs_retry(struct assembled_frontend *);
// Nothing serves any more.
void frontend_logs_drop(struct assembled_frontend *);
