// SPDX-License-Identifier: Apache-2.0
// How a script writes a segment down, after tcpdump and packetdrill:
//
//     S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS val 0 ecr 7,wscale 7,sack 10:20 30:40>
//     [ect0] P. 1:101(100) ack 1
//
// What its packet has of ECN ([noecn], [ect0], [ce]); flags (S F R P E W, a dot for ACK); sequence
// numbers relative to those of both SYNs. What is left out is not compared, P included.
// Thread: the test's.
#pragma once

#include "dataplane/tcp/opt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum notation_ecn { NOTATION_ANY, NOTATION_NOECN, NOTATION_ECT0, NOTATION_CE };

struct notation {
	enum notation_ecn ecn;
	uint8_t flags;
	bool has_ack, has_wnd, has_opts;
	bool any_ts_val; // "TS val *"
	uint32_t seq, len, ack, wnd;
	struct tcp_opts opts;
};

// Returns NULL, or what is wrong with the text.
const char *notation_parse(const char *text, struct notation *ret);
// Writes all that it has; the text is cut at size.
void notation_print(const struct notation *, char *ret, size_t size);
// True if the segment is as the script says.
bool notation_matches(const struct notation *script, const struct notation *segment);
