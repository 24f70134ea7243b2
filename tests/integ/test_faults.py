# SPDX-License-Identifier: Apache-2.0
"""Lossy links and dying backends."""

import signal
import sys
import time

import pytest

import resources
from lab import LabError, wait_until
from testbed import HERE
from world import SIZES, WEB_BACKENDS, WEB_PORT, split_of

CUT_STREAM = (13, 14)  # reset after headers, or UNAVAILABLE in trailers
# On the bridge port's ingress, where TCP is already cut into wire-sized segments.
LOSS = """
table netdev faults {{
  chain {port} {{
    type filter hook ingress device "{port}" priority 0;
    numgen random mod 100 < 2 counter drop
  }}
}}
"""

BEFORE_S = 5  # the backoff after five refusals is hardly shorter
TAKES_S = 30
# Gratuitous ARP (RFC 5227 2.3): python -c … INTERFACE ADDRESS
ANNOUNCEMENT = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0x0806))
mac, ip = s.getsockname()[4], socket.inet_aton(sys.argv[2])
s.send(bytes([255] * 6) + mac + bytes([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]) + mac + ip + bytes(6) + ip + bytes(18))
"""


def lose_two_percent_everywhere(world, lab):
    for far in ("client", "backends"):
        for port in ("far", "near"):
            lab.nft(world.bed.middle_of(far), LOSS.format(port=port))


def dropped_frames(world, lab):
    listings = [lab.exec(world.bed.middle_of(far), ["nft", "list", "table", "netdev", "faults"])
                for far in ("client", "backends")]
    words = " ".join(done.stdout for done in listings).split()
    return sum(int(words[i + 1]) for i, word in enumerate(words) if word == "packets")


def test_loss_on_both_links_alters_and_fails_nothing(make_world, lab):
    world = make_world(bridges=True).start()
    lose_two_percent_everywhere(world, lab)
    report = world.bed.run_h2load(requests=20_000, clients=16, streams=8)
    assert report.perfect, report
    split_of(report)
    for _ in range(4):
        world.bed.run_calls("many", count=5_000, timeout=100)
        if dropped_frames(world, lab) > 500:
            break
    assert dropped_frames(world, lab) > 500


def test_killed_backend_fails_its_streams_at_once_and_no_other(make_world):
    """TH-64."""
    world = make_world(n_rpc=2).start()
    calls = world.bed.start_calls("held", "held_streams", streams=8, seconds=6.0)
    wait_until(lambda: "ready" in calls.output(), TAKES_S, "open streams")
    time.sleep(1)
    world.backends["rpc-1"].kill()
    streams = world.bed.calls_result(calls)
    lost = [s for s in streams if s["backend"] == "rpc-1"]
    others = [s for s in streams if s["backend"] == "rpc-2"]
    if len(world.bed.workers) == 1:
        assert len(lost) == len(others) == 4, streams
    assert lost and others and len(lost) + len(others) == 8, streams
    assert all(s["code"] in CUT_STREAM for s in lost), lost
    assert all(s["complete"] and s["code"] == 0 for s in others), others
    # The others live for some seconds more; what is lost does not wait for anything.
    assert max(s["end"] for s in lost) < min(s["end"] for s in others), streams


def test_traffic_moves_away_from_a_dead_backend_but_stays_in_its_cluster(world):
    bed = world.bed
    assert bed.run_h2load(requests=5000).perfect
    world.backends["blue-1"].kill()
    time.sleep(0.5)
    after = bed.run_h2load(requests=20_000)
    assert after.perfect, after
    blue, _ = split_of(after)
    assert abs(blue / 20_000 - 0.75) < 0.02  # the weight is the cluster's, whoever is left in it
    world.backends["blue-2"].kill()
    time.sleep(0.5)
    none_left = bed.run_h2load(requests=4000)
    assert none_left.errored == none_left.timeout == 0, none_left
    assert abs(none_left.failed / 4000 - 0.75) < 0.05, none_left  # A28: no shift to siblings


def test_requests_wait_for_a_dead_cluster_where_the_frontend_says_so(make_world):
    """Q-00, Q-01: with every backend dead requests wait, and all are served when they
    are back."""
    world = make_world()
    config = world.bed.config_text
    world.bed.config_text = lambda: config().replace(
        "target: web}", "target: web, wait_for_ready: always}")
    bed = world.start().bed
    assert bed.run_h2load(requests=100).perfect
    for name in WEB_BACKENDS:
        world.backends[name].kill()
    time.sleep(0.5)
    load = bed.start_h2load("waiting", requests=200)
    wait_until(lambda: sum(c["queued"] for c in bed.show("clusters")["clusters"]) >= 50, TAKES_S, "requests wait")
    time.sleep(2)
    assert load.alive()
    for name, (cluster, ip) in WEB_BACKENDS.items():
        bed.start_http_backend(f"{name}-again", ip, SIZES[cluster], WEB_PORT)
    report = bed.h2load_report(load)
    assert report.perfect, report


def world_of_peers(make_world, lab, path, answers, **fields):
    """A cluster of h2_peer.py servers at this path, with these fields; a connection of each leaves after
    so many answers (-1: never). Returns the running testbed and the servers."""
    ports = [(f"10.82.2.{n}", 8080 + n) for n, _ in enumerate(answers, 1)]
    world = make_world(extra_routes=[resources.route(path, "peers")],
                       extra=[resources.cluster("peers") | fields, resources.endpoints("peers", *ports)])
    lab.ip("backends", "route", "add", "local", "10.82.2.0/24", "dev", "lo")
    peers = []
    for (ip, port), most in zip(ports, answers):
        argv = [sys.executable, HERE / "h2_peer.py", "serve", port, most]
        peers.append(lab.start("backends", f"peer-{port}", argv))
        world.bed.wait_connect("backends", ip, port, peers[-1])
    return world.start().bed, peers


def counted(bed, counter):
    return sum(w["proxy"][counter] for w in bed.show_workers())


def test_goaway_of_a_backend_fails_no_request(make_world, lab):
    """TH-66: One of two backends says GOAWAY after every 100 answers, with requests on their way to it."""
    bed, _ = world_of_peers(make_world, lab, "/leaving", (-1, 100))
    report = bed.run_h2load(requests=10_000, clients=8, streams=8, path="/leaving")
    assert report.perfect, report
    for counter in ("upstream_goaways", "transparent_retries"):  # the other one serves while it comes back
        assert counted(bed, counter) >= 10, bed.show("workers")


def test_a_lone_backend_that_takes_a_hundred_requests_a_connection_fails_none(make_world, lab):
    """As nginx with keepalive_requests, and more on its way to it than that: what a GOAWAY leaves behind
    goes to the next connection, some of it several times."""
    bed, _ = world_of_peers(make_world, lab, "/leaving", (100,))
    report = bed.run_h2load(requests=4000, clients=8, streams=16, path="/leaving")
    assert report.perfect, report
    assert counted(bed, "upstream_goaways") >= 39, bed.show("workers")
    assert counted(bed, "transparent_retries") >= 200, bed.show("workers")
    assert counted(bed, "transparent_retries_exhausted") == 0, bed.show("workers")


def test_a_backend_that_hangs_is_found_in_the_times_that_its_cluster_asks_for(make_world, lab):
    """CL-09: its TCP goes on answering, also to new connections; shunt.yaml would wait for ever."""
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    keepalive = {"interval": "1s", "timeout": "2s"}
    bed, peers = world_of_peers(
        make_world, lab, "/hanging", (-1, -1), connect_timeout="2s",
        typed_extension_protocol_options={options: {
            "@type": resources.TYPES + "extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {"connection_keepalive": keepalive}}}})
    assert bed.run_h2load(requests=100, path="/hanging").perfect
    peers[0].signal(signal.SIGSTOP)
    try:
        wait_until(lambda: counted(bed, "pings_unanswered") >= 1, TAKES_S, "the silence is found")
        report = bed.run_h2load(requests=100, path="/hanging")
        assert report.perfect, report
        wait_until(lambda: "no SETTINGS" in bed.daemon.output(), TAKES_S, "the next attempt to fail")
    finally:
        peers[0].signal(signal.SIGCONT)


def test_a_killed_backend_loses_no_request_that_it_had_not_begun_to_answer(make_world, lab):
    """GETs under way to it are sent to the other one (RFC 9110 9.2.2)."""
    bed, peers = world_of_peers(make_world, lab, "/killed", (-1, -1))
    load = bed.start_h2load("load", requests=20_000, clients=8, streams=8, path="/killed")
    wait_until(lambda: counted(bed, "requests") >= 32, TAKES_S, "the load")
    time.sleep(1)
    assert load.alive()
    peers[0].kill()
    report = bed.h2load_report(load)
    assert report.perfect, report
    assert counted(bed, "idempotent_retries") >= 1, bed.show("workers")


def test_backend_that_comes_back_is_connected_to_before_its_backoff_ends(make_world, lab):
    """When its host announces itself; and without that, when an operator says so."""
    world = make_world().start()
    bed, name, (cluster, ip) = world.bed, "green-2", WEB_BACKENDS["green-2"]
    address = f"{ip}:{WEB_PORT}"

    def failures():
        return sum(w["proxy"]["connect_failures"] for w in bed.show_workers())

    def state():
        (row,) = [row for row in bed.show("endpoints") if row["endpoint"] == address]
        return row["state"]

    def dies_and_returns(process):
        """It is refused five times, so that more than five seconds pass until it is tried again."""
        before = failures()
        process.kill()
        wait_until(lambda: failures() >= before + 5, TAKES_S, "five attempts")
        refused = time.monotonic()
        again = bed.start_http_backend(f"{name}-{len(lab.processes)}", ip, SIZES[cluster], WEB_PORT)
        bed.wait_connect("backends", ip, WEB_PORT, again)
        return again, refused

    def comes_back_early(process, tell):
        """A busy machine may be late, but hardly three times."""
        for _ in range(3):
            process, refused = dies_and_returns(process)
            tell()
            wait_until(lambda: state() == "READY", TAKES_S, "the endpoint")
            if time.monotonic() - refused < BEFORE_S:
                return process
        raise AssertionError("it was connected to when its backoff had ended")

    def reconnect():
        assert bed.shuntctl("reconnect", f"{cluster}/{address}").split() == ["reconnecting:", "1"]

    again = comes_back_early(world.backends[name], lambda: lab.exec(
        "backends", [sys.executable, "-c", ANNOUNCEMENT, "b0", ip]))
    comes_back_early(again, reconnect)
    assert bed.shuntctl("reconnect").split() == ["reconnecting:", "0"]
    for words, refusal in ((f"nobody/{address}", "no cluster 'nobody'"),
                           (f"{cluster}/10.9.9.9:1", f"cluster '{cluster}' has no endpoint '10.9.9.9:1'")):
        with pytest.raises(LabError, match=refusal):
            bed.shuntctl("reconnect", words)
