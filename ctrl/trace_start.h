// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml means for traces: the exporter, and its way to the collector.
// Thread: ctrl.
#pragma once

#include "ctrl/trace/exporter.h"
#include "lb/base/err.h"

struct config;
struct lb_link;
struct loop;
struct rand;
struct traces;

// Starts them over the links of all workers; *ret stays NULL if shunt.yaml has none. 0, or negative
// with reterr.
[[nodiscard]] int traces_start(const struct config *, struct lb_link *const *links, struct loop *,
	struct rand *, struct traces **ret, struct lb_err *reterr);
void traces_tick(struct traces *); // every few milliseconds; NULL is fine
// The frontend has another name, which is the configuration's for life. NULL is fine.
void traces_rename(struct traces *, uint32_t frontend, const char *name);
const struct trace_exporter *traces_exporter(const struct traces *); // NULL stays NULL
// After the loop's last turn. NULL is fine.
void traces_free(struct traces *);
