// SPDX-License-Identifier: Apache-2.0
// What a process that is followed leaves to the newer one: who is ejected, what weights backends
// have reported, what health checks said, what operators have set, the secret of tickets if the
// process has made it. It lies in a sealed file without a name, whose descriptor is passed on; a
// newer one that can't read it learns all of it anew. Memory that had the secret is overwritten.
// Thread: ctrl.
#pragma once

struct assembler;
struct credentials;

// Returns a descriptor, the caller's to close; -1 = there is nothing, or no memory (the log says).
[[nodiscard]] int bequest_make(const struct assembler *, const struct credentials *);
// Takes what is of use here; the log says what. Borrows the descriptor.
void bequest_take(struct assembler *, struct credentials *, int fd);
