// SPDX-License-Identifier: Apache-2.0
// What bytes the parts of a head may have (RFC 9110 5.5, 5.6.2; RFC 3986).
// Thread: any.
#pragma once

#include "lb/base/str.h"

enum h1_text {
	H1_TEXT_TOKEN = 1, // RFC 9110 5.6.2
	H1_TEXT_VALUE = 2, // no control but HTAB
	H1_TEXT_TARGET = 4, // ASCII without controls, blanks and the fragment's '#'
	H1_TEXT_HOST = 8, // RFC 3986 3.2.2 reg-name
	H1_TEXT_UPPER = 16,
	H1_TEXT_LITERAL = 32, // in brackets: hex digits, ':', '.'
	H1_TEXT_DIGIT = 64,
	H1_TEXT_METHOD = 128, // token without lower case, as all that are registered
};

// True if the text is not empty and all bytes are of class t.
bool h1_text_is(struct str, enum h1_text t);
// The classes that all bytes have (in the lower half), and those that any has (in the upper).
uint16_t h1_text_classes(struct str);
// host [":" port], not empty, without user information (RFC 9110 7.2).
bool h1_text_is_authority(struct str);
// Takes the next item off a comma-separated list, trimmed; it may be empty. False = the list ended.
bool h1_text_next(struct str *list, struct str *ret);
