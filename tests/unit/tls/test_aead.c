// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tls/aead.h"
#include "lb/base/rand.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tlshs/hkdf.h"

#include <string.h>

#define N_KEYS 4
#define MAX_LEN 20000

static const struct aead_ops *const all[] = {&aead_mb, &aead_evp};
#define N_OPS (sizeof(all) / sizeof(all[0]))
static struct aead *aeads[N_OPS]; // NULL = not on this CPU

static int setup(void **state)
{
	for (unsigned i = 0; i < N_OPS; i++)
		aeads[i] = all[i]->new (N_KEYS);
	return aeads[1] ? 0 : -1; // libcrypto runs everywhere
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < N_OPS; i++)
		all[i]->free(aeads[i]);
	return 0;
}

static void randomize(struct rand *r, uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rand_below(r, 256);
}

// Cuts len bytes into pieces; some are empty.
static void cut(struct rand *r, struct aead_record *rec, uint8_t *to, const uint8_t *from,
	size_t len, unsigned n)
{
	rec->n_pieces = 0;
	for (unsigned i = 0; i < n; i++) {
		size_t part = i + 1 == n ? len : rand_below(r, (uint32_t)len + 1);
		rec->pieces[rec->n_pieces++] = (struct aead_piece){to, from, part};
		to += part;
		from += part;
		len -= part;
	}
}

static size_t random_len(struct rand *r)
{
	static const uint32_t most[] = {3, 40, 600, MAX_LEN};
	return rand_below(r, most[rand_below(r, 4)]);
}

static void random_head(struct rand *r, struct aead_record *rec)
{
	randomize(r, rec->nonce, sizeof(rec->nonce));
	randomize(r, rec->aad, sizeof(rec->aad));
	rec->aad_len = rand_below(r, 2) ? 5 : 13;
}

// TLS-26
static void all_give_the_same_bytes_however_they_are_cut(void **state)
{
	static uint8_t plain[MAX_LEN], sealed[N_OPS][MAX_LEN], opened[MAX_LEN];
	struct rand r;
	rand_init(&r, 7);
	for (unsigned round = 0; round < 3000; round++) {
		uint8_t key[TLS_MAX_KEY], tags[N_OPS][AEAD_TAG];
		struct aead_record rec;
		enum tls_aead aead = rand_below(&r, TLS_N_AEADS);
		uint32_t at = rand_below(&r, N_KEYS);
		size_t len = random_len(&r);
		randomize(&r, key, sizeof(key));
		randomize(&r, plain, len);
		random_head(&r, &rec);
		for (unsigned i = 0; i < N_OPS; i++) {
			if (!aeads[i])
				continue;
			const uint8_t *from = plain;
			if (rand_below(&r, 2))
				from = memcpy(sealed[i], plain, len); // in place
			cut(&r, &rec, sealed[i], from, len, 1 + rand_below(&r, AEAD_MAX_PIECES));
			if (!len && rand_below(&r, 2))
				rec.n_pieces = 0;
			all[i]->set_key(aeads[i], at, aead, key);
			all[i]->seal(aeads[i], at, &rec, tags[i]);
		}
		for (unsigned i = 0; i < N_OPS; i++) {
			if (!aeads[i])
				continue;
			assert_memory_equal(sealed[i], sealed[N_OPS - 1], len);
			assert_memory_equal(tags[i], tags[N_OPS - 1], AEAD_TAG);
			cut(&r, &rec, opened, sealed[i], len, 1 + rand_below(&r, AEAD_MAX_PIECES));
			assert_true(all[i]->open(aeads[i], at, &rec, tags[i]));
			assert_memory_equal(opened, plain, len);
		}
	}
}

static void a_changed_bit_anywhere_is_found(void **state)
{
	struct rand r;
	rand_init(&r, 8);
	for (unsigned i = 0; i < N_OPS; i++) {
		if (!aeads[i])
			continue;
		for (enum tls_aead aead = 0; aead < TLS_N_AEADS; aead++) {
			uint8_t key[TLS_MAX_KEY], text[33], tag[AEAD_TAG], out[33];
			struct aead_record rec;
			randomize(&r, key, sizeof(key));
			randomize(&r, text, sizeof(text));
			random_head(&r, &rec);
			rec.aad_len = 13;
			cut(&r, &rec, text, text, sizeof(text), 1);
			all[i]->set_key(aeads[i], 0, aead, key);
			all[i]->seal(aeads[i], 0, &rec, tag);
			cut(&r, &rec, out, text, sizeof(text), 1);
			uint8_t *parts[] = {text, tag, rec.nonce, rec.aad};
			size_t lens[] = {sizeof(text), sizeof(tag), sizeof(rec.nonce), 13};
			for (unsigned p = 0; p < 4; p++) {
				for (size_t bit = 0; bit < 8 * lens[p]; bit++) {
					parts[p][bit / 8] ^= (uint8_t)(1 << bit % 8);
					assert_false(all[i]->open(aeads[i], 0, &rec, tag));
					parts[p][bit / 8] ^= (uint8_t)(1 << bit % 8);
				}
			}
			assert_true(all[i]->open(aeads[i], 0, &rec, tag));
		}
	}
}

static uint8_t hex_digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void from_hex(uint8_t *to, const char *hex)
{
	for (; *hex; hex += 2)
		*to++ = (uint8_t)(hex_digit(hex[0]) << 4 | hex_digit(hex[1]));
}

// RFC 8439 2.8.2
static void chacha20_poly1305_gives_the_rfc_s_bytes(void **state)
{
	static const char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you "
				   "only one tip for the future, sunscreen would be it.";
	uint8_t key[32], tag[AEAD_TAG], expected[AEAD_TAG], first[16], out[sizeof(text) - 1];
	struct aead_record rec = {.aad_len = 12, .n_pieces = 1};
	from_hex(key, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
	from_hex(rec.nonce, "070000004041424344454647");
	from_hex(rec.aad, "50515253c0c1c2c3c4c5c6c7");
	from_hex(expected, "1ae10b594f09e26a7e902ecbd0600691");
	from_hex(first, "d31a8d34648e60db7b86afbc53ef7ec2");
	for (unsigned i = 0; i < N_OPS; i++) {
		if (!aeads[i])
			continue;
		rec.pieces[0] = (struct aead_piece){out, (const uint8_t *)text, sizeof(text) - 1};
		all[i]->set_key(aeads[i], 1, TLS_CHACHA20_POLY1305, key);
		all[i]->seal(aeads[i], 1, &rec, tag);
		assert_memory_equal(out, first, sizeof(first));
		assert_memory_equal(tag, expected, sizeof(expected));
	}
}

// TLS-25: libcrypto, too, has all it needs from the start.
static void nothing_is_allocated_once_they_are_made(void **state)
{
	uint8_t key[TLS_MAX_SECRET] = {1}, text[100] = {2}, tag[AEAD_TAG];
	struct aead_record rec = {.aad_len = 5, .n_pieces = 1};
	rec.pieces[0] = (struct aead_piece){text, text, sizeof(text)};
	bool ok = true;
	for (unsigned i = 0; i < N_OPS; i++) {
		if (!aeads[i])
			continue;
		alloc_fail_arm(0);
		for (unsigned j = 0; j < 20; j++) {
			enum tls_aead aead = j % TLS_N_AEADS;
			all[i]->set_key(aeads[i], j % N_KEYS, aead, key);
			all[i]->seal(aeads[i], j % N_KEYS, &rec, tag);
			ok = all[i]->open(aeads[i], j % N_KEYS, &rec, tag) && ok;
			tag[0] ^= 1;
			ok = !all[i]->open(aeads[i], j % N_KEYS, &rec, tag) && ok;
			tlshs_hkdf_hash(j % 2, text, 64, key);
			all[i]->clear_key(aeads[i], j % N_KEYS);
		}
		assert_false(alloc_fail_disarm());
		assert_true(ok);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("tls/aead", CASE(all_give_the_same_bytes_however_they_are_cut),
	CASE(a_changed_bit_anywhere_is_found), CASE(chacha20_poly1305_gives_the_rfc_s_bytes),
	CASE(nothing_is_allocated_once_they_are_made))
