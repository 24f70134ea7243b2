// SPDX-License-Identifier: Apache-2.0
// The takeover's state, for its two files only: takeover.c (what comes, and what is done) and
// takeover_look.c (what is told of it).
// Thread: ctrl.
#pragma once

#include "ctrl/takeover/door.h"
#include "ctrl/takeover/stage.h"
#include "ctrl/takeover/takeover.h"
#include "ctrl/takeover/wire.h"

#include <stdbool.h>
#include <stdint.h>

struct takeover_peer;

struct takeover {
	struct takeover_conf conf;
	enum stage stage;
	enum lb_company company; // as the workers were told
	uint64_t now_ns, deadline_ns; // of the stage; 0 = none
	struct takeover_peer *older, *newer; // owned; NULL = none
	struct takeover_door door;
	bool has_shared; // names, with the newer one
	struct takeover_message hello; // of the newer one
	bool has_relay; // to the older one
	uint32_t n_unnamed; // sources that the older one has yet to name
	uint64_t asked_ns; // when we asked for the place
	uint64_t opened_ns; // when we had ports, and workers began to change places
	struct lb_cables told; // to the others, last
	struct takeover_info info;
};
