// SPDX-License-Identifier: Apache-2.0
// What xDS servers sent, as a file holds it for a start without them: pure, from and to bytes, no
// disk (docs/decisions/cold-start.md).
// A head of 32 bytes, numbers in little endian: "SHUNTXDS", the version (4 bytes), zero (4), the
// length of the body (8), and XXH64 of the body with that of the 24 bytes before as seed (8). The
// body is a protobuf message:
//   1 node id, string; 2 time of writing, seconds since 1970; 3 sections, messages:
//     1 URI of the server, string; 2 URL of the type, string; 3 its resources, a
//     DeltaDiscoveryResponse; 4 for each wildcard that was answered, its ResourceLocator; 5 for
//     each name that was asked for and that the server did not have, its ResourceLocator.
// So a section is read as a response of its server is, by the same code. Fields that are not known
// are passed over: what a later run adds as one needs no other version.
// Thread: any, one owner.
#pragma once

#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XDS_STATE_VERSION 1
#define XDS_STATE_MAX_LEN                                                                          \
	((size_t)256 << 20) // of a file: what is larger is neither written nor read
#define XDS_STATE_MAX_ABSENT                                                                       \
	262144 // names: so many of a server are written, and so many of a file read, the first ones
#define XDS_STATE_MAX_ABSENT_LEN ((size_t)8 << 20) // of a server's, written

struct xds_state_section {
	struct str server, type_url; // text
	struct str response; // not looked into
	const struct str *absent; // ResourceLocators, in order; the state's
	size_t n_absent;
	struct str all; // the section itself
};

// A file that was read. Zeroed is an empty one.
struct xds_state {
	uint8_t *bytes; // owned
	struct str node_id;
	uint64_t written_s; // since 1970
	const char *from; // for the log, static: "disk", unless who reads it says otherwise
	struct xds_state_section *sections; // owned
	size_t n_sections;
	struct str *absent; // owned: of all sections
	size_t n_absent;
};

// Takes the bytes (malloc), even on failure. Returns 0, -ENOMEM, or -EINVAL with what is wrong.
[[nodiscard]] int xds_state_parse(
	uint8_t *bytes, size_t len, struct xds_state *ret, struct lb_err *reterr);
void xds_state_fini(struct xds_state *); // leaves an empty one
// The wildcard with this ResourceLocator was answered: the section has all that it stands for.
bool xds_state_lists_all(const struct xds_state_section *, struct str locator);
// The server did not have the name with this ResourceLocator, which was asked for: returns the one
// of state.absent, or NULL.
const struct str *xds_state_lacks(const struct xds_state_section *, struct str locator);

// One resource to be written. All borrowed.
struct xds_state_item {
	struct str name, version;
	struct str constraints; // encoded; empty = none
	struct str bytes;
};
struct xds_state_part {
	const char *server;
	// NULL: all sections of the server are those of the file before.
	const char *type_url;
	const struct xds_state_item *items; // each (name, constraints) once
	size_t n_items;
	const struct str *wildcards; // ResourceLocators
	size_t n_wildcards;
	const struct str *absent; // likewise
	size_t n_absent;
};
struct xds_state_image {
	const char *node_id;
	uint64_t written_s;
	const struct xds_state_part *parts;
	size_t n_parts;
};
// `before` may be empty. Returns 0, -ENOMEM, or -EFBIG: *ret_len is what it would have, and nothing
// was made. The caller frees *ret.
[[nodiscard]] int xds_state_encode(const struct xds_state_image *, const struct xds_state *before,
	uint8_t **ret, size_t *ret_len);
