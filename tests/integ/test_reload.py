# SPDX-License-Identifier: Apache-2.0
"""Reloads of shunt.yaml while requests go on: what changes, for whom, and that none is lost for it."""

import json
import sys

import pytest

from lab import LabError, wait_until
from pki import Pki
from steady import steady_load
from test_certs import CERT, KEY
from test_tls import provider
from testbed import EXAMPLE, PORT, VIP

LOAD = {"requests": 20_000, "clients": 8, "streams": 8}
STATUS = "127.0.0.1:50052"
OTHER = "127.0.0.1:50053"
TAKEN = "127.0.0.1:50054"
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
CHECK = """
import sys, grpc
if sys.argv[2:]:
    with open(sys.argv[2], "rb") as ca:
        channel = grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials(ca.read()))
else:
    channel = grpc.insecure_channel(sys.argv[1])
try:
    answer = channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=5)
    print("OK" if answer == b"\\x08\\x01" else answer)
except grpc.RpcError as error:
    print(error.code().name)
"""
LISTENER = """
import socket, sys, time
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listens", flush=True)
time.sleep(300)
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


def health_at(bed, address, *trusted):
    return bed.lab.exec("lb", [sys.executable, "-c", CHECK, address, *trusted]).stdout.strip()


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


@pytest.mark.timeout(120)
def test_ops_322_the_status_port_moves_or_stays_whole(make_world):
    world = make_world()
    bed = world.bed
    settings = bed.settings
    bed.settings += f"csds: {{listen: {STATUS}}}\n"
    world.start()
    bed.settings = settings
    taken = bed.lab.start("lb", "taken", [sys.executable, "-c", LISTENER, *TAKEN.split(":")])
    wait_until(lambda: "listens" in taken.output(), WAIT_S, "who takes the port")
    assert health_at(bed, STATUS) == "OK"
    with steady_load(bed, LOAD):
        assert reload(bed, f"csds: {{listen: {OTHER}}}\n")["changed"] == "csds.listen"
        assert health_at(bed, OTHER) == "OK"
        assert health_at(bed, STATUS) == "UNAVAILABLE"
        with pytest.raises(LabError, match=f"csds.listen: {TAKEN}: Address already in use"):
            reload(bed, f"csds: {{listen: {TAKEN}}}\nlimits: {{streams: 12}}\n")
        assert health_at(bed, OTHER) == "OK"
        assert streams_of(bed, "unchanged") == 100
        with pytest.raises(LabError, match="csds.tls.certificate: "):
            reload(bed, f"csds: {{listen: {OTHER}, tls: {{certificate: nobody}}}}\n")
        assert health_at(bed, OTHER) == "OK"
        wide = OTHER.replace("127.0.0.1", "0.0.0.0")
        reload(bed, f"csds: {{listen: '{wide}', allow_remote: true}}\n")
        assert health_at(bed, OTHER) == "OK"
        reload(bed, "")
        assert health_at(bed, OTHER) == "UNAVAILABLE"
        reload(bed, f"csds: {{listen: {STATUS}}}\n")
        assert health_at(bed, STATUS) == "OK"
        assert reload(bed, f"csds: {{listen: {STATUS}}}\n")["applied"] is False


@pytest.mark.timeout(120)
def test_ops_322_a_status_port_that_could_shake_no_hands_leaves_the_old_one(make_world, tmp_path):
    made = Pki(tmp_path / "pki")
    made.authority("ca")
    made.leaf("server", "ca")
    text = json.loads((EXAMPLE / "bootstrap.json").read_text())
    files = {name: {CERT: made.folder / f"{name}.pem", KEY: made.folder / f"{name}.key"} for name in ("server", "none")}
    text["certificate_providers"] = {name: provider(**paths) for name, paths in files.items()}
    path = tmp_path / "bootstrap.json"
    path.write_text(json.dumps(text))
    bed = make_world().bed
    settings = bed.settings
    bed.settings += f"csds: {{listen: {STATUS}}}\n"
    bed.start_xds()
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
    bed.settings = settings
    with pytest.raises(LabError, match="csds.tls: "):
        reload(bed, f"csds: {{listen: {STATUS}, tls: {{certificate: none}}}}\n")
    assert health_at(bed, STATUS) == "OK"
    assert reload(bed, f"csds: {{listen: {STATUS}, tls: {{certificate: server}}}}\n")["changed"] == "csds.tls"
    assert health_at(bed, STATUS, str(made.folder / "ca.pem")) == "OK"
    assert health_at(bed, STATUS) == "UNAVAILABLE"
    assert reload(bed, f"csds: {{listen: {STATUS}}}\n")["changed"] == "csds.tls"
    assert health_at(bed, STATUS) == "OK"
