// SPDX-License-Identifier: Apache-2.0
// What differs between two configurations, field by field as shunt.yaml names them.
// Thread: any; reads alone.
#pragma once

struct config;

// Calls fn for each field that differs: "ports[0].mtu"; a list of another length is one field, and
// so is a mapping that only one of them has. Defaults that only one spells out differ, too.
void config_diff(const struct config *, const struct config *,
	void (*fn)(void *ctx, const char *field), void *ctx);
