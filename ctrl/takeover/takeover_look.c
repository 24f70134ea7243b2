// SPDX-License-Identifier: Apache-2.0
// Where a takeover stands.
#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover_inside.h"

bool takeover_is_in_front(const struct takeover *t)
{
	return t->stage >= STAGE_FRONT && t->stage < STAGE_GIVING;
}

bool takeover_is_waiting(const struct takeover *t)
{
	return t->older && t->stage == STAGE_WAITING;
}

const char *takeover_newer_lacks(const struct takeover *t)
{
	return t->newer && *t->info.lacks ? t->info.lacks : NULL;
}

bool takeover_must_stay(const struct takeover *t)
{
	return t->older &&
	       (t->stage == STAGE_LEFT ||
		       (t->stage >= STAGE_FRONT && takeover_devices_have_older(&t->conf.devices)));
}

int takeover_check_reload(const struct takeover *t, struct lb_err *err)
{
	if (t && t->newer && t->stage < STAGE_LEFT)
		return lb_err_set(err,
			"process %d takes over, with shunt.yaml as it was: reload that one, once "
			"it serves",
			(int)takeover_peer_pid_of(t->newer));
	if (t && t->stage >= STAGE_ASKING && t->stage <= STAGE_STEPPING)
		return lb_err_set(
			err, "this process is taking another one's place: reload once it serves");
	return 0;
}

int takeover_check_change(const struct takeover *t, struct lb_err *err)
{
	if (!t || t->stage < STAGE_GIVEN || t->stage >= STAGE_LEFT)
		return 0;
	return lb_err_set(err,
		"process %d takes over, and would not know of it: ask that one, once it "
		"serves",
		(int)takeover_peer_pid_of(t->newer));
}

void takeover_info(const struct takeover *t, struct takeover_info *ret)
{
	*ret = t->info;
	ret->n_refused += t->door.guests.n_turned_away;
	ret->role = stage_role(t->stage);
	ret->older = t->older ? takeover_peer_pid_of(t->older) : 0;
	ret->newer = t->newer ? takeover_peer_pid_of(t->newer) : 0;
}
