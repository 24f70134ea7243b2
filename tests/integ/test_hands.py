# SPDX-License-Identifier: Apache-2.0
"""What operators do where the kernel's own tools see nothing: end what hangs, ask neighbors, read TLS."""

import json

import pytest

from lab import LabError, command, wait_until
from steady import steady_load
from test_in_flight import CLIENT, ask, fixture_hanging, rows, told  # noqa: F401
from test_tls import TLS_PORT, TlsWorld
from testbed import PORT, VIP
from world import RPC_PORT, rpc_address

TIMEOUT_S = 30
BACKEND = "10.82.1.1"
SILENT = "10.82.1.99"


def tell(bed, *words):
    return json.loads(bed.shuntctl(*words, "json"))["data"]


def ping_in_vain(bed, address):
    done = command(bed.shuntctl_argv("ping", address, "count", "1", "json"), check=False)
    assert done.returncode == 1, done
    return json.loads(done.stdout)["data"]["replies"]


def test_ops_191_what_is_killed_under_load_is_what_was_named(hanging):
    """Requests by a condition, by their id and by handle; a connection; and a load beside them that notices nothing."""
    clients = [ask(hanging, f"curl-{i}", f"/slow/{i}", "-H", f"x-request-id: ticket-{i}", "-w", "%{http_code}",
                   "--http2-prior-knowledge") for i in range(5)]
    wait_until(lambda: told(hanging, "requests", "cluster=rpc")["matching"] == 5, TIMEOUT_S, "all requests")
    with steady_load(hanging.bed, {"requests": 1000, "clients": 4, "streams": 4}):
        by_path = tell(hanging.bed, "kill", "request", "cluster=rpc", "path=/slow/1")
        by_id = tell(hanging.bed, "kill", "request", "ticket-3")
        left = rows(hanging, "requests", "cluster=rpc")
        assert {row["path"] for row in left} == {"/slow/0", "/slow/2", "/slow/4"}, left
        by_handle = tell(hanging.bed, "kill", "request", left[0]["handle"])
        assert [answer["ended"] for answer in (by_path, by_id, by_handle)] == [1, 1, 1]
        with pytest.raises(LabError, match="nothing of that id is in flight, try show requests"):
            hanging.bed.shuntctl("kill", "request", left[0]["handle"])
        last = rows(hanging, "requests", "cluster=rpc")
        conn, = rows(hanging, "conns", f"source={CLIENT}", f"peer={last[0]['client']}")
        assert tell(hanging.bed, "kill", "conn", conn["handle"])["ended"] == 1
        assert [row["path"] for row in rows(hanging, "requests", "cluster=rpc")] == [last[1]["path"]]
    why = tell(hanging.bed, "why", "ticket-3")
    assert (why["cause"], why["flag"], why["endpoint"]) == ("killed", "KL", f"{rpc_address(1)}:{RPC_PORT}"), why
    events = tell(hanging.bed, "show", "events", "event~operator")
    assert any("kill request ticket-3" in row["details"] and "uid=0" in row["details"] for row in events), events
    with pytest.raises(LabError, match="an id or a condition must follow"):
        hanging.bed.shuntctl("kill", "conn", "limit=1000")
    for client in clients:
        client.stop()


def test_ops_197_the_stack_tells_of_its_links(world):
    bed = world.bed
    answer = tell(bed, "ping", BACKEND, "count", "2")
    assert answer["answered"] == 2 and answer["next_hop"] == BACKEND and answer["port"] == 1, answer
    assert 0 < answer["least_ms"] <= answer["most_ms"] < 1000, answer
    row, = ping_in_vain(bed, SILENT)
    assert (row["result"], row["from"]) == ("no answer to ARP or neighbor discovery", SILENT), row
    assert ping_in_vain(bed, VIP)[0]["result"] == "no route"
    known = tell(bed, "show", "neighbors", f"address={BACKEND}")["neighbors"]
    assert known and all(row["port"] == 1 and row["mac"] and row["state"] != "incomplete" for row in known), known
    own = {row["address"]: row for row in tell(bed, "show", "addresses")["addresses"]}
    assert own[VIP]["answers"] and own[VIP]["frontends"] == "web" and own[VIP]["conflict"] == "", own
    assert bed.run_h2load(requests=20, clients=1).perfect
    conns = tell(bed, "show", "tcp", "side=backend")["connections"]
    assert conns and all(row["state"] == "established" and row["mss"] > 500 and row["rto_ms"] >= 200 and
                         row["congestion"] == "cubic" for row in conns), conns


def http2(path, port):
    """The paths of requests on this port that tshark reads in a capture."""
    done = command(["tshark", "-r", str(path), "-d", f"tcp.port=={port},tls", "-T", "fields",
                    "-Y", f"http2.headers.path && tcp.port=={port}", "-e", "http2.headers.path"])
    return done.stdout.split()


def test_ops_199_a_capture_with_keys_is_read_by_tshark(lab, tmp_path):
    """Both sides' handshakes begin while it is on; without the word there is nothing to read. Where a thread is off its
    core for longer than frames wait for keys (20 ms), these come too late for a reader."""
    w = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example")
    w.bed.captures = lab.dir / "captures"
    w.bed.captures.mkdir()
    w.bed.settings += f"capture: {{directory: {w.bed.captures}}}\n"
    w.start()

    def captured(name, *words):
        path = tell(w.bed, "capture", "start", f"{name}.pcapng", *words)["file"]
        wait_until(lambda: tell(w.bed, "kill", "conn", "cluster=tls")["ended"], TIMEOUT_S,
                   "a connection that began before")
        assert w.curl("/tls/mark")[0] == 0
        stopped = tell(w.bed, "capture", "stop")
        assert (stopped["with_keys"], stopped["keys"] > 0, stopped["keys_lost"]) == (bool(words), bool(words), 0)
        return path

    def read(path):
        return [http2(path, port) for port in (PORT, TLS_PORT)]
    seen = []
    while len(seen) < 5 and [["/tls/mark"]] * 2 not in seen:
        path = captured(f"with-{len(seen)}", "keys")
        seen.append(read(path))
    assert seen[-1] == [["/tls/mark"]] * 2, seen
    assert read(captured("without")) == [[], []]
    log = w.bed.shuntctl("show", "events", "event~keys")
    assert f"capture with keys  file=\"{path}\" text=\"" in log, log
    assert "TRAFFIC_SECRET" not in log + w.bed.daemon.output(), log
