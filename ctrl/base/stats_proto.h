// SPDX-License-Identifier: Apache-2.0
// The protocol of the stats socket (docs/stats.md): a command is one line; its answer ends with an
// empty line; the answer to a failed command starts with STATS_ERROR. A client closes its sending
// side when it is done.
// Thread: any.
#pragma once

#define STATS_DEFAULT_SOCKET "/run/shunt/stats.sock"
#define STATS_MAX_COMMAND 4096
#define STATS_HUMAN "human" // before a command: numbers with units, where the answer is text
#define STATS_ERROR "error: "
// Instead of the rest of an answer, before the server closes: the connection's place is another's.
#define STATS_CUT "all 32 places are taken, and a newcomer has this one"
#define STATS_SCHEMA_VERSION 1
