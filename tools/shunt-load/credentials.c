// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/credentials.h"

#include "tlshs/context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE (64 << 10)

static const struct str h2 = STR("h2"), http1 = STR("http/1.1");

static int make(
	const struct tlshs_context_conf *conf, struct tlshs_context **ret, struct lb_err *reterr)
{
	*ret = tlshs_context_new(conf, reterr);
	return *ret ? 0 : -EINVAL;
}

int credentials_of_client(bool is_http1, struct tlshs_context **ret, struct lb_err *reterr)
{
	const struct tlshs_context_conf conf = {
		.role = TLSHS_CLIENT, .alpn = is_http1 ? &http1 : &h2, .n_alpn = 1};
	return make(&conf, ret, reterr);
}

static int read_file(const char *path, char to[MAX_FILE], struct str *ret, struct lb_err *reterr)
{
	FILE *in = fopen(path, "re");
	if (!in)
		return lb_err_set(reterr, "%s: %s", path, strerror(errno));
	size_t n = fread(to, 1, MAX_FILE, in);
	int r = 0;
	if (ferror(in) || n == MAX_FILE)
		r = lb_err_set(reterr, "%s: cannot be read, or too long", path);
	fclose(in);
	*ret = (struct str){to, n};
	return r;
}

int credentials_of_echo(
	const char *certificate, const char *key, struct tlshs_context **ret, struct lb_err *reterr)
{
	char pem[MAX_FILE], key_pem[MAX_FILE];
	struct tlshs_context_conf conf = {.role = TLSHS_SERVER, .alpn = &h2, .n_alpn = 1};
	int r = read_file(certificate, pem, &conf.certificate_pem, reterr);
	if (r == 0)
		r = read_file(key, key_pem, &conf.key_pem, reterr);
	if (r == 0)
		r = make(&conf, ret, reterr);
	explicit_bzero(key_pem, sizeof(key_pem));
	return r;
}
