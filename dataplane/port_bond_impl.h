// SPDX-License-Identifier: Apache-2.0
// What the files behind port_bond.h share: port_bond.c (its life, its members' and what is told of
// them), port_bond_choice.c (which of them carries). Nobody else includes this.
// Thread: ctrl, unless noted.
#pragma once

#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"

#define NO_ID UINT16_MAX

struct port_bond {
	enum port_bond_mode mode;
	uint32_t index; // the port's
	bool made; // id is DPDK's
	bool was_open, started;
	uint16_t id;
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t active; // of an active-backup, the id of that member; NO_ID = none yet
	bool has_mac; // the port's is another process's
	const struct member *told; // of that process's, as it says; NULL = we choose
	// Members, as one carries after the other: ours, or that process's.
	uint8_t order[PORT_MAX_MEMBERS];
	uint32_t n;
	struct member {
		struct port *port; // owned
		// A card that was there and is not. w: ctrl (relaxed), r: workers (relaxed)
		bool dead;
		bool refused; // came back and could not be opened: not again before it goes
		// As the watch saw them last, once for all that it decides by them.
		bool there, link;
		struct port_member seen;
		uint64_t rx_frames, tx_frames; // w: the first worker (counter.h), r: ctrl
	} members[PORT_MAX_MEMBERS];
};

// Of an active-backup that is open, with members as they were seen last: one that can carries.
void port_bond_choose(struct port *);
