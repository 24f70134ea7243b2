# SPDX-License-Identifier: Apache-2.0
"""Processes that take over from one another under load: nobody loses a request, nor a stream that is older than all but
one of them; and what becomes of new ones that come to nothing."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import struct
import sys
import threading
import time

import pytest

from lab import wait_until
from takeover_world import (AT_START, CRASHES, GAP_MS, JUDGED, LEAST, N_CRASHES, N_TAKEOVERS, WAIT_S, Calls, Row,
                            Streams, clean, count_resets, crash, crash_at_each, fail_by_config, follow, info, resets,
                            talking)
from testbed import PORT, URL, URL6, VIP, VIP6, Testbed


@pytest.fixture(name="takeover_world")
def fixture_takeover_world(make_world, lab):
    world = make_world()
    world.bed.settings = (f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 600\nlame_duck_s: 1\n"
                          f"state_dir: {lab.dir}/state\n"
                          "csds: {listen: '127.0.0.1:50077'}\nmetrics: {listen: '127.0.0.1:9477'}\n")
    (lab.dir / "state").mkdir()
    return world.start()


class Knocks:
    """Asks at all that a process can be reached at, until finish(). Nobody finds no name, is refused or reset, or gets
    no answer."""

    def __init__(self, bed):
        self.stop_file = bed.lab.dir / "stop-knocks"
        agent = pathlib.Path(__file__).with_name("knock_agent.py")
        self.process = bed.lab.start("lb", "knocks", [
            sys.executable, agent, self.stop_file, str(LEAST), bed.stats_socket, bed.lab.dir / "takeover.sock", "9477",
            "50077"])

    def finish(self):
        self.stop_file.touch()
        told = Testbed.calls_result(self.process)
        assert told["failed"] == {}, told
        print(f"knocks: {told['rounds']}")
        return min(told["rounds"].values())


def metrics_start_s(bed):
    """When the process was started whose metrics these are; 0 without an answer."""
    argv = ["curl", "-s", "--max-time", "5", "http://127.0.0.1:9477/metrics"]
    told = re.search(r"^process_start_time_seconds (\S+)$", bed.lab.exec("lb", argv, check=False).stdout, re.M)
    return float(told[1]) if told else 0


@pytest.mark.timeout(150 + 10 * N_TAKEOVERS)
def test_takeovers_in_a_row_lose_nothing(takeover_world):
    """FL-02, FL-03, FL-04, FL-06, FL-07, FL-11, FL-12, FL-70, FL-200, FL-220: under load; there are always streams that
    outlive three generations."""
    bed = takeover_world.bed
    count_resets(bed.lab, "client")
    row = Row(bed)
    wait_until(lambda: info(bed)["client_connections"] > 0, WAIT_S, "streams")
    calls, knocks = Calls(bed), Knocks(bed)
    starts = [metrics_start_s(bed)]
    for told in row.each():
        # The older one has its port until it hears that the newer one serves.
        wait_until(lambda: metrics_start_s(bed) > starts[-1], WAIT_S, "the newer process's metrics")
        starts.append(metrics_start_s(bed))
        bed.wait_connect("lb", "127.0.0.1", 50077)
        if told["generation"] == 4:
            behind = bed.stats_socket.with_name("stats.sock.3")
            assert '"role":"behind"' in bed.shuntctl("--socket", behind, "--json", "show", "info")
    assert knocks.finish()
    row.finish(calls)
    told = info(bed)
    assert told["processes_behind"] == 0 and told["older"] is None
    assert [p.name for p in bed.lab.dir.glob("stats.sock*")] == ["stats.sock"]
    row.silences.check()
    if len(row.gaps) >= JUDGED:
        assert statistics.median(row.gaps) <= GAP_MS, row.gaps


@pytest.mark.timeout(300 + 60 * N_CRASHES)
def test_newer_processes_that_come_to_nothing_change_nothing(takeover_world):
    """FL-01, FL-08: a bad configuration, a crash at the start, and one at each stage."""
    bed = takeover_world.bed
    count_resets(bed.lab, "client")
    knocks, start_s = Knocks(bed), metrics_start_s(bed)
    fail_by_config(bed)
    crash(bed, AT_START)
    *early, last = CRASHES
    crash_at_each(bed, {stage: CRASHES[stage] for stage in early})
    assert knocks.finish()
    crash_at_each(bed, {last: CRASHES[last]})  # it has the names by then, for some milliseconds
    assert resets(bed.lab, "client") == 0
    assert 0 < start_s == metrics_start_s(bed)
    bed.wait_connect("client", VIP, PORT)
    older = follow(bed, 2)  # a good one
    assert older.wait(WAIT_S) == 0 and clean(bed, older.name)


@pytest.mark.parametrize("later", ("older", "newer"))
def test_versions_of_which_one_says_more_take_over_from_each_other(make_world, lab, later):
    """FL-09, FL-17: a later one has more messages, fields and records."""
    env = {later: talking("later")}
    world = make_world()
    bed = world.bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\n"
    bed.start_xds()
    bed.start_daemon(env=env.get("older"))
    bed.shuntctl("set", "endpoint", "blue/%s:%s" % world.addresses("blue")[0], "down")
    count_resets(lab, "client")
    calls = Calls(bed)
    older = follow(bed, 2, env=env.get("newer"))
    taken = re.search('msg="taken from the older process" (.*)', bed.daemon.output())[1]
    assert "overrides=1" in taken and "unused=0" in taken
    if later == "older":
        assert info(bed)["older"]["version"] == "9.9" and "older process: message ignored" in bed.daemon.output()
    else:
        assert 'version="9.9"' in older.output()
    assert calls.finish()
    assert older.wait(WAIT_S) == 0 and clean(bed, older.name)
    assert resets(lab, "client") == 0


@pytest.mark.timeout(150)
def test_takeovers_over_ipv6_lose_nothing(make_world, lab):
    """FL-02, FL-03, FL-05, FL-07: clients of both families, backends at IPv6 addresses; streams outlive three
    generations."""
    world = make_world(ip6=True)
    bed = world.bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 600\n"
    world.start()
    bed.wait_connect("client", VIP6, PORT, bed.daemon)
    count_resets(lab, "client")
    targets = (f"[{VIP6}]:{PORT}", f"{VIP}:{PORT}")
    streams, calls = ([kind(bed, target=target) for target in targets] for kind in (Streams, Calls))
    older = [follow(bed, number) for number in range(2, 5)]
    assert info(bed)["processes_behind"] == 3
    assert all(part.finish() for part in streams)
    wait_until(lambda: not any(p.alive() for p in older), WAIT_S, "older processes to end")
    assert all(part.finish() for part in calls)
    assert all(clean(bed, p.name) for p in older)
    assert resets(lab, "client") == 0
    assert bed.run_h2load(requests=500, url=URL6).perfect


def slow_answer(lab):
    """A gRPC call whose answer takes a minute, by a client that tells each frame and when it came."""
    message = json.dumps({"chunks": 600, "bytes": 10, "pause_s": 0.1}).encode()
    body = lab.dir / "message"
    body.write_bytes(struct.pack(">BI", 0, len(message)) + message)
    return lab.start("client", "slow", ["nghttp", "-nv", "-d", body, "-H", "content-type: application/grpc",
                                        "-H", "te: trailers", f"{URL}/shunt.test.Echo/Expand"])


def test_a_stream_that_outlives_the_drain_hears_goaway_and_is_cut_at_its_end(make_world, lab):
    """FL-07, HX-22."""
    drain_s = 5
    bed = make_world().bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: {drain_s}\n"
    bed.start_xds()
    bed.start_daemon()
    client = slow_answer(lab)
    wait_until(lambda: "recv DATA" in client.output(), WAIT_S, "the answer to begin")
    older = follow(bed, 2)
    assert older.wait(WAIT_S) == 0 and "requests_cut=1" in older.output()
    client.wait(WAIT_S)
    told = client.output()
    assert re.findall(r"GOAWAY.*\n.*last_stream_id=(\d+), error_code=NO_ERROR", told) == [str((1 << 31) - 1), "13"]
    goaways_s, data_s = ([float(s) for s in re.findall(rf"^\[ *(\d+\.\d+)\] recv {kind} ", told, re.M)]
                         for kind in ("GOAWAY", "DATA"))
    after_s = data_s[-1] - goaways_s[0]
    print(f"cut {after_s:.1f} s behind GOAWAY")
    assert after_s > 0.8 * drain_s and "grpc-status: 14" in told, told


@pytest.mark.ends_daemon
def test_ops_240_the_ready_file_is_there_at_each_moment_of_a_takeover(make_world, lab):
    """And goes with the process in front, not with the one behind it."""
    path, missed, stop = lab.dir / "ready", [], threading.Event()
    world = make_world()
    bed = world.bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\nready_file: {path}\nlame_duck_s: 60\n"
    world.start()
    wait_until(path.exists, WAIT_S, "the file")

    def watch():
        while not stop.is_set():
            if not path.exists():
                missed.append(time.time())
            time.sleep(.001)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        older = follow(bed, 2)
        wait_until(lambda: not older.alive(), WAIT_S, "the older process to end")
        time.sleep(1.2)
    finally:
        stop.set()
        watcher.join()
    assert not missed and path.exists()
    bed.daemon.signal(signal.SIGTERM)
    wait_until(lambda: not path.exists(), WAIT_S, "the file to go")
    assert bed.daemon.alive()


@pytest.mark.ends_daemon
def test_a_signal_starts_one_that_becomes_the_services_main_process(make_world, lab):
    """FL-13, FL-16."""
    world = make_world()
    bed = world.bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\n"
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(lab.dir / "notify.sock"))
    manager.settimeout(WAIT_S)
    bed.start_xds()
    first = bed.start_daemon(env={"NOTIFY_SOCKET": str(lab.dir / "notify.sock")})
    first.signal(signal.SIGUSR2)
    heard, started = "", 'msg="newer process started"'
    while "MAINPID=" not in heard:
        heard = manager.recv(1000).decode()
    lines = heard.splitlines()
    pid = int(lines[0].removeprefix("MAINPID="))
    assert pid != first.pid and lines[1] == "READY=1"
    assert info(bed)["pid"] == pid
    first.signal(signal.SIGUSR2)  # FL-174
    wait_until(lambda: "the one that was started before still runs" in first.output(), WAIT_S, "the reason")
    assert first.output().count(started) == 1
    assert bed.run_h2load(requests=500).perfect
    assert first.wait(WAIT_S) == 0
    manager.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            assert b"STOPPING" not in manager.recv(1000)
    manager.settimeout(WAIT_S)
    os.kill(pid, signal.SIGTERM)
    while "STOPPING=1" not in heard:
        heard = manager.recv(1000).decode()
        assert "MAINPID" not in heard
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), WAIT_S, "the end of the newer process")
    manager.close()


def test_one_that_ends_before_it_asks_is_told_of(takeover_world, lab):
    """OPS-265."""
    bed = takeover_world.bed
    (lab.dir / "shunt.yaml").write_text("ports: none\n")
    bed.daemon.signal(signal.SIGUSR2)
    wait_until(lambda: 'msg="newer process exited"' in bed.daemon.output(), WAIT_S, "its end to be told of")
    assert "exit_status=1 signal=0" in bed.daemon.output()
    assert any(event["event"] == "newer process exited" for event in bed.show("events"))
    assert bed.run_h2load(requests=100).perfect


def what_it_says(bed, name, *words):
    """A process that ends at once, and why."""
    serving = bed.daemon
    process = bed.start_daemon(wait=False, words=words, name=name)
    bed.daemon = serving
    assert process.wait(WAIT_S) == 1
    return process.output()


def test_fl_170_one_that_is_refused_says_why_and_is_counted_once(takeover_world):
    bed = takeover_world.bed
    bed.shuntctl("drain", "frontend", "web")
    for n in range(1, 4):
        said = what_it_says(bed, f"shuntd-refused-{n}", "--takeover")
        assert "the process that serves refuses: frontends are drained: undrain first" in said, said
        assert info(bed)["takeovers_refused"] == n
    bed.shuntctl("undrain", "frontend", "web")
    older = follow(bed, 2)
    assert older.wait(WAIT_S) == 0


def test_fl_172_without_room_for_a_second_name_nobody_takes_the_first(takeover_world, lab):
    """A file is in the way here, which a folder without room is as well."""
    bed = takeover_world.bed
    knocks, in_the_way = Knocks(bed), lab.dir / "stats.sock.1"
    in_the_way.touch()
    for n in range(1, 3):
        said = what_it_says(bed, f"shuntd-refused-{n}", "--takeover")
        assert "stats.socket: " in said and "stats.sock.1: File exists" in said, said
        told = info(bed)
        assert told["pid"] == bed.daemon.pid and told["takeovers_failed"] == n
    in_the_way.unlink()
    older = follow(bed, 2)
    assert knocks.finish()
    assert older.wait(WAIT_S) == 0


def test_one_that_is_not_af_packet_is_refused_before_anybody_hears_of_it(takeover_world):
    """FL-15."""
    bed = takeover_world.bed
    bed.device = "tap"
    for word in ("--takeover", "--check"):  # FL-174
        said = what_it_says(bed, f"shuntd{word}", word)
        assert "ports[0].device" in said and "taken over" in said, said
    bed.device = "af_packet"
    assert info(bed)["takeovers_failed"] == info(bed)["takeovers_refused"] == 0
