// SPDX-License-Identifier: Apache-2.0
// What the TLS library looks its algorithms up in: a context of its own for all handshakes, so that
// nobody else in the process meets what stands in it of ours (kdf.c).
#include "tlshs/impl.h"

#include <openssl/provider.h>

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static OSSL_LIB_CTX *library; // under the lock; once it is there, for good

static const OSSL_ALGORITHM *algorithms(void *provider, int operation, int *no_cache)
{
	*no_cache = 0;
	return operation == OSSL_OP_KDF ? tlshs_kdfs : NULL;
}

static const OSSL_DISPATCH provider[] = {
	{OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))algorithms},
	{0, NULL},
};

static int on_load(const OSSL_CORE_HANDLE *core, const OSSL_DISPATCH *of_core,
	const OSSL_DISPATCH **ret, void **ret_context)
{
	static char context; // nothing is kept there
	*ret = provider;
	*ret_context = &context;
	return 1;
}

static OSSL_LIB_CTX *make(void)
{
	OSSL_LIB_CTX *l = OSSL_LIB_CTX_new();
	if (l && OSSL_PROVIDER_add_builtin(l, TLSHS_PROVIDER, on_load) == 1 &&
		OSSL_PROVIDER_load(l, TLSHS_PROVIDER) && OSSL_PROVIDER_load(l, "default"))
		return l;
	OSSL_LIB_CTX_free(l); // with its providers
	return NULL;
}

OSSL_LIB_CTX *tlshs_library(void)
{
	pthread_mutex_lock(&lock);
	if (!library)
		library = make();
	OSSL_LIB_CTX *l = library;
	pthread_mutex_unlock(&lock);
	return l;
}
