// SPDX-License-Identifier: Apache-2.0
// Records of the library's behind a handshake of ours, with an unmodified OpenSSL as the client.
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"
#include "tlshs/records.h"

#include <errno.h>
#include <string.h>

#define TEXT 40000 // of more than two records

static const uint16_t versions[] = {TLS_1_2, TLS_1_3};

static struct pki_cert ca, leaf;
static struct tlshs_context *context;

static int set_up(void **state)
{
	ca = pki_make((struct pki_conf){.name = "ca"});
	leaf = pki_make((struct pki_conf){.name = "leaf", .issuer = &ca});
	context = context_good(&(struct tlshs_context_conf){
		.role = TLSHS_SERVER, .certificate_pem = leaf.pem, .key_pem = leaf.key_pem});
	return 0;
}

static int tear_down(void **state)
{
	tlshs_context_put(context);
	pki_end();
	return 0;
}

static void begin(struct meeting *m, uint16_t version)
{
	meeting_init(m, context, STR(""),
		&(struct far_conf){
			.role = TLSHS_CLIENT, .min_version = version, .max_version = version});
	assert_int_equal(meeting_run(m), TLSHS_ok);
}

static void to_us(struct meeting *m, size_t piece)
{
	uint8_t wire[2 * TEXT];
	int n = BIO_read(m->far_out, wire, sizeof(wire));
	for (int at = 0; at < n;) {
		size_t some = (size_t)(n - at) < piece ? (size_t)(n - at) : piece;
		tlshs_handshake_gather(m->h, wire + at, some);
		at += (int)some;
	}
}

static void to_far(struct meeting *m)
{
	uint8_t wire[1000];
	for (size_t n; (n = tlshs_handshake_drain(m->h, wire, sizeof(wire))) > 0;)
		assert_int_equal(BIO_write(m->far_in, wire, (int)n), n);
}

static void fill(uint8_t *text, unsigned by)
{
	for (size_t i = 0; i < TEXT; i++)
		text[i] = (uint8_t)(i * by + (i >> 8));
}

static void talk(struct meeting *m)
{
	static uint8_t text[TEXT], got[TEXT];
	size_t n = 0;
	fill(text, 7);
	assert_int_equal(SSL_write(m->far, text, TEXT), TEXT);
	to_us(m, 5000);
	for (ssize_t some; (some = tlshs_records_read(m->h, got + n, sizeof(got) - n)) != 0;) {
		assert_true(some > 0);
		n += (size_t)some;
		if (n == TEXT)
			break;
	}
	assert_int_equal(n, TEXT);
	assert_memory_equal(got, text, TEXT);
	assert_int_equal(tlshs_records_read(m->h, got, sizeof(got)), 0);
	fill(text, 11);
	assert_true(tlshs_records_write(m->h, text, TEXT));
	to_far(m);
	for (n = 0; n < TEXT;) {
		int some = SSL_read(m->far, got + n, (int)(TEXT - n));
		assert_true(some > 0);
		n += (size_t)some;
	}
	assert_memory_equal(got, text, TEXT);
}

// RFC 8446 5.2, RFC 5246 6.2.3
static void text_goes_both_ways(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct meeting m;
		begin(&m, versions[i]);
		talk(&m);
		talk(&m);
		meeting_fini(&m);
	}
}

// RFC 8446 4.6.3
static void keys_change_when_the_client_wants_it(void **state)
{
	struct meeting m;
	begin(&m, TLS_1_3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(SSL_key_update(m.far, SSL_KEY_UPDATE_REQUESTED), 1);
		talk(&m);
	}
	meeting_fini(&m);
}

// RFC 8446 6.1
static void each_side_hears_that_the_other_says_no_more(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct meeting m;
		uint8_t byte;
		begin(&m, versions[i]);
		talk(&m);
		assert_int_equal(SSL_write(m.far, "x", 1), 1);
		assert_int_equal(SSL_shutdown(m.far), 0);
		to_us(&m, SIZE_MAX);
		assert_int_equal(tlshs_records_read(m.h, &byte, 1), 1);
		assert_int_equal(byte, 'x');
		assert_int_equal(tlshs_records_read(m.h, &byte, 1), -EPIPE);
		assert_true(tlshs_records_write(m.h, (const uint8_t *)"y", 1));
		tlshs_records_end(m.h);
		to_far(&m);
		assert_int_equal(SSL_read(m.far, &byte, 1), 1);
		assert_int_equal(byte, 'y');
		assert_int_equal(
			SSL_get_error(m.far, SSL_read(m.far, &byte, 1)), SSL_ERROR_ZERO_RETURN);
		meeting_fini(&m);
	}
}

// RFC 8446 5.2
static void a_record_that_was_altered_ends_it_with_an_alert(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct meeting m;
		uint8_t wire[200], byte;
		begin(&m, versions[i]);
		to_far(&m);
		assert_int_equal(SSL_write(m.far, "hello", 5), 5);
		int n = BIO_read(m.far_out, wire, sizeof(wire));
		wire[n - 1] ^= 1;
		tlshs_handshake_gather(m.h, wire, (size_t)n);
		assert_int_equal(tlshs_records_read(m.h, &byte, 1), -EBADMSG);
		assert_int_equal(tlshs_records_read(m.h, &byte, 1), -EBADMSG);
		assert_true(tlshs_handshake_drain(m.h, wire, sizeof(wire)) > 0);
		meeting_fini(&m);
	}
}

static ssize_t read_byte(struct meeting *m)
{
	uint8_t byte;
	return tlshs_records_read(m->h, &byte, 1);
}

// TLS-15: but without a clock, one more for each 64 KiB of text.
static void key_updates_have_a_budget(void **state)
{
	struct meeting m;
	uint8_t wire[100 * 40];
	begin(&m, TLS_1_3);
	to_far(&m);
	for (int i = 0; i < 4; i++)
		talk(&m); // 160000 bytes: two more
	for (int i = 0; i < 100; i++) {
		assert_int_equal(SSL_key_update(m.far, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(m.far), 1);
		if (i == 33) {
			to_us(&m, SIZE_MAX);
			assert_int_equal(read_byte(&m), 0);
			(void)tlshs_handshake_drain(m.h, wire, sizeof(wire));
		}
	}
	to_us(&m, SIZE_MAX);
	assert_int_equal(read_byte(&m), -EBADMSG);
	assert_true(tlshs_handshake_drain(m.h, wire, sizeof(wire)) < 40); // one answer
	assert_int_equal(read_byte(&m), -EBADMSG);
	meeting_fini(&m);
}

// A record of the client's under 1.2 and AES-128-GCM (RFC 5246 6.2.3.3, RFC 5288 3).
static void seal(const struct tls_direction *d, uint64_t seq, uint8_t type, const uint8_t text[4],
	uint8_t ret[33])
{
	uint8_t nonce[12] = {0}, more[13] = {[7] = (uint8_t)seq, type, 3, 3, 0, 4};
	int n;
	memcpy(nonce, d->iv, 4);
	nonce[11] = (uint8_t)seq;
	memcpy(ret, (const uint8_t[]){type, 3, 3, 0, 28}, 5);
	memcpy(ret + 5, nonce + 4, 8);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	assert_int_equal(EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, d->key, nonce), 1);
	assert_int_equal(EVP_EncryptUpdate(c, NULL, &n, more, sizeof(more)), 1);
	assert_int_equal(EVP_EncryptUpdate(c, ret + 13, &n, text, 4), 1);
	assert_int_equal(EVP_EncryptFinal_ex(c, ret + 17, &n), 1);
	assert_int_equal(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, 16, ret + 17), 1);
	EVP_CIPHER_CTX_free(c);
}

// RFC 5246 7.2.2: each is answered by a warning.
static void hellos_afterwards_have_a_budget(void **state)
{
	static const uint8_t hello[4] = {SSL3_MT_CLIENT_HELLO};
	struct meeting m;
	uint8_t wire[100 * 33];
	meeting_init(&m, context, STR(""),
		&(struct far_conf){.role = TLSHS_CLIENT,
			.max_version = TLS_1_2,
			.ciphers_12 = "ECDHE-ECDSA-AES128-GCM-SHA256"});
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	for (unsigned i = 0; i < 100; i++)
		seal(&m.result.secrets.read, 1 + i, SSL3_RT_HANDSHAKE, hello, wire + 33UL * i);
	tlshs_handshake_gather(m.h, wire, 32UL * 33);
	assert_int_equal(read_byte(&m), 0);
	tlshs_handshake_gather(m.h, wire + 32UL * 33, 68UL * 33);
	assert_int_equal(read_byte(&m), -EBADMSG);
	assert_int_equal(tlshs_handshake_drain(m.h, wire, sizeof(wire)), 32 * 31);
	meeting_fini(&m);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(text_goes_both_ways),
		cmocka_unit_test(keys_change_when_the_client_wants_it),
		cmocka_unit_test(each_side_hears_that_the_other_says_no_more),
		cmocka_unit_test(a_record_that_was_altered_ends_it_with_an_alert),
		cmocka_unit_test(key_updates_have_a_budget),
		cmocka_unit_test(hellos_afterwards_have_a_budget),
	};
	return cmocka_run_group_tests_name("tlshs/records", suite, set_up, tear_down);
}
