// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif.h"

#include "lb/base/devargs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/memif.sock"
#define MAX_PATH 108 // of a Unix socket, with the zero

static bool says(struct str value, const char *word)
{
	return value.p && memmem(value.p, value.len, word, strlen(word));
}

bool memif_parse(const char *device, struct memif *ret)
{
	static const char driver[] = "net_memif";
	if (strncmp(device, driver, strlen(driver)) != 0)
		return false;
	struct str role = devargs_find(device, "role");
	struct str abstract = devargs_find(device, "socket-abstract");
	struct str id = devargs_find(device, "id"), socket = devargs_find(device, "socket");
	*ret = (struct memif){
		.is_client = !says(role, "server") && !says(role, "master"),
		.is_abstract = !abstract.p || says(abstract, "yes"),
		.id = id.p ? (uint32_t)strtoul(id.p, NULL, 10) : 0,
		.socket = socket.p ? socket : STR(DEFAULT_SOCKET),
		.mac = devargs_find(device, "mac"),
	};
	return true;
}

bool memif_print(const struct memif *m, char *ret, size_t size)
{
	int len = snprintf(ret, size, "memif:%u:%s%.*s", m->id, m->is_abstract ? "@" : "",
		(int)m->socket.len, m->socket.p);
	return len > 0 && (size_t)len < size;
}

bool memif_has_socket(const struct memif *m)
{
	char path[MAX_PATH];
	if (m->is_abstract || m->socket.len >= sizeof(path))
		return true;
	memcpy(path, m->socket.p, m->socket.len);
	path[m->socket.len] = '\0';
	return access(path, F_OK) == 0;
}
