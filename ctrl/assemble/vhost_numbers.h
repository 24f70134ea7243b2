// SPDX-License-Identifier: Apache-2.0
// Which virtual hosts are counted apart (docs/metrics.md, OPS-270): each name has a number, under
// which workers count, for as long as a compiled virtual host has that name, whichever tables have
// it. A number whose name is gone rests for ten minutes before another gets it, and for as long as
// requests are in flight that count there.
// Thread: ctrl.
#pragma once

#include "lb/pick/link.h"

#include <stdint.h>

struct twheel;
struct vhost_numbers;
struct workers;

// Both are borrowed and outlive it. NULL = out of memory.
struct vhost_numbers *vhost_numbers_new(const struct workers *, const struct twheel *);
void vhost_numbers_free(struct vhost_numbers *); // NULL is fine

// Returns 0 if there is no place for another name, nor memory; NULL: there is never any. Each use
// is given back, 0 as well.
uint16_t vhost_numbers_take(struct vhost_numbers *, const char *name);
void vhost_numbers_give(struct vhost_numbers *, uint16_t number);

// The lowest number that nobody has had yet.
uint32_t vhost_numbers_end(const struct vhost_numbers *);
// Whose it is, borrowed; NULL = nobody's.
const char *vhost_numbers_name(const struct vhost_numbers *, uint32_t number);
// What was counted since it is that one's, of all workers.
void vhost_numbers_read(
	const struct vhost_numbers *, uint32_t number, struct lb_vhost_counters *ret);
// Uses that got 0 and were not given back.
uint32_t vhost_numbers_left_out(const struct vhost_numbers *);
