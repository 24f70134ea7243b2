# SPDX-License-Identifier: Apache-2.0
"""A path that goes dark: what goes on when it is light again, and what is cut, is what the table of docs/tcp.md says.

SHUNT_BLACKOUTS="1 5 15 25 40" chooses how many seconds; the long ones are not CI's."""

import contextlib
import json
import os
import time

import pytest

import resources
from badnet_world import AGENT, Bed
from lab_fixtures import check_end, module_lab_of
from testbed import PORT, VIP, Testbed

DARK_S = list(map(int, os.environ.get("SHUNT_BLACKOUTS", "1 5").split()))
CUT_S = 30  # clients.tcp_user_timeout_s and backends.tcp_user_timeout_s
# Clocks begin together to a second or two; where keepalive has to find out, it takes 33.
EARLIEST_CUT_S, LATEST_CUT_S = CUT_S - 2, CUT_S + 7
LEFT_S = 11  # new requests have left a dark backend
BEGIN_S = 1.5
LENGTH = 4 << 20  # takes three seconds and more at 10 Mbit/s
PATIENCE_S = 30  # for what is left when it is light: peers repeat themselves ever more seldom
TWO = ("10.82.1.1", "10.82.1.2")
BACKEND_PORT = 8080
PAUSE_S = 0.5
DARK = """
table netdev dark {{
  chain far {{ type filter hook ingress device "far" priority 0; ip saddr {ip} drop; arp saddr ip {ip} drop; }}
  chain near {{ type filter hook ingress device "near" priority 0; ip daddr {ip} drop; arp daddr ip {ip} drop; }}
}}
"""

pytestmark = pytest.mark.timeout(max(DARK_S) * 3 + 150)


@pytest.fixture(name="bed", scope="module")
def fixture_bed(request):
    with module_lab_of(request) as lab:
        bed = Bed(lab, "shunt", 4)
        yield bed
        check_end(bed.bed)


class Jobs:
    """Clients side by side, each a process with a connection of its own."""

    def __init__(self, lab):
        self.lab = lab
        self.processes = []

    def begin(self, *words):
        name = f"job-{len(self.lab.processes)}"
        self.processes.append(self.lab.start("client", name, [*AGENT, *words]))
        return len(self.processes) - 1

    def end(self, limit_s):
        """What each printed, in the order of their beginning."""
        for process in self.processes:
            assert process.wait(limit_s) == 0, process.output()
        return [json.loads(process.output().splitlines()[-1]) for process in self.processes]


def ended(bed, cause):
    return sum(worker["ended"].get(cause, 0) for worker in bed.show_workers())


def through_the_dark(bed, side, dark_s, asks):
    """Reports of a download and an upload that are under way when it gets dark on that side, and of the requests made
    at these times on a connection of their own, the first before the dark."""
    limit_s = round(BEGIN_S) + dark_s + PATIENCE_S
    other = "backend" if side == "client" else "client"
    jobs = Jobs(bed.lab)
    with bed.link(other), bed.link(side, both=f"delay=5ms rate=10mbit queue=300 blackout={BEGIN_S}s:{dark_s}s"):
        for way in ("down", "up"):
            jobs.begin(way, VIP, PORT, LENGTH, 1, 1, limit_s)
        jobs.begin("ask", VIP, PORT, asks, limit_s, "a", "b")
        return jobs.end(limit_s + 10)


@pytest.mark.parametrize("dark_s", DARK_S)
def test_a_client_that_was_in_the_dark_goes_on_or_is_cut(bed, dark_s):
    """The download has bytes on their way to the client, the idle connection has none, and whether the upload has (its
    WINDOW_UPDATEs) is left to chance."""
    lost = ended(bed.bed, "client_lost")
    down, up, (before, after) = through_the_dark(bed, "client", dark_s, BEGIN_S + dark_s + 2)
    assert (up["failed"] == [] or dark_s > CUT_S) and up["altered"] == 0, up
    assert before[2] == after[2] == "200", (before, after)
    assert (down["failed"] == []) == (dark_s < CUT_S) and down["altered"] == 0, down
    n_cut = len(down["failed"] + up["failed"])
    assert ended(bed.bed, "client_lost") - lost == n_cut


@pytest.mark.parametrize("dark_s", DARK_S)
def test_requests_under_way_to_a_dark_backend_go_on_or_are_cut(bed, dark_s):
    down, up, (before, after) = through_the_dark(bed, "backend", dark_s, BEGIN_S + dark_s + (
        2 if dark_s < CUT_S else PATIENCE_S / 2))
    assert before[2] == after[2] == "200", (before, after)
    for report in (down, up):
        assert (report["failed"] == []) == (dark_s < CUT_S) and report["altered"] == 0, report
        if dark_s > CUT_S:
            assert EARLIEST_CUT_S <= report["seconds"] - BEGIN_S <= LATEST_CUT_S, report


@contextlib.contextmanager
def dark_backend(lab, ip):
    middle = Testbed.middle_of("backends")
    lab.nft(middle, DARK.format(ip=ip))
    yield
    lab.nft(middle, "delete table netdev dark")


@pytest.mark.parametrize("dark_s", [s for s in DARK_S if s > LEFT_S] or [LEFT_S + 4])
def test_new_requests_leave_a_dark_backend_for_the_other_one(lab, dark_s):
    bed = Testbed(lab, bridges=True)
    for ip in TWO:
        bed.add_backend_address(ip)
        bed.wait_connect("backends", ip, BACKEND_PORT, lab.start("backends", ip, [*AGENT, "serve", ip, BACKEND_PORT]))
    resources.Folder(bed.xds_folder).set(
        resources.cluster("echo"), resources.endpoints("echo", *((ip, BACKEND_PORT) for ip in TWO)),
        resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "echo"))),
        resources.listener("web", "routes"))
    bed.start_xds()
    bed.start_daemon()
    limit_s = dark_s + PATIENCE_S
    began_s = time.monotonic()
    jobs = Jobs(lab)
    jobs.begin("ask", VIP, PORT, PAUSE_S, limit_s, *["a"] * int((dark_s + 5) / PAUSE_S))
    time.sleep(BEGIN_S)
    with dark_backend(lab, TWO[0]):
        time.sleep(dark_s)
        light_s = time.monotonic() - began_s
    answers, = jobs.end(limit_s + 10)
    failed = [(began, took, status) for began, took, status in answers if status != "200"]
    if dark_s < CUT_S:
        assert not failed, failed
    # What was asked for early is under way to the dark one, and is cut with its connection.
    assert all(began <= BEGIN_S + LEFT_S and EARLIEST_CUT_S <= began + took - BEGIN_S <= LATEST_CUT_S
               for began, took, _ in failed), failed
    late = [took for began, took, _ in answers if BEGIN_S + LEFT_S <= began < light_s - 1]
    assert all(took < 3 for took in late) and late, answers
    check_end(bed)
