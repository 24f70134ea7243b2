// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml means for the data plane.
// Thread: control.
#pragma once

#include "ctrl/conf/config.h"
#include "dataplane/port.h"
#include "dataplane/worker.h"
#include "tlshs/threads.h"

// Sets what the configuration says of every worker; the caller has set what is the worker's own.
// ports: those of the configuration, borrowed.
void data_plane_describe_worker(
	const struct config *, struct port *const *ports, struct worker_conf *ret);
// Threads that shake hands for all workers, from before the first worker to behind the last. They
// are there whether anything speaks TLS or not: what does may come with any configuration. NULL =
// out of memory, or no thread is to be had.
struct tlshs_threads *data_plane_make_handshakes(const struct config *);
// The texts are borrowed from the configuration.
void data_plane_describe_frontend(const struct config_frontend *, struct proxy_frontend *ret);
