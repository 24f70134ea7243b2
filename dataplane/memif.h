// SPDX-License-Identifier: Apache-2.0
// What the devargs of a memif say (DPDK's net_memif): memory that two processes share. One, the
// server, has a socket, to which the other one, the client, connects; the memory is the client's.
// Thread: any.
#pragma once

#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memif {
	bool is_client;
	bool is_abstract; // the socket's name is no path (unix(7))
	uint32_t id; // among the memifs of that socket
	struct str socket; // within the device, or static
	struct str mac; // likewise; p NULL = DPDK chooses one
};

// As DPDK 22.11 reads them, defaults included. False = another driver's device.
[[nodiscard]] bool memif_parse(const char *device, struct memif *ret);
// What both ends know it by: "memif:0:/run/memif.sock", or with an @ before an abstract name.
// False = no room.
[[nodiscard]] bool memif_print(const struct memif *, char *ret, size_t size);
// False = there is no socket to connect to, as far as can be seen.
bool memif_has_socket(const struct memif *);
