# SPDX-License-Identifier: Apache-2.0
"""Two management servers in order of preference (gRFC A71), under load."""

import json

from lab import wait_until
from test_xds import wait_for_split
from testbed import BUILD

FIRST, SECOND = "127.0.0.1:18000", "127.0.0.1:18001"
BOUND_S = 20


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


def test_the_second_server_serves_until_the_first_one_answers(make_world):
    world = make_world()
    bed = world.bed
    path = bed.lab.dir / "two.json"
    path.write_text(json.dumps(bootstrap(FIRST, SECOND)))
    second = start_second(bed)
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
    assert active(bed) == SECOND

    load = bed.start_h2load("load", requests=24_000, clients=8, streams=8, rate=600)
    world.set_weights(0, 100)
    wait_for_split(bed, 0)
    bed.start_xds()
    wait_until(lambda: active(bed) == FIRST, BOUND_S, "the first server in use")
    second.kill()
    world.set_weights(100, 0)
    wait_for_split(bed, 100)
    assert load.alive(), "the load ended too early to prove anything"
    servers = {s["uri"]: s["state"] for s in bed.show("xds")["servers"]}
    assert servers == {FIRST: "CONNECTED", SECOND: "IDLE"}

    # Everything is known: that the first one goes away is no reason to ask another.
    bed.xds.kill()
    report = bed.h2load_report(load)
    assert report.perfect, report
    assert active(bed) == FIRST
