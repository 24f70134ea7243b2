// SPDX-License-Identifier: Apache-2.0
// What the handshakes of both roles go by, from files. As HTTP/2 alone is spoken, `h2` is all that
// they offer. The client believes any server: it measures.
// Thread: main.
#pragma once

#include "lb/base/err.h"

struct tlshs_context;

// 0 with a reference of the caller's, or -EINVAL with reterr.
[[nodiscard]] int credentials_of_client(struct tlshs_context **ret, struct lb_err *reterr);
// certificate, key: paths of PEM files. The same.
[[nodiscard]] int credentials_of_echo(const char *certificate, const char *key,
	struct tlshs_context **ret, struct lb_err *reterr);
