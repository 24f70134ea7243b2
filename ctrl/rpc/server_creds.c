// SPDX-License-Identifier: Apache-2.0
#include "ctrl/rpc/server_creds.h"

#include "ctrl/base/whole_file.h"
#include "ctrl/rpc/server.h"

#include <grpc/grpc_security.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum file { CERT, KEY, CLIENT_CA, N_FILES };

// What tells that a file is another one.
struct look {
	dev_t dev;
	ino_t ino;
	off_t len;
	struct timespec changed;
};

struct rpc_server_creds {
	char *paths[N_FILES]; // NULL = there is none
	pthread_mutex_t lock; // handshakes begin on several threads
	struct look seen[N_FILES]; // when they were read last, good or bad
	bool was_read; // all of them, and whole
};

static void look_at(const struct rpc_server_creds *c, struct look ret[N_FILES])
{
	struct stat st;
	memset(ret, 0, N_FILES * sizeof(*ret));
	for (size_t i = 0; i < N_FILES; i++)
		if (c->paths[i] && stat(c->paths[i], &st) == 0)
			ret[i] = (struct look){st.st_dev, st.st_ino, st.st_size, st.st_ctim};
}

static bool is_same(const struct look *a, const struct look *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->len == b->len &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

// ret_whole: nothing was missing, so that looking again brings nothing else.
static grpc_ssl_server_certificate_config *read_all(
	const struct rpc_server_creds *c, bool *ret_whole)
{
	struct whole_file files[N_FILES] = {0};
	struct lb_err why; // libgrpc has nobody to tell it to
	*ret_whole = true;
	for (size_t i = 0; i < N_FILES; i++)
		if (c->paths[i] && whole_file_read(c->paths[i], i == KEY, &files[i], &why))
			*ret_whole = false;
	grpc_ssl_server_certificate_config *config = NULL;
	const grpc_ssl_pem_key_cert_pair pair = {files[KEY].p, files[CERT].p};
	// libgrpc insists on some, even where it asks no client for a certificate.
	const char *roots = files[c->paths[CLIENT_CA] ? CLIENT_CA : CERT].p;
	if (pair.private_key && pair.cert_chain && roots)
		config = grpc_ssl_server_certificate_config_create(roots, &pair, 1);
	for (size_t i = 0; i < N_FILES; i++)
		whole_file_fini(&files[i]);
	return config;
}

// Of a config that it cannot use libgrpc says so in its log, and goes on with the one before.
static grpc_ssl_certificate_config_reload_status fetch(
	void *arg, grpc_ssl_server_certificate_config **ret)
{
	struct rpc_server_creds *c = arg;
	struct look now[N_FILES];
	grpc_ssl_certificate_config_reload_status status = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
	pthread_mutex_lock(&c->lock);
	look_at(c, now);
	bool same = c->was_read;
	for (size_t i = 0; i < N_FILES; i++)
		same &= is_same(&now[i], &c->seen[i]);
	if (same)
		status = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
	else if (!(*ret = read_all(c, &c->was_read)))
		status = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
	memcpy(c->seen, now, sizeof(now));
	pthread_mutex_unlock(&c->lock);
	return status;
}

struct rpc_server_creds *rpc_server_creds_new(const struct rpc_server_tls *tls)
{
	const char *const paths[N_FILES] = {tls->cert, tls->key, tls->client_ca};
	struct rpc_server_creds *c = calloc(1, sizeof(*c));
	if (!c || pthread_mutex_init(&c->lock, NULL)) {
		free(c);
		return NULL;
	}
	bool ok = true;
	for (size_t i = 0; i < N_FILES; i++) {
		c->paths[i] = paths[i] ? strdup(paths[i]) : NULL;
		ok &= !paths[i] == !c->paths[i];
	}
	if (ok)
		return c;
	rpc_server_creds_free(c);
	return NULL;
}

struct grpc_server_credentials *rpc_server_creds_get(struct rpc_server_creds *c)
{
	grpc_ssl_client_certificate_request_type asks =
		c->paths[CLIENT_CA] ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
				    : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
	return grpc_ssl_server_credentials_create_with_options(
		grpc_ssl_server_credentials_create_options_using_config_fetcher(asks, fetch, c));
}

void rpc_server_creds_free(struct rpc_server_creds *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < N_FILES; i++)
		free(c->paths[i]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
