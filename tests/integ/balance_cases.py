# SPDX-License-Identifier: Apache-2.0
"""Cases of the differential test of balancing: resources of one cluster and more, and who serves
then. What a case expects, gRPC's own client must do too, unless it says why not (Differ).
"""

import resources
from balance_case import (ALL_STATUSES, UNAVAILABLE, Differ, Shares, dead, drop, even, header, held,
                          keys, limited, limits, only, policies, policy, silent)

KEYS = [[("x-key", f"key-{n}")] for n in range(40)]
ROUND_ROBIN, PICK_FIRST = policy("round_robin"), policy("pick_first")


# -- priorities (gRFC A56)

def p_first_serves_alone(c):
    c.cluster()
    c.priorities((1, 2), (3,))
    yield even(1, 2, spread=3)


def p_dead_first_fails_over(c):
    c.cluster()
    c.priorities((dead(1), dead(2)), (1, 2))
    yield even(1, 2, spread=3)


def p_one_of_first_suffices(c):
    c.cluster()
    c.priorities((1, dead(1), dead(2)), (2,))
    yield only(1)


def p_silent_first_fails_over_by_timer(c):
    c.cluster()
    c.priorities((silent(1),), (1,))
    yield only(1)


def p_third_when_two_are_dead(c):
    c.cluster()
    c.priorities((dead(1),), (dead(2),), (1,))
    yield only(1)


def p_all_dead(c):
    c.cluster()
    c.priorities((dead(1),), (dead(2),))
    yield only(UNAVAILABLE)


def p_empty_first(c):
    c.cluster()
    c.priorities((), (1,))
    yield only(1)


def p_unhealthy_first(c):
    c.cluster()
    c.priorities((c.host(1, health="UNHEALTHY"), c.host(2, health="TIMEOUT")), (3,))
    yield only(3)


def p_draining_first(c):
    c.cluster()
    c.priorities((c.host(1, health="DRAINING"),), (2,))
    yield only(2)


def p_idle_ring_beats_ready_second(c):
    c.cluster(lb_policy="RING_HASH")
    c.priorities((1,), (2,))
    yield only(1)


def p_dead_ring_fails_over(c):
    c.cluster(lb_policy="RING_HASH")
    c.priorities((dead(1), dead(2)), (1,))
    yield only(1)


def p_dead_pick_first_fails_over(c):
    c.cluster(**policies(PICK_FIRST))
    c.priorities((dead(1), dead(2)), (1,))
    yield only(1)


def p_failover_and_return(c):
    c.cluster()
    c.priorities((1, 2), (3,))
    yield even(1, 2, spread=3)
    c.down(1, 2)
    yield only(3)
    c.back(1, 2)
    yield even(1, 2)


def p_second_is_added(c):
    c.cluster()
    c.priorities((dead(1),))
    yield only(UNAVAILABLE)
    c.priorities((dead(1),), (1,))
    yield only(1)


def p_first_is_removed(c):
    c.cluster()
    c.priorities((1,), (2,))
    yield only(1)
    c.eds(c.locality("p1", 2))
    yield only(2)


def p_two_swap(c):
    c.cluster()
    c.eds(c.locality("a", 1), c.locality("b", 2, priority=1))
    yield only(1)
    c.eds(c.locality("b", 2), c.locality("a", 1, priority=1))
    yield only(2)
    c.down(2)
    yield only(1)


def p_gap_is_refused(c):
    c.cluster()
    c.priorities((1,), (2,))
    yield only(1)
    c.eds(c.locality("a", 2), c.locality("b", 3, priority=2))
    yield only(1)


def p_locality_in_two(c):
    c.cluster()
    c.eds(c.locality("a", dead(1)), c.locality("a", 2, priority=1))
    yield only(2)


def p_ring_of_mostly_dead_serves_at_last(c):
    """RH-06, RH-07: two dead make it fail over, until the third is found without a pick."""
    c.cluster(lb_policy="RING_HASH")
    c.priorities((dead(1), 1, dead(2)), (2,))
    yield only(1)


def p_listed_out_of_order(c):
    c.cluster()
    c.eds(c.locality("a", 1, priority=1), c.locality("b", dead(1)), c.locality("d", 2, priority=2))
    yield only(1)


def p_weightless_first_is_a_gap(c):
    c.simple(1)
    yield only(1)
    c.eds(c.locality("a", 2, weight=0), c.locality("b", 3, priority=1))
    yield only(1)


def p_no_spill_over_below_140_percent(c):
    """ENV-01."""
    c.cluster()
    c.eds(c.locality("a", 1, dead(1), dead(2), dead(3)), c.locality("b", 2, priority=1))
    yield only(1)


# -- localities

def l_by_weight(c):
    c.cluster()
    c.eds(c.locality("a", 1, weight=3), c.locality("b", 2, weight=1))
    yield Shares({1: 3, 2: 1}, 400)


def l_weight_is_split_among_its_own(c):
    c.cluster()
    c.eds(c.locality("a", 1, 2, weight=1), c.locality("b", 3, weight=3))
    yield Shares({1: 1, 2: 1, 3: 6}, 400)


def l_weight_zero_is_no_locality(c):
    c.cluster()
    c.eds(c.locality("a", 1, weight=0), c.locality("b", 2, weight=1))
    yield only(2)


def l_weight_unset_is_no_locality(c):
    c.cluster()
    c.eds(c.locality("a", 1, weight=None), c.locality("b", 2, weight=1))
    yield only(2)


def l_no_weight_at_all(c):
    c.cluster()
    c.eds(c.locality("a", 1, weight=0), c.locality("b", 2, weight=None))
    yield only(UNAVAILABLE)


def l_dead_locality_leaves_its_share(c):
    c.cluster()
    c.eds(c.locality("a", dead(1), weight=8), c.locality("b", 2, weight=1),
          c.locality("d", 3, weight=1))
    yield Shares({2: 1, 3: 1}, 200)


def l_empty_locality_leaves_its_share(c):
    c.cluster()
    c.eds(c.locality("a", weight=8), c.locality("b", 2, weight=3), c.locality("d", 3, weight=1))
    yield Shares({2: 3, 3: 1}, 300)


def l_round_robin_ignores_endpoint_weights(c):
    c.cluster()
    c.priorities((c.host(1, weight=9), c.host(2, weight=1)))
    yield even(1, 2, spread=3)


def l_weights_near_2_to_32(c):
    c.cluster()
    c.eds(c.locality("a", 1, weight=3_000_000_000), c.locality("b", 2, weight=1_000_000_000))
    yield Shares({1: 3, 2: 1}, 300)


def l_draining_locality_leaves_its_share(c):
    """Though its endpoint is kept for sessions."""
    c.cluster(common_lb_config={"override_host_status": {"statuses": ALL_STATUSES}})
    c.eds(c.locality("a", c.host(1, health="DRAINING"), weight=8), c.locality("b", 2, weight=1),
          c.locality("d", 3, weight=1))
    yield Shares({2: 1, 3: 1}, 100)


def l_weights_beyond_2_to_32_are_refused(c):
    c.simple(1)
    yield only(1)
    c.eds(c.locality("a", 2, weight=4_000_000_000), c.locality("b", 3, weight=294_967_296))
    yield only(1)


def l_new_weights(c):
    c.cluster()
    c.eds(c.locality("a", 1, weight=1), c.locality("b", 2, weight=1))
    yield Shares({1: 1, 2: 1}, 200)
    c.eds(c.locality("a", 1, weight=1), c.locality("b", 2, weight=9))
    yield Shares({1: 1, 2: 9}, 300)


def l_endpoint_moves(c):
    c.cluster()
    c.eds(c.locality("a", 1, 2, weight=1), c.locality("b", 3, weight=1))
    yield Shares({1: 1, 2: 1, 3: 2}, 200)
    c.eds(c.locality("a", 1, weight=1), c.locality("b", 2, 3, weight=1))
    yield Shares({1: 2, 2: 1, 3: 1}, 200)


def l_locality_leaves_and_returns(c):
    c.cluster()
    both = c.locality("a", 1), c.locality("b", 2)
    c.eds(*both)
    yield Shares({1: 1, 2: 1}, 100)
    c.eds(both[0])
    yield only(1)
    c.eds(*both)
    yield Shares({1: 1, 2: 1}, 100)


# -- health and duplicates

def h_unknown_and_healthy_serve(c):
    c.simple(c.host(1, health="UNKNOWN"), c.host(2, health="HEALTHY"), 3)
    yield even(1, 2, 3, calls=60, spread=3)


def h_others_do_not(c):
    c.simple(1, c.host(2, health="UNHEALTHY"), c.host(3, health="TIMEOUT"),
             c.host(4, health="DEGRADED"), c.host(5, health="DRAINING"))
    yield only(1)


def h_nobody_is_well(c):
    """ENV-02: no panic."""
    c.simple(c.host(1, health="UNHEALTHY"), c.host(2, health="DEGRADED"))
    yield only(UNAVAILABLE)


def h_turns(c):
    c.simple(1, 2)
    yield even(1, 2, spread=3)
    c.priorities((c.host(1, health="UNHEALTHY"), 2))
    yield only(2)
    c.priorities((1, 2))
    yield even(1, 2)


def h_draining_in_the_set_gets_no_new_requests(c):
    c.simple(c.host(1, health="DRAINING"), 2,
             common_lb_config={"override_host_status": {"statuses": ALL_STATUSES}})
    yield only(2)


def d_duplicate_address_is_refused(c):
    c.simple(1, 2)
    yield even(1, 2, spread=3)
    c.priorities((3, 3))
    yield even(1, 2, spread=3)


def d_duplicate_of_an_unhealthy_one(c):
    c.simple(1)
    yield only(1)
    c.priorities((2, c.host(2, health="UNHEALTHY")))
    yield Differ(only(2), only(1), "A55-V07: a duplicate is refused, whatever its health")


def d_duplicate_locality_is_refused(c):
    c.simple(1)
    yield only(1)
    c.eds(c.locality("a", 2), c.locality("a", 3))
    yield only(1)


def d_endpoint_weight_zero_is_refused(c):
    c.simple(1)
    yield only(1)
    c.priorities((c.host(2, weight=0),))
    yield only(1)


# -- aggregates (gRFC A37)

def a_first_leaf_serves(c):
    c.aggregate(c.leaf("a", 1), c.leaf("b", 2))
    yield only(1)


def a_dead_leaf_fails_over(c):
    c.aggregate(c.leaf("a", dead(1)), c.leaf("b", 1, 2))
    yield even(1, 2, spread=3)


def a_each_leaf_has_its_policy(c):
    c.aggregate(c.leaf("a", dead(1)), c.leaf("b", 1, 2, 3, lb_policy="RING_HASH"))
    c.hash_by(header("x-key"))
    yield keys(*KEYS, distinct=3)


def a_own_policy_counts_for_nothing(c):
    c.aggregate(c.leaf("a", 1, 2), c.leaf("b", 3), lb_policy="RING_HASH")
    yield even(1, 2, spread=3)


def a_nested(c):
    inner = f"{c.name}.inner"
    c.aggregate(c.leaf("a", dead(1)), c.leaf("b", 1), name=inner)
    c.aggregate(inner, c.leaf("d", 2))
    yield only(1)
    c.down(1)
    yield only(2)


def a_diamond(c):
    left, right = f"{c.name}.left", f"{c.name}.right"
    first, second = c.leaf("a", dead(1)), c.leaf("b", 2)
    c.aggregate(first, name=left)
    c.aggregate(first, second, name=right)
    c.aggregate(left, right)
    yield only(2)


def a_missing_leaf_is_skipped(c):
    c.aggregate(f"{c.name}.missing", c.leaf("b", 1))
    yield only(1)


def a_all_leaves_missing(c):
    c.aggregate(f"{c.name}.missing", f"{c.name}.gone")
    yield only(UNAVAILABLE)


def a_no_clusters_is_refused(c):
    c.aggregate()
    yield only(UNAVAILABLE)


def a_loop_with_a_leaf(c):
    c.aggregate(c.name, c.leaf("a", 1))
    yield only(1)


def a_loop_of_two_with_a_leaf(c):
    other = f"{c.name}.other"
    c.aggregate(c.name, c.leaf("a", 1), name=other)
    c.aggregate(other)
    yield only(1)


def a_loop_alone(c):
    other = f"{c.name}.other"
    c.aggregate(c.name, name=other)
    c.aggregate(other)
    yield only(UNAVAILABLE)


def chain_of(c, depth):
    """Aggregates one below the other, and a leaf at this depth; the root has depth 0."""
    below = c.leaf("leaf", 1)
    for level in range(depth - 1, 0, -1):
        c.aggregate(below, name=f"{c.name}.{level}")
        below = f"{c.name}.{level}"
    c.aggregate(below)


def a_leaf_at_depth_15(c):
    chain_of(c, 15)
    yield only(1)


def a_leaf_at_depth_16(c):
    chain_of(c, 16)
    yield only(UNAVAILABLE)


def a_leaf_without_endpoints(c):
    c.aggregate(c.leaf("a"), c.leaf("b", 1))
    yield only(1)


def a_leaf_uses_its_priorities_first(c):
    first = c.leaf("a")
    c.priorities((dead(1),), (1,), name=first)
    c.aggregate(first, c.leaf("b", 2))
    yield only(1)
    c.down(1)
    yield only(2)


def a_leaf_that_drops_all_blocks_failover(c):
    """A75-G12."""
    first = c.leaf("a")
    c.priorities((dead(1),), name=first, drops=[drop("all", 100)])
    c.aggregate(first, c.leaf("b", 1))
    yield only(UNAVAILABLE)


def a_failover_and_return(c):
    c.aggregate(c.leaf("a", 1), c.leaf("b", 2))
    yield only(1)
    c.down(1)
    yield only(2)
    c.back(1)
    yield only(1)


def a_second_leaf_drops_half(c):
    second = c.leaf("b")
    c.priorities((1,), name=second, drops=[drop("half", 50)])
    c.aggregate(c.leaf("a", dead(1)), second)
    yield Shares({1: 1, UNAVAILABLE: 1}, 200)


def a_leaves_share_their_endpoints(c):
    """Two clusters of one EDS resource."""
    for suffix in "ab":
        c.cluster(f"{c.name}.{suffix}", service_name=f"{c.name}/both",
                  **limits(limited(0 if suffix == "b" else 2)))
    c.priorities((1,), name=f"{c.name}/both")
    c.aggregate(f"{c.name}.a", f"{c.name}.b")
    yield held(4, {"OK": 2, UNAVAILABLE: 2})


def a_weighted_clusters_do_not_cover_for_each_other(c):
    """A31-R10."""
    c.aggregate(c.leaf("a", 1), name=f"{c.name}.one")
    c.aggregate(c.leaf("b", dead(1)), name=f"{c.name}.two")
    c.routes = [resources.route("", {f"{c.name}.one": 3, f"{c.name}.two": 1})]
    yield Shares({1: 3, UNAVAILABLE: 1}, 200)


def a_new_order(c):
    leaves = c.leaf("a", 1), c.leaf("b", 2)
    c.aggregate(*leaves)
    yield only(1)
    c.aggregate(*reversed(leaves))
    yield only(2)
    c.aggregate(leaves[0])
    yield only(1)


def a_becomes_a_leaf_and_back(c):
    why = "nothing to compare with: C-core 1.85.1 dies of this change (SIGSEGV)"
    leaf = c.leaf("a", 1)
    c.aggregate(leaf)
    yield Differ(None, only(1), why)
    c.simple(2)
    yield Differ(None, only(2), why)
    c.aggregate(leaf)
    yield Differ(None, only(1), why)


def a_cluster_provided(c):
    c.aggregate(c.leaf("a", 1), lb_policy="CLUSTER_PROVIDED")
    yield Differ(only(UNAVAILABLE), only(1), "A75-G07: Envoy demands CLUSTER_PROVIDED")


def a_dns_leaf(c):
    c.aggregate(c.leaf("a", dead(1)), dns_leaf(c))
    c.back(1)
    yield only(1)


def dns_leaf(c):
    name = f"{c.name}.dns"
    c.dns("one.test", name=name)
    return name


CASES = [made for name, made in list(globals().items()) if name[1:2] == "_" and callable(made)]
