// SPDX-License-Identifier: Apache-2.0
// How the stats socket speaks (docs/stats.md): a command is one line; its answer ends with an empty
// line; a failed command's answer starts with STATS_ERROR. A client that is done half-closes.
// Thread: any.
#pragma once

#define STATS_DEFAULT_SOCKET "/run/shunt/stats.sock"
#define STATS_MAX_COMMAND 4096
#define STATS_ERROR "error: "
#define STATS_SCHEMA_VERSION 1
