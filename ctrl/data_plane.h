// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml means for the data plane.
// Thread: control.
#pragma once

#include "ctrl/conf/config.h"
#include "dataplane/port.h"
#include "dataplane/worker.h"

// Sets what the configuration says of every worker; the caller has set what is the worker's own.
// ports: those of the configuration, borrowed.
void data_plane_describe_worker(
	const struct config *, struct port *const *ports, struct worker_conf *ret);
// The texts are borrowed from the configuration.
void data_plane_describe_frontend(const struct config_frontend *, struct proxy_frontend *ret);
