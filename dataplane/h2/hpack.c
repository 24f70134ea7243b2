// SPDX-License-Identifier: Apache-2.0
#include "dataplane/h2/hpack.h"

#include <string.h>

static void *mem_malloc(size_t size, void *m)
{
	return hpack_mem_take(m, size);
}

static void mem_free(void *block, void *m)
{
	hpack_mem_put(m, block);
}

static void *mem_calloc(size_t n, size_t size, void *m)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total))
		return NULL;
	void *block = hpack_mem_take(m, total);
	return block ? memset(block, 0, total) : NULL;
}

static void *mem_realloc(void *block, size_t size, void *m)
{
	void *bigger = hpack_mem_take(m, size);
	if (!bigger || !block)
		return bigger;
	size_t old = hpack_mem_size(m, block);
	memcpy(bigger, block, old < size ? old : size);
	hpack_mem_put(m, block);
	return bigger;
}

nghttp2_mem hpack_nghttp2_mem(struct hpack_mem *m)
{
	return (nghttp2_mem){m, mem_malloc, mem_free, mem_calloc, mem_realloc};
}

void hpack_init(struct hpack *h)
{
	*h = (struct hpack){.peer_table_size = HPACK_TABLE_SIZE};
}

void hpack_fini(struct hpack *h)
{
	if (h->deflater)
		nghttp2_hd_deflate_del(h->deflater);
	if (h->inflater)
		nghttp2_hd_inflate_del(h->inflater);
	*h = (struct hpack){0};
}

void hpack_set_table_size(struct hpack *h, uint32_t size)
{
	h->peer_table_size = size < HPACK_TABLE_SIZE ? size : HPACK_TABLE_SIZE;
	if (h->deflater)
		nghttp2_hd_deflate_change_table_size(h->deflater, h->peer_table_size);
}

size_t hpack_bound(const nghttp2_nv *nvs, size_t n)
{
	// RFC 7541 5.1, 6.2, 6.3: two table size updates, then for each field two lengths of at
	// most 6 bytes and its text, which Huffman coding is used on only to shorten it.
	size_t bound = 12;
	for (size_t i = 0; i < n; i++)
		bound += 12 + nvs[i].namelen + nvs[i].valuelen;
	return bound;
}

ptrdiff_t hpack_encode(struct hpack *h, nghttp2_mem *mem, const nghttp2_nv *nvs, size_t n,
	uint8_t *out, size_t out_size)
{
	if (!h->deflater) {
		if (nghttp2_hd_deflate_new2(&h->deflater, HPACK_TABLE_SIZE, mem) != 0) {
			h->deflater = NULL;
			return -1;
		}
		if (h->peer_table_size != HPACK_TABLE_SIZE)
			nghttp2_hd_deflate_change_table_size(h->deflater, h->peer_table_size);
	}
	ssize_t len = nghttp2_hd_deflate_hd(h->deflater, out, out_size, nvs, n);
	return len < 0 ? -1 : len;
}

enum hpack_result hpack_decode(struct hpack *h, nghttp2_mem *mem, const uint8_t *in, size_t len,
	bool last, hpack_emit emit, void *ctx)
{
	if (!h->inflater && nghttp2_hd_inflate_new2(&h->inflater, mem) != 0) {
		h->inflater = NULL;
		return HPACK_NO_MEMORY;
	}
	for (;;) {
		nghttp2_nv nv;
		int flags = 0;
		ssize_t n = nghttp2_hd_inflate_hd2(h->inflater, &nv, &flags, in, len, last);
		if (n == NGHTTP2_ERR_NOMEM)
			return HPACK_NO_MEMORY;
		if (n < 0)
			return HPACK_BAD;
		in += n;
		len -= (size_t)n;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) && !emit(ctx, &nv))
			return HPACK_STOPPED;
		if (flags & NGHTTP2_HD_INFLATE_FINAL) {
			nghttp2_hd_inflate_end_headers(h->inflater);
			return HPACK_OK;
		}
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && len == 0)
			return HPACK_OK;
	}
}
