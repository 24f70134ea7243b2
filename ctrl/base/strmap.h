// SPDX-License-Identifier: Apache-2.0
// Hash map from names to the objects that hold them; the link is part of the object.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct strmap_link {
	const char *key; // the object's own; constant while linked
	uint64_t hash;
	struct strmap_link *next;
};

struct strmap {
	struct strmap_link **buckets; // NULL = empty; no init needed
	uint32_t n_buckets; // power of two
	uint32_t n;
};

// NULL = absent.
struct strmap_link *strmap_find(const struct strmap *, const char *key);
// The key must not be in the map. Returns 0 or -ENOMEM.
[[nodiscard]] int strmap_add(struct strmap *, struct strmap_link *, const char *key);
void strmap_remove(struct strmap *, struct strmap_link *); // CHECKs that it is in the map
void strmap_fini(struct strmap *); // forgets what is still in it
uint64_t strmap_hash(const char *key);
