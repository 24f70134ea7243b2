// SPDX-License-Identifier: Apache-2.0
// HPACK (RFC 7541) of one connection: nghttp2's coder on memory of ours, made when first needed.
// Both tables stay at 4096 bytes. Any failure here leaves the tables unlike the peer's: the
// connection is lost.
// Thread: one owner.
#pragma once

#include "dataplane/h2/hpack_mem.h"

#include <nghttp2/nghttp2.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPACK_TABLE_SIZE 4096 // SETTINGS_HEADER_TABLE_SIZE, RFC 9113 6.5.2

struct hpack {
	nghttp2_hd_deflater *deflater; // NULL until used
	nghttp2_hd_inflater *inflater; // NULL until used
	uint32_t peer_table_size; // the peer's limit, known before there is a deflater
};

// nghttp2's view of a memory: give it to hpack_encode and hpack_decode.
nghttp2_mem hpack_nghttp2_mem(struct hpack_mem *);

void hpack_init(struct hpack *);
void hpack_fini(struct hpack *);
// The peer's SETTINGS_HEADER_TABLE_SIZE, used up to 4096.
void hpack_set_table_size(struct hpack *, uint32_t size);

// Encodes into out. Returns its length; -1 = no memory or out too small (hpack_bound).
ptrdiff_t hpack_encode(
	struct hpack *, nghttp2_mem *, const nghttp2_nv *, size_t n, uint8_t *out, size_t out_size);
size_t hpack_bound(const nghttp2_nv *, size_t n);

enum hpack_result {
	HPACK_OK,
	HPACK_STOPPED, // by emit
	HPACK_BAD, // COMPRESSION_ERROR
	HPACK_NO_MEMORY,
};
// Called for each field; name and value are valid until it returns. False = stop.
typedef bool (*hpack_emit)(void *ctx, const nghttp2_nv *);
// One piece of a header block, last = its end. Every block must be run through here, whatever
// becomes of its stream, or the tables part.
enum hpack_result hpack_decode(struct hpack *, nghttp2_mem *, const uint8_t *, size_t len,
	bool last, hpack_emit, void *ctx);
