// SPDX-License-Identifier: Apache-2.0
// Views of a ClusterLoadAssignment's bytes: the fields that Shunt reads, decoded as protobuf
// defines (WF-01). ctrl/res/endpoints.c validates their content. Every function returns 0, or
// -EINVAL if the bytes are no protobuf or a string is not UTF-8; reterr names the field. Views
// borrow from the bytes.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eds_address { // envoy.config.core.v3.Address
	bool is_socket;
	bool has_port; // a port_value
	uint32_t port;
	struct str text;
};

// What typed_filter_metadata has at EDS_PROXY_KEY (gRFC A86).
struct eds_any {
	struct str type_url, value;
};
#define EDS_PROXY_KEY "envoy.http11_proxy_transport_socket.proxy_address"

struct eds_endpoint { // LbEndpoint
	bool is_endpoint; // no endpoint_name
	bool has_weight;
	uint32_t weight;
	int32_t health;
	struct eds_address address;
	struct str hostname;
	struct str hash_key; // filter_metadata["envoy.lb"]["hash_key"] (gRFC A76)
	struct eds_any proxy;
	size_t n_additional;
};
// Additional addresses are stored in additional[room]; those that do not fit are only counted.
int eds_read_endpoint(struct str bytes, struct eds_endpoint *ret, struct eds_address *additional,
	size_t room, struct lb_err *reterr);

struct eds_locality { // LocalityLbEndpoints
	struct str bytes;
	bool is_named; // has a locality
	struct str region, zone, sub_zone;
	uint32_t weight; // 0 = 0, or none
	uint32_t priority;
	size_t n_endpoints;
	struct eds_any proxy; // of its endpoints that have none of their own
};
// Counts its endpoints without reading them.
int eds_read_locality(struct str bytes, struct eds_locality *ret, struct lb_err *reterr);
// Reads the next endpoint of a locality; *at starts with the locality's bytes, which
// eds_read_locality() has validated. Returns false at the end.
bool eds_next_endpoint(struct str *at, struct str *ret);

// True = it is an Address; another type says nothing (HC-05).
bool eds_any_is_address(const struct eds_any *);
int eds_read_proxy(const struct eds_any *, struct eds_address *ret, struct lb_err *reterr);

struct eds_drop { // DropOverload
	struct str category;
	bool has_percentage;
	uint32_t numerator;
	int32_t denominator;
};

// Callbacks for the parts of a ClusterLoadAssignment, in the order of its bytes. Each returns 0, or
// an error that ends the reading.
struct eds_sink {
	int (*on_locality)(void *ctx, struct str bytes, struct lb_err *reterr);
	int (*on_drop)(void *ctx, const struct eds_drop *, struct lb_err *reterr);
	void *ctx;
};
// Also returns a callback's error. The name may be "".
int eds_read(
	struct str bytes, const struct eds_sink *, struct str *ret_name, struct lb_err *reterr);
