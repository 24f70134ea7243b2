// SPDX-License-Identifier: Apache-2.0
// One RE2::Set for all routes, and single RE2 objects for the linear scan.
#include "tests/bench/impl.h"

#include <algorithm>
#include <memory>
#include <new>
#include <re2/re2.h>
#include <re2/set.h>
#include <vector>

namespace
{

re2::StringPiece piece(struct str s)
{
	return re2::StringPiece(s.p, s.len);
}

struct re2_set {
	std::unique_ptr<RE2::Set> set;
	std::vector<int> hits;
};

void *set_build(const struct workload *w)
{
	RE2::Options options(RE2::Quiet);
	options.set_max_mem(INT64_C(4) << 30);
	options.set_dot_nl(true);
	auto s = std::make_unique<re2_set>();
	s->set = std::make_unique<RE2::Set>(options, RE2::ANCHOR_BOTH);
	for (uint32_t i = 0; i < w->n_routes; i++) {
		const struct bench_route *r = &w->routes[i];
		std::string pattern = r->is_regex ? std::string(r->text.p, r->text.len)
		                                  : RE2::QuoteMeta(piece(r->text)) + ".*";
		if (s->set->Add(pattern, nullptr) < 0)
			return nullptr;
	}
	return s->set->Compile() ? s.release() : nullptr;
}

uint32_t set_find(void *ctx, struct str path)
{
	auto *s = static_cast<re2_set *>(ctx);
	s->hits.clear();
	if (!s->set->Match(piece(path), &s->hits) || s->hits.empty())
		return IMPL_NONE;
	return static_cast<uint32_t>(*std::min_element(s->hits.begin(), s->hits.end()));
}

double set_bytes(void *, const struct workload *)
{
	return -1;
}

void set_free(void *ctx)
{
	delete static_cast<re2_set *>(ctx);
}

} // namespace

extern "C" {

void *rival_re2_new(struct str pattern)
{
	return new RE2(piece(pattern), RE2::Quiet);
}

bool rival_re2_full_match(void *re, struct str subject)
{
	return RE2::FullMatch(piece(subject), *static_cast<RE2 *>(re));
}

void rival_re2_free(void *re)
{
	delete static_cast<RE2 *>(re);
}

const struct impl impl_re2_set = {"re2_set", 100000, "", set_build, set_find, set_bytes, set_free};
}
