# SPDX-License-Identifier: Apache-2.0
"""What a worker took it gives back: many idle clients, connections that come and go, full load; then every
pool has as many free objects as before, and the process has no more memory than its pools ever needed at one time.

SHUNT_SOAK="IDLE RATE CHURN_S LOAD_S" chooses how many idle connections, how many a second come and go for how
long, and how long the load lasts. All of it over memif, where shunt-load alone limits the rate."""

import os
import pathlib
import signal
import time

import pytest

import load_agent
from lab import wait_until
from lab_fixtures import check_end
from testbed import Testbed

IDLE, RATE, CHURN_S, LOAD_S = map(int, os.environ.get("SHUNT_SOAK", "20000 500 2 2").split())
SHORT_S = 2
FAR = [f"10.81.0.{n}/24" for n in range(3, 9)]  # more addresses of the client: more ports
OPEN_TIMEOUT_S = 60
SPARE_S = 30  # a spare connection to a backend is closed when it was idle for that
TIME_WAIT_S = SPARE_S + 75  # who closed a connection remembers it for 60
PATIENCE_S = 30
COUNTED_S = 1.5  # packet buffers are counted once a second
SLACK = 1 << 20  # bytes that the heap may be larger by: replies to show, what libgrpc keeps

pytestmark = pytest.mark.timeout(3 * (CHURN_S + LOAD_S) + 400)


@pytest.fixture(name="bed")
def fixture_bed(lab):
    bed = Testbed(lab, device="memif")
    # Clients have three quarters, and from seven eighths of these on newcomers replace idle ones.
    bed.settings = f"limits: {{connections: {max(16384, 2 * IDLE)}}}\n"
    load_agent.serve_echo(bed)
    echo = load_agent.start_echo(lab, "lb", *load_agent.memif_echo_words(lab))
    wait_until(lambda: {c["state"] for c in bed.show("clusters")["clusters"]} == {"READY"}, PATIENCE_S, "the backend")
    yield bed
    assert echo.alive(), echo.output()
    check_end(bed)


def words(bed):
    addresses = [word for address in FAR for word in ("-a", address)]
    return [*load_agent.memif_client_words(bed.lab), *addresses, "-T", str(OPEN_TIMEOUT_S)]


def run(bed, *more, seconds):
    done = load_agent.run(bed.lab, "lb", *words(bed), *map(str, more), timeout=seconds + PATIENCE_S + OPEN_TIMEOUT_S)
    assert done.status == 0, done.report
    return done.report


def used(bed):
    """{(worker, pool): objects in use}"""
    rows = bed.show("pools")
    assert all(row["free"] + row["used"] == row["total"] for row in rows)
    return {(row["worker"], row["pool"]): row["used"] for row in rows}


def chunks_used(bed):
    return sum(n for (_, pool), n in used(bed).items() if pool == "chunks")


def touched(bed):
    """Bytes of all that was ever in use: what a pool has resident."""
    return sum(row["peak"] * row["bytes"] for row in bed.show("pools"))


def memory(bed):
    """Bytes that are the daemon's alone."""
    rows = pathlib.Path(f"/proc/{bed.daemon.pid}/smaps_rollup").read_text().splitlines()[1:]
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private_Dirty:")) * 1024


def hold_idle(bed):
    """IDLE connections, each of which has had a request answered. Returns what one took."""
    before, answered = memory(bed), bed.show("info")["requests"]
    chunks = chunks_used(bed)
    process = bed.lab.start("lb", f"idle-{time.monotonic_ns()}", load_agent.argv(
        "run", *words(bed), "-c", str(IDLE), "-n", str(IDLE), "-r", "20000", "--hold", "1h", "--nap"))
    wait_until(lambda: not process.alive() or bed.show("info")["requests"] - answered == IDLE,
               OPEN_TIMEOUT_S + PATIENCE_S, "a request of each idle connection")
    # The last answers may have to be repeated: the generator's ring is full when it is held up.
    wait_until(lambda: not process.alive() or all_idle(bed) and chunks_used(bed) <= chunks,
               PATIENCE_S, "answers that are acknowledged")
    assert process.alive(), process.output()
    took = memory(bed) - before
    process.signal(signal.SIGINT)
    status = process.wait(OPEN_TIMEOUT_S + PATIENCE_S)
    report = load_agent.Run(status, process.output()).report
    assert status == 0 and report["connections"]["idle_held"] == IDLE, report
    assert report["outcomes"]["ok"] == IDLE
    return took / IDLE


def all_idle(bed):
    workers = bed.show_workers()
    assert sum(w["client_connections"] for w in workers) == IDLE
    return sum(w["proxy"]["requests"] for w in workers) == 0


def churn(bed, seconds):
    """Open, ask, close. Returns how many connections a second there were."""
    report = run(bed, "-c", "64", "-r", RATE, "-n", RATE * seconds, "--requests-per-connection", "1", seconds=seconds)
    assert report["connections"]["opened"] >= RATE * seconds
    return report["per_second"]


def load(bed, seconds):
    return run(bed, "-c", "8", "-m", "32", "-D", seconds, seconds=seconds)["per_second"]


def at_rest(bed):
    gauges = [w["proxy"] for w in bed.show_workers()]
    return sum(g["clients"] for g in gauges) == 0 and all(g["upstreams"] <= 1 for g in gauges)


def wait_for(bed, start):
    """Until all is back."""
    end, more = time.monotonic() + TIME_WAIT_S, 3
    while True:
        now = used(bed)
        different = {pool: (start[pool], now[pool]) for pool in start if now[pool] != start[pool]}
        if not different or time.monotonic() > end:
            break
        time.sleep(COUNTED_S)
        if more and all(name.startswith("mbufs") for _, name in different):
            run(bed, "-n", "1", seconds=1)  # frames to a client that has left stay until the device has a peer again
            end, more = time.monotonic() + TIME_WAIT_S, more - 1  # it may leave a TIME-WAIT behind
    assert different == {}


def test_every_pool_is_as_full_again_as_before_and_memory_is_flat(bed, capsys, record_property):
    load(bed, SHORT_S)  # the backend is connected, its HPACK tables are there
    wait_until(lambda: at_rest(bed), SPARE_S + PATIENCE_S, "no client, and one connection to the backend")
    time.sleep(COUNTED_S)
    start = used(bed)
    each = hold_idle(bed)
    churn(bed, SHORT_S)
    load(bed, SHORT_S)
    wait_until(lambda: at_rest(bed), SPARE_S + PATIENCE_S, "no client, and one connection to the backend")
    time.sleep(COUNTED_S)
    before, touched_before = memory(bed), touched(bed)
    hold_idle(bed)
    per_second = churn(bed, CHURN_S)
    requests = load(bed, LOAD_S)
    wait_for(bed, start)
    # A pool of which more was in use at one time than ever before has more pages, and keeps them.
    grown = memory(bed) - before - (touched(bed) - touched_before)
    told = {"bytes of an idle connection": round(each), "connections/s": round(per_second),
            "requests/s": round(requests), "memory grown by, KiB": grown // 1024, "MiB": before >> 20}
    for name, value in told.items():
        record_property(name, value)
    with capsys.disabled():
        print("\n" + "; ".join(f"{name}: {value}" for name, value in told.items()))
    assert grown < SLACK
