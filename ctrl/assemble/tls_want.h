// SPDX-License-Identifier: Apache-2.0
// What resources and shunt.yaml say of TLS, as credentials are asked for it.
// Thread: ctrl.
#pragma once

#include "ctrl/certs/credential.h"

struct config_frontend_tls;
struct res_tls;

// All is borrowed.
struct credential_want tls_want_of_cluster(const struct res_tls *);
struct credential_want tls_want_of_listener(const struct res_tls *);
struct credential_want tls_want_of_frontend(const struct config_frontend_tls *);
