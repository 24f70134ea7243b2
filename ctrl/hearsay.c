// SPDX-License-Identifier: Apache-2.0
#include "ctrl/hearsay.h"

#include "lb/base/log.h"

#include <grpc/support/log.h>

static void on_grpc_log(gpr_log_func_args *args)
{
	log_write(args->severity == GPR_LOG_SEVERITY_ERROR ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
		"grpc", "said=%s", log_quote(args->message));
}

void hearsay_begin(void)
{
	gpr_set_log_function(on_grpc_log);
}

void hearsay_xds(void *ctx, const char *line)
{
	log_warn("xds", "text=%s", log_quote(line));
}
