// SPDX-License-Identifier: Apache-2.0
// Makes the checks of header.c cheap: text is checked eight bytes at a time where possible, and the
// result is stored with the entry of the HPACK table or the memo, so that a repeated field is not
// checked again. With h2_block.slow_path every field is checked anew, byte by byte; tests compare
// the two.
// Thread: the owner's.
#pragma once

#include "dataplane/h2/hpack.h"
#include "lb/route/req.h"

// Character classes.
enum h2_text {
	H2_TEXT_NAME = 1, // RFC 9110 5.6.2 token, lower case (RFC 9113 8.2.1)
	H2_TEXT_VALUE = 2, // no control but HTAB; more than 8.2.1 requires, the same as nghttp2
	H2_TEXT_METHOD = 4, // token
	H2_TEXT_AUTHORITY = 8, // RFC 3986 3.2 without userinfo's '@'
	H2_TEXT_PATH = 16, // no control, no blank
	H2_TEXT_SCHEME = 32, // RFC 3986 3.1: a letter, then these
};

// Bits of hpack_field.mark.
enum h2_mark {
	H2_MARK_CHECKED = HPACK_MARK_STATIC, // the text is valid, on any connection
	H2_MARK_TRAILERS = 2, // te contains `trailers`
	H2_MARK_GRPC = 4, // content-type is gRPC's
	H2_MARK_PLAIN = 8, // no rule applies to the field: keep it as it is
};

// True if the text is not empty and all bytes are of class t. slow_path: check byte by byte.
bool h2_text_is(struct str, enum h2_text, bool slow_path);

// The same for a field's value, unless its mark already says so.
static inline bool h2_text_value_is(struct hpack_field *f, enum h2_text t, bool slow_path)
{
	if (f->mark & H2_MARK_CHECKED)
		return true;
	bool ok = h2_text_is(f->value, t, slow_path);
	f->mark |= ok ? H2_MARK_CHECKED : 0;
	return ok;
}

// True if this te field contains `trailers`.
static inline bool h2_text_says_trailers(struct hpack_field *f)
{
	if (!(f->mark & H2_MARK_TRAILERS) && str_eq_fold(f->value, STR("trailers")))
		f->mark |= H2_MARK_TRAILERS;
	return f->mark & H2_MARK_TRAILERS;
}

// True if this content-type is gRPC's.
static inline bool h2_text_says_grpc(struct hpack_field *f)
{
	if (!(f->mark & H2_MARK_GRPC) && lb_content_type_is_grpc(f->value))
		f->mark |= H2_MARK_GRPC;
	return f->mark & H2_MARK_GRPC;
}
