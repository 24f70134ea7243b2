// SPDX-License-Identifier: Apache-2.0
// What the control thread is yet to hear of health checks; probe.h tells it.
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/probe_answer.h"

struct lb_probe;
struct proxy;

// It has a result or an end to tell.
void proxy_probe_list(struct proxy *, struct lb_probe *);
// The result of the check under way.
void proxy_probe_report(struct proxy *, struct lb_probe *, struct proxy_verdict);
