// SPDX-License-Identifier: Apache-2.0
// What workers need of a listener besides its routes: filters with its timeouts.
// frontend_logs.h has its access logs.
// Thread: ctrl.
#pragma once

struct assembled_frontend;
struct lb_filter_chain;
struct res_listener;

// Counted. NULL = out of memory.
struct lb_filter_chain *listener_parts_filters(
	const struct assembled_frontend *, const struct res_listener *);
