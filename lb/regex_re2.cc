// SPDX-License-Identifier: Apache-2.0
#include "lb/regex_re2.h"

#include <cstdio>
#include <cstring>
#include <new>
#include <re2/re2.h>
#include <string>

struct regex_re2 {
	RE2 re;
	explicit regex_re2(const re2::StringPiece &pattern) : re(pattern, RE2::Quiet)
	{
	}
};

extern "C" {

struct regex_re2 *regex_re2_new(const char *pattern, size_t len, char *why, size_t why_size)
try {
	snprintf(why, why_size, "%s", "");
	auto *r = new regex_re2(re2::StringPiece(pattern, len));
	if (r->re.ok())
		return r;
	snprintf(why, why_size, "%s", r->re.error().c_str());
	delete r;
	return nullptr;
} catch (const std::bad_alloc &) {
	return nullptr;
}

void regex_re2_free(struct regex_re2 *r)
{
	delete r;
}

size_t regex_re2_size(const struct regex_re2 *r)
{
	return sizeof(*r) + static_cast<size_t>(r->re.options().max_mem());
}

bool regex_re2_match(const struct regex_re2 *r, const char *text, size_t len)
try {
	return RE2::FullMatch(re2::StringPiece(text, len), r->re);
} catch (const std::bad_alloc &) {
	return false;
}

bool regex_re2_rewrite_ok(
	const struct regex_re2 *r, const char *rewrite, size_t len, char *why, size_t why_size)
try {
	std::string error;
	bool ok = r->re.CheckRewriteString(re2::StringPiece(rewrite, len), &error);
	snprintf(why, why_size, "%s", error.c_str());
	return ok;
} catch (const std::bad_alloc &) {
	snprintf(why, why_size, "%s", "");
	return false;
}

size_t regex_re2_replace(const struct regex_re2 *r, const char *rewrite, size_t rewrite_len,
	const char *text, size_t len, char *out, size_t room)
try {
	std::string s(text, len);
	RE2::GlobalReplace(&s, r->re, re2::StringPiece(rewrite, rewrite_len));
	size_t n = s.size() < room ? s.size() : room;
	memcpy(out, s.data(), n);
	return n;
} catch (const std::bad_alloc &) {
	size_t n = len < room ? len : room;
	memcpy(out, text, n);
	return n;
}
}
