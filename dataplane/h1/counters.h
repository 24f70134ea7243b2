// SPDX-License-Identifier: Apache-2.0
// The counters of a context. The group of causes is in the order of enum h1_malformed.
// Thread: written by one, read by any.
#pragma once

#include "lb/base/counter.h"

// clang-format off
#define H1_COUNTERS(X)                                                                             \
	X(requests)                                                                                \
	X(requests_http10)                                                                         \
	X(requests_chunked)                                                                        \
	X(sections_gathered)                                                                       \
	X(upgrades_ignored)                                                                        \
	X(answers)                                                                                 \
	X(answers_chunked)                                                                         \
	X(answers_until_close)                                                                     \
	X(answers_cut)                                                                             \
	/* By enum h1_malformed. */                                                                \
	X(well_formed)                                                                             \
	X(malformed_line_end)                                                                      \
	X(malformed_request_line)                                                                  \
	X(malformed_target)                                                                        \
	X(malformed_name)                                                                          \
	X(malformed_value)                                                                         \
	X(malformed_host)                                                                          \
	X(malformed_content_length)                                                                \
	X(malformed_transfer_encoding)                                                             \
	X(malformed_connection)                                                                    \
	X(malformed_chunk)                                                                         \
	X(malformed_trailer)                                                                       \
	X(target_too_long_414)                                                                     \
	X(grpc_415)                                                                                \
	X(expectation_unknown_417)                                                                 \
	X(too_large_431)                                                                           \
	X(coding_unknown_501)                                                                      \
	X(connect_501)                                                                             \
	X(no_memory_503)                                                                           \
	X(version_505)
// clang-format on

#define X(name) H1_C_##name,
enum h1_counter { H1_COUNTERS(X) H1_N_COUNTERS };
#undef X
