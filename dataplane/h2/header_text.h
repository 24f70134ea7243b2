// SPDX-License-Identifier: Apache-2.0
// What keeps the rules of header.c cheap: the text of a field is looked at eight bytes at a time
// where that can tell, and what was found is noted with the entry of the HPACK table or the memo,
// so that the same field is not looked at again. With h2_block.slow_path every field is looked at
// anew, byte by byte; tests compare the two.
// Thread: the owner's.
#pragma once

#include "dataplane/h2/hpack.h"
#include "lb/route/req.h"

// Bytes that a text may have.
enum h2_text {
	H2_TEXT_NAME = 1, // RFC 9110 5.6.2 token, lower case (RFC 9113 8.2.1)
	H2_TEXT_VALUE = 2, // no control but HTAB; 8.2.1 asks less, nghttp2 the same
	H2_TEXT_METHOD = 4, // token
	H2_TEXT_AUTHORITY = 8, // RFC 3986 3.2 without userinfo's '@'
	H2_TEXT_PATH = 16, // neither control nor blank
	H2_TEXT_SCHEME = 32, // RFC 3986 3.1: a letter, then these
};

// In hpack_field.mark.
enum h2_mark {
	H2_MARK_CHECKED = HPACK_MARK_STATIC, // the text is fine, on whatever connection
	H2_MARK_TRAILERS = 2, // te says `trailers`
	H2_MARK_GRPC = 4, // content-type is gRPC's
	H2_MARK_PLAIN = 8, // no rule is left to be looked at: to be kept as it is
};

// Has the text a byte, and only such ones? slow_path: without the look at eight bytes.
bool h2_text_is(struct str, enum h2_text, bool slow_path);

// The same of the field's value, unless that is known already.
static inline bool h2_text_value_is(struct hpack_field *f, enum h2_text t, bool slow_path)
{
	if (f->mark & H2_MARK_CHECKED)
		return true;
	bool ok = h2_text_is(f->value, t, slow_path);
	f->mark |= ok ? H2_MARK_CHECKED : 0;
	return ok;
}

// Of te.
static inline bool h2_text_says_trailers(struct hpack_field *f)
{
	if (!(f->mark & H2_MARK_TRAILERS) && str_eq_fold(f->value, STR("trailers")))
		f->mark |= H2_MARK_TRAILERS;
	return f->mark & H2_MARK_TRAILERS;
}

// Of content-type.
static inline bool h2_text_says_grpc(struct hpack_field *f)
{
	if (!(f->mark & H2_MARK_GRPC) && lb_content_type_is_grpc(f->value))
		f->mark |= H2_MARK_GRPC;
	return f->mark & H2_MARK_GRPC;
}
