// SPDX-License-Identifier: Apache-2.0
// The counters of a context. Groups are in the order of the enum that indexes them.
// Thread: written by one, read by any.
#pragma once

#include "lb/base/counter.h"

// Frames by enum h2_frame_type, unknown last.
#define H2_COUNT_FRAMES(X, dir)                                                                    \
	X(dir##_data)                                                                              \
	X(dir##_headers)                                                                           \
	X(dir##_priority)                                                                          \
	X(dir##_rst_stream)                                                                        \
	X(dir##_settings)                                                                          \
	X(dir##_push_promise)                                                                      \
	X(dir##_ping)                                                                              \
	X(dir##_goaway)                                                                            \
	X(dir##_window_update)                                                                     \
	X(dir##_continuation)                                                                      \
	X(dir##_unknown)

// clang-format off
#define H2_COUNTERS(X)                                                                             \
	H2_COUNT_FRAMES(X, frames_in)                                                              \
	H2_COUNT_FRAMES(X, frames_out)                                                             \
	X(header_blocks_in)                                                                        \
	X(header_blocks_out)                                                                       \
	/* By enum h2_malformed. */                                                                \
	X(well_formed)                                                                             \
	X(malformed_name)                                                                          \
	X(malformed_value)                                                                         \
	X(malformed_pseudo)                                                                        \
	X(malformed_method)                                                                        \
	X(malformed_scheme)                                                                        \
	X(malformed_authority)                                                                     \
	X(malformed_status)                                                                        \
	X(malformed_connection_field)                                                              \
	X(malformed_te)                                                                            \
	X(malformed_content_length)                                                                \
	X(malformed_sequence)                                                                      \
	X(malformed_too_large)                                                                     \
	X(requests_bad_400)                                                                        \
	X(requests_too_large_431)                                                                  \
	X(streams_accepted)                                                                        \
	X(streams_opened)                                                                          \
	X(streams_refused_limit)                                                                   \
	X(streams_refused_drain)                                                                   \
	X(streams_refused_memory)                                                                  \
	X(stream_errors)                                                                           \
	/* Connections that begin with something else than HTTP/2; http1: all but TLS. */          \
	X(prefaces_http1)                                                                          \
	X(prefaces_tls)                                                                            \
	X(conn_errors)                                                                             \
	X(ignored_closed_stream)                                                                   \
	X(ping_ack_unasked)                                                                        \
	X(settings_ack_unasked)                                                                    \
	X(no_memory)                                                                               \
	/* By enum h2_abuse. */                                                                    \
	X(abuse_resets)                                                                            \
	X(abuse_answers)                                                                           \
	X(abuse_settings_entries)                                                                  \
	X(abuse_settings)                                                                          \
	X(abuse_continuation)                                                                      \
	X(abuse_header_bomb)                                                                       \
	X(abuse_empty_frames)                                                                      \
	X(abuse_priority)                                                                          \
	X(abuse_window_update)                                                                     \
	X(abuse_informational)                                                                     \
	X(abuse_shared_resets)                                                                     \
	X(abuse_header_bytes)                                                                      \
	X(abuse_shared_header_bytes)                                                               \
	X(abuse_ignored_frames)
// clang-format on

#define X(name) H2_C_##name,
enum h2_counter { H2_COUNTERS(X) H2_N_COUNTERS };
#undef X
