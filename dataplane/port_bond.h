// SPDX-License-Identifier: Apache-2.0
// Several devices that are one port: DPDK's bonding driver sends and receives by its members, by
// LACP (IEEE 802.1AX) or by one that is active while the others stand by. Here is what that driver
// leaves to others: its members' lives, the link of kernel interfaces, and what is to be told.
// Thread: ctrl, unless noted.
#pragma once

#include "dataplane/port.h"
#include "lb/base/cable.h"
#include "lb/base/err.h"

struct port_bond;

// cables: see port_conf; NULL = none. 0, or negative with reterr; port_bond_free() either way.
[[nodiscard]] int port_bond_new(
	struct port *, const struct lb_cables *cables, struct lb_err *reterr);
// The bond is known by this address, whichever members it has. Before it is opened.
void port_bond_set_mac(struct port *, const uint8_t mac[6]);
// Claims those members that aren't ours yet. 0, or negative with reterr, which begins with the
// field.
[[nodiscard]] int port_bond_claim(struct port_bond *, struct lb_err *reterr);
void port_bond_drop_claims(struct port_bond *);
void port_bond_free(struct port_bond *); // closed; NULL is fine

// Whether there is memory for what DPDK's driver makes when links come up, and ends the process
// without. 0, or -EINVAL with reterr.
[[nodiscard]] int port_bond_check_memory(const struct port *, struct lb_err *reterr);
// Probes the members and makes one device of them, whose id is then the port's. After a loss those
// that are there will do. 0, or negative with reterr; port_bond_close() either way.
[[nodiscard]] int port_bond_open(struct port *, struct lb_err *reterr);
// When it has been started. True = it receives all that comes, groups among it.
bool port_bond_started(struct port *);
// Closes what is open, the bond first. Nothing is closed if a card is gone: the process ends.
void port_bond_close(struct port *, bool forget);
// True if that is so of some member, or if some member is one of the PCI bus. NULL is fine.
bool port_bond_has(const struct port_bond *, bool (*is)(const struct port *member));
bool port_bond_has_card(const struct port_bond *);
// False = some card of it is gone, or was when the bond was opened again: it cannot be closed, or
// be another process's with all members. Not while it is being closed. NULL is fine.
bool port_bond_can_move(const struct port_bond *);
// The longest packet that all its members take as they are.
uint16_t port_bond_mtu(const struct port_bond *);
// False = some member has another table or key for its hash than the bond says.
bool port_bond_spreads(const struct port_bond *, uint64_t hashes, const uint16_t *queues,
	uint32_t n_entries, const uint8_t *key, uint8_t key_len);

// True unless a kernel interface among the members was deleted, or has come back. A card that is
// gone is left out instead, for good: the driver cannot be made to let it go.
bool port_bond_is_there(struct port_bond *);
bool port_bond_may_open(const struct port_bond *); // some member can be opened
// Looks at the members. Returns true if another one has become active.
bool port_bond_watch(struct port *, uint64_t now_ns);
// Whether some member takes and sends frames, as of that, and their speed.
bool port_bond_link(const struct port_bond *, uint32_t *ret_mbps);

// Of an active-backup: from now on the member that is among these carries while it can; NULL = the
// bond chooses by itself. Returns that one of these; NULL = none is a member.
const struct lb_cable *port_bond_follow(struct port_bond *, const struct lb_cables *);
// Writes which members it has, as they carry one after the other, into a cable that is zeroed else.
void port_bond_tell(const struct port_bond *, struct lb_cable *ret);
// The device of the member that carries; NULL = none does, or all do.
const char *port_bond_carries(const struct port_bond *);

// Counts what the members' devices did, and drops what came to those that stand by. On the worker
// of that queue.
void port_bond_count(struct port_bond *, uint16_t queue);
