// SPDX-License-Identifier: Apache-2.0
// The patterns that most routes are written with, such as /users/[^/]+/posts/\d+: classes and
// literals one after the other, where each character can belong to one of them alone. A single pass
// decides them, without a scratch, several times as fast as Hyperscan starts a scan.
// Thread: any. Pure.
#pragma once

#include "lb/base/str.h"

struct lb_regex_chain;

// text: of lb_regex_syntax_read(). NULL = not such a pattern, or out of memory.
struct lb_regex_chain *lb_regex_chain_new(const char *text, size_t len);
void lb_regex_chain_free(struct lb_regex_chain *); // NULL is fine
size_t lb_regex_chain_size(const struct lb_regex_chain *); // bytes
// The subject is ASCII.
bool lb_regex_chain_match(const struct lb_regex_chain *, struct str subject);
