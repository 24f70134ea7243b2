// SPDX-License-Identifier: Apache-2.0
// forwarded_rows.txt, which Envoy gives as well (tests/integ/test_forwarded.py), and what it can't
// show: certificates and bounds.
#include "dataplane/proxy/forwarded.h"
#include "tests/support/check.h"
#include "tlshs/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 32

static struct field own[MAX];
static char text[4096];
static const struct proxy_forwarded_room room = {own, MAX, text, sizeof(text)};

static void cut(char *line, const char *at, char *parts[], int n)
{
	for (int i = 0; i < n; i++) {
		parts[i] = line;
		char *end = line ? strstr(line, at) : NULL;
		if (end)
			*end = 0;
		line = end ? end + strlen(at) : NULL;
	}
}

// "name=value ; name=value"; "-" is none.
static size_t fields_of(char *line, struct field *ret)
{
	char *parts[MAX];
	size_t n = 0;
	cut(line, " ; ", parts, MAX);
	for (; parts[n] && strcmp(parts[n], "-") != 0; n++) {
		char *value = strchr(parts[n], '=');
		assert_non_null(value);
		*value = 0;
		ret[n] = (struct field){.name = str_from(parts[n]), .value = str_from(value + 1)};
	}
	return n;
}

static uint8_t cert_of(const char *word)
{
	static const char *const words[] = {
		[LB_CERT_SANITIZE] = "SANITIZE",
		[LB_CERT_FORWARD_ONLY] = "FORWARD_ONLY",
		[LB_CERT_APPEND_FORWARD] = "APPEND_FORWARD",
		[LB_CERT_SANITIZE_SET] = "SANITIZE_SET",
		[LB_CERT_ALWAYS_FORWARD_ONLY] = "ALWAYS_FORWARD_ONLY",
	};
	for (uint8_t i = 0; i < LB_N_CERT_FORWARDINGS; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	fail();
	return 0;
}

static struct lb_forwarding settings_of(char *words)
{
	struct lb_forwarding f = {.on = true};
	for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		f.use_remote_address |= strcmp(w, "edge") == 0;
		f.skip_xff_append |= strcmp(w, "skip") == 0;
		if (strncmp(w, "hops=", 5) == 0)
			f.trusted_hops = (uint32_t)atoi(w + 5);
		if (strncmp(w, "cert=", 5) == 0)
			f.cert = cert_of(w + 5);
	}
	return f;
}

// Values of one name in a row are one, as in Envoy, which joins what it passes on.
static void join(const struct h2_message *m, struct str name, char *ret, size_t size)
{
	size_t at = 0;
	ret[0] = 0;
	for (size_t i = 0; i < m->n_fields; i++)
		if (str_eq(m->fields[i].name, name))
			at += (size_t)snprintf(ret + at, size - at, "%s%.*s", at ? "," : "",
				(int)m->fields[i].value.len, m->fields[i].value.p);
}

static void expect(const struct h2_message *got, struct field *want, size_t n, int line)
{
	char value[1024];
	for (size_t i = 0; i < n; i++) {
		join(got, want[i].name, value, sizeof(value));
		if (!str_eq(str_from(value), want[i].value))
			fail_msg("line %d: %s is %s", line, want[i].name.p, value);
	}
	for (size_t i = 0; i < got->n_fields; i++) {
		size_t k = 0;
		while (k < n && !str_eq(got->fields[i].name, want[k].name))
			k++;
		if (k == n)
			fail_msg("line %d: there is %.*s", line, (int)got->fields[i].name.len,
				got->fields[i].name.p);
	}
}

// HX-51..HX-57, HX-61
static void each_row_is_as_it_says(void **state)
{
	FILE *f = fopen(ROWS, "r");
	assert_non_null(f);
	char buf[4096];
	int n = 0;
	for (int line = 1; fgets(buf, sizeof(buf), f); line++) {
		struct field in[MAX], out[MAX];
		char *cells[5];
		struct ip_addr client, want;
		struct proxy_forwarded_from from = {{{0}}};
		if (buf[0] == '#')
			continue;
		buf[strcspn(buf, "\n")] = 0;
		cut(buf, " | ", cells, 5);
		const struct lb_forwarding conf = settings_of(cells[0]);
		assert_true(ip_parse(cells[1], &from.address));
		struct h2_message m = {.fields = in, .n_fields = fields_of(cells[2], in)}, got;
		size_t n_out = fields_of(cells[3], out);
		assert_true(ip_parse(cells[4], &want));
		assert_true(proxy_forwarded_write(&conf, &from, &m, &room, &got, &client));
		expect(&got, out, n_out, line);
		if (!ip_eq(&client, &want))
			fail_msg("line %d: another client", line);
		n++;
	}
	fclose(f);
	assert_true(n >= 100);
}

static struct tlshs_peer peer;

static void add_san(enum tlshs_san_kind kind, const char *name)
{
	static uint16_t at;
	if (!peer.n_sans)
		at = peer.subject_len;
	peer.sans[peer.n_sans].kind = (uint8_t)kind;
	peer.sans[peer.n_sans].at = at;
	peer.sans[peer.n_sans].len = (uint16_t)strlen(name);
	memcpy(peer.text + at, name, strlen(name));
	at = (uint16_t)(at + strlen(name));
	peer.n_sans++;
}

static void set_peer(const char *subject)
{
	peer = (struct tlshs_peer){.present = true, .subject_len = (uint16_t)strlen(subject)};
	memcpy(peer.text, subject, strlen(subject));
	memset(peer.sha256, 0xa5, sizeof(peer.sha256));
}

#define BY "By=spiffe://d/us;By=\"b;c\";"
#define HASH "Hash=a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5"

// What becomes of x-forwarded-client-cert; "" = none.
static void expect_cert(const struct lb_forwarding *conf, const char *sent, const char *want)
{
	const struct field in[] = {
		{.name = STR("x-forwarded-client-cert"), .value = str_from(sent)}};
	struct h2_message m = {.fields = in, .n_fields = *sent ? 1 : 0}, got;
	const struct proxy_forwarded_from from = {
		.is_tls = true, .peer = &peer, .own_uris = "spiffe://d/us\0b;c\0"};
	struct ip_addr client;
	char value[2048];
	assert_true(proxy_forwarded_write(conf, &from, &m, &room, &got, &client));
	join(&got, in[0].name, value, sizeof(value));
	assert_string_equal(value, want);
	join(&got, STR("x-forwarded-proto"), value, sizeof(value));
	assert_string_equal(value, "https");
}

// HX-58
static void a_certificate_is_told_as_the_listener_asks(void **state)
{
	set_peer("CN=a,O=\\\"b\\\"");
	add_san(TLSHS_SAN_DNS, "a.test");
	add_san(TLSHS_SAN_URI, "spiffe://d/a");
	add_san(TLSHS_SAN_DNS, "b.test");
	struct lb_forwarding conf = {.on = true, .cert = LB_CERT_SANITIZE_SET};
	expect_cert(&conf, "Hash=forged", BY HASH);
	conf.cert = LB_CERT_APPEND_FORWARD;
	expect_cert(&conf, "Hash=1", "Hash=1," BY HASH);
	expect_cert(&conf, "", BY HASH);
	conf.cert_subject = conf.cert_uri = conf.cert_dns = true;
	expect_cert(&conf, "",
		BY HASH ";Subject=\"CN=a,O=\\\"b\\\"\";URI=spiffe://d/a;"
			"DNS=a.test;DNS=b.test");
	conf.cert = LB_CERT_FORWARD_ONLY;
	expect_cert(&conf, "Hash=1", "Hash=1");
	conf.cert = LB_CERT_SANITIZE;
	expect_cert(&conf, "Hash=1", "");
	set_peer("");
	conf.cert = LB_CERT_SANITIZE_SET;
	expect_cert(&conf, "", BY HASH ";Subject=\"\";URI=");
	peer.present = false; // HX-57
	expect_cert(&conf, "Hash=1", "");
}

// HX-59
static void a_name_cannot_end_its_own_value(void **state)
{
	set_peer("CN=\x01\x7f\xc3\xa4 x");
	add_san(TLSHS_SAN_URI, "spiffe://d/a;By=root,Hash=1");
	add_san(TLSHS_SAN_URI, "a\"b\\c");
	add_san(TLSHS_SAN_URI, "a b\r\n");
	const struct lb_forwarding conf = {
		.on = true, .cert = LB_CERT_SANITIZE_SET, .cert_subject = true, .cert_uri = true};
	expect_cert(&conf, "",
		BY HASH ";Subject=\"CN=%01%7f%c3%a4 x\""
			";URI=\"spiffe://d/a;By=root,Hash=1\";URI=\"a\\\"b\\\\c\";URI=a%20b%0d%0a");
}

// HX-58: the bounds of both certificates' names bound the field.
static void the_longest_names_fit(void **state)
{
	static char own_uris[TLSHS_PEER_BYTES + 1];
	static char lots[PROXY_FORWARDED_BYTES];
	const struct proxy_forwarded_room enough = {own, MAX, lots, sizeof(lots)};
	const struct lb_forwarding conf = {.on = true,
		.use_remote_address = true,
		.cert = LB_CERT_SANITIZE_SET,
		.cert_subject = true,
		.cert_uri = true,
		.cert_dns = true};
	const struct proxy_forwarded_from from = {.peer = &peer, .own_uris = own_uris};
	const size_t len = TLSHS_PEER_BYTES / TLSHS_MAX_SANS;
	struct h2_message m = {.n_fields = 0}, got;
	struct ip_addr client;
	set_peer("");
	for (size_t i = 0; i < TLSHS_MAX_SANS; i++) { // with %01 for each byte, and quotes
		char name[TLSHS_PEER_BYTES / TLSHS_MAX_SANS + 1] = ";";
		memset(name + 1, 1, len - 1);
		add_san(TLSHS_SAN_URI, name);
		memcpy(own_uris + i * len, name, len - 1);
	}
	assert_true(proxy_forwarded_write(&conf, &from, &m, &enough, &got, &client));
	assert_in_range(got.fields[got.n_fields - 1].value.len, 6000, PROXY_FORWARDED_BYTES - 512);
}

// HX-52: it stays so on the next hop.
static void what_is_never_indexed_stays_so_where_it_is_appended_to(void **state)
{
	const struct field in[] = {{.name = STR("x-forwarded-for"), .value = STR("10.0.0.1")},
		{.name = STR("x-forwarded-for"), .value = STR("10.0.0.2"), .never_index = true}};
	struct h2_message m = {.fields = in, .n_fields = 2}, got;
	const struct lb_forwarding conf = {.on = true, .use_remote_address = true};
	const struct proxy_forwarded_from from = {.address = {{[15] = 1}}};
	struct ip_addr client;
	assert_true(proxy_forwarded_write(&conf, &from, &m, &room, &got, &client));
	assert_true(got.fields[0].never_index);
	assert_true(str_eq(got.fields[0].value, STR("10.0.0.1,10.0.0.2,::1")));
}

// Every bound one short of what is needed is told, and nothing is written beyond it.
static void too_little_room_is_told(void **state)
{
	const struct field in[] = {{.name = STR("x-forwarded-for"), .value = STR("10.0.0.1")},
		{.name = STR("x-forwarded-client-cert"), .value = STR("Hash=1")}};
	struct h2_message m = {.fields = in, .n_fields = 2}, got;
	const struct lb_forwarding conf = {
		.on = true, .use_remote_address = true, .cert = LB_CERT_APPEND_FORWARD};
	struct proxy_forwarded_from from = {.peer = &peer, .own_uris = ""};
	struct ip_addr client;
	set_peer("CN=a");
	assert_true(proxy_forwarded_write(&conf, &from, &m, &room, &got, &client));
	size_t n = got.n_fields, size = 0;
	assert_int_equal(n, 4);
	for (; size < sizeof(text); size++) {
		struct proxy_forwarded_room less = {own, MAX, malloc(size + 1), size};
		bool fits = proxy_forwarded_write(&conf, &from, &m, &less, &got, &client);
		free(less.text);
		if (fits)
			break;
	}
	assert_in_range(size, 60, 200);
	for (size_t max = 1; max < n; max++) {
		struct proxy_forwarded_room less = {
			calloc(max, sizeof(*own)), max, text, sizeof(text)};
		assert_false(proxy_forwarded_write(&conf, &from, &m, &less, &got, &client));
		free(less.fields);
	}
}

RUN_SUITE("proxy/forwarded", cmocka_unit_test(each_row_is_as_it_says),
	cmocka_unit_test(a_certificate_is_told_as_the_listener_asks),
	cmocka_unit_test(a_name_cannot_end_its_own_value), cmocka_unit_test(the_longest_names_fit),
	cmocka_unit_test(what_is_never_indexed_stays_so_where_it_is_appended_to),
	cmocka_unit_test(too_little_room_is_told))
