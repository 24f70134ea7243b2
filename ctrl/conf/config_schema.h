// SPDX-License-Identifier: Apache-2.0
// The schema of shunt.yaml, for code that walks struct config. Private to ctrl/conf.
// Thread: any; constant.
#pragma once

#include <cyaml/cyaml.h>

extern const cyaml_schema_value_t config_schema; // a pointer to struct config
