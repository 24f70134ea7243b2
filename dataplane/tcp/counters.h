// SPDX-License-Identifier: Apache-2.0
// The counters of a stack. Each TCP_DROP_ value is one cause for which a segment, or a part of one,
// was dropped.
// Thread: see lb/base/counter.h.
#pragma once

// clang-format off
#define TCP_COUNTERS(X)                                                                            \
	X(segments_in)                                                                             \
	X(checksums_by_software) /* of segments_in: nobody vouched for them */                     \
	X(segments_out)                                                                            \
	X(bytes_in) /* received in order */                                                        \
	X(bytes_out) /* sent the first time */                                                     \
	X(acks_out) /* segments that carry an acknowledgement only */                              \
	X(rsts_out)                                                                                \
	X(answers_limited) /* RST, or ACK in TIME-WAIT: the source had as many as it may */        \
	X(retransmits)                                                                             \
	X(fast_recoveries)                                                                         \
	X(retransmission_timeouts)                                                                 \
	X(recoveries_undone) /* nothing was lost */                                                \
	X(timeouts_undone) /* likewise */                                                          \
	X(dsacks_in) /* the peer got something twice */                                            \
	X(reordering_widened) /* windows of reordering, by those */                                \
	X(window_probes) /* of a zero window */                                                    \
	X(tail_probes)                                                                             \
	X(keepalives)                                                                              \
	X(challenge_acks)                                                                          \
	X(no_buffer) /* reserve() had no buffer; sent later */                                     \
	X(out_of_order) /* segments stored for later */                                            \
	X(ecn_on) /* connections whose both ends know RFC 3168 */                                  \
	X(ecn_marks_in) /* segments whose packet a router marked */                                \
	X(ecn_reductions) /* of cwnd, for marks that peers echoed */                               \
	X(windows_grown) /* receive windows that were doubled */                                   \
	X(opened) /* by tcp_connect() */                                                           \
	X(accepted) /* handshakes completed for a listener */                                      \
	X(accept_refused) /* by the listener's owner */                                            \
	X(cookies_out)                                                                             \
	X(cookies_taken)                                                                           \
	X(too_big) /* paths whose smaller MTU a router told, and was believed */                   \
	X(too_big_ignored) /* such messages that say nothing new, or cannot be true */             \
	X(path_guesses) /* paths that seem to drop what is long, and nobody says so */             \
	X(path_probes) /* longer segments that were tried on such a path */                        \
	X(small_mss) /* peers that asked for less than 536 */                                      \
	X(time_wait_evicted)                                                                       \
	X(time_wait_reused)                                                                        \
	X(closed_done) /* in the order of enum tcp_close_reason */                                 \
	X(closed_reset)                                                                            \
	X(closed_refused)                                                                          \
	X(closed_timeout)                                                                          \
	X(closed_connect_timeout)                                                                  \
	X(closed_unreachable)                                                                      \
	X(aborted) /* by the owner */                                                              \
	X(let_go) /* by the owner, before the peer's FIN had come */                               \
	X(half_open_expired)                                                                       \
	X(drop_short)                                                                              \
	X(drop_offset)                                                                             \
	X(drop_checksum)                                                                           \
	X(drop_checksum_unmade) /* the pseudo-header's alone: left to hardware by the sender */    \
	X(drop_port) /* zero, or sent to itself */                                                 \
	X(drop_flags)                                                                              \
	X(drop_options)                                                                            \
	X(drop_hushed) /* SYN while the host says farewell: nobody is told anything */             \
	X(drop_no_connection) /* no connection and no listener: answered by RST */                 \
	X(drop_passed) /* likewise, and the kernel's (docs/exception-path.md) */                   \
	X(drop_stray_rst) /* RST to no connection */                                               \
	X(drop_company) /* of no connection here: another process at our ports may know it */      \
	X(drop_conns_full)                                                                         \
	X(drop_time_wait) /* anything but a new connection */                                      \
	X(drop_let_go) /* data for a connection that was let go: answered by RST */                \
	X(drop_no_timestamp) /* though agreed on (RFC 7323 3.2) */                                 \
	X(drop_old_timestamp) /* PAWS (RFC 7323 5) */                                              \
	X(drop_old) /* wholly before the window */                                                 \
	X(drop_beyond_window)                                                                      \
	X(drop_rst_sequence) /* RFC 5961 3.2 */                                                    \
	X(drop_syn) /* in a connection (RFC 5961 4.2) */                                           \
	X(drop_no_ack)                                                                             \
	X(drop_ack_old) /* RFC 5961 5.2 */                                                         \
	X(drop_ack_unsent)                                                                         \
	X(drop_syn_sent) /* no acceptable answer to our SYN */                                     \
	X(drop_out_of_order_full)                                                                  \
	X(drop_out_of_order_late) /* all that waited beyond a hole for too long */                 \
	X(drop_no_chunk)                                                                           \
	X(drop_after_fin)
// clang-format on

#define X(name) TCP_##name,
enum tcp_counter { TCP_COUNTERS(X) TCP_N_COUNTERS };
#undef X
