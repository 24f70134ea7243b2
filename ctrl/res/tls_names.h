// SPDX-License-Identifier: Apache-2.0
// Which names a server's certificate must have, by the matchers of a CertificateValidationContext.
// Not for users of a decoded context.
// Thread: ctrl.
#pragma once

#include "ctrl/res/tls.h"

// Readers of two of its fields, as struct res_field wants them: `ret` is a struct res_tls, which
// gets the matchers. The typed ones count if there are some (TLS-125).
[[nodiscard]] int res_tls_read_typed_names(struct res_reader *, const void *message, void *ret);
[[nodiscard]] int res_tls_read_names(struct res_reader *, const void *message, void *ret);
