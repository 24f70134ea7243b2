# SPDX-License-Identifier: Apache-2.0
"""What operators see of requests that have not ended and of connections, while they are there."""

import json
import signal
import sys
import time

import pytest

from lab import LabError, wait_until
from resources import route
from test_faults import lose_two_percent_everywhere
from test_tls import TlsWorld
from testbed import PORT, URL, VIP
from world import RPC_PORT, rpc_address

TIMEOUT_S = 30
CLIENT = "10.81.0.1"
BIG = 100_000_000
# Asks for what is long and reads nothing of it: python -c … IP PORT
DEAF = """
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
s.connect((sys.argv[1], int(sys.argv[2])))
s.sendall(b"GET /big HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
time.sleep(60)
"""


def told(world, what, *words):
    return json.loads(world.bed.shuntctl("show", what, *words, "json"))["data"]


def rows(world, what, *words):
    return told(world, what, *words)["requests" if what == "requests" else "connections"]


def ask(world, name, path, *words):
    """A request that curl makes, in the background."""
    argv = ["curl", "-sS", "--max-time", "60", "-o", "/dev/null", *words, URL + path]
    return world.bed.lab.start("client", name, argv)


def named(name, made):
    return {**made, "name": name}


@pytest.fixture(name="hanging")
def fixture_hanging(make_world):
    """A world whose server of gRPC answers nothing."""
    world = make_world(extra_routes=[named("slow", route("/slow", {"cluster": "rpc"}))]).start()
    server = world.backends["rpc-1"]

    def is_connected():  # a worker without a connection would get none any more
        world.bed.run_calls("unary", count=1)
        ready = {row["worker"] for row in rows(world, "conns", "cluster=rpc", "state=idle")}
        return len(ready) == len(world.bed.workers)
    wait_until(is_connected, TIMEOUT_S, "a connection of each worker")
    server.signal(signal.SIGSTOP)
    yield world
    server.signal(signal.SIGCONT)


def test_ops_60_a_request_that_hangs_at_its_backend_is_seen(hanging):
    client = ask(hanging, "curl", "/slow/report", "-H", "x-request-id: ticket 17", "--http2-prior-knowledge",
                 "-d", "x" * 1000)
    row, = wait_until(lambda: rows(hanging, "requests"), TIMEOUT_S, "the request")
    time.sleep(1)
    row, = rows(hanging, "requests")
    expected = {"state": "sent", "frontend": "web", "method": "POST", "authority": f"{VIP}:{PORT}",
                "path": "/slow/report", "virtual_host": "all", "route": "slow", "route_index": 0, "cluster": "rpc",
                "endpoint": f"{rpc_address(1)}:{RPC_PORT}", "attempts": 1, "bytes_in": 1000, "bytes_out": 0,
                "id": "ticket 17"}
    assert {key: row[key] for key in expected} == expected, row
    assert row["client"].startswith(f"{CLIENT}:") and 1 <= row["age_s"] < TIMEOUT_S, row
    text = hanging.bed.shuntctl("show", "requests")
    assert "in_flight: 1\nmatching: 1\nshown: 1\n" in text and "/slow/report" in text, text
    client.stop()
    wait_until(lambda: told(hanging, "requests")["in_flight"] == 0, TIMEOUT_S, "nothing in flight")


def test_ops_64_conditions_choose_what_is_told(hanging):
    clients = [ask(hanging, f"curl-{i}", f"/slow/{i}") for i in range(5)]
    wait_until(lambda: told(hanging, "requests")["in_flight"] == 5, TIMEOUT_S, "all requests")
    for words, n in (("cluster=rpc", 5), ("cluster=blue", 0), ("frontend=web", 5), (f"source={CLIENT}", 5),
                     ("source=10.81.0.0/24", 5), ("source=10.82.0.0/24", 0), ("state=sent", 5), ("state=picking", 0),
                     ("older=60", 0), ("older=0", 5)):
        data = told(hanging, "requests", words)
        assert (data["in_flight"], data["matching"], len(data["requests"])) == (5, n, n), (words, data)
    data = told(hanging, "requests", "limit=2")
    assert (data["matching"], data["shown"]) == (5, 2), data
    ages = [row["age_s"] for row in rows(hanging, "requests")]
    assert ages == sorted(ages, reverse=True), ages
    own = rows(hanging, "conns", "cluster=rpc")
    assert own and all(row["peer"] == f"{rpc_address(1)}:{RPC_PORT}" and row["side"] == "backend" and
                       row["cluster"] == "rpc" for row in own), own
    assert sum(row["streams"] for row in own) == 5, own
    assert len(rows(hanging, "conns", f"source={CLIENT}", "state=open")) == 5
    for words, text in (("state=open", "state: 'open' is none of paused, picking"), ("cluster=x", "no cluster 'x'"),
                        ("frontend=x", "no frontend is called 'x'"), ("source=x", "source: 'x' is not an address"),
                        ("older=x", "older: 'x' is not a number"), ("limit=1001", "limit: '1001' is not between"),
                        ("x", "unexpected argument 'x'")):
        with pytest.raises(LabError, match=text):
            hanging.bed.shuntctl("show", "requests", words)
    for client in clients:
        client.stop()


def test_ops_60_a_client_that_does_not_read_is_seen(world):
    for folder in world.bed.lab.dir.glob("www-*"):
        with open(folder / "big", "wb") as big:
            big.truncate(BIG)
    client = world.bed.lab.start("client", "deaf", [sys.executable, "-c", DEAF, VIP, PORT])

    def stuck():
        return rows(world, "requests", "state=answering", "older=1")
    row, = wait_until(stuck, TIMEOUT_S, "the request")
    assert row["path"] == "/big" and row["cluster"] in ("blue", "green") and 0 < row["bytes_out"] < BIG, row
    conn, = rows(world, "conns", f"source={CLIENT}")
    assert conn["peer"] == row["client"] and conn["http"] == "1.1" and conn["waiting"] > 0, conn
    # What TCP has to send again or asks a closed window for is no progress.
    later, = rows(world, "conns", f"source={CLIENT}")
    assert later["bytes_out"] - conn["bytes_out"] < 100_000, (conn, later)
    client.stop()


def test_ops_62_connections_are_told_with_their_round_trips(world):
    report = world.bed.start_h2load("load", requests=16_000, clients=8, streams=4, rate=250)
    wait_until(lambda: len(rows(world, "conns", "frontend=web", "older=0.5")) == 8, TIMEOUT_S, "all clients")
    for row in rows(world, "conns", "older=0.5"):
        is_client = row["side"] == "client"
        assert (row["http"], row["tls"]) == ("2", ""), row
        assert row["state"] in ("open", "idle"), row
        assert row["frontend"] == ("web" if is_client else ""), row
        if is_client:
            assert row["local"] == f"{VIP}:{PORT}" and row["cluster"] == "", row
            assert 0 < row["rtt_ms"] < 1000 and row["cwnd"] > 0, row
            assert row["bytes_in"] > 0 and row["bytes_out"] > row["bytes_in"] and row["streams"] <= 4, row
        else:
            assert row["cluster"] in ("blue", "green", "rpc"), row
    assert world.bed.h2load_report(report).perfect


def test_ops_62_tls_is_told_on_both_sides(lab, tmp_path):
    w = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example").start()
    client = lab.start("client", "s_client", ["sh", "-c", "sleep 30 | openssl s_client -quiet -alpn h2 -connect "
                                              f"{VIP}:{PORT}"])
    assert w.curl("/tls/mark")[0] == 0

    def told_tls():
        return {(row["side"], row["tls"], row["state"]) for row in rows(w.world, "conns")}
    wanted = {("client", "1.3", "idle"), ("backend", "1.3", "idle"), ("backend", "", "idle")}
    wait_until(lambda: wanted <= told_tls(), TIMEOUT_S, "TLS on both sides")
    client.stop()


def test_ops_63_retransmissions_are_told_of_each_connection(make_world, lab):
    world = make_world(bridges=True).start()
    lose_two_percent_everywhere(world, lab)
    assert world.bed.run_h2load(requests=20_000, clients=16, streams=8).perfect
    backends = [row for row in rows(world, "conns", "limit=1000") if row["side"] == "backend"]
    n_all = sum(worker["tcp"]["retransmits"] for worker in world.bed.show_workers())
    n_told = sum(row["retransmits"] for row in backends)
    assert 0 < n_told <= n_all, (n_told, n_all, backends)
