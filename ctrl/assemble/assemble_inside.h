// SPDX-License-Identifier: Apache-2.0
// The assembler's state, for its seven files only: assemble.c (events, ticks), assemble_bequest.c
// (what another process can go on with), assemble_checks.c (health checks), assemble_frontends.c
// (frontends that come and go), assemble_overrides.c (what operators say of endpoints),
// assemble_tls.c (TLS) and assemble_view.c (display).
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/assembled_frontend.h"
#include "ctrl/assemble/cluster_tree.h"
#include "ctrl/assemble/draft.h"
#include "lb/base/rand.h"

struct assembler {
	struct assembler_conf conf;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct lb_orca_table *orca;
	struct lb_probes *probes;
	struct members *members;
	struct lb_breakers *breakers;
	struct ids leaf_ids;
	struct cluster_tree_env tree_env;
	uint32_t *positions; // [LB_MAX_SLOTS] owned; for picks made for display
	struct cluster_set *clusters;
	struct outages *outages; // owned
	struct regex_cache *regexes;
	struct vhost_numbers *numbers; // owned; NULL = virtual hosts are not counted apart
	struct route_compiler *compiler;
	uint64_t sweep_ns; // when to forget unused patterns next
	bool patterns_came; // and the frontends that wait have not been told
	uint64_t compiled_ns; // when to tell waiting frontends next, if patterns are still missing
	struct draft draft;
	struct lb_vips *vips; // counted; NULL = none
	struct lb_own_ranges *ranges; // counted; NULL = as at the start
	struct assembled_frontend_env frontend_env;
	bool unsettled; // some frontend may have a part that does not serve yet
	uint64_t look_ns; // when to look next for clusters that may go
	uint64_t expedite_ns; // when to check next for clusters with waiting requests
	uint32_t expedite_at; // the cluster checked last
	// Endpoints to connect as soon as their TLS context is published. Owned; ids may be stale.
	uint32_t *parked;
	uint32_t n_parked, parked_room;
	uint32_t *credentials; // [config_n_places()] owned; taken
	uint8_t *transitions; // [LB_MAX_ENDPOINTS] owned; enum transition: last state logged
	struct assembled_frontend frontends[]; // [config_n_places()]
};

// Implemented by assemble_tls.c. Contexts of frontends are in the first snapshot's place of it
// before anybody connects (TLS-160). False = out of memory or of ids.
[[nodiscard]] bool assembler_take_credentials(struct assembler *);
void assembler_draft_credentials(struct assembler *); // all that there are, anew
void assembler_give_credentials(struct assembler *);
// The TLS context of this id is being made, or waits to be published.
bool assembler_awaits_context(const struct assembler *, uint32_t credential);

// Implemented by assemble_overrides.c: applies them to all clusters.
[[nodiscard]] int assembler_apply_overrides(struct assembler *, struct lb_err *reterr);

// Implemented by assemble_checks.c. NULL = out of memory.
struct lb_probes *assembler_make_probes(struct assembler *);

// Implemented by assemble_view.c: what a request would hear; ctx is the assembler. "" = the cluster
// does not fail. Borrowed from the object.
const char *assembler_why_failing(const void *ctx, const struct lb_cluster *);
