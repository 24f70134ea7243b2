// SPDX-License-Identifier: Apache-2.0
// Matches the kind of pattern that most routes use, such as /users/[^/]+/posts/\d+: a sequence of
// classes and literals in which each character can belong to only one. A single pass, without a
// scratch, is several times as fast as starting a scan of Hyperscan.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

struct lb_regex_chain;

// text: from lb_regex_syntax_read(). Returns NULL if the pattern is of another kind, or if out of
// memory.
struct lb_regex_chain *lb_regex_chain_new(const char *text, size_t len);
void lb_regex_chain_free(struct lb_regex_chain *); // NULL is fine
size_t lb_regex_chain_size(const struct lb_regex_chain *); // bytes
// The subject must be ASCII.
bool lb_regex_chain_match(const struct lb_regex_chain *, struct str subject);
