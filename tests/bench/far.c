// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/far.h"

#include "dataplane/h2/frame.h"
#include "lb/base/check.h"

#include <nghttp2/nghttp2.h>

#include <string.h>

#define BODY 64

// Header blocks of a connection's first use, and of every later one.
struct blocks {
	uint8_t request[2][512], head[2][128], trailers[2][128];
	size_t request_len[2], head_len[2], trailers_len[2];
};

static struct blocks blocks;

static nghttp2_nv pair(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static size_t deflate(nghttp2_hd_deflater *d, uint8_t *out, size_t size, nghttp2_nv *f, size_t n)
{
	ssize_t len = nghttp2_hd_deflate_hd(d, out, size, f, n);
	CHECK(len > 0);
	return (size_t)len;
}

void far_make_blocks(void)
{
	nghttp2_nv request[] = {pair(":method", "POST"), pair(":scheme", "http"),
		pair(":path", "/one/helloworld.greeter.v1.Greeter/SayHello"),
		pair(":authority", "greeter.default.svc.cluster.local:50051"),
		pair("te", "trailers"), pair("content-type", "application/grpc"),
		pair("user-agent", "grpc-go/1.62.0"), pair("grpc-accept-encoding", "gzip"),
		pair("x-request-id", "5f0c5a1c3e2b4d6f"), pair("x-tenant", "blue")};
	nghttp2_nv head[] = {pair(":status", "200"), pair("content-type", "application/grpc")};
	nghttp2_nv trailers[] = {pair("grpc-status", "0")};
	nghttp2_hd_deflater *client, *backend;
	if (blocks.request_len[0])
		return;
	CHECK(nghttp2_hd_deflate_new(&client, 4096) == 0);
	CHECK(nghttp2_hd_deflate_new(&backend, 4096) == 0);
	struct blocks *b = &blocks;
	for (int i = 0; i < 2; i++) {
		b->request_len[i] = deflate(client, b->request[i], 512, request, 10);
		b->head_len[i] = deflate(backend, b->head[i], 128, head, 2);
		b->trailers_len[i] = deflate(backend, b->trailers[i], 128, trailers, 1);
	}
	nghttp2_hd_deflate_del(client);
	nghttp2_hd_deflate_del(backend);
}

static void put_frame(
	struct far *f, uint8_t type, uint8_t flags, uint32_t id, const void *payload, size_t len)
{
	CHECK(f->out_len + H2_FRAME_HEAD + len <= sizeof(f->out));
	uint8_t *p = f->out + f->out_len;
	h2_frame_pack(p, &(struct h2_frame){
				 .length = (uint32_t)len, .type = type, .flags = flags, .id = id});
	if (len)
		memcpy(p + H2_FRAME_HEAD, payload, len);
	f->out_len += H2_FRAME_HEAD + len;
}

void far_hello(struct far *f, bool is_client)
{
	if (is_client) {
		memcpy(f->out, H2_PREFACE, H2_PREFACE_LEN);
		f->out_len = H2_PREFACE_LEN;
		f->next_id = 1;
	}
	put_frame(f, H2_SETTINGS, 0, 0, NULL, 0);
	put_frame(f, H2_SETTINGS, H2_FLAG_ACK, 0, NULL, 0);
}

static const uint8_t body[BODY] = {[4] = BODY - 5}; // one message of gRPC's

void far_ask(struct far *f)
{
	const struct blocks *b = &blocks;
	uint32_t id = f->next_id;
	f->next_id += 2;
	put_frame(f, H2_HEADERS, H2_FLAG_END_HEADERS, id, b->request[f->is_warm],
		b->request_len[f->is_warm]);
	put_frame(f, H2_DATA, H2_FLAG_END_STREAM, id, body, BODY);
	f->is_warm = true;
}

static void answer(struct far *f, uint32_t id)
{
	const struct blocks *b = &blocks;
	put_frame(f, H2_HEADERS, H2_FLAG_END_HEADERS, id, b->head[f->is_warm],
		b->head_len[f->is_warm]);
	put_frame(f, H2_DATA, 0, id, body, BODY);
	put_frame(f, H2_HEADERS, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, id,
		b->trailers[f->is_warm], b->trailers_len[f->is_warm]);
	f->is_warm = true;
}

size_t far_hear(
	struct far *f, bool is_client, const uint8_t *bytes, size_t len, uint64_t *n_messages)
{
	const uint8_t *p = bytes, *end = bytes + len;
	if (!is_client && len >= H2_PREFACE_LEN && memcmp(p, H2_PREFACE, H2_PREFACE_LEN) == 0)
		p += H2_PREFACE_LEN;
	while (end - p >= H2_FRAME_HEAD) {
		struct h2_frame frame = h2_frame_unpack(p);
		size_t whole = H2_FRAME_HEAD + frame.length;
		if (whole > (size_t)(end - p))
			break;
		CHECK(frame.type != H2_RST_STREAM && frame.type != H2_GOAWAY);
		bool ends = frame.flags & H2_FLAG_END_STREAM;
		if (frame.type == H2_DATA)
			f->received += frame.length;
		if (frame.type == H2_DATA && ends && !is_client) {
			answer(f, frame.id);
			(*n_messages)++;
		}
		*n_messages += is_client && frame.type == H2_HEADERS && ends;
		p += whole;
	}
	if (f->received > 16384) {
		uint8_t credit[4];
		h2_write_u32(credit, f->received);
		put_frame(f, H2_WINDOW_UPDATE, 0, 0, credit, 4);
		f->received = 0;
	}
	return (size_t)(p - bytes);
}
