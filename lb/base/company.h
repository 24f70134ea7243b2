// SPDX-License-Identifier: Apache-2.0
// Several processes of ours at the same ports, each of which receives every frame: who answers what
// (docs/decisions/takeover.md).
// Thread: any.
#pragma once

enum lb_company {
	LB_ALONE, // what belongs to nothing here belongs to nothing
	LB_FRONT, // takes what is new; what it does not know may be of one behind it
	LB_BEHIND, // has its own connections, and leaves all else to the one in front
	LB_LAST, // as one behind; but the one in front is gone, and it answers for its addresses
};
