// SPDX-License-Identifier: Apache-2.0
#include "lb/regex/regex_re2.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <re2/re2.h>
#include <string>

namespace
{

// What an automaton may grow to that foreign subjects make RE2 build. It starts over when that is
// full, and goes on without one when that happens too often: slower, with the same verdict.
constexpr int64_t few_bytes = 256 << 10;

RE2::Options options_with(int64_t max_mem)
{
	RE2::Options o(RE2::Quiet);
	o.set_max_mem(max_mem);
	return o;
}

// The wall that exceptions end at.
template <typename F> auto walled(F f) noexcept
{
	return f();
}

} // namespace

struct regex_re2 {
	RE2 re;
	regex_re2(const re2::StringPiece &pattern, int64_t max_mem)
	    : re(pattern, options_with(max_mem))
	{
	}
};

extern "C" {

struct regex_re2 *regex_re2_new(const char *pattern, size_t len, char *why, size_t why_size)
{
	return walled([&]() -> struct regex_re2 * {
		auto text = re2::StringPiece(pattern, len);
		auto r = std::make_unique<regex_re2>(text, few_bytes);
		// RE2's verdict is the one of its default: what is too large for less may still be
		// valid.
		if (r->re.error_code() == RE2::ErrorPatternTooLarge)
			r = std::make_unique<regex_re2>(text, RE2::Options::kDefaultMaxMem);
		if (r->re.ok())
			return r.release();
		snprintf(why, why_size, "%s", r->re.error().c_str());
		return nullptr;
	});
}

void regex_re2_free(struct regex_re2 *r)
{
	delete r;
}

size_t regex_re2_steps(const struct regex_re2 *r)
{
	return static_cast<size_t>(r->re.ProgramSize());
}

bool regex_re2_match(const struct regex_re2 *r, const char *text, size_t len)
{
	return walled([=] { return RE2::FullMatch(re2::StringPiece(text, len), r->re); });
}

bool regex_re2_rewrite_ok(
	const struct regex_re2 *r, const char *rewrite, size_t len, char *why, size_t why_size)
{
	return walled([=] {
		std::string error;
		bool ok = r->re.CheckRewriteString(re2::StringPiece(rewrite, len), &error);
		snprintf(why, why_size, "%s", error.c_str());
		return ok;
	});
}

size_t regex_re2_replace(const struct regex_re2 *r, const char *rewrite, size_t rewrite_len,
	const char *text, size_t len, char *out, size_t room)
{
	return walled([=] {
		std::string s(text, len);
		RE2::GlobalReplace(&s, r->re, re2::StringPiece(rewrite, rewrite_len));
		size_t n = s.size() < room ? s.size() : room;
		memcpy(out, s.data(), n);
		return n;
	});
}
}
