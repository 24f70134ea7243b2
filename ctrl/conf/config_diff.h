// SPDX-License-Identifier: Apache-2.0
// Differences between two configurations, field by field with the names of shunt.yaml.
// Thread: any; reads alone.
#pragma once

struct config;
struct config_frontend;

// Calls fn for each field that differs: "ports[0].mtu". A list of another length counts as one
// field, and so does a mapping that only one of them has. A default also differs from the same
// value given explicitly.
void config_diff(const struct config *, const struct config *,
	void (*fn)(void *ctx, const char *field), void *ctx);
// The same of two frontends, as fields of this one: "frontends[2]".
void config_diff_frontend(const struct config_frontend *, const struct config_frontend *,
	const char *path, void (*fn)(void *ctx, const char *field), void *ctx);
