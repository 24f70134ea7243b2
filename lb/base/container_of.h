// SPDX-License-Identifier: Apache-2.0
// From a member to the object that holds it.
// Thread: any.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The object of this type that contains member ptr; const if ptr points to const. Does not compile
// unless ptr points to the member's type. Evaluates ptr once. In capitals because DPDK has a
// container_of that checks less.
#define CONTAINER_OF(ptr, type, member)                                                            \
	_Generic((ptr), typeof(((type *)0)->member) *                                              \
		 : (type *)((uintptr_t)(ptr)-offsetof(type, member)),                              \
		   const typeof(((type *)0)->member) *                                             \
		 : (const type *)((uintptr_t)(ptr)-offsetof(type, member)))
