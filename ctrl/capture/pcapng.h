// SPDX-License-Identifier: Apache-2.0
// Blocks of a pcapng file (draft-ietf-opsawg-pcapng), in the machine's byte order, each into memory
// of the caller. Each function returns the block's length.
// Thread: any; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_TEXT_MAX 512 // bytes of a text; longer ones are cut
#define PCAPNG_BLOCK_MAX 2048 // of a block without a packet
#define PCAPNG_PACKET_MORE 640 // bytes of a packet's block beside those of the packet

// 4.1: what begins a file. The texts may be "".
size_t pcapng_section(uint8_t *to, const char *application, const char *comment);

struct pcapng_interface {
	const char *name, *description;
	const uint8_t *mac; // 6 bytes
	uint32_t snaplen;
};
// 4.2: Ethernet, times in nanoseconds. Packets name it by its place among these.
size_t pcapng_interface(uint8_t *to, const struct pcapng_interface *);

enum pcapng_direction { PCAPNG_IN = 1, PCAPNG_OUT = 2 };
struct pcapng_packet {
	uint32_t interface;
	uint32_t queue;
	enum pcapng_direction direction;
	uint64_t at_ns; // since 1970
	const uint8_t *bytes;
	uint32_t kept; // of these
	uint32_t len; // of the packet
	uint32_t n_lost; // not captured since the one before
	const char *comment; // "" = none
};
// 4.3. At most kept + PCAPNG_PACKET_MORE bytes.
size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *);

#define PCAPNG_SECRETS_MORE 32 // bytes of a block of secrets beside these
// 4.7: lines of a TLS key log (RFC 9850), for the packets behind. At most len + PCAPNG_SECRETS_MORE
// bytes.
size_t pcapng_secrets(uint8_t *to, const uint8_t *lines, size_t len);

bool pcapng_is_packet(const uint8_t *block);

struct pcapng_statistics {
	uint32_t interface;
	uint64_t start_ns, end_ns; // since 1970
	uint64_t n_received, n_dropped; // frames that were wanted; of them, those that are lost
};
// 4.6
size_t pcapng_statistics(uint8_t *to, const struct pcapng_statistics *);
