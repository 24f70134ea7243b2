// SPDX-License-Identifier: Apache-2.0
// The schema of shunt.yaml, for code that walks struct config. Private to ctrl/conf.
// Thread: any; constant.
#pragma once

#include <cyaml/cyaml.h>

#include <stddef.h>

extern const cyaml_schema_value_t config_schema; // a pointer to struct config

// Which words a field takes. The keys of these fields are unique in the file.
struct config_choice {
	const char *key;
	const cyaml_strval_t *names;
	size_t n;
};
extern const struct config_choice config_choices[];
extern const size_t config_n_choices;
