// SPDX-License-Identifier: Apache-2.0
// fleet-sim: what becomes of a fleet's connections as hosts and backends come and go
// (docs/scale.md). It sends no packets: it links what decides in shuntd, and models of what stands
// in front of it.
#include "ctrl/base/std_out.h"
#include "tools/fleet-sim/options.h"
#include "tools/fleet-sim/tables.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct options o;
	std_out_watch("fleet-sim", 1);
	if (!options_read(argc, argv, &o))
		return 2;
	printf("seed %" PRIu64 "\n\n", o.seed);
	bool ok = (!o.scale || tables_scale(&o)) && (!o.load || tables_load(&o)) &&
	          (!o.subsets || tables_subsets(&o)) && (!o.spread || tables_requests(&o)) &&
	          (!o.rolling || tables_rolling(&o)) && (!o.age || tables_age(&o));
	if (!ok)
		fprintf(stderr, "fleet-sim: out of memory\n");
	return ok ? 0 : 1;
}
