# SPDX-License-Identifier: Apache-2.0
"""Two workers on two cores: both carry their part, and together they do what one would do.

The client's calls go over 16 connections, which the hash spreads over the workers: all of them meet
the same one once in 30,000 runs.
"""

import collections
import contextlib
import ctypes
import os
import pathlib
import time

import pytest

from balance_case import UNAVAILABLE, Shares, dead, drop, even, limited, only, silent
from balance_policy_cases import by_percentage
from balance_session_cases import COOKIE, cookie_of
from balance_world import BalanceWorld
from lab import wait_until
from lab_fixtures import module_lab_of
from test_balancing import endpoints_of, find, hold, tree_of
from testbed import EXIT_TIMEOUT_S, START_TIMEOUT_S, Testbed

BOTH = (0, 1)
N_REQUESTS = int(os.environ.get("SHUNT_LONG_REQUESTS", "100000"))  # the long form has a million
SOON_S = 20

pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < len(BOTH), reason="one core only")


@pytest.fixture(name="world")
def fixture_world(make_world):
    return make_world(workers=BOTH).start()


@pytest.fixture(name="balance", scope="module")
def fixture_balance(request):
    """A BalanceWorld over both workers."""
    with module_lab_of(request) as lab:
        world = BalanceWorld(lab, [], workers=BOTH).start()
        yield world
        assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def per_worker(bed, *path):
    """A number of `show workers` for each of them."""
    found = bed.show_workers()
    for key in path:
        found = [part[key] for part in found]
    return found


def shares_of(bed, before):
    """How many requests each worker has had since."""
    return [now - then for now, then in zip(per_worker(bed, "requests"), before)]


# -- the load

@pytest.mark.timeout(600)
def test_many_requests_over_both_workers(world):
    report = world.bed.run_h2load(requests=N_REQUESTS, clients=32, streams=8, timeout=500)
    assert report.perfect, report
    workers = world.bed.show_workers()
    assert sum(w["requests"] for w in workers) >= N_REQUESTS
    for worker in workers:
        assert worker["requests"] >= N_REQUESTS // 16, workers
        assert worker["handover"]["given"] and worker["handover"]["taken"], workers
        assert worker["handover"]["ring_full"] == 0, workers
    assert {port["steering"] for port in world.bed.show("ports")} == {"software"}


def test_steering_can_be_left_to_software(make_world):
    world = make_world(workers=BOTH)
    text = world.bed.config_text()
    forced = text.replace("    addresses:", "    steering: software\n    addresses:")
    assert forced != text
    world.bed.config_text = lambda: forced
    report = world.start().bed.run_h2load(requests=2000, clients=32, streams=4)
    assert report.perfect, report
    assert all(share > 0 for share in per_worker(world.bed, "requests"))


def test_a_ping_and_a_new_neighbor_meet_either_worker(world, lab):
    """Each worker asks for backends by itself; answers and echo requests come to either."""
    assert not lab.unanswered("client", "10.81.0.10", 20, 0.01)
    lab.exec("client", ["ip", "neigh", "flush", "all"])
    world.bed.run_calls("unary", count=20)
    assert sum(per_worker(world.bed, "handover", "copies_given")) > 0


# -- one that stands still

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000  # waitpid(2): for threads, too


def worker_thread(bed, worker):
    """The id of its thread: EAL numbers them in the workers' order."""
    tasks = pathlib.Path(f"/proc/{bed.daemon.pid}/task").iterdir()
    names = {(task / "comm").read_text().strip(): int(task.name) for task in tasks}
    ours = sorted((name for name in names if name.startswith("rte-worker-")), key=lambda n: int(n.split("-")[-1]))
    return names[ours[worker]]


@contextlib.contextmanager
def held(thread):
    """Stops this thread alone, as a debugger does; signals would stop the process."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(request):
        if libc.ptrace(request, thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
    try:
        ptrace(PTRACE_SEIZE)
    except PermissionError:
        pytest.skip("ptrace is not allowed here")
    ptrace(PTRACE_INTERRUPT)
    wait_until(lambda: os.waitpid(thread, WALL | os.WNOHANG)[0], SOON_S, "the thread's stop")
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH)


@pytest.mark.ends_daemon
def test_a_worker_for_which_the_end_waits_is_named(make_world):
    """OPS-291: the drain is over without it."""
    bed = make_world(workers=BOTH).bed
    bed.settings = "drain_s: 1\n"
    bed.start_xds()
    bed.start_daemon()
    with held(worker_thread(bed, 1)):
        bed.daemon.popen.terminate()
        wait_until(lambda: 'reason="still waiting" waiting_for="workers"' in bed.daemon.output(), START_TIMEOUT_S,
                   "its name in the log")
    assert bed.daemon.wait(EXIT_TIMEOUT_S) == 0
    assert 'msg="stopped" requests_cut=unknown' in bed.daemon.output(), bed.daemon.output()


def test_a_worker_that_stands_still_is_told_and_holds_up_nobody_else(world):
    """TH-72, MC-18: the other one follows the configuration, and this one does when it turns again."""
    bed = world.bed
    with held(worker_thread(bed, 1)):
        wait_until(lambda: "worker stalled" in bed.daemon.output(), START_TIMEOUT_S, "a line in the log")
        assert "worker=1 core=1" in bed.daemon.output()
        assert per_worker(bed, "beat_ms")[1] > 1000
        before = per_worker(bed, "snapshot")
        world.set_weights(25, 75)
        wait_until(lambda: per_worker(bed, "snapshot")[0] > before[0], START_TIMEOUT_S, "the other one's snapshot")
        after = per_worker(bed, "snapshot")
        assert after[1] == before[1], (before, after)
    wait_until(lambda: min(per_worker(bed, "snapshot")) >= after[0], START_TIMEOUT_S, "the snapshot of both")
    wait_until(lambda: "worker resumed" in bed.daemon.output(), START_TIMEOUT_S, "another line in the log")
    report = bed.run_h2load(requests=2000, clients=16, streams=4)
    assert report.perfect, report


# -- one decision for all

def test_each_worker_connects_as_it_is_asked_and_shares_alike(balance):
    """MC-04, MC-06, MC-09: what one of them is connected to serves on both from the first request on, which
    makes the other connect; then each gives every endpoint its share, but for one."""
    c = balance.case("lazy")
    c.simple(1, 2, 3)
    balance.apply()
    ask = balance.ours.line()
    wait_until(lambda: ask([c.call()])[0]["code"] == "OK", SOON_S, "the cluster")
    assert {a["code"] for a in ask([c.call()] * 200)} == {"OK"}
    wait_until(lambda: [row["connections"] for row in endpoints_of(balance, c).values()] == [len(BOTH)] * 3,
               SOON_S, "connections of both")
    answers = ask([c.call()] * 600)
    ask.close()
    counts = collections.Counter(a["backend"] for a in answers)
    assert len(counts) == 3 and all(abs(n - 200) <= len(BOTH) for n in counts.values()), counts


def test_all_of_a_breaker_is_for_one_worker_and_for_both(balance):
    """MC-14: exactly max_requests, however they are spread; nothing is set aside for anybody."""
    c = balance.case("breaker")
    c.simple(1, 2, circuit_breakers={"thresholds": [limited(30)]})
    balance.settle(c, even(1, 2, parallel=2))
    ask = balance.ours.line()
    for channels in (32, 1):
        balance.ours.channels = channels
        held = hold(balance, c, 30)
        live = per_worker(balance.bed, "proxy", "requests")
        assert sum(live) == 30 and (min(live) > 0) == (channels > 1), live
        balance.ours.channels = 32
        assert {a["code"] for a in ask([c.call()] * 32)} == {UNAVAILABLE}
        assert held.end().total() == 30
        wait_until(lambda: find(tree_of(balance, c), "xds_cluster_impl")["in_flight"] == 0, SOON_S,
                   "nothing in flight")
    ask.close()
    balance.settle(c, even(1, 2, parallel=2))


COUNT_SYNS = """
table inet syns {{
  chain input {{
    type filter hook input priority -10;
    ip daddr {ip} tcp dport {port} tcp flags & (syn | ack) == syn counter
  }}
}}
"""


def count_syns(balance, address):
    ip, port = address
    balance.lab.nft("backends", COUNT_SYNS.format(ip=ip, port=port))


def syns(balance):
    shown = balance.lab.exec("backends", ["nft", "list", "table", "inet", "syns"]).stdout
    return int(shown.split("packets ")[1].split()[0])


def test_a_dead_backend_has_one_prober(balance):
    """MC-07, BO-01: attempts after 1, 1.6, 2.56, … s, give or take a fifth, of one worker alone, whatever both of them
    are asked for meanwhile. ARP that shows the host begins them anew, at the start as a rule: one more a worker."""
    c = balance.case("prober")
    count_syns(balance, c.address(dead(1)))
    c.simple(1, dead(1))
    began = time.monotonic()
    ask, before = balance.ours.line(), per_worker(balance.bed, "requests")
    balance.settle(c, only(1))

    def both_were_asked():
        answers = ask([c.call()] * 40)
        assert {a["code"] for a in answers} == {"OK"}, answers
        return min(shares_of(balance.bed, before)) > 50 and time.monotonic() - began > 9
    wait_until(both_were_asked, START_TIMEOUT_S, "9 s, and more than 50 requests of each", 0.2)
    took = time.monotonic() - began
    ask.close()
    most, at = 1, 0.0
    while at + 0.8 * 1.6 ** (most - 1) < took:
        at += 0.8 * 1.6 ** (most - 1)
        most += 1
    most += len(BOTH)
    assert 3 <= syns(balance) <= most, (syns(balance), most, took)
    balance.lab.exec("backends", ["nft", "delete", "table", "inet", "syns"])
    c.back(dead(1))
    balance.settle(c, even(1, dead(1)), took + 25)  # a pause is hardly longer than all before it


def is_ejected_within(balance, case, number, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if endpoints_of(balance, case)[number]["ejected"]:
            return True
        time.sleep(0.1)
    return False


def test_outliers_are_told_by_the_sum_of_all_workers_counts(balance):
    """MC-15: more requests than the volume, fewer on each worker; and the ejection holds on both."""
    c = balance.case("volume")
    config = by_percentage()
    config["outlier_detection"].update(interval="6s", failure_percentage_request_volume=100)
    c.simple(1, 2, 3, **config)
    balance.settle(c, even(1, 2, 3))
    c.behave(3, status=14)
    balance.apply()
    ask = balance.ours.line()
    for _ in range(8):  # a sweep may come in the middle: then once more, after the next one
        before = per_worker(balance.bed, "requests")
        answers = ask([c.call()] * 360, parallel=32)
        # A third of each worker's share, rounded up where its rotation begins so: 120 or 121 of both.
        assert collections.Counter(a["code"] for a in answers)["OK"] >= 239
        shares = shares_of(balance.bed, before)
        if is_ejected_within(balance, c, 3, 12.5):
            break
    assert 0 < min(shares) and max(shares) < 300, shares
    balance.settle(c, even(1, 2))
    ask.close()


def test_a_session_is_found_again_by_the_other_worker(balance):
    """MC-05, MC-16: by all 32 connections, though its owner has met one of them only."""
    c = balance.case("session")
    c.simple(1, 2, 3)
    c.sessions()
    balance.settle(c, even(1, 2, 3))
    ask = balance.ours.line()
    before = per_worker(balance.bed, "proxy", "sessions_kept")
    for _ in range(5):
        (first,) = ask([c.call()])
        cookie = ("cookie", f"{COOKIE}={cookie_of(first)}")
        again = ask([c.call(cookie)] * 32)
        assert {a["backend"] for a in again} == {first["backend"]}, again
    ask.close()
    kept = [now - then for now, then
            in zip(per_worker(balance.bed, "proxy", "sessions_kept"), before)]
    assert sum(kept) == 160 and min(kept) > 0, kept


def test_a_queue_of_either_worker_moves_when_a_backend_comes(balance):
    """MC-17: requests of both wait for a backend that hangs, and end at the one that appears."""
    c = balance.case("queue")
    c.cluster()
    c.priorities((silent(1),))
    balance.apply()
    ask, before = balance.ours.line(), per_worker(balance.bed, "requests")
    wait_until(lambda: ask([c.call(timeout=0.5)])[0]["code"] != UNAVAILABLE, SOON_S, "the cluster")
    held = hold_queued(balance, c, 32)
    assert min(shares_of(balance.bed, before)) > 0
    c.priorities((1,))
    balance.apply()
    answers = held()
    assert {a["code"] for a in answers} == {"OK"}, answers
    ask.close()


def hold_queued(balance, case, count):
    """So many calls that wait for a backend; what is returned gives their answers."""
    agent = balance.ours.agent.second_line()
    agent.begin(target=balance.ours.target, calls=[case.call(timeout=20)] * count, parallel=count,
                channels=balance.ours.channels)
    wait_until(lambda: sum(per_worker(balance.bed, "proxy", "requests_waiting")) >= count, SOON_S,
               f"{count} waiting calls")

    def end():
        answers = agent.answer()
        agent.close()
        return answers
    return end


def test_drops_are_drawn_by_each_worker_alike(balance):
    """MC-08: a tenth of 4000, six standard deviations."""
    c = balance.case("tenth")
    c.simple(1, drops=[drop("a-tenth", 10)])
    balance.settle(c, Shares({1: 9, UNAVAILABLE: 1}))
    ask = balance.ours.line()
    before = per_worker(balance.bed, "ended", "dropped")
    requests = per_worker(balance.bed, "requests")
    answers = ask([c.call()] * 4000, parallel=32)
    ask.close()
    dropped = [now - then for now, then in
               zip(per_worker(balance.bed, "ended", "dropped"), before)]
    assert sum(dropped) == sum(a["code"] != "OK" for a in answers)
    for mine, of in zip(dropped, shares_of(balance.bed, requests)):
        assert of > 0 and abs(mine - of / 10) < 6 * (of * 0.09) ** 0.5 + 1, (dropped, of)


# -- devices

def test_a_device_that_hashes_flows_is_followed_unless_told_otherwise(lab):
    """net_null has a key and a table of queues, if no frames."""
    bed = Testbed(lab, workers=BOTH)
    text = bed.config_text()
    for old, new in (("net_af_packet0,iface=lb-c", "net_null0,no-rx=1"),
                     ("net_af_packet1,iface=lb-b", "net_null1,no-rx=1\n    steering: software")):
        assert old in text
        text = text.replace(old, new)
    bed.config_text = lambda: text
    bed.start_daemon(wait=False)
    wait_until(bed.stats_socket.exists, START_TIMEOUT_S, "the stats socket")
    assert [port["steering"] for port in bed.show("ports")] == ["device", "software"]
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
