// SPDX-License-Identifier: Apache-2.0
// Versions of resources, as texts that are counted: thousands of resources come in one version, and
// whoever uses a resource knows its version as well. Not for other texts, though they would do.
// Thread: one owner.
#pragma once

const char *xds_version_new(const char *); // a copy; count 1; NULL = out of memory
const char *xds_version_get(const char *); // of new() or get()
void xds_version_put(const char *); // NULL is fine
