// SPDX-License-Identifier: Apache-2.0
#include "tlshs/uris.h"

#include "tlshs/impl.h"

#include <openssl/x509v3.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct uris {
	struct uris *next;
	size_t len;
	char list[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what follows
static struct uris *all;

// Returns the length, with the last NUL.
static size_t write_list(X509 *x, char to[TLSHS_PEER_BYTES])
{
	GENERAL_NAMES *sans = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	size_t n = 0, at = 0;
	for (int i = 0; i < sk_GENERAL_NAME_num(sans) && n < TLSHS_MAX_SANS; i++) {
		int type;
		const ASN1_STRING *s =
			GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(sans, i), &type);
		if (type != GEN_URI)
			continue;
		const uint8_t *p = ASN1_STRING_get0_data(s);
		size_t len = (size_t)ASN1_STRING_length(s);
		if (!len || at + len + 2 > TLSHS_PEER_BYTES || memchr(p, 0, len))
			continue;
		memcpy(to + at, p, len);
		at += len;
		to[at++] = '\0';
		n++;
	}
	GENERAL_NAMES_free(sans);
	to[at] = '\0';
	return at + 1;
}

static const struct uris *find(const char *list, size_t len)
{
	const struct uris *u = all;
	while (u && (u->len != len || memcmp(u->list, list, len) != 0))
		u = u->next;
	return u;
}

static const struct uris *add(const char *list, size_t len)
{
	struct uris *u = malloc(sizeof(*u) + len);
	if (!u)
		return NULL;
	*u = (struct uris){.next = all, .len = len};
	memcpy(u->list, list, len);
	all = u;
	return u;
}

const char *tlshs_uris_keep(X509 *x)
{
	char list[TLSHS_PEER_BYTES];
	size_t len = write_list(x, list);
	if (len == 1)
		return "";
	pthread_mutex_lock(&lock);
	const struct uris *u = find(list, len);
	if (!u)
		u = add(list, len);
	pthread_mutex_unlock(&lock);
	return u ? u->list : NULL;
}
