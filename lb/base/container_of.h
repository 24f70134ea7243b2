// SPDX-License-Identifier: Apache-2.0
// From a member to the object that holds it.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The object of this type whose member ptr points to; const if ptr points to const. A pointer to
// anything but the member's own type doesn't compile. ptr is evaluated once. In capitals because
// DPDK has a container_of that checks less.
#define CONTAINER_OF(ptr, type, member)                                                            \
	_Generic((ptr), typeof(((type *)0)->member) *                                              \
		 : (type *)((uintptr_t)(ptr)-offsetof(type, member)),                              \
		   const typeof(((type *)0)->member) *                                             \
		 : (const type *)((uintptr_t)(ptr)-offsetof(type, member)))
