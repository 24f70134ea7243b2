// SPDX-License-Identifier: Apache-2.0
// Takes the place of the C library's allocator in a test program and hands through to it.
#include "tests/support/alloc_fail.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static _Thread_local bool armed, hit;
static _Thread_local size_t left;
static _Thread_local long live;

// The sanitizers bring allocators of their own, which nothing may take the place of.
#ifndef SANITIZED
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

// True = let this one fail.
static bool fails(void)
{
	if (!armed || left == SIZE_MAX)
		return false;
	if (left-- > 0)
		return false;
	left = SIZE_MAX;
	hit = true;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	void *p = fails() ? NULL : __libc_malloc(size);
	live += armed && p;
	return p;
}

void *calloc(size_t n, size_t size)
{
	void *p = fails() ? NULL : __libc_calloc(n, size);
	live += armed && p;
	return p;
}

void *realloc(void *old, size_t size)
{
	void *p = fails() ? NULL : __libc_realloc(old, size);
	live += armed && p && !old;
	return p;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	void *p = fails() ? NULL : __libc_memalign(alignment, size);
	live += armed && p;
	return p;
}

void free(void *p)
{
	live -= armed && p;
	__libc_free(p);
}
#endif

void alloc_fail_arm(size_t nth)
{
	armed = true;
	hit = false;
	left = nth;
	live = 0;
}

bool alloc_fail_disarm(void)
{
	armed = false;
	return hit;
}

bool alloc_fail_works(void)
{
#ifdef SANITIZED
	return false;
#else
	return true;
#endif
}

long alloc_fail_live(void)
{
	return live;
}
