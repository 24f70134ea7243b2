# SPDX-License-Identifier: Apache-2.0
"""What a process that takes over knows without having learned it: who is ejected, what backends reported, what
operators said, whose sessions are whose, and resources while the xDS server is away."""

import collections

import pytest

from balance_case import Shares, even
from balance_policy_cases import by_load, by_percentage, load
from balance_session_cases import COOKIE, cookie_of
from balance_world import BalanceWorld
from lab import wait_until
from test_balancing import endpoints_of
from takeover_world import OLD, WAIT_S, follow, with_old
from testbed import BUILD, EXIT_TIMEOUT_S

CALLS = 80


@pytest.fixture(name="builds", params=[
    pytest.param((BUILD, BUILD), id="same"), pytest.param((OLD, BUILD), id="upgrade", marks=with_old),
    pytest.param((BUILD, OLD), id="rollback", marks=with_old)])
def fixture_builds(request):
    """That of the older process, and that of the newer one (FL-181)."""
    return request.param


@pytest.fixture(name="balance")
def fixture_balance(lab, builds):
    world = BalanceWorld(lab, [])
    world.bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\n"
    world.bed.build = builds[0]
    yield world.start()
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def hand_over(bed, build):
    """To a process of this build, until the older one has ended: then all calls are the newer one's."""
    bed.build = build
    older = follow(bed, 2)
    assert older.wait(WAIT_S) == 0
    log = (bed.lab.dir / "shuntd-2.log").read_text()
    assert "taken from the older process" in log and "unused=0" in log


def answered(ask, calls):
    """How many calls each backend answered; by the status where one failed."""
    return collections.Counter(a["backend"] if a["code"] == "OK" else a["code"] for a in ask(calls))


def test_what_was_learned_holds_at_once(balance, builds):
    """FL-17, FL-18: nothing of it can have been learned anew, since nobody asked the newer process before."""
    ejected, weighed, ruled, kept = map(balance.case, ("ejected", "weighed", "ruled", "kept"))
    ejected.simple(1, 2, 3, **by_percentage(base="120s"))
    ejected.behave(3, status=14)
    weighed.simple(1, 2, **by_load())
    weighed.behave(1, load=load(100, 0.5))
    weighed.behave(2, load=load(300, 0.5))
    ruled.simple(1, 2, 3)
    kept.simple(1, 2, 3)
    kept.sessions()
    balance.settle(ejected, even(1, 2), 20)
    balance.settle(weighed, Shares({1: 1, 2: 3}, CALLS, spread=5))
    balance.settle(ruled, even(1, 2, 3))
    balance.settle(kept, even(1, 2, 3))
    ip, port = ruled.address(1)
    balance.bed.shuntctl("set", "endpoint", f"ruled/{ip}:{port}", "down")
    ask = balance.ours.line()
    (first,) = ask([kept.call()])
    for number in (1, 2):
        weighed.behave(number)  # no reports any more
    balance.apply()

    hand_over(balance.bed, builds[1])
    assert set(answered(ask, [ejected.call()] * CALLS)) == {"1", "2"}
    assert endpoints_of(balance, ejected)[3]["ejected"]
    assert abs(answered(ask, [weighed.call()] * CALLS)["2"] - CALLS * 3 // 4) <= CALLS // 16
    assert set(answered(ask, [ruled.call()] * CALLS)) == {"2", "3"}
    cookie = ("cookie", f"{COOKIE}={cookie_of(first)}")
    assert set(answered(ask, [kept.call(cookie)] * CALLS)) == {first["backend"]}
    ask.close()


def test_fl_177_without_a_state_dir_either_for_two_generations(make_world, lab):
    """What the first process has heard serves at the third, and the server is believed again when it is back."""
    world = make_world()
    bed = world.bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\n"
    world.start()
    bed.xds.stop()
    for number in (2, 3):
        older = follow(bed, number)
        assert "from the older process" in (lab.dir / f"shuntd-{number}.log").read_text()
        assert older.wait(WAIT_S) == 0
        assert bed.run_h2load(requests=500).perfect
    assert bed.show("xds")["state"] is None
    assert any(resource["stale"] for resource in bed.show("xds")["resources"])
    bed.start_xds()
    wait_until(lambda: not any(resource["stale"] for resource in bed.show("xds")["resources"]), WAIT_S,
               "the server's own word")
    assert bed.run_h2load(requests=500).perfect


def test_resources_are_there_while_the_xds_server_is_not(make_world, lab, builds):
    """FL-18, FL-14."""
    world = make_world()
    bed = world.bed
    bed.build = builds[0]
    (lab.dir / "state").mkdir()
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\nstate_dir: {lab.dir}/state\n"
    world.start()
    wait_until(lambda: bed.show("xds")["state"]["written"], WAIT_S, "the file in state_dir")
    bed.xds.stop()
    bed.build = builds[1]
    older = follow(bed, 2)
    assert older.wait(WAIT_S) == 0
    assert bed.run_h2load(requests=500).perfect
