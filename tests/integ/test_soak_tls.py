# SPDX-License-Identifier: Apache-2.0
"""What TLS takes it gives back: full load of both protocols with TLS on both sides, connections that come and go, with
clients' certificates where they are demanded and without, and certificates, CAs, CRL and the secret of tickets that
change each second all the while; then every pool has as many free objects as before, or more, since connections to
backends end that are idle for long. The process has no more memory than its pools and its handshakes need.

SHUNT_SOAK_TLS=SECONDS chooses how long."""

import itertools
import os
import time

import pytest

from lab import wait_until
from lab_fixtures import check_end
from test_soak import COUNTED_S, memory, touched, used
from test_tls import URL
from test_tls_rotation import RotatingWorld
from testbed import VIP

SECONDS = int(os.environ.get("SHUNT_SOAK_TLS", "8"))
WARM_S = 3
CLIENTS = 8
SETS = 4  # of what changes; they come around again
DEMANDS_PORT = 8443
CALLS = 40
SPARE_S = 60
TIME_WAIT_S = 75
SLACK = 4 << 20  # bytes that the heap may be larger by: the library's arenas, and contexts whose handshakes go on
AFTER_EACH_OTHER = ("/mark", ()), ("/tls/mark", ()), ("/tls/mark", ("--h1",)), ("/mark", ("--h1",))

pytestmark = pytest.mark.timeout(SECONDS + 400)


@pytest.fixture(name="secured")
def fixture_secured(lab):
    world = RotatingWorld(lab, lab.dir / "tls", SETS)
    world.bed.more_frontends = (
        f"{{name: demands, address: {VIP}, port: {DEMANDS_PORT}, target: web, "
        "tls: {certificate: front, ca: ca, require_client_certificate: true}}",)
    yield world.start()
    check_end(world.bed)


def start_loads(w, seconds):
    found = []
    for number, (path, more) in enumerate(AFTER_EACH_OTHER):
        argv = ["h2load", *more, "-D", str(seconds), "-c", str(CLIENTS), "-m", "1" if more else "16", URL + path]
        found.append(w.bed.lab.start("client", f"load-{time.monotonic_ns()}-{number}", argv))
    return found


def come_and_go(w):
    """Connections that open, ask once and close; some of them by halves."""
    done = w.bed.lab.exec("client", ["h2load", "-n", str(CALLS), "-c", str(CALLS), f"{URL}/tls/mark"], timeout=SPARE_S)
    assert f"{CALLS} succeeded, 0 failed" in done.stdout, done.stdout
    done = w.bed.lab.exec("client", [
        "curl", "-sS", "--http2", "--cacert", w.pki.folder / "first-ca.pem", *w.own("client"), "-w", "%{http_code} ",
        f"https://{VIP}:{DEMANDS_PORT}/mark?[1-{CALLS}]", "-o", "/dev/null"], timeout=SPARE_S)
    assert done.stdout.split() == ["200"] * CALLS, done.stdout
    w.bed.lab.exec("client", ["timeout", "0.2", "openssl", "s_client", "-quiet", "-connect", f"{VIP}:8080"],
                   check=False)


def work(w, seconds):
    """Requests that were answered, and rotations."""
    loads, end = start_loads(w, seconds), time.monotonic() + seconds
    for number in itertools.count():
        began = time.monotonic()
        if began > end:
            break
        w.rotate(number % SETS)
        come_and_go(w)
        time.sleep(max(0, 1 - (time.monotonic() - began)))
    reports = [w.bed.h2load_report(load, timeout=seconds + SPARE_S) for load in loads]
    # What is answered before h2load's clock runs counts as a status alone.
    assert all(r.status_2xx >= r.succeeded == r.total > 0 and r.failed == 0 for r in reports), reports
    return sum(report.succeeded for report in reports), number


def held(w, start):
    """What is not given back: more than before."""
    now = used(w.bed)
    return {pool: (start[pool], now[pool]) for pool in start if now[pool] > start[pool]}


def wait_for(w, start):
    """Until all is back. What only remembers that a connection was takes longest."""
    rest(w)
    end = time.monotonic() + TIME_WAIT_S
    while held(w, start) and time.monotonic() < end:
        time.sleep(COUNTED_S)
    assert held(w, start) == {}


def states(w):
    return [cluster["state"] for cluster in w.bed.show("clusters")["clusters"]]


def rest(w):
    """No client, and connections to backends anew: HPACK tables of these grow with what they have seen."""
    wait_until(lambda: sum(each["proxy"]["clients"] for each in w.bed.show_workers()) == 0, SPARE_S, "no client")
    before = states(w)
    w.bed.shuntctl("kill", "conn", "side=backend")
    time.sleep(COUNTED_S)
    wait_until(lambda: states(w) == before, SPARE_S, "connections to backends")
    time.sleep(COUNTED_S)


def test_every_pool_is_as_full_again_as_before_under_tls(secured, capsys, record_property):
    w = secured
    work(w, WARM_S)
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
