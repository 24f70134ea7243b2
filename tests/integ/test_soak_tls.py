# SPDX-License-Identifier: Apache-2.0
"""What TLS takes it gives back: full load of both protocols with TLS on both sides, connections that come and go, and
certificates that change each second all the while; then every pool has as many free objects as before, or more, since
connections to backends end that are idle for long. The process has no more memory than its pools and its handshakes
need.

SHUNT_SOAK_TLS=SECONDS chooses how long."""

import itertools
import os
import time

import pytest

from lab import wait_until
from lab_fixtures import check_end
from pki import replace
from test_soak import COUNTED_S, memory, touched, used
from test_tls import URL, TlsWorld
from testbed import VIP

SECONDS = int(os.environ.get("SHUNT_SOAK_TLS", "8"))
WARM_S = 3
CLIENTS = 8
SPARE_S = 60
TIME_WAIT_S = 75
SLACK = 4 << 20  # bytes that the heap may be larger by: the library's arenas, and contexts whose handshakes go on
AFTER_EACH_OTHER = ("/mark", ()), ("/tls/mark", ()), ("/tls/mark", ("--h1",)), ("/mark", ("--h1",))
# Frames of the device, what only remembers that a connection was, and tables of the connections to backends, which grow
# with what these have seen.
NOT_HELD = ("mbufs", "tcp_time_wait", "hpack_pages")

pytestmark = pytest.mark.timeout(SECONDS + 400)


@pytest.fixture(name="secured")
def fixture_secured(lab):
    world = TlsWorld(lab, lab.dir / "tls", names=["web.example"], sni="web.example").start()
    yield world
    check_end(world.bed)


def start_loads(w, seconds):
    found = []
    for number, (path, more) in enumerate(AFTER_EACH_OTHER):
        argv = ["h2load", *more, "-D", str(seconds), "-c", str(CLIENTS), "-m", "1" if more else "16", URL + path]
        found.append(w.bed.lab.start("client", f"load-{time.monotonic_ns()}-{number}", argv))
    return found


def come_and_go(w):
    """Connections that open, ask once and close; some of them by halves."""
    done = w.bed.lab.exec("client", ["h2load", "-n", "40", "-c", "40", f"{URL}/tls/mark"], timeout=SPARE_S)
    assert "40 succeeded, 0 failed" in done.stdout, done.stdout
    w.bed.lab.exec("client", ["timeout", "0.2", "openssl", "s_client", "-quiet", "-connect", f"{VIP}:8080"],
                   check=False)


def rotate(w, number):
    """New certificates of the frontend and of the client towards backends; names of a few come around again."""
    for name, sans in (("front", f"DNS:front.example,IP:{VIP}"), ("client", "URI:spiffe://a/client")):
        made = f"{name}-{number % 4}"
        w.pki.leaf(made, "ca", sans)
        replace(w.pki.folder / f"{name}.key", w.pki.key(made))
        replace(w.pki.folder / f"{name}.pem", w.pki.pem(made))


def work(w, seconds):
    """Requests that were answered, and rotations."""
    loads, end = start_loads(w, seconds), time.monotonic() + seconds
    for number in itertools.count():
        began = time.monotonic()
        if began > end:
            break
        rotate(w, number)
        come_and_go(w)
        time.sleep(max(0, 1 - (time.monotonic() - began)))
    reports = [w.bed.h2load_report(load, timeout=seconds + SPARE_S) for load in loads]
    # What is answered before h2load's clock runs counts as a status alone.
    assert all(r.status_2xx >= r.succeeded == r.total > 0 and r.failed == 0 for r in reports), reports
    return sum(report.succeeded for report in reports), number


def held(w, start):
    """What is not given back: more than before."""
    now = used(w.bed)
    return {pool: (start[pool], now[pool]) for pool in start
            if now[pool] > start[pool] and not pool[1].startswith(NOT_HELD)}


def wait_for(w, start):
    """Until all is back."""
    end = time.monotonic() + TIME_WAIT_S
    while held(w, start) and time.monotonic() < end:
        time.sleep(COUNTED_S)
    rest(w)
    assert held(w, start) == {}


def rest(w):
    wait_until(lambda: sum(each["proxy"]["clients"] for each in w.bed.show_workers()) == 0, SPARE_S, "no client")
    time.sleep(COUNTED_S)


def test_every_pool_is_as_full_again_as_before_under_tls(secured, capsys, record_property):
    w = secured
    work(w, WARM_S)  # backends are connected, their HPACK tables are there
    rest(w)
    start, before, touched_before = used(w.bed), memory(w.bed), touched(w.bed)
    requests, rotations = work(w, SECONDS)
    wait_for(w, start)
    grown = memory(w.bed) - before - (touched(w.bed) - touched_before)
    told = {"requests": requests, "rotations": rotations, "memory grown by, KiB": grown // 1024}
    for name, value in told.items():
        record_property(name, value)
    with capsys.disabled():
        print("\n" + "; ".join(f"{name}: {value}" for name, value in told.items()))
    assert grown < SLACK
