# SPDX-License-Identifier: Apache-2.0
"""Configurations that change at random under load. Seeded; SHUNT_CHURN="SEED SECONDS" chooses.

While every backend lives and each arrangement has a healthy endpoint in its first priority, no
request may fail, whatever else changes: priorities, localities, weights, health, policies, limits.
With backends that die and return, requests may fail, but nobody stays behind when it is over.
"""

import os
import random
import threading
import time

import pytest

from balance_case import ALL_STATUSES, by_locality, even, header, limited, only, policies, policy
from balance_policy_cases import by_load, by_percentage
from balance_world import BalanceWorld
from testbed import EXIT_TIMEOUT_S

SEED, SECONDS = os.environ.get("SHUNT_CHURN", "1 5").split()
HOSTS = range(1, 9)
N_CASES = 6
AFTER_S = 30
PAUSES_S = (0, 0.01, 0.05, 0.2)
MIN_REQUESTS = 1000
POLICIES = (
    {"lb_policy": "ROUND_ROBIN"}, {"lb_policy": "RING_HASH"}, by_load(),
    policies(policy("pick_first")), policies(by_locality(policy("pick_first"))),
    policies(by_locality(policy("least_request", choice_count=2))))
FURTHER = (
    {}, by_percentage(), {"circuit_breakers": {"thresholds": [limited(2000)]}},
    {"common_lb_config": {"override_host_status": {"statuses": ALL_STATUSES}}})


class Churn:
    def __init__(self, world, rand):
        self.world = world
        self.rand = rand
        self.cases = [world.case(f"churn-{n}") for n in range(N_CASES)]
        self.aggregate = world.case("churn-aggregate")
        self.leaves = [f"{self.aggregate.name}.{n}" for n in "ab"]
        for case in self.cases:
            case.cluster()
            self.arrange(case, case.name)
            case.hash_by(header("x-key"))
        for name in self.leaves:
            self.aggregate.cluster(name)
            self.arrange(self.aggregate, name)
        self.aggregate.aggregate(*self.leaves)
        world.apply()

    @property
    def all(self):
        return [*self.cases, self.aggregate]

    def host(self, case, number, surely_well):
        states = (None, "HEALTHY") if surely_well else (None, None, "UNHEALTHY", "DRAINING")
        return case.host(number, weight=self.rand.choice((None, 1, 3)),
                         health=self.rand.choice(states))

    def arrange(self, case, name):
        """Some hosts, over one to three priorities of two localities each."""
        rand = self.rand
        first, *others = rand.sample(HOSTS, rand.randint(1, len(HOSTS)))
        groups = [[] for _ in range(rand.randint(1, 3))]
        groups[0].append(self.host(case, first, True))
        for number in others:
            rand.choice(groups).append(self.host(case, number, False))
        localities = []
        for priority, group in enumerate(groups):
            cut = rand.randint(0, len(group))
            for zone, members in (("a", group[:cut]), ("b", group[cut:])):
                localities.append(case.locality(rand.choice("xy") + zone, *members,
                                                weight=rand.choice((1, 2, 5)), priority=priority))
        case.eds(*localities, name=name)

    def change(self):
        rand, case = self.rand, self.rand.choice(self.all)
        config = {**rand.choice(POLICIES), **rand.choice(FURTHER)}
        if case is self.aggregate and rand.random() < 0.3:
            rand.shuffle(self.leaves)
            case.aggregate(*self.leaves)
            return
        name = rand.choice(self.leaves) if case is self.aggregate else case.name
        if rand.random() < 0.3:
            case.cluster(name, **config)
        else:
            self.arrange(case, name)

    def kill_or_revive(self):
        case, number = self.rand.choice(self.all), self.rand.choice(HOSTS)
        (case.down if number in case.up else case.back)(number)

    def run(self, kill):
        """The answers of all the requests made meanwhile."""
        over, answers = threading.Event(), []

        def load(case):
            ask = self.world.ours.line()
            while not over.is_set():
                answers.extend(ask([case.call(("x-key", str(n))) for n in range(60)], parallel=6))
            ask.close()
        threads = [threading.Thread(target=load, args=(c,), daemon=True) for c in self.all]
        for thread in threads:
            thread.start()
        end = time.monotonic() + float(SECONDS)
        while time.monotonic() < end or len(answers) < MIN_REQUESTS and time.monotonic() < end + AFTER_S:
            self.change()
            if kill and self.rand.random() < 0.5:
                self.kill_or_revive()
            self.world.apply()
            time.sleep(self.rand.choice(PAUSES_S))
        over.set()
        for thread in threads:
            thread.join(AFTER_S)
        return answers

    def settle(self):
        """Everybody revived and in order: nothing that happened before may be felt."""
        for case in self.all:
            case.back(*HOSTS)
        for case in self.cases:
            case.cluster()
            case.priorities((1, 2), (3,))
        for number, name in enumerate(self.leaves, 1):
            self.aggregate.cluster(name)
            self.aggregate.priorities((number,), name=name)
        self.aggregate.aggregate(*self.leaves)
        for case in self.cases:
            self.world.settle(case, even(1, 2), AFTER_S)
        self.world.settle(self.aggregate, only(1), AFTER_S)


class Anybody:
    """Every request is served, by whomever."""

    @staticmethod
    def run(case, ask, _quick):
        return {answer["code"] for answer in ask([case.call()] * 10)}

    @staticmethod
    def wrong(codes):
        return "" if codes == {"OK"} else "not served"


def begin(c):
    c.simple(1)
    yield only(1)


@pytest.fixture(name="churn")
def fixture_churn(lab):
    print(f"SHUNT_CHURN=\"{SEED} {SECONDS}\"")
    world = BalanceWorld(lab, [begin])
    churn = Churn(world, random.Random(int(SEED)))
    world.start()
    for case in churn.all:  # the daemon has everything before the first request counts
        world.settle(case, Anybody, AFTER_S)
    yield churn
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def test_no_request_fails_whatever_changes(churn):
    answers = churn.run(kill=False)
    lost = [a for a in answers if a["code"] != "OK"]
    assert len(answers) >= MIN_REQUESTS and not lost, (len(answers), len(lost), lost[:3])
    churn.settle()


def test_backends_that_die_meanwhile_leave_no_trace(churn):
    answers = churn.run(kill=True)
    stuck = [a for a in answers if a["code"] not in ("OK", "UNAVAILABLE")]
    assert len(answers) >= MIN_REQUESTS and not stuck, (len(answers), len(stuck), stuck[:3])
    churn.settle()
