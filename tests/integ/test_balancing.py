# SPDX-License-Identifier: Apache-2.0
"""Balancing through the daemon, one story a test: real connections, held streams, backends that die
and return. What happened is read off the backends and the client, and off `show tree` and
`show endpoints`.
"""

import collections
import itertools
import json
import os
import signal
import threading
import time

import pytest

from balance_case import (UNAVAILABLE, Shares, dead, drop, even, header, keys, limited, only,
                          policies, policy, shown)
from balance_cases import ROUND_ROBIN
from balance_policy_cases import by_load, by_percentage, load
from balance_session_cases import pinned
from balance_world import BalanceWorld
from lab import wait_until
from lab_fixtures import is_at_rest, module_lab_of
from testbed import EXIT_TIMEOUT_S

REST_TIMEOUT_S = 30
PATIENCE_S = 20
SOON_S = 10  # half of what a held call takes
MOVES_LIMIT_S = 60  # a busy machine asks slowly
DNS_LIMIT_S = 45  # gRPC, and so Shunt, asks for a name at most once in 30 s
NAME = "moving.test"


def names(c):
    """The world begins with the case that takes half a minute."""
    c.dns(NAME)
    c.back(1, 2)
    yield only(1)


@pytest.fixture(name="world", scope="module", params=((1,), (0, 1)), ids=("one", "two"))
def fixture_world(request):
    """With one worker, then with two, between which the client's connections are spread."""
    if len(request.param) > (os.cpu_count() or 1):
        pytest.skip("one core only")
    with module_lab_of(request) as lab:
        yield from play(lab, request.param)


def play(lab, workers):
    world = BalanceWorld(lab, [names], {NAME: ["10.82.2.1"]}, workers=workers).start()
    moved = world.cases["names"]
    world.settle(moved, only(1))
    world.dns.change({NAME: ["10.82.2.2"]}, signal.SIGHUP)
    moved.down(1)
    world.apply()
    yield world
    assert world.bed.daemon.alive()
    wait_until(lambda: all(map(is_at_rest_but_clients, world.bed.show_workers())),
               REST_TIMEOUT_S, "every request ended")
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def is_at_rest_but_clients(worker):
    """The client program stays connected to the end."""
    return is_at_rest({**worker, "proxy": {**worker["proxy"], "clients": 0}})


# -- what the operator sees

def shuntctl_json(world, *words):
    return json.loads(world.bed.shuntctl("--json", "show", *words))["data"]


def tree_of(world, case):
    (root,) = [node for node in shuntctl_json(world, "tree", case.name)]
    return root


def nodes(node):
    yield node
    for child in node.get("children", ()):
        yield from nodes(child)


def find(node, name):
    return next(n for n in nodes(node) if n["name"] == name)


def current_of(node):
    """The child that a priority node uses."""
    (child,) = [c["name"] for c in node["children"] if c.get("current") == "yes"]
    return child


def endpoints_of(world, case):
    """{backend number: row of `show endpoints`}"""
    rows = shuntctl_json(world, "endpoints", case.name)
    return {int(row["endpoint"].split(":")[0].rsplit(".", 1)[1]): row for row in rows}


# -- calls that are held

class Held:
    """Calls that the backends keep until let go; they run in a thread of their own."""

    def __init__(self, world, case, count, *metadata):
        self.world = world
        self.ask = world.ours.line()
        self.answers = None
        call = case.call(("x-hold-ms", "20000"), *metadata, timeout=25)
        self.thread = threading.Thread(target=self._run, args=([call] * count,), daemon=True)
        self.thread.start()

    def _run(self, calls):
        self.answers = self.ask(calls, parallel=len(calls))

    def end(self):
        self.world.let_go()
        self.thread.join(PATIENCE_S)
        self.ask.close()
        assert self.answers is not None, "held calls did not end"
        return collections.Counter(map(shown, self.answers))


def active(world, case):
    return sum(row["active"] for row in endpoints_of(world, case).values())


def hold(world, case, count, *metadata):
    """So many calls, all of which are at backends."""
    before = active(world, case)
    held = Held(world, case, count, *metadata)
    wait_until(lambda: active(world, case) == before + count, PATIENCE_S, f"{count} held calls")
    return held


# -- the stories

def test_priority_fails_over_and_returns(world):
    """A56-P01, A56-P08, A56-P09, A75-T01."""
    c = world.case("priorities")
    c.cluster()
    c.priorities((1, 2), (3,))
    world.settle(c, even(1, 2, spread=3))
    assert world.counts(c, 3)["connections"] == 0, "P1 is connected though P0 works"
    order = [node["name"] for node in nodes(tree_of(world, c))]
    assert order == ["cds", "outlier_detection", "xds_cluster_impl", "xds_override_host",
                     "priority", "child0", "wrr_locality", "weighted_target", "lab/p0/",
                     "round_robin", "child1"], order
    c.down(1, 2)
    world.settle(c, only(3))
    assert current_of(find(tree_of(world, c), "priority")) == "child1"
    assert endpoints_of(world, c)[1]["error"].endswith("connection refused")
    held = hold(world, c, 4)
    c.back(1, 2)
    world.settle(c, even(1, 2))
    assert current_of(find(tree_of(world, c), "priority")) == "child0"
    assert held.end() == {"3": 4}, "streams at P1 did not finish"
    assert world.is_each_workers_own(world.counts(c, 3)["live"]), "P1 was let go at once"


def test_aggregate_of_two_leaves_with_different_policies(world):
    """A75-T02, A75-T04, A75-G09."""
    c = world.case("aggregate")
    c.aggregate(c.leaf("a", 1, 2), c.leaf("b", 3, 4, 5, lb_policy="RING_HASH"))
    c.hash_by(header("x-key"))
    requests = [[("x-key", f"k{n}")] for n in range(30)] * 2
    world.settle(c, even(1, 2, spread=3))
    assert all(world.counts(c, n)["connections"] == 0 for n in (3, 4, 5))
    c.down(1, 2)
    answers = world.settle(c, keys(*requests, distinct=3))
    assert answers[:30] == answers[30:] and set(answers) == {"3", "4", "5"}, answers
    tree = tree_of(world, c)
    assert current_of(find(tree, "priority")) == f"{c.name}.b"
    assert [n["name"] for n in nodes(tree)].count("outlier_detection") == 2
    assert find(find(tree, f"{c.name}.b"), "ring_hash_experimental")["state"] == "READY"
    c.back(1, 2)
    world.settle(c, even(1, 2))
    assert current_of(find(tree_of(world, c), "priority")) == f"{c.name}.a"


def test_session_spans_priorities(world):
    """A75-T03, A75-O13, A75-O14, A75-O19: the session and its connection move with the endpoint."""
    c = world.case("sessions")
    c.cluster()
    c.priorities((1, 2), (3,))
    c.sessions()
    (first,) = world.settle(c, pinned(2, [("2", False)]))
    assert first == ("2", False)
    c.priorities((1,), (3, 2))
    world.settle(c, only(1))
    world.settle(c, pinned(2, [("2", False)]))
    kept = world.counts(c, 2)["connections"]
    assert world.is_each_workers_own(kept), "the session's connection was not kept"
    assert endpoints_of(world, c)[2]["priority"] == 1
    c.priorities((2,), (1,))
    world.settle(c, only(2))
    kept = world.counts(c, 2)["connections"]
    assert world.is_each_workers_own(kept), "the connection did not change hands"
    world.settle(c, pinned(1, [("1", False)]))
    c.priorities((2,))
    world.settle(c, pinned(1, [("2", True)]))


def test_subset_alone_is_connected_and_hardly_moves(world):
    """A68-01, A68-02, A68-08."""
    c = world.case("subset")
    few = policy("random_subsetting", subset_size=3, child_policy={"policies": [ROUND_ROBIN]})
    everybody = set(range(1, 9))

    def connected():
        return {n for n in everybody if world.counts(c, n)["live"]}

    c.simple(*everybody, **policies(few))
    world.apply()
    wait_until(lambda: len(connected()) == 3, PATIENCE_S, "three are connected")
    chosen = connected()
    world.settle(c, even(*chosen, spread=3))
    node = find(tree_of(world, c), "random_subsetting")
    assert (node["subset_size"], node["chosen"], node["endpoints"]) == (3, 3, 8), node
    gone = min(chosen)
    c.priorities(tuple(everybody - {gone}))
    world.apply()
    wait_until(lambda: gone not in connected() and len(connected()) == 3, PATIENCE_S, "another came")
    assert len(connected() & chosen) == 2, "one that goes moved others"
    world.settle(c, even(*connected(), spread=3))
    assert {n for n in everybody if world.counts(c, n)["connections"]} == chosen | connected()


def test_failing_backend_is_ejected_and_returns(world):
    """A50-E14, A50-E16, OPS-275."""
    c = world.case("ejection")
    c.simple(1, 2, 3, **by_percentage(base="5s"))
    world.settle(c, even(1, 2, 3))
    c.behave(3, status=14)
    world.settle(c, even(1, 2))
    row = endpoints_of(world, c)[3]
    assert row["ejected"] and row["failed"] > 0, row
    assert world.is_each_workers_own(row["connections"]), row
    assert find(tree_of(world, c), "outlier_detection")["ejected"] == 1
    c.behave(3)
    world.settle(c, even(1, 2, 3), 40)
    assert not endpoints_of(world, c)[3]["ejected"]
    events = [row for row in json.loads(world.bed.shuntctl("show", "events", "1024", "json"))["data"]
              if c.name in row["details"]]
    assert [row["event"] for row in events][:2] == ["endpoint ejected", "endpoint back from ejection"], events
    assert events[0]["details"].endswith(" by=failure_percentage for_s=5"), events
    kept = world.counts(c, 3)["connections"]
    assert world.is_each_workers_own(kept), "the connection did not stay"


def test_breaker_opens_at_exactly_max_requests(world):
    """A32-I05, A32-I06, A32-I08, A32-I09."""
    c = world.case("breaker")
    c.simple(1, 2, circuit_breakers={"thresholds": [limited(7)]})
    world.settle(c, even(1, 2, parallel=2))
    held = hold(world, c, 7)
    assert find(tree_of(world, c), "xds_cluster_impl")["in_flight"] == 7
    ask = world.ours.line()
    arrived = world.counts(c, 1)["requests"] + world.counts(c, 2)["requests"]
    refused = ask([c.call()] * 10)
    assert {a["code"] for a in refused} == {UNAVAILABLE}, refused
    assert all(a["seconds"] < SOON_S for a in refused), refused
    assert world.counts(c, 1)["requests"] + world.counts(c, 2)["requests"] == arrived
    assert held.end().total() == 7
    world.settle(c, even(1, 2, parallel=2))
    eight = hold(world, c, 6)
    seventh = hold(world, c, 1)
    (last,) = ask([c.call()])
    assert last["code"] == UNAVAILABLE, last
    assert set(eight.end()) | set(seventh.end()) <= {"1", "2"}
    wait_until(lambda: find(tree_of(world, c), "xds_cluster_impl")["in_flight"] == 0, PATIENCE_S,
               "nothing in flight")
    ask.close()


def test_breaker_is_shared_by_direct_and_aggregate_use(world):
    """A32-I07."""
    c = world.case("shared")
    leaf = c.leaf("a", 1, circuit_breakers={"thresholds": [limited(3)]})
    c.aggregate(leaf)
    directly = {"match": {"prefix": "", "headers": [{"name": "x-direct", "present_match": True}]},
                "route": {"cluster": leaf}}
    c.routes.insert(0, directly)
    world.settle(c, only(1, parallel=2))
    through = hold(world, c, 2)
    direct = Held(world, c, 1, ("x-direct", "1"))
    wait_until(lambda: world.counts(c, 1)["requests"] and any(
        n.get("in_flight") == 3 for n in nodes(tree_of(world, c))), PATIENCE_S, "three in flight")
    ask = world.ours.line()
    answers = ask([c.call(), c.call(("x-direct", "1"))] * 4)
    ask.close()
    assert {a["code"] for a in answers} == {UNAVAILABLE}, answers
    through.end()
    direct.end()


@pytest.mark.parametrize("entries", (81, None))
def test_ring_keeps_the_keys_of_those_that_stay(world, entries):
    """RH-02: with 81 entries at least, ten endpoints and nine have nine entries each, and a key
    moves only when its endpoint left. By default the ring keeps its size: others grow a little."""
    c = world.case(f"ring-{entries}")
    sizes = {"minimum_ring_size": entries} if entries else {}
    c.simple(*range(1, 11), **policies(policy("ring_hash", hash_function="XX_HASH", **sizes)))
    c.hash_by(header("x-key"))
    requests = [[("x-key", f"key-{n}")] for n in range(300)]
    before = world.settle(c, keys(*requests, distinct=10))
    by_count = collections.Counter(before).most_common()
    gone = next(name for name, count in by_count if count <= len(requests) / 10)
    c.priorities([n for n in range(1, 11) if str(n) != gone])
    world.settle(c, keys([("x-key", "one")], distinct=1))
    wait_until(lambda: int(gone) not in endpoints_of(world, c), PATIENCE_S, "nine endpoints")
    after = world.settle(c, keys(*requests, distinct=9))
    kept = sum(one == other for one, other in zip(before, after))
    stayed = sum(one != gone for one in before)
    assert kept == stayed >= 270 if entries else kept > 0.75 * len(requests), (kept, stayed, gone)


def test_weights_follow_load_reports(world):
    """A58-01, A58-05."""
    c = world.case("weights")
    c.simple(1, 2, 3, **by_load())
    for number, qps in ((1, 100), (2, 200), (3, 500)):
        c.behave(number, load=load(qps, 1.0))
    world.settle(c, Shares({1: 1, 2: 2, 3: 5}, 400, spread=30))
    c.behave(1, load=load(600, 1.0))
    world.settle(c, Shares({1: 6, 2: 2, 3: 5}, 400, spread=30))
    c.behave(3, load=load(500, 1.0, eps=500))
    world.settle(c, Shares({1: 6, 2: 2, 3: 2.5}, 400, spread=30))


def test_drop_of_half_drops_half(world):
    """A27-I01, A27-I03: 2000 draws, six standard deviations; a dropped one reaches no backend."""
    c = world.case("drops")
    c.simple(1, drops=[drop("half-of-it", 50)])
    world.settle(c, Shares({1: 1, UNAVAILABLE: 1}))
    before = world.counts(c, 1)["requests"]
    ask = world.ours.line()
    answers = ask([c.call()] * 2000, parallel=32)
    ask.close()
    served = sum(a["code"] == "OK" for a in answers)
    assert abs(served - 1000) < 134, served
    assert world.counts(c, 1)["requests"] - before == served
    dropped = [a for a in answers if a["code"] != "OK"]
    assert all(a["code"] == UNAVAILABLE for a in dropped), dropped
    assert {a["details"] for a in dropped} == {"the request was dropped"}  # TH-95


def test_second_address_serves_when_the_first_is_dead(world):
    """PF-02, PF-05, PF-08."""
    c = world.case("addresses")
    c.simple(c.host(dead(1), 1), c.host(2, dead(2)))
    world.settle(c, even(1, 2, spread=3))
    rows = shuntctl_json(world, "endpoints", c.name)
    assert [row["state"] for row in rows] == ["READY", "READY"], rows
    assert all(world.is_each_workers_own(world.counts(c, n)["connections"]) for n in (1, 2))


def test_no_request_is_lost_while_endpoints_change_priority(world):
    """UPD-02, A74-C03: every half of a tenth of a second another arrangement, under load."""
    c = world.case("moves")
    c.cluster()
    arrangements = [((1, 2), (3, 4)), ((3, 4), (1, 2)), ((1,), (2, 3, 4)), ((4, 3, 2), (1,)),
                    ((2, 3),), ((2, 3), (1, 4)), ((1, 2, 3, 4),), ((4,), (3,), (2,), (1,))]
    c.priorities(*arrangements[0])
    world.settle(c, even(1, 2))
    answers, over = [], threading.Event()

    def load_it():
        ask = world.ours.line()
        while not over.is_set():
            answers.extend(ask([c.call()] * 200, parallel=8))
        ask.close()
    thread = threading.Thread(target=load_it, daemon=True)
    thread.start()
    deadline = time.monotonic() + MOVES_LIMIT_S
    for n, arrangement in enumerate(itertools.cycle(arrangements)):
        if n >= 48 and len(answers) > 1000 or time.monotonic() > deadline:
            break
        c.priorities(*arrangement)
        world.apply()
        time.sleep(0.05)
    over.set()
    thread.join(60)
    lost = [a for a in answers if a["code"] != "OK"]
    assert len(answers) > 1000 and not lost, (len(answers), len(lost), lost[:3])
    assert {a["backend"] for a in answers} == {"1", "2", "3", "4"}
    c.priorities((3,), (4,))
    world.settle(c, only(3))


def test_hung_priority_is_given_up_after_ten_seconds(world):
    """A56-P03: until then requests wait."""
    c = world.case("hung")
    c.cluster()
    c.priorities((-1,), (1,))
    world.apply()
    ask = world.ours.line()
    started = time.monotonic()
    wait_until(lambda: ask([c.call(timeout=0.5)])[0]["code"] != UNAVAILABLE, PATIENCE_S, "the cluster")
    (answer,) = ask([c.call(timeout=20)])
    took = time.monotonic() - started
    ask.close()
    assert answer["code"] == "OK" and 9 < took < 12.5, (answer, took)


def test_names_are_asked_for_again(world):
    """A74-C06: the other answer has been taken since the connection to the first was lost."""
    c = world.cases["names"]
    world.settle(c, only(2), DNS_LIMIT_S)
    assert world.dns.asked(NAME) > 1
    assert list(endpoints_of(world, c)) == [2]
