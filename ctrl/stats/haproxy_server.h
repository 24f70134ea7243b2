// SPDX-License-Identifier: Apache-2.0
// Endpoints as HAProxy's commands name and change them: BACKEND/SERVER is CLUSTER/ADDRESS, of an
// aggregate CLUSTER/LEAF/ADDRESS. What is changed is what `set endpoint` says of it
// (ctrl/assemble/overrides.h).
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/overrides.h"
#include "lb/base/err.h"
#include "lb/base/ip.h"

struct assembler;
struct assembler_endpoint_info;

#define HAPROXY_SERVER_MAX (OVERRIDE_MAX_CLUSTER + 1 + IP_PORT_TEXT_MAX)
// SERVER; longer ones are cut. Returns text.
const char *haproxy_server_name(
	const char *cluster, const struct assembler_endpoint_info *, char text[HAPROXY_SERVER_MAX]);

// `disable server`, `enable server`, and the words behind `set server`: n words, the first of which
// is BACKEND/SERVER. 0, or -EINVAL with reterr.
[[nodiscard]] int haproxy_server_disable(
	struct assembler *, char *const *words, unsigned n, struct lb_err *reterr);
[[nodiscard]] int haproxy_server_enable(
	struct assembler *, char *const *words, unsigned n, struct lb_err *reterr);
// state ready | drain | maint; weight N | N%
[[nodiscard]] int haproxy_server_set(
	struct assembler *, char *const *words, unsigned n, struct lb_err *reterr);
// `set weight`: the same without the word.
[[nodiscard]] int haproxy_server_set_weight(
	struct assembler *, char *const *words, unsigned n, struct lb_err *reterr);
