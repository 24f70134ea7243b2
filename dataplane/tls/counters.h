// SPDX-License-Identifier: Apache-2.0
// The counters of a worker's records.
// Thread: written by one, read by any.
#pragma once

#include "lb/base/counter.h"

// clang-format off
#define TLS_COUNTERS(X)                                                                            \
	X(records_in)                                                                              \
	X(records_out)                                                                             \
	X(key_updates_in)                                                                          \
	X(key_updates_out)                                                                         \
	X(tickets_in)                                                                              \
	X(closes_in) /* close_notify */                                                            \
	X(alerts_in) /* fatal ones */                                                              \
	/* Connections that we failed, by enum tls_cause. */                                       \
	X(bad_tags)                                                                                \
	X(oversize_records)                                                                        \
	X(unexpected_records)                                                                      \
	X(unexpected_messages)                                                                     \
	X(wrong_versions)                                                                          \
	X(bad_lengths)                                                                             \
	X(bad_values)                                                                              \
	X(renegotiations)                                                                          \
	X(empty_floods)                                                                            \
	X(message_floods)                                                                          \
	X(warning_floods)                                                                          \
	X(late_records)                                                                            \
	X(sequence_ends)                                                                           \
	/* The stream ended without close_notify. */                                               \
	X(truncations)                                                                             \
	/* A part of a record found no chunk, and stayed with TCP. */                              \
	X(waits_no_chunk)                                                                          \
	X(keys_expanded)
// clang-format on

#define X(name) TLS_C_##name,
enum tls_counter { TLS_COUNTERS(X) TLS_N_COUNTERS };
#undef X
