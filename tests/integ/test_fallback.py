# SPDX-License-Identifier: Apache-2.0
"""Two management servers in order of preference (gRFC A71), under load."""

import json
import time

import pytest

from lab import wait_until
from test_xds import wait_for_split
from testbed import BUILD

FIRST, SECOND = "127.0.0.1:18000", "127.0.0.1:18001"
BOUND_S = 20
CLIENTS, RATE = 8, 75  # each client's, per second


def bootstrap(*servers):
    return {"xds_servers": [{"server_uri": uri, "channel_creds": [{"type": "insecure"}]} for uri in servers],
            "node": {"id": "fallback"}}


def start_second(bed):
    second = bed.lab.start("lb", "xds-second", [BUILD / "tools" / "shunt-xds" / "shunt-xds",
                                                "--listen", SECOND, bed.xds_folder])
    bed.wait_connect("lb", *SECOND.split(":"), second)
    return second


def active(bed):
    return bed.show("xds")["server"]["uri"]


@pytest.mark.timeout(400)
def test_the_second_server_serves_until_the_first_one_answers(make_world):
    world = make_world()
    bed = world.bed
    path = bed.lab.dir / "two.json"
    path.write_text(json.dumps(bootstrap(FIRST, SECOND)))
    second = start_second(bed)
    began = time.monotonic()
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
    assert active(bed) == SECOND

    world.set_weights(0, 100)
    wait_for_split(bed, 0)
    # Attempts are spaced by a backoff that grows by 1.6 ± 20 % (FM-03): the next one is no further
    # away than 0.9 times the time that they have taken so far, and a second.
    load_s = 2 * BOUND_S + round(time.monotonic() - began)
    load = bed.start_h2load("load", requests=load_s * CLIENTS * RATE, clients=CLIENTS,
                            streams=8, rate=RATE)
    bed.start_xds()
    wait_until(lambda: active(bed) == FIRST, BOUND_S + time.monotonic() - began,
               "the first server in use")
    second.kill()
    world.set_weights(100, 0)
    wait_for_split(bed, 100)
    assert load.alive(), "the load ended too early to prove anything"
    servers = {s["uri"]: s["state"] for s in bed.show("xds")["servers"]}
    assert servers == {FIRST: "CONNECTED", SECOND: "IDLE"}

    # Everything is known: that the first one goes away is no reason to ask another.
    bed.xds.kill()
    report = bed.h2load_report(load, timeout=120 + load_s)
    assert report.perfect, report
    assert active(bed) == FIRST
