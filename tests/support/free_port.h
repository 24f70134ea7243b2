// SPDX-License-Identifier: Apache-2.0
// A port of the loopback for a server of a test: one that the kernel gives to nobody by itself
// (ip(7), ip_local_port_range), so that no connection of another test takes it before the server
// does, nor while that is down.
// Thread: the test's own.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FREE_PORT_FIRST = 10000, FREE_PORT_N = 20000, FREE_PORTS_EACH = 16 };

static inline bool free_port_is(uint16_t port, int type)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	bool is = bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
	close(fd);
	return is;
}

// Of UDP and TCP. Processes that run at the same time begin to look in different places.
static inline uint16_t free_port(void)
{
	static unsigned n;
	uint16_t port;
	do
		port = (uint16_t)(FREE_PORT_FIRST +
				  ((unsigned)getpid() * FREE_PORTS_EACH + n++) % FREE_PORT_N);
	while (!free_port_is(port, SOCK_STREAM) || !free_port_is(port, SOCK_DGRAM));
	return port;
}
