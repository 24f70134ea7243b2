# SPDX-License-Identifier: Apache-2.0
"""More cases of the differential test of balancing: endpoint policies, hashes, ejections."""

from balance_case import (LATER, UNAVAILABLE, Differ, Shares, Told, by_locality, dead, even, header,
                          keys, one_of, only, policies, policy, shown, silent)
from balance_cases import KEYS, PICK_FIRST, ROUND_ROBIN

UNKNOWN_POLICY = {"typed_extension_config": {"name": "unknown", "typed_config": {
    "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
    "type_url": "type.googleapis.com/nobody.Knows", "value": {}}}}


# -- endpoint policies

def w_round_robin(c):
    c.simple(1, 2, 3)
    yield even(1, 2, 3, calls=60, spread=3)


def w_round_robin_without_the_dead(c):
    c.simple(1, dead(1), 2, dead(2), 3)
    yield even(1, 2, 3, calls=60, spread=3)


def w_round_robin_of_the_list(c):
    c.cluster(**policies(by_locality(ROUND_ROBIN)))
    c.eds(c.locality("a", 1, 2, weight=3), c.locality("b", 3, weight=1))
    yield Shares({1: 3, 2: 3, 3: 2}, 400)


def w_round_robin_over_all_localities(c):
    """Without wrr_locality above it the weights of localities count for nothing."""
    c.cluster(**policies(ROUND_ROBIN))
    c.eds(c.locality("a", 1, 2, weight=90), c.locality("b", 3, weight=1))
    yield even(1, 2, 3, calls=60, spread=3)


def w_list_beats_the_old_field(c):
    c.simple(1, 2, lb_policy="RING_HASH", **policies(by_locality(ROUND_ROBIN)))
    yield even(1, 2, spread=3)


def w_list_beats_a_wrong_old_field(c):
    c.simple(1, lb_policy="MAGLEV", **policies(by_locality(ROUND_ROBIN)))
    yield only(1)


def w_first_known_policy_counts(c):
    c.late(2)
    c.simple(1, 2, **policies(UNKNOWN_POLICY, PICK_FIRST, ROUND_ROBIN))
    yield only(1)


def w_no_known_policy(c):
    c.simple(1, **policies(UNKNOWN_POLICY))
    yield only(UNAVAILABLE)


def w_known_but_wrong_policy(c):
    bad = policy("ring_hash", hash_function="MURMUR_HASH_2")
    c.simple(1, **policies(bad, by_locality(ROUND_ROBIN)))
    yield only(UNAVAILABLE)


def nested(depth):
    made = ROUND_ROBIN
    for _ in range(depth):
        made = by_locality(made)
    return made


def w_nested_too_deep(c):
    c.simple(1, **policies(nested(17)))
    yield only(UNAVAILABLE)


def w_locality_in_locality(c):
    c.simple(1, 2, **policies(nested(2)))
    yield even(1, 2)


def w_pick_first(c):
    c.late(2)
    c.simple(1, 2, **policies(PICK_FIRST))
    yield only(1)


def w_pick_first_skips_the_dead(c):
    c.late(2)
    c.simple(dead(1), 1, 2, **policies(PICK_FIRST))
    yield only(1)


def w_pick_first_does_not_wait_for_the_silent(c):
    c.late(2)
    c.simple(silent(1), 1, 2, **policies(PICK_FIRST))
    yield only(1)


def w_pick_first_over_localities(c):
    c.late(2)
    c.cluster(**policies(PICK_FIRST))
    c.eds(c.locality("a", dead(1), weight=1), c.locality("b", 1, 2, weight=9))
    yield only(1)


def w_pick_first_moves_when_its_host_dies(c):
    c.late(2)
    c.simple(1, 2, **policies(PICK_FIRST))
    yield only(1)
    c.down(1)
    yield only(2)
    c.back(1)
    yield only(2)


def w_pick_first_in_each_locality(c):
    c.late(2)
    c.cluster(**policies(by_locality(PICK_FIRST)))
    c.eds(c.locality("a", 1, 2, weight=1), c.locality("b", dead(1), 3, weight=3))
    yield Shares({1: 1, 3: 3}, 300)


def w_pick_first_keeps_its_host(c):
    """PF-07."""
    c.late(2)
    c.simple(1, 2, **policies(PICK_FIRST))
    yield only(1)
    c.priorities((2, 3, 1))
    yield only(1)


def w_type_changes(c):
    c.late(2)
    c.simple(1, 2, **policies(PICK_FIRST))
    yield only(1)
    c.cluster(**policies(by_locality(ROUND_ROBIN)))
    yield even(1, 2)
    c.cluster(**policies(PICK_FIRST))
    yield one_of(1, 2)  # both are connected


def w_least_request_or_round_robin(c):
    """C-core knows no least_request: with no load it does what round robin does."""
    c.simple(1, 2, 3, **policies(by_locality(policy("least_request", choice_count=2),
                                             ROUND_ROBIN)))
    yield Shares({1: 1, 2: 1, 3: 1}, 150)


def w_least_request_by_the_old_field(c):
    c.simple(1, 2, lb_policy="LEAST_REQUEST")
    yield Differ(only(UNAVAILABLE), Shares({1: 1, 2: 1}, 100),
                 "gRFC A48: C-core has no least_request")


# -- weights by load (gRFC A58)

def by_load(**config):
    made = {"blackout_period": "0s", "weight_update_period": "0.1s", **config}
    return policies(by_locality(policy("client_side_weighted_round_robin", **made)))


def load(qps, utilization, **more):
    return {"qps": qps, "application": utilization, **more}


def w_no_reports(c):
    c.simple(1, 2, **by_load())
    yield even(1, 2, spread=3)


def w_reports_weigh(c):
    c.simple(1, 2, 3, **by_load())
    c.behave(1, load=load(100, 0.5))
    c.behave(2, load=load(100, 0.25))
    c.behave(3, load=load(100, 1.0))
    yield Shares({1: 2, 2: 4, 3: 1}, 280, spread=25)


def w_reports_of_cpu_weigh(c):
    c.simple(1, 2, **by_load())
    c.behave(1, load={"qps": 30, "cpu": 0.3})
    c.behave(2, load={"qps": 30, "cpu": 0.1})
    yield Shares({1: 1, 2: 3}, 200, spread=20)


def w_application_utilization_beats_cpu(c):
    c.simple(1, 2, **by_load())
    c.behave(1, load=load(30, 0.3, cpu=0.01))
    c.behave(2, load=load(30, 0.1, cpu=0.9))
    yield Shares({1: 1, 2: 3}, 200, spread=20)


def w_who_does_not_report_is_average(c):
    c.simple(1, 2, 3, 4, **by_load())
    for number, qps in ((1, 200), (2, 100), (3, 100)):
        c.behave(number, load=load(qps, 1.0))
    yield Shares({1: 375, 2: 187.5, 3: 187.5, 4: 250}, 320, spread=25)


def w_one_report_is_none(c):
    c.simple(1, 2, 3, **by_load())
    c.behave(1, load=load(100, 0.1))
    yield even(1, 2, 3, calls=60, spread=3)


def w_errors_cost(c):
    """100/(0.5 + 50/100 · 1) = 100 against 200; a penalty of 2 makes it 66.7."""
    c.simple(1, 2, **by_load(error_utilization_penalty=2))
    c.behave(1, load=load(100, 0.5, eps=50))
    c.behave(2, load=load(100, 0.5))
    yield Shares({1: 1, 2: 3}, 200, spread=20)


def w_reports_without_qps_are_ignored(c):
    c.simple(1, 2, 3, **by_load())
    c.behave(1, load=load(0, 0.1))
    c.behave(2, load=load(100, 0))
    c.behave(3, load=load(100, 0.5))
    yield even(1, 2, 3, calls=60, spread=3)


def w_negative_penalty_is_refused(c):
    c.simple(1, **by_load(error_utilization_penalty=-1))
    yield only(UNAVAILABLE)


def w_reports_change(c):
    c.simple(1, 2, **by_load())
    c.behave(1, load=load(100, 0.5))
    c.behave(2, load=load(100, 0.5))
    yield Shares({1: 1, 2: 1}, 100, spread=8)
    c.behave(2, load=load(400, 0.5))
    yield Shares({1: 1, 2: 4}, 200, spread=20)


def w_blackout_holds_weights_back(c):
    c.simple(1, 2, **by_load(blackout_period="120s"))
    c.behave(1, load=load(100, 0.5))
    c.behave(2, load=load(900, 0.5))
    yield even(1, 2, calls=60, spread=3)


def w_reports_beside_localities(c):
    c.cluster(**by_load())
    c.eds(c.locality("a", 1, 2, weight=1), c.locality("b", 3, weight=1))
    c.behave(1, load=load(100, 0.5))
    c.behave(2, load=load(300, 0.5))
    yield Shares({1: 1, 2: 3, 3: 4}, 300)


# -- ring_hash (gRFC A42, A76)

def ring(c, *members, **config):
    c.simple(*members, **policies(policy("ring_hash", hash_function="XX_HASH", **config)))
    c.hash_by(header("x-key"))


def r_by_the_old_field(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    c.hash_by(header("x-key"))
    yield keys(*KEYS, distinct=3)


def r_old_field_with_sizes(c):
    c.simple(1, 2, 3, 4, lb_policy="RING_HASH",
             ring_hash_lb_config={"minimum_ring_size": 16, "maximum_ring_size": 64})
    c.hash_by(header("x-key"))
    yield keys(*KEYS, distinct=3)


def r_by_the_list(c):
    ring(c, 1, 2, 3)
    yield keys(*KEYS, distinct=3)


def r_tiny(c):
    ring(c, 1, 2, 3, 4, minimum_ring_size=4, maximum_ring_size=4)
    yield keys(*KEYS)


def r_capped_at_4096(c):
    ring(c, 1, 2, 3, minimum_ring_size=100_000, maximum_ring_size=8_000_000)
    yield keys(*KEYS, distinct=3)


def r_weights(c):
    ring(c, c.host(1, weight=5), c.host(2, weight=1), c.host(3, weight=2))
    yield keys(*KEYS, distinct=3)


def r_weights_and_localities(c):
    """A42-C11."""
    c.cluster(lb_policy="RING_HASH")
    c.eds(c.locality("a", c.host(1, weight=2), c.host(2, weight=1), weight=3),
          c.locality("b", c.host(3, weight=3), c.host(4, weight=1), weight=2))
    c.hash_by(header("x-key"))
    yield keys(*KEYS, distinct=3)


def r_hash_key(c):
    ring(c, c.host(1, hash_key="alpha"), c.host(2, hash_key="beta"), 3)
    yield keys(*KEYS, distinct=3)


def r_hash_key_of_two(c):
    """Which of two equal entries comes first is nobody's promise."""
    ring(c, c.host(1, hash_key="same"), c.host(2, hash_key="same"), 3, 4)

    def do(case, ask):
        answers = map(shown, ask([case.call(*metadata) for metadata in KEYS]))
        return ["1 or 2" if name in ("1", "2") else name for name in answers]

    def valid(outcome):
        return "" if set(outcome) == {"1 or 2", "3", "4"} else "not all of them serve"
    yield Told(do, valid=valid, same=True)


def r_becomes_round_robin_and_back(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    c.hash_by(header("x-key"))
    yield keys(*KEYS, distinct=3)
    c.cluster()
    yield even(1, 2, 3, calls=60, spread=3)
    c.cluster(lb_policy="RING_HASH")
    yield keys(*KEYS, distinct=3)


def r_dead_host_leaves_its_keys(c):
    ring(c, 1, 2, dead(1), 3)
    yield keys(*KEYS, distinct=3)


def r_two_headers(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    c.hash_by(header("x-key"), header("x-more"))
    yield keys(*([*key, ("x-more", str(n))] for n, key in enumerate(KEYS)), distinct=3)


def r_terminal_ends(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    c.hash_by(header("x-key", terminal=True), header("x-more"))
    yield keys(*([*key, ("x-more", str(n))] for n, key in enumerate(KEYS)), distinct=3)


def r_absent_header_is_skipped(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    c.hash_by(header("x-absent", terminal=True), header("x-key"))
    yield keys(*KEYS, distinct=3)


def r_header_rewritten(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    rewrite = {"pattern": {"regex": "key-([0-9])[0-9]*"}, "substitution": "\\1"}
    c.hash_by(header("x-key", regex_rewrite=rewrite))
    yield keys(*KEYS)


def r_header_given_twice(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    c.hash_by(header("x-key"))
    yield keys(*([*key, ("x-key", "again")] for key in KEYS), distinct=3)


def r_no_hash_policy(c):
    c.simple(1, 2, lb_policy="RING_HASH")

    def do(case, ask):
        return sorted({shown(answer) for answer in ask([case.call()] * 60)})
    yield Told(do, ["1", "2"])


def r_one_of_ten_leaves(c):
    ring(c, *range(1, 11))
    yield keys(*KEYS, distinct=8)
    c.priorities((*range(1, 7), *range(8, 11)))
    yield keys(*KEYS, distinct=7)


def r_all_dead(c):
    ring(c, dead(1), dead(2), dead(3))
    yield only(UNAVAILABLE, metadata=(("x-key", "a"),))


def r_min_above_max(c):
    ring(c, 1, minimum_ring_size=100, maximum_ring_size=10)
    yield only(UNAVAILABLE)


# -- outlier detection (gRFC A50)

def outliers(base="30s", percent=50, **config):
    return {"outlier_detection": {"interval": "1s", "base_ejection_time": base,
                                  "max_ejection_percent": percent, "enforcing_success_rate": 0,
                                  **config}}


def by_percentage(threshold=50, hosts=2, **config):
    return outliers(enforcing_failure_percentage=100, failure_percentage_threshold=threshold,
                    failure_percentage_minimum_hosts=hosts, failure_percentage_request_volume=3,
                    **config)


def x_failing_host_is_ejected(c):
    yield LATER
    c.simple(1, 2, 3, **by_percentage())
    c.behave(3, status=14)
    yield even(1, 2)


def x_any_status_is_a_failure(c):
    yield LATER
    c.simple(1, 2, 3, **by_percentage())
    c.behave(3, status=5)
    yield even(1, 2)


def x_success_rate(c):
    yield LATER
    config = outliers(enforcing_success_rate=100, success_rate_minimum_hosts=5,
                      success_rate_request_volume=3)
    c.simple(1, 2, 3, 4, 5, 6, **config)
    c.behave(6, status=13)
    yield even(1, 2, 3, 4, 5)


def x_success_rate_unset(c):
    yield LATER
    made = outliers(success_rate_minimum_hosts=5, success_rate_request_volume=3)
    del made["outlier_detection"]["enforcing_success_rate"]
    c.simple(1, 2, 3, 4, 5, 6, **made)
    c.behave(6, status=13)
    yield Differ(even(1, 2, 3, 4, 5, "INTERNAL"), even(1, 2, 3, 4, 5, calls=120),
                 "A50-E02: unset is 100 %")


def x_max_percent_zero(c):
    yield LATER
    c.simple(1, 2, 3, **by_percentage(percent=0))
    c.behave(3, status=14)
    yield Differ(even(1, 2), even(1, 2, UNAVAILABLE), "A50-E10: nobody, as the algorithm says")


def x_not_enforced(c):
    yield LATER
    c.simple(1, 2, **outliers(failure_percentage_minimum_hosts=1,
                              failure_percentage_request_volume=1))
    c.behave(2, status=14)
    yield Shares({1: 1, UNAVAILABLE: 1}, spread=3)


def x_threshold_of_100_never_fires(c):
    """A50-E08."""
    yield LATER
    c.simple(1, 2, **by_percentage(threshold=100))
    c.behave(2, status=14)
    yield Shares({1: 1, UNAVAILABLE: 1}, spread=3)


def x_too_few_hosts(c):
    yield LATER
    c.simple(1, 2, **by_percentage(hosts=3))
    c.behave(2, status=14)
    yield Shares({1: 1, UNAVAILABLE: 1}, spread=3)


def x_no_more_than_max_percent(c):
    """A50-E09: 0 of 4 < 25 %, 1 of 4 is not."""
    yield LATER
    c.simple(1, 2, 3, 4, **by_percentage(percent=25))
    c.behave(3, status=14)
    c.behave(4, status=14)
    yield Shares({1: 1, 2: 1, UNAVAILABLE: 1}, 60, spread=4)


def x_ejected_priority_fails_over(c):
    """A75-E11: all of P0 may go."""
    yield LATER
    c.cluster(**by_percentage(percent=60))
    c.priorities((1, 2), (3, 4))
    c.behave(1, status=14)
    c.behave(2, status=14)
    yield even(3, 4)


def x_ejected_host_returns(c):
    yield LATER
    c.simple(1, 2, 3, **by_percentage())
    c.behave(3, status=14)
    yield even(1, 2)
    c.behave(3)
    c.cluster(**by_percentage(base="1s"))
    yield even(1, 2, 3)


def x_switched_off_returns_all(c):
    """A50-E01."""
    yield LATER
    c.simple(1, 2, 3, **by_percentage())
    c.behave(3, status=14)
    yield even(1, 2)
    c.behave(3)
    c.cluster()
    yield even(1, 2, 3)


CASES = [made for name, made in list(globals().items()) if name[1:2] == "_" and callable(made)]
