// SPDX-License-Identifier: Apache-2.0
// What a frontend is to be by another target. It is made beside what serves, out of configurations
// of its own, with all that these need (routes, filters, clusters), and takes its place as a whole
// (OPS-324). An assembled_frontend by itself, it waits, is refused and tries again as any other;
// workers hear nothing of it. Until it is taken or dropped, the configuration's row has a next one.
// Thread: ctrl.
#pragma once

#include <stdbool.h>

struct assembled_frontend;

// Instead of one that there may be. False = out of memory, and there is none.
[[nodiscard]] bool frontend_next_begin(struct assembled_frontend *of);
// Lets its clusters go. None is fine.
void frontend_next_drop(struct assembled_frontend *of);
// It could serve, with each of its clusters. None is fine.
bool frontend_next_is_made(const struct assembled_frontend *of);
// It serves from now on, and what served lets its clusters go. It has to be made.
void frontend_next_take(struct assembled_frontend *of);
// With the assembler: clusters are freed with it, too. None is fine.
void frontend_next_fini(struct assembled_frontend *of);
