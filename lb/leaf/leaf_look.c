// SPDX-License-Identifier: Apache-2.0
// What a leaf has to show.
#include "lb/base/twheel.h"
#include "lb/leaf/affinity.h"
#include "lb/leaf/leaf_inside.h"
#include "lb/leaf/leaf_layout.h"
#include "lb/policy/dump.h"
#include "lb/policy/priority.h"

// The policy that picks endpoints; NULL = the leaf has none yet.
static const struct lb_policy_spec *policy_of(const struct lb_leaf *leaf)
{
	const struct lb_leaf_layout *l = leaf->members.layout;
	const struct lb_policy_spec *spec = l ? l->spec : NULL;
	while (spec && spec->kind == LB_POLICY_WRR_LOCALITY)
		spec = spec->child;
	return spec;
}

bool lb_leaf_ignores_weights(const struct lb_leaf *leaf)
{
	const struct lb_policy_spec *spec = policy_of(leaf);
	return spec && spec->kind != LB_POLICY_RING_HASH &&
	       (spec->kind != LB_POLICY_PICK_FIRST || !spec->pick_first.shuffle);
}

void lb_leaf_look(const struct lb_leaf *leaf, const struct lb_member *m, struct lb_leaf_record *ret)
{
	const struct lb_policy_spec *spec = policy_of(leaf);
	*ret = (struct lb_leaf_record){0};
	if (leaf->ejection)
		(void)lb_ejection_find(leaf->ejection, m, &ret->ejection);
	if (leaf->health)
		(void)lb_health_find(leaf->health, m, &ret->health);
	if (!spec || spec->kind != LB_POLICY_WEIGHTED_ROUND_ROBIN || !leaf->env->orca)
		return;
	const struct lb_orca_conf conf = {
		spec->wrr.error_penalty, spec->wrr.blackout_ns, spec->wrr.expiration_ns};
	ret->is_weighed = true;
	ret->standing = lb_orca_look(leaf->env->orca, lb_member_id(m), &conf,
		twheel_now(leaf->env->wheel), &ret->weight);
}

// A75-T01
void lb_leaf_dump(const struct lb_leaf *leaf, struct lb_dump *d)
{
	lb_dump_enter(d, "cds", leaf->picker ? lb_leaf_state(leaf) : LB_CONNECTING);
	lb_dump_text(d, "cluster", leaf->name);
	d->enter(d, "outlier_detection", "");
	lb_dump_text(d, "counts", leaf->ejection ? "yes" : "no");
	lb_dump_number(d, "ejected", leaf->ejection ? lb_ejection_n_ejected(leaf->ejection) : 0);
	if (leaf->ejection)
		lb_ejection_dump(leaf->ejection, d);
	if (leaf->health) {
		d->enter(d, "health_checks", "");
		lb_health_dump(leaf->health, d);
	}
	lb_leaf_layer_dump(&leaf->layer, d);
	d->enter(d, "xds_override_host", "");
	lb_affinity_dump(leaf->members.affinity, d);
	lb_priority_dump(leaf->children.priority, d);
	for (int i = 0; i < 4 + (leaf->health != NULL); i++)
		lb_dump_leave(d);
}
