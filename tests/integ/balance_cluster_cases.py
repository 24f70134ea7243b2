# SPDX-License-Identifier: Apache-2.0
"""More cases of the differential test of balancing: drops, breakers, what comes late or goes."""

import resources
from balance_case import UNAVAILABLE, Differ, Shares, dead, drop, even, held, limited, limits, only


# -- drops and circuit breaking (gRFC A27, A32)

def o_drop_nothing(c):
    c.simple(1, drops=[drop("none", 0)])
    yield only(1)


def o_drop_half(c):
    c.simple(1, drops=[drop("half", 50)])
    yield Shares({1: 1, UNAVAILABLE: 1}, 300)


def o_drop_all(c):
    c.simple(1, drops=[drop("all", 100)])
    yield only(UNAVAILABLE)


def o_drop_by_two_categories(c):
    c.simple(1, drops=[drop("one", 50), drop("two", 50)])
    yield Shares({1: 1, UNAVAILABLE: 3}, 300)


def o_drop_millionths(c):
    c.simple(1, drops=[drop("some", 250_000, "MILLION")])
    yield Shares({1: 3, UNAVAILABLE: 1}, 300)


def o_drop_ten_thousandths(c):
    c.simple(1, drops=[drop("some", 9_000, "TEN_THOUSAND")])
    yield Shares({1: 1, UNAVAILABLE: 9}, 300)


def o_drop_above_all(c):
    c.simple(1, drops=[drop("much", 250)])
    yield only(UNAVAILABLE)


def o_drop_all_of_nothing(c):
    c.simple(drops=[drop("all", 100)])
    yield only(UNAVAILABLE)


def o_drops_change(c):
    c.simple(1, drops=[drop("all", 100)])
    yield only(UNAVAILABLE)
    c.priorities((1,))
    yield only(1)
    c.priorities((1,), drops=[drop("half", 50)])
    yield Shares({1: 1, UNAVAILABLE: 1}, 200)


def b_none_at_once(c):
    c.simple(1, **limits(limited(0)))
    yield only(UNAVAILABLE)


def b_one_at_once(c):
    c.simple(1, **limits(limited(1)))
    yield held(4, {"OK": 1, UNAVAILABLE: 3})


def b_three_at_once(c):
    c.simple(1, 2, **limits(limited(3)))
    yield held(12, {"OK": 3, UNAVAILABLE: 9})


def b_default_priority_counts(c):
    c.simple(1, **limits(limited(0, "HIGH"), limited(2), limited(9)))
    yield held(6, {"OK": 2, UNAVAILABLE: 4})


def b_new_limit(c):
    c.simple(1, **limits(limited(1)))
    yield held(4, {"OK": 1, UNAVAILABLE: 3})
    c.cluster(**limits(limited(3)))
    yield held(6, {"OK": 3, UNAVAILABLE: 3})


def b_spans_priorities(c):
    c.cluster(**limits(limited(2)))
    c.priorities((dead(1),), (1, 2))
    yield held(6, {"OK": 2, UNAVAILABLE: 4})


def b_of_a_leaf_in_an_aggregate(c):
    c.aggregate(c.leaf("a", 1, **limits(limited(2))), c.leaf("b", 2))
    yield held(6, {"OK": 2, UNAVAILABLE: 4})


# -- EDS and CDS that come late or go

def e_never_comes(c):
    c.cluster()
    yield only(UNAVAILABLE)


def e_comes_late(c):
    c.cluster()
    yield only(UNAVAILABLE)
    c.priorities((1,))
    yield only(1)


def e_is_emptied(c):
    c.simple(1)
    yield only(1)
    c.eds()
    yield only(UNAVAILABLE)
    c.priorities((2,))
    yield only(2)


def e_is_wrong_from_the_start(c):
    c.cluster()
    c.priorities((1, 1))
    yield only(UNAVAILABLE)
    c.priorities((1, 2))
    yield even(1, 2)


def e_other_service_name(c):
    c.cluster(service_name=f"{c.name}/one")
    c.priorities((1,), name=f"{c.name}/one")
    c.priorities((2,), name=f"{c.name}/two")
    yield only(1)
    c.cluster(service_name=f"{c.name}/two")
    yield only(2)


def e_endpoints_replaced(c):
    c.simple(1, 2)
    yield even(1, 2, spread=3)
    c.priorities((3, 4))
    yield even(3, 4, spread=3)


def k_never_comes(c):
    yield only(UNAVAILABLE)


def k_comes_late(c):
    yield only(UNAVAILABLE)
    c.simple(1)
    yield only(1)


def k_is_deleted(c):
    """A88-C10: what was there keeps serving."""
    c.simple(1)
    yield only(1)
    c.remove_cluster()
    yield only(1)
    c.cluster()
    c.priorities((2,))
    yield only(2)


def k_is_wrong_from_the_start(c):
    c.simple(1, lb_policy="MAGLEV")
    yield only(UNAVAILABLE)
    c.cluster()
    yield only(1)


def k_becomes_wrong(c):
    c.simple(1)
    yield only(1)
    c.cluster(lb_policy="MAGLEV", service_name="elsewhere")
    yield only(1)


def k_route_takes_another_cluster(c):
    leaves = c.leaf("a", 1), c.leaf("b", 2)
    c.routes = [resources.route("", leaves[0])]
    yield only(1)
    c.routes = [resources.route("", leaves[1])]
    yield only(2)
    c.routes = [resources.route("", {leaves[0]: 1, leaves[1]: 1})]
    yield Shares({1: 1, 2: 1}, 100)


def k_leaf_of_aggregate_is_deleted(c):
    """A88-C10."""
    c.aggregate(c.leaf("a", 1), c.leaf("b", 2))
    yield only(1)
    c.remove_cluster(f"{c.name}.a")
    yield only(1)
    c.aggregate(f"{c.name}.b")
    yield only(2)


def k_leaf_shared_with_an_aggregate(c):
    """The leaf is routed directly, too."""
    shared, both = c.leaf("a", 1), f"{c.name}.both"
    c.aggregate(shared, c.leaf("b", 2), name=both)
    directly = resources.route({"prefix": "", "headers": [
        {"name": "x-direct", "present_match": True}]}, shared)
    c.routes = [directly, resources.route("", both)]
    yield Differ(only(2), only(1), "A37-G05: each root keeps all its leaves")


CASES = [made for name, made in list(globals().items()) if name[1:2] == "_" and callable(made)]
