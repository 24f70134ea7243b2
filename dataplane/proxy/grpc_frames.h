// SPDX-License-Identifier: Apache-2.0
// Finds where the messages of a gRPC body end (gRPC over HTTP/2, "Length-Prefixed-Message": a
// byte of flags, four bytes of length, the message). Bodies pass through unchanged (HX-12); this
// only says whether trailers may follow now without cutting a message.
// Thread: the owning worker. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct proxy_frames { // all zero = before the first message
	uint32_t left; // bytes left of the current message
	uint32_t length; // the prefix's length field as far as read
	uint8_t n_prefix; // bytes read of the prefix
};

#define PROXY_FRAME_PREFIX 5

static inline void proxy_frames_feed(struct proxy_frames *f, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	while (p < end) {
		if (f->left) {
			uint32_t n = (size_t)(end - p) < f->left ? (uint32_t)(end - p) : f->left;
			f->left -= n;
			p += n;
			continue;
		}
		if (!f->n_prefix && end - p >= PROXY_FRAME_PREFIX) {
			memcpy(&f->left, p + 1, sizeof(f->left));
			f->left = __builtin_bswap32(f->left);
			p += PROXY_FRAME_PREFIX;
			continue;
		}
		f->length = f->n_prefix ? f->length << 8 | *p : 0;
		p++;
		if (++f->n_prefix == PROXY_FRAME_PREFIX) {
			f->left = f->length;
			f->n_prefix = 0;
		}
	}
}

static inline bool proxy_frames_whole(const struct proxy_frames *f)
{
	return !f->left && !f->n_prefix;
}
