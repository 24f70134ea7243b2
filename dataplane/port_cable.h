// SPDX-License-Identifier: Apache-2.0
// By which device a port sends, where another process of ours has the same ones: each tells the
// other, and who is not in front goes by what it is told.
// Thread: ctrl.
#pragma once

#include "dataplane/port.h"
#include "lb/base/cable.h"

// The name of a device to another process: its interface's, or its own. Cut where it is too long.
void port_cable_name(const char *device, char ret[LB_CABLE_NAME]);
// What carries the port now. False = nothing does, or it is another one's of a trunk, or a card or
// a memif.
bool port_cable_get(const struct port *, struct lb_cable *ret);
// From now on a bond sends by the member that is among these, as long as that has a link, and else
// by itself; NULL = by itself, as at first. Of other ports nothing. Takes effect with port_watch().
void port_follow(struct port *, const struct lb_cables *);
