# SPDX-License-Identifier: Apache-2.0
"""More cases of the differential test of balancing: sessions, several addresses, DNS."""

import base64

import resources
from balance_case import (ALL_STATUSES, COOKIE, LATER, LIVE_NET, UNAVAILABLE, Differ, Told,
                          cookie_of, dead, even, header, keys, one_of, only, shown, silent)
from balance_cases import KEYS
from balance_policy_cases import by_percentage

# What the name servers say: the last number is the backend's.
HOSTS = {"one.test": [f"{LIVE_NET}.1"], "two.test": [f"{LIVE_NET}.1", f"{LIVE_NET}.2"],
         "half.test": [f"{LIVE_NET}.{dead(1)}", f"{LIVE_NET}.1"],
         "none.test": [f"{LIVE_NET}.{dead(1)}", f"{LIVE_NET}.{dead(2)}"]}


# -- sessions (gRFC A55, A60, A75)

def cookie_for(address, cluster):
    ip, port = address
    return base64.b64encode(f"{ip}:{port};{cluster}".encode()).decode()


def session_of(case, number, cluster=None):
    return ("cookie", f"{COOKIE}={cookie_for(case.address(number), cluster or case.name)}")


def pinned(number, wanted, cluster=None, calls=12):
    """Who answers to a cookie of this backend's, and does an answer set another one?"""
    def do(case, ask):
        answers = ask([case.call(session_of(case, number, cluster))] * calls)
        return sorted({(shown(a), cookie_of(a) is not None) for a in answers})
    return Told(do, wanted)


def s_cookie_is_set_and_pins(c):
    c.simple(1, 2, 3)
    c.sessions()

    def do(case, ask):
        (first,) = ask([case.call()])
        value = cookie_of(first)
        if value is None:
            return shown(first)
        again = ask([case.call(("cookie", f"{COOKIE}={value}"))] * 12)
        right = value == cookie_for(case.address(int(first["backend"])), case.name)
        return right and {shown(a) for a in again} == {first["backend"]}
    yield Told(do, True)


def s_cookie_of_a_host(c):
    c.simple(1, 2, 3)
    c.sessions()
    yield pinned(2, [("2", False)])


def s_cookie_of_nobody(c):
    c.simple(1, 2)
    c.sessions()
    yield pinned(9, [("1", True), ("2", True)])


def s_cookie_beats_priority(c):
    c.cluster()
    c.priorities((1,), (2,))
    c.sessions()
    yield pinned(2, [("2", False)])


def s_cookie_of_a_dead_host(c):
    c.simple(1, dead(1))
    c.sessions()
    yield pinned(dead(1), [("1", True)])


def s_cookie_of_a_draining_host(c):
    c.simple(c.host(1, health="DRAINING"), 2,
             common_lb_config={"override_host_status": {"statuses": ALL_STATUSES}})
    c.sessions()
    yield pinned(1, [("1", False)])
    yield only(2)


def s_draining_is_not_in_the_set(c):
    c.simple(c.host(1, health="DRAINING"), 2)
    c.sessions()
    yield pinned(1, [("2", True)])


def s_only_healthy_in_the_set(c):
    c.simple(1, c.host(2, health="HEALTHY"),
             common_lb_config={"override_host_status": {"statuses": ["HEALTHY"]}})
    c.sessions()
    yield pinned(1, [("1", False), ("2", True)])  # a cookie that stays true is not set again


def s_unhealthy_host_loses_its_session(c):
    c.simple(1, 2)
    c.sessions()
    yield pinned(1, [("1", False)])
    c.priorities((c.host(1, health="UNHEALTHY"), 2))
    yield pinned(1, [("2", True)])
    c.priorities((1, 2))
    yield pinned(1, [("1", False)])


def s_host_turns_draining_and_stays(c):
    c.simple(1, 2, common_lb_config={"override_host_status": {"statuses": ALL_STATUSES}})
    c.sessions()
    yield pinned(1, [("1", False)])
    c.priorities((c.host(1, health="DRAINING"), 2))
    yield pinned(1, [("1", False)])
    c.priorities((2,))
    yield pinned(1, [("2", True)])


def s_host_changes_its_priority(c):
    c.cluster()
    c.priorities((1, 2), (3,))
    c.sessions()
    yield pinned(1, [("1", False)])
    c.priorities((2,), (3, 1))
    yield pinned(1, [("1", False)])


def s_cookie_beats_the_draw_of_clusters(c):
    first, second = c.leaf("a", 1), c.leaf("b", 2)
    c.sessions(target={first: 1, second: 1})
    yield pinned(2, [("2", False)], cluster=second)


def s_cookie_of_another_cluster(c):
    first, second = c.leaf("a", 1), c.leaf("b", 2)
    c.sessions(target=first)
    c.routes.append(resources.route("/never", second))
    yield pinned(2, [("1", True)], cluster=second)


def pinned_to(addresses, wanted):
    """The same for a cookie of several addresses, given by backend numbers."""
    def do(case, ask):
        text = ",".join("{}:{}".format(*case.address(n)) for n in addresses)
        value = base64.b64encode(f"{text};{case.name}".encode()).decode()
        answers = ask([case.call(("cookie", f"{COOKIE}={value}"))] * 12)
        return sorted({(shown(a), cookie_of(a) is not None) for a in answers})
    return Told(do, wanted)


def s_cookie_of_two_hosts(c):
    c.simple(1, 2, 3)
    c.sessions()
    yield pinned_to((3, 2), [("3", True)])


def s_cookie_whose_first_is_dead(c):
    c.simple(1, dead(1), 2)
    c.sessions()
    yield pinned_to((dead(1), 2), [("2", True)])


def s_cookie_of_both_addresses(c):
    c.simple(c.host(1, dead(1)), c.host(2))
    c.sessions()
    yield pinned_to((1, dead(1)), [("1", False)])


def s_draining_is_all_there_is(c):
    c.simple(c.host(1, health="DRAINING"),
             common_lb_config={"override_host_status": {"statuses": ALL_STATUSES}})
    c.sessions()
    yield pinned(1, [("1", False)])
    yield only(UNAVAILABLE)


def s_ejected_host_loses_its_session(c):
    yield LATER
    c.simple(1, 2, 3, **by_percentage())
    c.sessions()
    c.behave(3, status=14)
    yield even(1, 2)
    yield Differ(pinned(3, [(UNAVAILABLE, False)]), pinned(3, [("1", True), ("2", True)]),
                 "A75-O22: as Envoy, where an ejected host is unhealthy")


def s_drops_come_first(c):
    """A75-I11."""
    c.simple(1, 2, drops=[{"category": "all", "drop_percentage": {
        "numerator": 100, "denominator": "HUNDRED"}}])
    c.sessions()
    yield only(UNAVAILABLE)


def s_ring_hash_below(c):
    c.simple(1, 2, 3, lb_policy="RING_HASH")
    c.sessions()
    yield pinned(2, [("2", False)])


# -- endpoints of several addresses (gRFC A61)

def m_first_address_serves(c):
    c.late(2)
    c.simple(c.host(1, 2), c.host(3))
    yield even(1, 3, spread=3)


def m_first_address_is_dead(c):
    c.simple(c.host(dead(1), 1), c.host(2))
    yield even(1, 2, spread=3)


def m_first_address_is_silent(c):
    c.simple(c.host(silent(1), 1), c.host(2))
    yield even(1, 2, spread=3)


def m_all_addresses_are_dead(c):
    c.simple(c.host(dead(1), dead(2)), c.host(1))
    yield only(1)


def m_duplicate_among_additional_is_refused(c):
    c.simple(1)
    yield only(1)
    c.priorities((c.host(2, 3), c.host(3)))
    yield only(1)


def m_second_address_takes_over(c):
    c.late(2)
    c.simple(c.host(1, 2))
    yield only(1)
    c.down(1)
    yield only(2)


def m_other_order_is_the_same_endpoint(c):
    """PF-08: it stays where it is connected."""
    c.late(2)
    c.simple(c.host(1, 2), c.host(3))
    yield even(1, 3, spread=3)
    c.priorities((c.host(2, 1), c.host(3)))
    yield even(1, 3, spread=3)


def m_ring_takes_the_first_address(c):
    c.late(4)
    c.simple(c.host(1, 4), c.host(dead(1), 2), c.host(3), lb_policy="RING_HASH")
    c.hash_by(header("x-key"))
    yield keys(*KEYS, distinct=3)


def m_session_of_the_second_address(c):
    c.simple(c.host(dead(1), 1), c.host(2))
    c.sessions()
    yield pinned(1, [("1", True)])


# -- LOGICAL_DNS (gRFC A37, A61)

def n_one_address(c):
    c.dns("one.test")
    c.back(1)
    yield only(1)


def n_two_addresses_are_one_endpoint(c):
    """A61-D02."""
    c.dns("two.test")
    c.back(1, 2)
    yield one_of(1, 2)


def n_one_of_two_is_dead(c):
    c.dns("half.test")
    c.back(1)
    yield only(1)


def n_all_are_dead(c):
    c.dns("none.test")
    yield only(UNAVAILABLE)


def n_no_such_name(c):
    c.dns("nobody.test")
    yield only(UNAVAILABLE)


def n_breaker(c):
    c.dns("one.test", circuit_breakers={"thresholds": [{"max_requests": 0}]})
    c.back(1)
    yield only(UNAVAILABLE)


def n_becomes_eds(c):
    c.dns("one.test")
    c.back(1)
    yield only(1)
    c.simple(2)
    yield only(2)


CASES = [made for name, made in list(globals().items()) if name[1:2] == "_" and callable(made)]
