// SPDX-License-Identifier: Apache-2.0
// Ethernet frames with IPv4 or IPv6 in them: what a faultlink must read and change. Own checksums,
// since those of dataplane/ are what is tested through it.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX 9216

// How many bytes of IP there are behind the Ethernet header, without padding. 0 = no IP packet, a
// malformed one, or one of IPv6 that looks for neighbors (ICMPv6's 133 to 137) or goes to a group
// (RFC 3810 reports), which, like ARP, is not to be faulted by chance: a lost question costs a
// second, and a kernel sends them at times of its own, so that no packet's number may depend on
// them.
size_t frame_ip_len(const uint8_t *frame, size_t len);

// Flips the bit of this number behind the Ethernet header; frame_ip_len() > 0.
void frame_corrupt(uint8_t *frame, size_t len, uint64_t where);

// Flips the bit of this number behind the IP header and makes the checksum of TCP or ICMP right
// again. False = neither of them, or a fragment: nothing is changed.
bool frame_forge(uint8_t *frame, size_t len, uint64_t where);

// RFC 1191 4 (code 4 of destination unreachable), RFC 4443 3.2 (packet too big): writes to ret,
// which has FRAME_MAX bytes, what a router would answer, in the name of the packet's destination.
// Returns its length, 0 = there is nothing to say: no IP, or itself an ICMP error.
size_t frame_too_big(const uint8_t *frame, size_t len, uint16_t mtu, uint8_t *ret);
