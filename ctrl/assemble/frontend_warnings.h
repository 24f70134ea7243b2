// SPDX-License-Identifier: Apache-2.0
// What the log says of a configuration that is about to serve: what of its resources has no effect.
// Thread: ctrl.
#pragma once

struct assembled_frontend;

// Of what is wanted, that was not said of what is applied.
void frontend_warnings_tell(const struct assembled_frontend *);
