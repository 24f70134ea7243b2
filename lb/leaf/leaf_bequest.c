// SPDX-License-Identifier: Apache-2.0
// What a leaf knows of its members by experience, and another process would have to learn anew.
#include "lb/base/twheel.h"
#include "lb/leaf/leaf_inside.h"
#include "lb/member/member.h"

bool lb_leaf_bequeath(const struct lb_leaf *leaf, const struct lb_member *m, struct lb_bequest *ret)
{
	enum lb_member_health health = lb_member_health(m);
	*ret = (struct lb_bequest){0};
	if (leaf->ejection)
		lb_ejection_bequeath(leaf->ejection, m, &ret->ejection);
	if (leaf->env->orca)
		lb_orca_bequeath(
			leaf->env->orca, lb_member_id(m), twheel_now(leaf->env->wheel), &ret->orca);
	ret->is_checked = leaf->health && health != LB_MEMBER_UNCHECKED;
	ret->serves = health == LB_MEMBER_SERVES;
	return ret->is_checked || ret->orca.qps > 0 || ret->ejection.is_ejected ||
	       ret->ejection.multiplier;
}

bool lb_leaf_inherit(struct lb_leaf *leaf, struct lb_member *m, const struct lb_bequest *from)
{
	bool took = false;
	bool is_coming = lb_member_state(m) != LB_READY && !from->ejection.is_ejected;
	if (leaf->env->orca && from->orca.qps > 0)
		took = lb_orca_inherit(leaf->env->orca, lb_member_id(m), &from->orca, is_coming,
			twheel_now(leaf->env->wheel));
	leaf->must_weigh |= took;
	if (leaf->health && from->is_checked)
		took |= lb_health_inherit(leaf->health, m, from->serves);
	if (leaf->ejection && (from->ejection.is_ejected || from->ejection.multiplier))
		took |= lb_ejection_inherit(leaf->ejection, m, &from->ejection);
	return took;
}
