// SPDX-License-Identifier: Apache-2.0
// A directory of CRLs (gRFC A69): any names, each file with one or more in PEM.
// Thread: any; it waits for the file system.
#pragma once

#include "ctrl/base/whole_file.h"
#include "lb/base/err.h"

#include <stdint.h>

struct cert_crl_file {
	char *name; // in the directory
	struct whole_file pem;
	char *issuers;
	int64_t next_update_s; // the first of them; 0 = none says
	uint32_t n_crls;
};

struct cert_crls {
	struct cert_crl_file *list; // by name
	uint32_t n;
	uint32_t n_bad; // files that could not be read, which are not in the list
};

// Files whose name begins with a dot, and directories, are passed over. One that is bad costs
// nobody else: reterr has the first of them, and the result is 0 with the others (TLS-110). Returns
// -EINVAL if the directory cannot be read, or -ENOMEM.
[[nodiscard]] int cert_crls_load(
	const char *directory, struct cert_crls *ret, struct lb_err *reterr);
// After a load with bad files: what the earlier one had and this one has not stays, as copies,
// since a file that cannot be read does not tell whose CRL it was (A69). 0 or -ENOMEM.
[[nodiscard]] int cert_crls_keep(struct cert_crls *, const struct cert_crls *earlier);
void cert_crls_fini(struct cert_crls *);
