// SPDX-License-Identifier: Apache-2.0
#include "tlshs/keylog.h"

#include <stdlib.h>
#include <string.h>

void tlshs_keylog_init(struct tlshs_keylog *k)
{
	*k = (struct tlshs_keylog){.on = false};
	pthread_mutex_init(&k->lock, NULL);
}

void tlshs_keylog_fini(struct tlshs_keylog *k)
{
	tlshs_keylog_end(k);
	pthread_mutex_destroy(&k->lock);
}

bool tlshs_keylog_begin(struct tlshs_keylog *k)
{
	char *lines = malloc(TLSHS_KEYLOG_ROOM);
	if (!lines)
		return false;
	pthread_mutex_lock(&k->lock);
	k->lines = lines;
	k->len = 0;
	k->n_lines = k->n_lost = 0;
	pthread_mutex_unlock(&k->lock);
	__atomic_store_n(&k->on, true, __ATOMIC_RELAXED); // the lock orders the rest
	return true;
}

void tlshs_keylog_end(struct tlshs_keylog *k)
{
	__atomic_store_n(&k->on, false, __ATOMIC_RELAXED);
	pthread_mutex_lock(&k->lock);
	char *lines = k->lines;
	k->lines = NULL;
	k->len = 0;
	__atomic_store_n(&k->any, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&k->lock);
	if (lines)
		explicit_bzero(lines, TLSHS_KEYLOG_ROOM);
	free(lines);
}

static void add(struct tlshs_keylog *k, const char *line, size_t len)
{
	if (!k->lines)
		return; // it has just ended
	if (len >= TLSHS_KEYLOG_LINE_MAX || TLSHS_KEYLOG_ROOM - k->len < len + 1) {
		k->n_lost++;
		return;
	}
	memcpy(k->lines + k->len, line, len);
	k->lines[k->len + len] = '\n';
	k->len += len + 1;
	k->n_lines++;
	__atomic_store_n(&k->any, true, __ATOMIC_RELEASE); // pairs with has_more()
}

void tlshs_keylog_add(struct tlshs_keylog *k, const char *line)
{
	if (!tlshs_keylog_is_on(k))
		return;
	pthread_mutex_lock(&k->lock);
	add(k, line, strlen(line));
	pthread_mutex_unlock(&k->lock);
}

// Of the first bytes those that are whole lines.
static size_t whole(const char *lines, size_t len)
{
	while (len && lines[len - 1] != '\n')
		len--;
	return len;
}

size_t tlshs_keylog_take(struct tlshs_keylog *k, uint8_t *to, size_t room)
{
	pthread_mutex_lock(&k->lock);
	size_t n = k->lines ? whole(k->lines, k->len < room ? k->len : room) : 0;
	if (n) {
		memcpy(to, k->lines, n);
		memmove(k->lines, k->lines + n, k->len - n);
		explicit_bzero(k->lines + k->len - n, n);
		k->len -= n;
	}
	__atomic_store_n(&k->any, k->len > 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&k->lock);
	return n;
}

void tlshs_keylog_count(struct tlshs_keylog *k, uint64_t *ret_lines, uint64_t *ret_lost)
{
	pthread_mutex_lock(&k->lock);
	*ret_lines = k->n_lines;
	*ret_lost = k->n_lost;
	pthread_mutex_unlock(&k->lock);
}
