// SPDX-License-Identifier: Apache-2.0
// A list from malloc that grows by doubling.
// Thread: any; a list belongs to its writer.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes room for one more behind n elements of this size. list: the address of the pointer to the
// list, of any type; NULL with no room = not begun. False = out of memory, and all is as before.
bool grow(void *list, size_t n, uint32_t *room, size_t size);
