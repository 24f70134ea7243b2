// SPDX-License-Identifier: Apache-2.0
// Versions of resources as counted texts: thousands of resources arrive in one version, and every
// user of a resource needs its version. Not for other texts.
// Thread: one owner.
#pragma once

const char *xds_version_new(const char *); // a copy; count 1; NULL = out of memory
const char *xds_version_get(const char *); // argument from new() or get()
void xds_version_put(const char *); // NULL is fine
