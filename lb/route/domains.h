// SPDX-License-Identifier: Apache-2.0
// Which virtual host serves an authority (VH-01..VH-10), compiled: exact names in a
// hash, prefix and suffix wildcards in radix trees. The same rule on plain data is
// lb_vhost_choose() in lb/route/route.h.
// Thread: made and freed on ctrl; find anywhere. Pure.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdint.h>

struct lb_vhost_conf;
struct lb_domains;

// True if it is not empty and `*` occurs at most at its start or end (VH-07).
bool lb_domain_is_valid(struct str domain);
// Begins to make one, of about so many exact domains. Returns NULL if out of memory.
struct lb_domains *lb_domains_new(uint32_t n_exact);
// Adds the domains of virtual host `index`; hosts come in order. Domains with a star are borrowed
// until seal(). 0, -ENOMEM, or -EINVAL for a bad domain, which reterr names.
[[nodiscard]] int lb_domains_add(
	struct lb_domains *, const struct lb_vhost_conf *, uint32_t index, struct lb_err *reterr);
// After the last add(), before the first find(). 0 or -ENOMEM.
[[nodiscard]] int lb_domains_seal(struct lb_domains *);
void lb_domains_free(struct lb_domains *); // at any time; NULL is fine
// Returns the virtual host's index; -1 = none (VH-10).
int lb_domains_find(const struct lb_domains *, struct str authority);
// True if it is not empty and has only bytes allowed in an authority without userinfo (RFC 3986
// 3.2): it can be sent as :authority.
bool lb_authority_is_valid(struct str authority);
// Without the port, after the last colon outside brackets: the lookup key of a table that ignores
// ports (VH-06).
struct str lb_authority_without_port(struct str authority);
