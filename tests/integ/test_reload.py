# SPDX-License-Identifier: Apache-2.0
"""Reloads of shunt.yaml while requests go on: what changes, for whom, and that none is lost for it."""

import json
import sys

from lab import wait_until
from steady import steady_load
from testbed import PORT, VIP

LOAD = {"seconds": 2, "clients": 8, "streams": 8}
WAIT_S = 15

# Connects, says what SETTINGS say of MAX_CONCURRENT_STREAMS, and then how long the server let it be.
CLIENT = """
import socket, struct, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
s.settimeout(60)
s.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
f = s.makefile("rb")
while True:
    head = f.read(9)
    if len(head) < 9:
        break
    body = f.read(int.from_bytes(head[:3], "big"))
    if head[3] == 4 and not head[4] & 1:
        pairs = dict(struct.unpack_from(">HI", body, i) for i in range(0, len(body), 6))
        print(f"streams {pairs[3]}", flush=True)
        s.sendall(bytes([0, 0, 0, 4, 1, 0, 0, 0, 0]))
print("over", flush=True)
"""


def start_client(bed, name):
    client = bed.lab.start("client", name, [sys.executable, "-c", CLIENT, VIP, str(PORT)])
    wait_until(lambda: "\n" in client.output(), WAIT_S, "SETTINGS")
    return client


def streams_of(bed, name):
    """How many a client that comes now is told it may have."""
    client = start_client(bed, name)
    client.kill()
    return int(client.output().split()[1])


def reload(bed, settings):
    """What `reload` says of the file that the bed began with, with these lines more."""
    (bed.lab.dir / "shunt.yaml").write_text(bed.config_text() + settings)
    return json.loads(bed.shuntctl("--json", "reload"))["data"]


def test_ops_320_limits_change_under_load_for_who_comes_then(make_world):
    bed = make_world().start().bed
    older = start_client(bed, "older")
    assert "streams 100\n" in older.output()
    with steady_load(bed, LOAD):
        report = reload(bed, "limits: {streams: 12, idle_timeout_s: 3, connections: 20000}\n")
        assert report["applied"] is True
        assert report["changed"] == "limits.streams, limits.idle_timeout_s"
        assert report["needs_restart"] == "limits.connections"
        assert streams_of(bed, "newer") == 12
        wait_until(lambda: "over" in older.output(), WAIT_S, "the end of who is idle")
        report = reload(bed, "")
        assert report["changed"] == "limits.streams, limits.idle_timeout_s" and report["needs_restart"] == ""
        assert streams_of(bed, "last") == 100


def test_ops_321_a_reload_says_who_asked_and_what_changed(make_world):
    bed = make_world().start().bed
    reload(bed, "retries: {max_attempts: 3}\n")
    events = {row["event"]: row["details"] for row in bed.show("events")}
    assert 'changed="retries.max_attempts"' in events["reloaded"]
    assert 'by=shuntctl user="root" uid=0 pid=' in events["reloaded"]
