# SPDX-License-Identifier: Apache-2.0
"""An xDS server whose responses cost whoever takes them as they come (TH-57): the daemon answers all
the while, keeps what serves, and takes no more memory than a few times what was sent. How long an
answer took at most is told; what fails is one that the control thread worked too long before: a
machine that stands still for seconds is not the daemon's to answer for."""

import json
import os
import pathlib
import socket
import sys
import threading
import time

import pytest
from conftest import check_end
from lab import wait_until
from testbed import Testbed, XDS_ADDRESS

HERE = pathlib.Path(__file__).resolve().parent
BACKEND = ("10.82.0.1", 8080)
PATIENCE_S = 40
ANSWER_WORK_S = 0.5  # of the control thread before it answers; in fact a tenth or less
ANSWER_S = 10  # and by the clock, which counts waiting for a core, too
TIMES_ITS_BYTES = 4  # of memory while a response is dealt with
VHOST = 2600  # bytes of one that serves
AFTERWARDS_S = 0.5  # what was there before is freed
SLACK = 24 << 20  # of libgrpc and malloc, whatever was sent


class Watch:
    """Asks the daemon without a break, and notes how long each answer took, and how long the control thread worked
    meanwhile."""

    def __init__(self, bed):
        self.path = str(bed.stats_socket)
        pid = bed.daemon.popen.pid
        self.schedstat = pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat")
        self.longest = 0.0
        self.most_work = 0.0
        self.n = 0
        self.over = False
        self.thread = threading.Thread(target=self._ask)

    def _work(self):
        return int(self.schedstat.read_text().split()[0]) / 1e9

    def _ask(self):
        while not self.over:
            start, work = time.monotonic(), self._work()
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(self.path)
                one.sendall(b"show info\n")
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
            self.longest = max(self.longest, time.monotonic() - start)
            self.most_work = max(self.most_work, self._work() - work)
            self.n += 1
            time.sleep(0.002)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


class HostileWorld:
    def __init__(self, lab):
        self.bed = Testbed(lab)
        backend = self.bed.start_http_backend("backend", BACKEND[0], 400)
        self.bed.wait_connect("backends", *BACKEND, backend)
        pipe = lab.dir / "commands"
        os.mkfifo(pipe)
        self.commands = os.open(pipe, os.O_RDWR)
        self.bed.start_xds([sys.executable, HERE / "hostile_xds.py", XDS_ADDRESS,
                            f"{BACKEND[0]}:{BACKEND[1]}", pipe])
        self.bed.start_daemon()
        self.check_serves()

    def check_serves(self):
        report = self.bed.run_h2load(requests=200, clients=2, streams=4)
        assert report.perfect, report

    def said(self, word, command):
        lines = [json.loads(line) for line in self.bed.xds.output().splitlines()]
        found = [line for line in lines if line.get(word) == command]
        return found[-1] if found else None

    def memory(self, what):
        status = pathlib.Path(f"/proc/{self.bed.daemon.popen.pid}/status").read_text()
        return 1024 * int(status.split(what + ":")[1].split()[0])

    def attack(self, command, done, kept=0):
        """The text of the client's NACK, "" = an ACK; then done() comes true. kept: bytes of what
        serves from then on."""
        before = self.memory("VmRSS")
        clear = pathlib.Path(f"/proc/{self.bed.daemon.popen.pid}/clear_refs")
        clear.write_text("5")  # the peak begins anew
        with Watch(self.bed) as watch:
            os.write(self.commands, command.encode() + b"\n")
            wait_until(lambda: self.said("answer", command), PATIENCE_S, "an answer")
            wait_until(done, PATIENCE_S, f"the effect of {command}")
            time.sleep(AFTERWARDS_S)
        length = self.said("sent", command)["len"]
        grown = self.memory("VmHWM") - before
        print(f"{command}: {length >> 10} KiB, memory grew by {grown >> 10} KiB "
              f"({grown / length:.1f} times), {watch.n} answers, the longest after "
              f"{1000 * watch.longest:.0f} ms, the most work before one {1000 * watch.most_work:.0f} ms")
        assert watch.n > 0 and watch.most_work < ANSWER_WORK_S and watch.longest < ANSWER_S
        assert grown < TIMES_ITS_BYTES * length + kept + SLACK
        self.check_serves()
        return self.said("answer", command)["error"]

    def server(self):
        return self.bed.show("xds")["server"]


def test_clusters_that_nobody_asked_for_are_passed_over(lab):
    """PC-08, TH-57."""
    world = HostileWorld(lab)
    assert world.attack("unknown 300000", lambda: world.server()["unwanted"] == 300_000) == ""
    assert set(c["cluster"] for c in world.bed.show("clusters")["clusters"]) == {"blue"}
    check_end(world.bed)


def test_resources_beyond_the_limit_are_refused_unread(lab):
    """TH-57."""
    world = HostileWorld(lab)
    error = world.attack("empty 5000000", lambda: world.server()["over_limit"] == 1)
    assert "the response has 5000001 resources, and xds_resources is 1000000" in error
    error = world.attack("empty 200000", lambda: world.server()["nacks"] == 2)
    assert error.startswith("resource 1: ") and error.endswith(" more"), error[-200:]
    check_end(world.bed)


@pytest.mark.parametrize("where", ["vhosts", "inline"])  # a RouteConfiguration; a Listener (CL-02)
def test_two_hundred_thousand_virtual_hosts_are_taken_bit_by_bit(lab, where):
    """TH-57."""
    world = HostileWorld(lab)

    def serves(n):
        found = world.bed.shuntctl("--json", "explain", "--authority", f"v{n - 1}.example", "--path", "/")
        return f'"v{n - 1}"' in found
    assert world.attack(f"{where} 200000", lambda: serves(200_000), 200_000 * VHOST) == ""
    assert world.attack(f"{where} 10", lambda: not serves(200_000)) == ""
    check_end(world.bed)


@pytest.mark.parametrize("command, why", [
    ("bare 1000000", "virtual_hosts: more than 262144"),
    ("long 1000000", "virtual_hosts[1]: routes[52428]"),
    ("wide 1000000", "virtual_hosts[1]: domains[262143]: more than 262144 fields")])
def test_more_than_a_route_configuration_may_have_is_refused(lab, command, why):
    """TH-136."""
    world = HostileWorld(lab)
    error = world.attack(command, lambda: world.server()["nacks"] == 1)
    assert "routes" in error and why in error, error
    check_end(world.bed)
