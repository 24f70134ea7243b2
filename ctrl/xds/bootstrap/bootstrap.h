// SPDX-License-Identifier: Apache-2.0
// gRPC's bootstrap file (grpc/grpc doc/grpc_xds_bootstrap_format.md, gRFC A27, A29, A47, A65): the
// servers, our node, names of listener resources, certificate providers. Unknown fields are
// ignored.
// Thread: any; immutable once loaded, but for certificate providers, which are ctrl's.
#pragma once

#include "ctrl/xds/bootstrap/cert_files.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ip_port;

struct json_t;
struct xds_params;

enum xds_creds_kind { XDS_CREDS_INSECURE, XDS_CREDS_GOOGLE_DEFAULT, XDS_CREDS_TLS };

struct xds_server_conf {
	char *uri; // what gRPC calls a target: "127.0.0.1:18000", "dns:///xds.example:443"
	enum xds_creds_kind creds;
	struct xds_cert_files files; // TLS (A65); without a CA file the system's roots count
	bool ignore_resource_deletion; // A53; no effect if A88 applies (DE-06)
	bool fail_on_data_errors; // A88
	bool timer_is_transient_error; // A88: resource_timer_is_transient_error
	bool trusted; // A81: trusted_xds_server
};

struct xds_authority_conf {
	char *name;
	char *listener_template; // client_listener_resource_name_template; never NULL
	struct xds_params *params; // dynamic_parameters, for names of this authority (TP2-B01)
	struct xds_server_conf *servers; // NULL = the top-level ones
	uint32_t n_servers;
};

struct xds_bootstrap {
	struct xds_server_conf *servers; // in order of preference; at least one
	uint32_t n_servers;
	char *node_id, *node_cluster; // "" when absent
	char *region, *zone, *sub_zone; // "" when absent
	struct json_t *metadata; // an object; NULL = none
	char *listener_template; // client_default_listener_resource_name_template; default "%s"
	char *server_listener_template; // NULL = none
	struct xds_params *params; // dynamic_parameters, for old-style names (TP2-B01)
	struct xds_authority_conf *authorities;
	uint32_t n_authorities;
	struct xds_cert_provider_conf *cert_providers; // they stay where they are
	uint32_t n_cert_providers, max_cert_providers;
};

// True if a client would connect to the same server: URI, credentials and known features (FE-07).
bool xds_server_conf_eq(const struct xds_server_conf *, const struct xds_server_conf *);

// `source` names the text in errors (a path). Returns 0, -ENOMEM or -EINVAL with source, field and
// reason.
[[nodiscard]] int xds_bootstrap_parse(const char *text, size_t len, const char *source,
	struct xds_bootstrap **ret, struct lb_err *reterr);
[[nodiscard]] int xds_bootstrap_load_file(
	const char *path, struct xds_bootstrap **ret, struct lb_err *reterr);
// Loads the file named by GRPC_XDS_BOOTSTRAP, else the text in GRPC_XDS_BOOTSTRAP_CONFIG, else
// bootstrap.json in the folder of `config`, which is the path of shunt.yaml (BT-01).
[[nodiscard]] int xds_bootstrap_load(
	const char *config, struct xds_bootstrap **ret, struct lb_err *reterr);
// The same for a loop that must answer, of one that may be another one by now. *ret = NULL, and 0:
// it cannot be, as the text of a variable, or could not be read twice, as a pipe.
[[nodiscard]] int xds_bootstrap_load_again(
	const char *config, struct xds_bootstrap **ret, struct lb_err *reterr);
void xds_bootstrap_free(struct xds_bootstrap *); // NULL is fine

// NULL = there is none of that name.
const struct xds_cert_provider_conf *xds_bootstrap_find_provider(
	const struct xds_bootstrap *, const char *name);
#define XDS_MORE_PROVIDERS 256 // than at first
// Takes that provider out of `from`, where those behind it move up. There is room for it.
const struct xds_cert_provider_conf *xds_bootstrap_adopt_provider(
	struct xds_bootstrap *, struct xds_bootstrap *from, uint32_t i);
enum xds_cert_part {
	XDS_CERT_OWN, // certificate and key
	XDS_CERT_CA, // CAs, or a map of SPIFFE's
};
// Whether there is a provider of this name with files of this part. Returns 0 or -EINVAL with the
// name and what is missing.
[[nodiscard]] int xds_bootstrap_check_provider(
	const struct xds_bootstrap *, const char *name, enum xds_cert_part, struct lb_err *reterr);

// Returns the listener resource for a target like "web" (xds:///web) or "xds://authority/web" (A47,
// FE-05, FE-06). The caller frees *ret. Returns 0, -ENOMEM or -EINVAL with the reason.
[[nodiscard]] int xds_bootstrap_listener_name(
	const struct xds_bootstrap *, const char *target, char **ret, struct lb_err *reterr);
// Likewise for a socket Listener of this name, or if it is NULL by
// server_listener_resource_name_template for the place where it listens (A36, A47).
[[nodiscard]] int xds_bootstrap_server_listener_name(const struct xds_bootstrap *, const char *name,
	const struct ip_port *, char **ret, struct lb_err *reterr);
