// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/farewell.h"

#include "dataplane/proxy/telling.h"
#include "lb/pick/farewell.h"

#include <math.h>

void farewell_begin(struct farewell *f, const struct farewell_conf *conf, const bool *is_leaving,
	uint64_t now_ns)
{
	uint64_t until_ns = now_ns + conf->farewell_s * NS_PER_SECOND;
	*f = (struct farewell){
		.is_leaving = is_leaving,
		.hush_ns = until_ns - LB_FAREWELL_HUSH_NS,
		.until_ns = until_ns,
		.cut_ns = until_ns + lb_farewell_drain_s(conf->drain_s) * NS_PER_SECOND,
		.stream_ns = conf->stream_s * NS_PER_SECOND,
	};
	rand_init(&f->rand, conf->seed + now_ns);
}

uint64_t farewell_tells_at(struct farewell *f, uint32_t host, uint64_t now_ns)
{
	if (!f->is_leaving[host] || now_ns >= f->hush_ns)
		return UINT64_MAX;
	return proxy_telling_at(now_ns, proxy_telling_ns(now_ns, f->until_ns), &f->rand);
}

static double draw_stream_ns(struct farewell *f)
{
	double part = (double)((rand_u64(&f->rand) >> 11) + 1) / (double)(1ULL << 53); // (0, 1]
	return -log(part) * (double)f->stream_ns;
}

void farewell_tell(struct farewell *f, uint64_t now_ns)
{
	double left_ns = draw_stream_ns(f);
	f->n_told++;
	if (left_ns > (double)(f->cut_ns - now_ns))
		f->n_streams_cut++;
	else if (now_ns + (uint64_t)left_ns > f->last_ns)
		f->last_ns = now_ns + (uint64_t)left_ns;
}

uint64_t farewell_ends_at(const struct farewell *f)
{
	if (f->n_streams_cut)
		return f->cut_ns;
	return max_u64(f->until_ns, f->last_ns);
}
