// SPDX-License-Identifier: Apache-2.0
// bench_hpack: a gRPC request's header block of ten fields, decoded and encoded, by ours and by
// nghttp2's coder. tools/bench runs it. Blocks to be decoded are nghttp2's.
//
// Names have the number that decoding gives them, as in what the proxy passes on. stable: the same
// request again and again. new2: two fields have a value of their own in every
// request. literal: no field may enter a table, all text is Huffman coded.
#include "dataplane/h2/hpack.h"
#include "dataplane/h2/hpack_tables.h"
#include "lb/base/check.h"
#include "lb/base/field.h"
#include "tests/bench/ways.h"

#include <nghttp2/nghttp2.h>

#include <stdio.h>
#include <stdlib.h>

#define N_FIELDS 10
#define N_BLOCKS 1024 // then both tables start anew
#define BLOCK_MAX 1024

enum values { STABLE, NEW2, LITERAL, N_VALUES };
static const char *const value_names[2][N_VALUES] = {
	{"decode_stable", "decode_new2", "decode_literal"},
	{"encode_stable", "encode_new2", "encode_literal"}};

struct block {
	nghttp2_nv fields[N_FIELDS];
	struct field ours[N_FIELDS];
	char request_id[40], trace[64];
	uint8_t bytes[BLOCK_MAX];
	size_t len;
};

struct load {
	enum values values;
	struct block blocks[N_BLOCKS];
	size_t text; // of a block's names and values
	size_t wire; // of all blocks
};

static const char *const request[N_FIELDS][2] = {{":method", "POST"}, {":scheme", "http"},
	{":path", "/helloworld.greeter.v1.Greeter/SayHello"},
	{":authority", "greeter.default.svc.cluster.local:50051"}, {"te", "trailers"},
	{"content-type", "application/grpc"}, {"user-agent", "grpc-go/1.62.0"},
	{"grpc-accept-encoding", "gzip"}, {"x-request-id", NULL}, {"traceparent", NULL}};

static unsigned long long mix(unsigned long long x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
	return x ^ x >> 29;
}

static nghttp2_nv pair(const char *name, const char *value, bool literal)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
		strlen(value), literal ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
}

static void load_init(struct load *l, enum values values)
{
	nghttp2_hd_deflater *d;
	*l = (struct load){.values = values};
	CHECK(nghttp2_hd_deflate_new(&d, 4096) == 0);
	for (uint64_t i = 0; i < N_BLOCKS; i++) {
		struct block *b = &l->blocks[i];
		unsigned long long id = mix(values == NEW2 ? 2 * i : 0),
				   trace = mix(values == NEW2 ? 2 * i + 1 : 1);
		snprintf(b->request_id, sizeof(b->request_id), "%016llx", id);
		snprintf(b->trace, sizeof(b->trace), "00-%016llx%016llx-%016llx-01", trace,
			mix(trace), mix(id));
		for (int k = 0; k < N_FIELDS; k++) {
			const char *value = request[k][1] ? request[k][1]
			                    : k == 8      ? b->request_id
			                                  : b->trace;
			b->fields[k] = pair(request[k][0], value, values == LITERAL);
			b->ours[k] = (struct field){str_from(request[k][0]), str_from(value),
				values == LITERAL, (uint8_t)hpack_name_of(str_from(request[k][0]))};
			l->text += i ? 0 : strlen(request[k][0]) + strlen(value);
		}
		ssize_t len =
			nghttp2_hd_deflate_hd(d, b->bytes, sizeof(b->bytes), b->fields, N_FIELDS);
		CHECK(len > 0);
		b->len = (size_t)len;
		l->wire += b->len;
	}
	nghttp2_hd_deflate_del(d);
}

static void check_text(const struct load *l, uint64_t n_ops, uint64_t text)
{
	CHECK(text == n_ops * l->text); // all was decoded, whoever did it
}

// One end of a connection, and the next block.
struct shunt {
	const struct load *load;
	struct hpack_mem *memory;
	struct hpack hpack;
	uint32_t next;
	uint64_t sum;
};

static void shunt_next(struct shunt *s)
{
	if (++s->next < N_BLOCKS)
		return;
	s->next = 0;
	hpack_fini(&s->hpack, s->memory);
}

static bool add_text(void *ctx, struct hpack_field *f)
{
	*(uint64_t *)ctx += f->name.len + f->value.len;
	return true;
}

static void ignore_move(void *ctx, const char *text, size_t len)
{
}

static void shunt_decode(void *ctx, uint64_t n_ops)
{
	struct shunt *s = ctx;
	const struct hpack_sink sink = {add_text, ignore_move, &s->sum};
	char room[HPACK_ROOM(BLOCK_MAX)];
	s->sum = 0;
	for (uint64_t i = 0; i < n_ops; i++, shunt_next(s)) {
		const struct block *b = &s->load->blocks[s->next];
		CHECK(hpack_decode(&s->hpack, s->memory, NULL, b->bytes, b->len, room, &sink) ==
			HPACK_OK);
	}
	check_text(s->load, n_ops, s->sum);
}

static void shunt_encode(void *ctx, uint64_t n_ops)
{
	struct shunt *s = ctx;
	uint8_t out[BLOCK_MAX];
	s->sum = 0;
	for (uint64_t i = 0; i < n_ops; i++, shunt_next(s)) {
		const struct field *fields = s->load->blocks[s->next].ours;
		CHECK(hpack_bound(fields, N_FIELDS) <= sizeof(out));
		s->sum += hpack_encode(&s->hpack, s->memory, fields, N_FIELDS, out);
	}
}

struct rival {
	const struct load *load;
	nghttp2_hd_inflater *inflater;
	nghttp2_hd_deflater *deflater;
	uint32_t next;
	uint64_t sum;
};

static void rival_new(struct rival *r)
{
	CHECK(nghttp2_hd_inflate_new(&r->inflater) == 0);
	CHECK(nghttp2_hd_deflate_new(&r->deflater, 4096) == 0);
}

static void rival_next(struct rival *r)
{
	if (++r->next < N_BLOCKS)
		return;
	r->next = 0;
	nghttp2_hd_inflate_del(r->inflater);
	nghttp2_hd_deflate_del(r->deflater);
	rival_new(r);
}

static void rival_decode_block(struct rival *r, const uint8_t *in, size_t len)
{
	for (;;) {
		nghttp2_nv f;
		int flags = 0;
		ssize_t n = nghttp2_hd_inflate_hd2(r->inflater, &f, &flags, in, len, 1);
		CHECK(n >= 0);
		in += n;
		len -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			r->sum += f.namelen + f.valuelen;
		if (flags & NGHTTP2_HD_INFLATE_FINAL)
			break;
	}
	nghttp2_hd_inflate_end_headers(r->inflater);
}

static void rival_decode(void *ctx, uint64_t n_ops)
{
	struct rival *r = ctx;
	r->sum = 0;
	for (uint64_t i = 0; i < n_ops; i++, rival_next(r))
		rival_decode_block(r, r->load->blocks[r->next].bytes, r->load->blocks[r->next].len);
	check_text(r->load, n_ops, r->sum);
}

static void rival_encode(void *ctx, uint64_t n_ops)
{
	struct rival *r = ctx;
	uint8_t out[BLOCK_MAX];
	for (uint64_t i = 0; i < n_ops; i++, rival_next(r)) {
		const struct block *b = &r->load->blocks[r->next];
		ssize_t len =
			nghttp2_hd_deflate_hd(r->deflater, out, sizeof(out), b->fields, N_FIELDS);
		CHECK(len > 0 && (size_t)len == b->len);
	}
}

int main(int argc, char **argv)
{
	static struct load loads[N_VALUES];
	static struct shunt ours[2][N_VALUES];
	static struct rival theirs[2][N_VALUES];
	struct bench_way ways[4 * N_VALUES];
	size_t n = 0;
	for (enum values v = 0; v < N_VALUES; v++)
		load_init(&loads[v], v);
	for (int encode = 0; encode < 2; encode++)
		for (enum values v = 0; v < N_VALUES; v++) {
			struct shunt *s = &ours[encode][v];
			*s = (struct shunt){.load = &loads[v], .memory = hpack_mem_new(16)};
			CHECK(s->memory);
			hpack_init(&s->hpack, true);
			theirs[encode][v].load = &loads[v];
			rival_new(&theirs[encode][v]);
			const char *name = value_names[encode][v];
			uint32_t wire = (uint32_t)(loads[v].wire / N_BLOCKS);
			if (encode)
				shunt_encode(s, N_BLOCKS);
			ways[n++] = (struct bench_way){"shunt", name, N_FIELDS,
				encode ? shunt_encode : shunt_decode, s,
				encode ? (uint32_t)(s->sum / N_BLOCKS) : wire};
			ways[n++] = (struct bench_way){"nghttp2", name, N_FIELDS,
				encode ? rival_encode : rival_decode, &theirs[encode][v], wire};
		}
	return bench_ways("hpack", ways, n, argc, argv);
}
