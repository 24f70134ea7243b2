// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/memif.sock"
#define MAX_PATH 108 // of a Unix socket, with the zero

// The value of an argument; of one that is there twice the last, which is DPDK's as well.
static const char *find(const char *device, const char *key, size_t *ret_len)
{
	const char *found = NULL;
	size_t key_len = strlen(key);
	for (const char *at = strchr(device, ','); at; at = strchr(at, ',')) {
		at++;
		if (strncmp(at, key, key_len) != 0 || at[key_len] != '=')
			continue;
		found = at + key_len + 1;
		*ret_len = strcspn(found, ",");
	}
	return found;
}

static bool says(const char *value, size_t len, const char *word)
{
	return value && memmem(value, len, word, strlen(word));
}

bool memif_parse(const char *device, struct memif *ret)
{
	static const char driver[] = "net_memif";
	size_t len = 0;
	if (strncmp(device, driver, strlen(driver)) != 0)
		return false;
	*ret = (struct memif){.socket = DEFAULT_SOCKET, .socket_len = strlen(DEFAULT_SOCKET)};
	const char *value = find(device, "role", &len);
	ret->is_client = !says(value, len, "server") && !says(value, len, "master");
	value = find(device, "socket-abstract", &len);
	ret->is_abstract = !value || says(value, len, "yes");
	value = find(device, "id", &len);
	ret->id = value ? (uint32_t)strtoul(value, NULL, 10) : 0;
	value = find(device, "socket", &len);
	if (value) {
		ret->socket = value;
		ret->socket_len = len;
	}
	ret->mac = find(device, "mac", &ret->mac_len);
	return true;
}

bool memif_print(const struct memif *m, char *ret, size_t size)
{
	int len = snprintf(ret, size, "memif:%u:%s%.*s", m->id, m->is_abstract ? "@" : "",
		(int)m->socket_len, m->socket);
	return len > 0 && (size_t)len < size;
}

bool memif_has_socket(const struct memif *m)
{
	char path[MAX_PATH];
	if (m->is_abstract || m->socket_len >= sizeof(path))
		return true;
	memcpy(path, m->socket, m->socket_len);
	path[m->socket_len] = '\0';
	return access(path, F_OK) == 0;
}
