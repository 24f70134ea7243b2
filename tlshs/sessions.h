// SPDX-License-Identifier: Apache-2.0
// Sessions of clients, by which later handshakes with the same server need no certificate: what
// there is of them in the process, in a store of a fixed bound. Each is taken for one handshake,
// and is good only for the context that it is from, the server's address and the name that was
// asked for. They are not handed over to another process.
// Thread: any but workers.
#pragma once

#include "lb/base/counter.h"

#include <stdint.h>

#define TLSHS_MAX_SESSIONS 8192 // in all
#define TLSHS_MAX_SESSION_BYTES (16u << 20) // likewise
#define TLSHS_SESSION_S 3600 // from a full handshake on, whatever the server allows
#define TLSHS_PAUSE_S 600 // in which none is offered where a handshake with one has failed

#define TLSHS_SESSION_COUNTERS(X)                                                                  \
	X(kept)                                                                                    \
	X(offered)                                                                                 \
	X(declined) /* of those: a full handshake followed, and succeeded */                       \
	X(tickets_late) /* they came when nobody waited for them any more */                       \
	X(tickets_unfit) /* malformed, too long, or for no time */                                 \
	/* Sessions that were of no use: */                                                        \
	X(evicted) /* by newer ones */                                                             \
	X(dropped) /* their context has ended, or a handshake by one like them has failed */       \
	X(expired)

#define X(name) TLSHS_SESSIONS_##name,
enum tlshs_session_counter { TLSHS_SESSION_COUNTERS(X) TLSHS_N_SESSION_COUNTERS };
#undef X

struct counter_set tlshs_sessions_counters(void);
uint32_t tlshs_sessions_n(void); // at this moment
