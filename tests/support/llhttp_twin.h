// SPDX-License-Identifier: Apache-2.0
// dataplane/h1 beside llhttp, Node.js's parser (Debian's node-llhttp): whatever requests ours takes
// of a client's bytes, llhttp takes, with the same method, path, fields and body. What is refused
// here and taken there is no complaint.
// Thread: one.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct llhttp_twin_count {
	size_t n_heads, n_whole; // of requests that both have taken
	size_t n_left; // inputs with what llhttp does not know: their rest is not compared
};

// What differs first, a static text; NULL = nothing. Adds to the count.
const char *llhttp_twin_complaint(const uint8_t *, size_t len, struct llhttp_twin_count *);
