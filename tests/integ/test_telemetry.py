# SPDX-License-Identifier: Apache-2.0
"""DPDK's own tool, dpdk-telemetry.py of Debian, reads a running daemon."""

import contextlib
import json
import os
import signal
import subprocess
import threading

import pytest

from lab import wait_until
from testbed import LINKS

TOOL = "dpdk-telemetry.py"
N_REQUESTS = 40
N_LOSSES = 3
TIMEOUT_S = 60
# Those that only look. The others of DPDK's are for debugging, and write.
LOOKS = ("/ethdev/list", "/ethdev/stats,0", "/ethdev/xstats,0", "/ethdev/info,0", "/ethdev/link_status,0",
         "/mempool/list", "/eal/params", "/shunt/workers", "/shunt/worker,0", "/shunt/pools,0", "/shunt/groups",
         "/shunt/group,port0")


def ask(folder, *commands):
    """What the tool prints, by command."""
    done = subprocess.run([TOOL, "-f", "shunt"], input="\n".join(commands) + "\n", capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False, env={**os.environ, "RUNTIME_DIRECTORY": str(folder)})
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: value for answer in answers for name, value in answer.items()}


@contextlib.contextmanager
def four_who_ask(folder):
    """For everything, all the time. Yields a list of how many answers each got at a time."""
    is_over, n_answers = threading.Event(), []

    def look():
        while not is_over.is_set():
            with contextlib.suppress(json.JSONDecodeError):  # the daemon hung up while it answered
                n_answers.append(len(ask(folder, *LOOKS)))
    lookers = [threading.Thread(target=look) for _ in range(4)]
    for looker in lookers:
        looker.start()
    try:
        yield n_answers
    finally:
        is_over.set()
        for looker in lookers:
            looker.join(TIMEOUT_S)


@pytest.fixture(name="asked")
def fixture_asked(make_world):
    """A world whose daemon has its socket for telemetry in the world's folder."""
    world = make_world()
    world.bed.start_xds()
    world.bed.start_daemon(env={"RUNTIME_DIRECTORY": str(world.bed.lab.dir)})
    return world


def test_ops_225_dpdks_tool_reads_workers_pools_and_counters(asked):
    asked.bed.run_calls("unary", count=N_REQUESTS)
    answers = ask(asked.bed.lab.dir, "/shunt/workers", "/shunt/worker,0", "/shunt/pools,0", "/shunt/groups",
                  "/shunt/group,port0", "/ethdev/list")
    assert answers["/shunt/workers"] == [0] and len(answers["/ethdev/list"]) == 2, answers
    worker = answers["/shunt/worker"]
    assert worker["requests"] == worker["requests_ok"] == N_REQUESTS and worker["busy_ns"] > 0, worker
    assert worker["core"] == asked.bed.workers[0]
    pools = {row["pool"]: row for row in asked.bed.show("pools")}
    assert {name: row["total"] for name, row in answers["/shunt/pools"].items()} == {
        name.replace("-", "_"): row["total"] for name, row in pools.items()}
    assert answers["/shunt/pools"]["requests"]["peak"] == pools["requests"]["peak"] > 0
    assert {"tcp", "h2", "port0", "port1"} <= set(answers["/shunt/groups"])
    assert answers["/shunt/group"]["rx_frames"] > N_REQUESTS


def test_ops_225_what_is_not_there_is_null(asked):
    for wrong in ("/shunt/worker", "/shunt/worker,1", "/shunt/worker,-1", "/shunt/worker,0x",
                  "/shunt/pools,99999999999999", "/shunt/group", "/shunt/group,port9", "/shunt/nothing"):
        assert list(ask(asked.bed.lab.dir, wrong).values()) == [None], wrong


@pytest.mark.ends_daemon
def test_ops_225_a_daemon_that_is_asked_all_the_time_ends_in_order(asked):
    with four_who_ask(asked.bed.lab.dir) as n_answers:
        asked.bed.run_calls("unary", count=N_REQUESTS)
        wait_until(lambda: len(n_answers) > 20, TIMEOUT_S, "answers")
        asked.bed.daemon.signal(signal.SIGTERM)
        assert asked.bed.daemon.wait(TIMEOUT_S) == 0, asked.bed.daemon.output()
    assert max(n_answers) == len({look.split(",")[0] for look in LOOKS})
    assert not list((asked.bed.lab.dir / "dpdk" / "shunt").iterdir())


def test_ops_225_a_device_that_goes_while_it_is_asked_for_ends_nothing(asked):
    bed = asked.bed
    far_if, near_if = LINKS["backends"]
    with four_who_ask(bed.lab.dir) as n_answers:
        for _ in range(N_LOSSES):
            bed.lab.ip("lb", "link", "delete", near_if)
            wait_until(lambda: bed.show("ports")[1]["link"] == "gone", TIMEOUT_S, "the device has gone")
            bed.lab.link(("backends", far_if), ("lb", near_if), queues=len(bed.workers))
            wait_until(lambda: bed.show("ports")[1]["link"] == "up", TIMEOUT_S, "the device is back")
        seen = len(n_answers)
        wait_until(lambda: len(n_answers) > seen + 8, TIMEOUT_S, "answers again")
    assert bed.daemon.alive()


def test_ops_225_the_socket_of_a_daemon_that_was_killed_does_not_matter(asked):
    asked.bed.daemon.kill()
    asked.bed.start_daemon(env={"RUNTIME_DIRECTORY": str(asked.bed.lab.dir)}, name="shuntd-2")
    assert ask(asked.bed.lab.dir, "/info")["/info"]["pid"] == asked.bed.daemon.pid


def test_ops_225_without_a_folder_for_it_there_is_just_no_telemetry(make_world):
    world = make_world()
    world.bed.start_xds()
    world.bed.start_daemon(env={"RUNTIME_DIRECTORY": "/proc/nowhere"})
    world.bed.run_calls("unary", count=N_REQUESTS)
