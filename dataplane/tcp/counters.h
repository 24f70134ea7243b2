// SPDX-License-Identifier: Apache-2.0
// The counters of a stack. Each TCP_DROP_ value is one cause for which a segment, or a part of one,
// was dropped.
// Thread: see lb/base/counter.h.
#pragma once

enum tcp_counter {
	TCP_SEGS_IN,
	TCP_SEGS_OUT,
	TCP_BYTES_IN, // received in order
	TCP_BYTES_OUT, // sent the first time
	TCP_ACKS_OUT, // segments that carry an acknowledgement only
	TCP_RSTS_OUT,
	TCP_RETRANSMITS,
	TCP_FAST_RECOVERIES,
	TCP_TIMEOUTS,
	TCP_PROBES, // of a zero window
	TCP_TAIL_PROBES,
	TCP_KEEPALIVES,
	TCP_CHALLENGE_ACKS,
	TCP_NO_BUFFER, // reserve() had no buffer; sent later
	TCP_OUT_OF_ORDER, // segments stored for later
	TCP_OPENED, // by tcp_connect()
	TCP_ACCEPTED, // handshakes completed for a listener
	TCP_ACCEPT_REFUSED, // by the listener's owner
	TCP_COOKIES_OUT,
	TCP_COOKIES_TAKEN,
	TCP_SMALL_MSS, // peers that offered less than 536
	TCP_TIME_WAIT_EVICTED,
	TCP_TIME_WAIT_REUSED,
	TCP_CLOSED_DONE, // in the order of enum tcp_close_reason
	TCP_CLOSED_RESET,
	TCP_CLOSED_REFUSED,
	TCP_CLOSED_TIMEOUT,
	TCP_CLOSED_CONNECT_TIMEOUT,
	TCP_CLOSED_UNREACHABLE,
	TCP_ABORTED, // by the owner
	TCP_HALF_OPEN_EXPIRED,
	TCP_DROP_SHORT,
	TCP_DROP_OFFSET,
	TCP_DROP_CHECKSUM,
	TCP_DROP_PORT, // zero, or sent to itself
	TCP_DROP_FLAGS,
	TCP_DROP_OPTIONS,
	TCP_DROP_NO_CONNECTION, // no connection and no listener: answered by RST
	TCP_DROP_STRAY_RST, // RST to no connection
	TCP_DROP_CONNS_FULL,
	TCP_DROP_TIME_WAIT, // anything but a new connection
	TCP_DROP_NO_TIMESTAMP, // though agreed on (RFC 7323 3.2)
	TCP_DROP_OLD_TIMESTAMP, // PAWS (RFC 7323 5)
	TCP_DROP_OLD, // wholly before the window
	TCP_DROP_BEYOND_WINDOW,
	TCP_DROP_RST_SEQUENCE, // RFC 5961 3.2
	TCP_DROP_SYN, // in a connection (RFC 5961 4.2)
	TCP_DROP_NO_ACK,
	TCP_DROP_ACK_OLD, // RFC 5961 5.2
	TCP_DROP_ACK_UNSENT,
	TCP_DROP_SYN_SENT, // no acceptable answer to our SYN
	TCP_DROP_OUT_OF_ORDER_FULL,
	TCP_DROP_NO_CHUNK,
	TCP_DROP_AFTER_FIN,
	TCP_N_COUNTERS,
};

extern const char *const tcp_counter_names[TCP_N_COUNTERS];
