// SPDX-License-Identifier: Apache-2.0
// One frontend of shunt.yaml by itself. What libcyaml has allocated of it is malloc()'s.
// Thread: ctrl.
#pragma once

struct config_frontend;

void config_frontend_fini(struct config_frontend *); // all zero is fine
void config_frontend_free(struct config_frontend *); // NULL is fine
