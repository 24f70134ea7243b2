// SPDX-License-Identifier: Apache-2.0
// The stages of a takeover, as one process goes through them: first as the newer one of two, then
// as the older one. Private to the files of takeover_inside.h.
// Thread: ctrl.
#pragma once

#include "lb/base/company.h"
#include "lb/base/time.h"

#include <stdbool.h>

// In this order, but that a newer one that fails leads back to FRONT.
enum stage {
	STAGE_WAITING, // the older one serves, we get ready
	STAGE_ASKING, // we could serve, and have said so
	STAGE_OPENED, // ports are ours, too; the workers of the older one step back
	STAGE_STEPPING, // our workers step forward
	STAGE_FRONT, // we serve
	STAGE_SHARING, // somebody has come; our workers learn that others will be at the ports
	STAGE_SHARED, // the newer one gets ready
	STAGE_CLOSING, // our workers let go of devices that are to be its alone
	STAGE_GIVEN, // the newer one opens ports
	STAGE_GIVING, // our workers step back
	STAGE_FREE, // the newer one is to begin
	STAGE_LEFT, // it serves
	STAGE_OVER, // we have no place to take, and end
};

#define READY_NS (300 * NS_PER_SECOND) // until the newer one could serve
#define ANSWER_NS (5 * NS_PER_SECOND) // for what takes no time
// For each step, once its names are given. Less than ANSWER_NS: the older one decides first.
#define BEGIN_NS (3 * NS_PER_SECOND)
// More, where devices are closed or opened meanwhile, with all memory mapped for them anew.
#define DEVICES_NS (30 * NS_PER_SECOND)
#define RETRY_NS (50 * NS_PER_MS) // the kernel may still hold a dead process's

static inline const char *stage_role(enum stage stage)
{
	return stage < STAGE_FRONT ? "waiting" : stage < STAGE_GIVING ? "front" : "behind";
}

// Of its workers.
static inline enum lb_company stage_company(enum stage stage, bool has_older, bool has_newer)
{
	if (stage == STAGE_LEFT && !has_newer)
		return LB_LAST;
	if (stage < STAGE_STEPPING || stage >= STAGE_GIVING)
		return LB_BEHIND;
	return has_older || has_newer ? LB_FRONT : LB_ALONE;
}
