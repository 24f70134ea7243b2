// SPDX-License-Identifier: Apache-2.0
// The numbers and booleans of shunt.yaml as they are written. libcyaml reads a number with
// strtoull() and ignores what follows it, and takes every word that means no "no" for true: this
// refuses both before libcyaml reads the same text. What else is wrong is left to libcyaml.
// Thread: any; no state.
#pragma once

#include <stddef.h>

struct lb_err;

// text: len bytes of YAML, borrowed. Returns 0, or -EINVAL for a number that is not written in
// plain decimal digits without a leading zero, or a boolean that is neither true nor false:
// `PATH:LINE: FIELD: 'VALUE' is ...`. 0 also for text that is no YAML.
[[nodiscard]] int config_scalars_check(
	const char *path, const char *text, size_t len, struct lb_err *reterr);
