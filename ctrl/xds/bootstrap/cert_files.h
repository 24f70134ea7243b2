// SPDX-License-Identifier: Apache-2.0
// The files with certificates that a bootstrap names: those of a certificate provider
// `file_watcher` (gRFC A29, A87), and of the channel credentials `tls` (gRFC A65), whose
// configuration is the same but for what may be left out.
// Thread: any; immutable once read.
#pragma once

#include "lb/base/err.h"
#include "lb/base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct json_t;

#define XDS_CERT_DEFAULT_REFRESH_NS (600 * NS_PER_SECOND)
#define XDS_CERT_MIN_REFRESH_NS NS_PER_SECOND // what is shorter counts as this, as with C-core

struct xds_cert_files { // NULL = not configured
	char *ca; // ca_certificate_file
	char *cert, *key; // certificate_file, private_key_file: both or neither
	char *spiffe; // spiffe_trust_bundle_map_file; beats ca (A87)
	uint64_t refresh_ns; // how often they are read again at least
};

struct xds_cert_provider_conf {
	char *name;
	struct xds_cert_files files;
};

// `at` names the object in errors. Returns 0, -ENOMEM or -EINVAL; call fini() either way.
[[nodiscard]] int xds_cert_files_read(
	const struct json_t *, const char *at, struct xds_cert_files *ret, struct lb_err *reterr);
void xds_cert_files_fini(struct xds_cert_files *);
bool xds_cert_files_eq(const struct xds_cert_files *, const struct xds_cert_files *);

// One entry of `certificate_providers` (TLS-100 to TLS-102). The same.
[[nodiscard]] int xds_cert_provider_read(const struct json_t *, const char *name,
	struct xds_cert_provider_conf *ret, struct lb_err *reterr);
void xds_cert_provider_fini(struct xds_cert_provider_conf *);
