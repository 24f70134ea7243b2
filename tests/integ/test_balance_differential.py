# SPDX-License-Identifier: Apache-2.0
"""The same resources and the same calls, given to gRPC's own xDS client (C-core) and to shuntd,
all about balancing: the same backends serve, in the same proportion, or the calls fail with the
same status. Proportions are held to what the case expects by chi-square, at a chance of failing by
accident of one in three million for each, and where a policy is no draw also by a bound.

C-core is the oracle: a case's expectation must hold for it, too, or be a Differ with its reason.
All cases play at once, step by step; within a step an outcome may take its time (failover timers,
backoff, resources that never come), and then must be there when everything is asked once more.
"""

import pytest

import balance_cases
import balance_cluster_cases
import balance_policy_cases
import balance_session_cases
from balance_case import Differ, dead, even, header, keys
from balance_world import BalanceWorld, measure_all, settle_all
from testbed import EXIT_TIMEOUT_S

STEP_LIMIT_S = 30
AGAIN_LIMIT_S = 20  # a busy machine may make one answer late
MIN_CASES = 150


def expectations_of(expectation):
    """(C-core's, ours)"""
    if isinstance(expectation, Differ):
        return expectation.core, expectation.ours
    return expectation, expectation


def jobs_of(world):
    for name, expectation in world.wanted.items():
        for side, theirs in zip((world.oracle, world.ours), expectations_of(expectation)):
            if theirs:
                yield side, world.cases[name], theirs


def complaints(world, jobs, results, when):
    """What was wrong with one round, and what the two sides say differently that should not."""
    said = {}
    for (side, case, expectation), (outcome, wrong) in zip(jobs, results):
        said.setdefault(case.name, []).append(outcome)
        if wrong:
            yield f"{case.name} {when}: {side.name} {wrong}: {outcome}"
        if expectation.same and len(said[case.name]) == 2:
            theirs, ours = said[case.name]
            if theirs != ours:
                yield f"{case.name} {when}: C-core {theirs}, shuntd {ours}"
    for name, expectation in world.wanted.items():
        if (isinstance(expectation, Differ) and expectation.core and
                not expectation.core.wrong(said[name][1])):
            yield f"{name} {when}: shuntd does as C-core, so this is wrong: {expectation.why}"


def play(world):
    """Plays all steps of all cases on both sides; then the daemon must leave in order."""
    wrong, step = [], 0
    while world.wanted:
        step += 1
        jobs = list(jobs_of(world))
        settle_all(jobs, STEP_LIMIT_S)
        results = measure_all(jobs, AGAIN_LIMIT_S)
        wrong += complaints(world, jobs, results, f"step {step}")
        world.advance()
    assert not wrong, f"{len(wrong)} differences\n" + "\n".join(wrong)
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


@pytest.mark.timeout(300)
def test_balances_as_grpc_core(lab):
    cases = [case for module in (balance_cases, balance_cluster_cases, balance_policy_cases,
                                 balance_session_cases) for case in module.CASES]
    assert len(cases) >= MIN_CASES
    world = BalanceWorld(lab, cases, balance_session_cases.HOSTS)
    world.add_oracle()
    world.start()
    play(world)


def aggregate_policy_counts(c):
    c.aggregate(c.leaf("a", dead(1)), c.leaf("b", 1, 2, 3), lb_policy="RING_HASH")
    c.hash_by(header("x-key"))
    yield keys(*balance_cases.KEYS, distinct=3)


def leaf_alone_keeps_its_policy(c):
    leaf = c.leaf("a", 1, 2)
    c.aggregate(leaf, lb_policy="RING_HASH")
    c.hash_by(header("x-key"), target=leaf)
    yield even(1, 2, spread=3, metadata=(("x-key", "one"),))


def test_aggregates_as_of_old(lab):
    """A75-G08: with the variable set, the aggregate's policy is that of its leaves."""
    env = {"GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT": "true"}
    world = BalanceWorld(lab, [aggregate_policy_counts, leaf_alone_keeps_its_policy])
    world.add_oracle(env)
    world.start(env)
    play(world)
