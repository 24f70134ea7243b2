// SPDX-License-Identifier: Apache-2.0
// The wire format of frames (RFC 9113 4.1, 6): numbers, the 9-byte header, and the checks that need
// only the header.
// Thread: any.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define H2_FRAME_HEAD 9
#define H2_FRAME_MAX 16384 // the SETTINGS_MAX_FRAME_SIZE that we use, RFC 9113 6.5.2
#define H2_WINDOW_MAX 0x7fffffff
#define H2_WINDOW_DEFAULT 65535
#define H2_ID_MAX 0x7fffffffu

#define H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define H2_PREFACE_LEN 24

enum h2_frame_type {
	H2_DATA,
	H2_HEADERS,
	H2_PRIORITY,
	H2_RST_STREAM,
	H2_SETTINGS,
	H2_PUSH_PROMISE,
	H2_PING,
	H2_GOAWAY,
	H2_WINDOW_UPDATE,
	H2_CONTINUATION,
	H2_N_FRAME_TYPES, // larger numbers are unknown too, and ignored
};

enum h2_frame_flag {
	H2_FLAG_ACK = 0x1,
	H2_FLAG_END_STREAM = 0x1,
	H2_FLAG_END_HEADERS = 0x4,
	H2_FLAG_PADDED = 0x8,
	H2_FLAG_PRIORITY = 0x20,
};

enum h2_setting {
	H2_SETTING_HEADER_TABLE_SIZE = 1,
	H2_SETTING_ENABLE_PUSH = 2,
	H2_SETTING_MAX_CONCURRENT_STREAMS = 3,
	H2_SETTING_INITIAL_WINDOW_SIZE = 4,
	H2_SETTING_MAX_FRAME_SIZE = 5,
	H2_SETTING_MAX_HEADER_LIST_SIZE = 6,
	H2_SETTING_ENABLE_CONNECT_PROTOCOL = 8, // RFC 8441
	H2_SETTING_NO_RFC7540_PRIORITIES = 9, // RFC 9218
};

struct h2_frame {
	uint32_t length, id;
	uint8_t type, flags;
};

static inline uint32_t h2_read_u16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t h2_read_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void h2_write_u16(uint8_t *p, uint32_t x)
{
	p[0] = (uint8_t)(x >> 8);
	p[1] = (uint8_t)x;
}

static inline void h2_write_u32(uint8_t *p, uint32_t x)
{
	x = __builtin_bswap32(x);
	memcpy(p, &x, sizeof(x));
}

static inline struct h2_frame h2_frame_unpack(const uint8_t head[H2_FRAME_HEAD])
{
	uint32_t first = h2_read_u32(head);
	return (struct h2_frame){
		.length = first >> 8,
		.type = (uint8_t)first,
		.flags = head[4],
		.id = h2_read_u32(head + 5) & H2_ID_MAX,
	};
}

static inline void h2_frame_pack(uint8_t head[H2_FRAME_HEAD], const struct h2_frame *f)
{
	h2_write_u32(head, f->length << 8 | f->type);
	head[4] = f->flags;
	h2_write_u32(head + 5, f->id);
}

// Number of bytes before the fragment or body: pad length, priority fields.
uint32_t h2_frame_prefix(const struct h2_frame *);
// Checks the rules on length and stream id that hold in every state of the connection. Returns 0 or
// an enum h2_error for the connection.
uint32_t h2_frame_check(const struct h2_frame *);
