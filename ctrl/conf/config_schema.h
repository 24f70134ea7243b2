// SPDX-License-Identifier: Apache-2.0
// The shape of shunt.yaml, for those who read struct config by it. Nobody else's.
// Thread: any; constant.
#pragma once

#include <cyaml/cyaml.h>

extern const cyaml_schema_value_t config_schema; // a pointer to struct config
