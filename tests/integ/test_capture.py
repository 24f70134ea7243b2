# SPDX-License-Identifier: Apache-2.0
"""Packet captures, read by tshark, beside what the kernel at the other end of a link captured."""

import contextlib
import json
import pathlib
import signal
import time

import pytest

from lab import LabError, command, wait_until
from test_actions import OPERATORS, as_user
from testbed import PORT, VIP

TIMEOUT_S = 30
BACKEND = "10.82.1.1"
RX, TX = "0x00000001", "0x00000002"
SEGMENT = ("tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.len", "frame.len")


@pytest.fixture(name="make_bed")
def fixture_make_bed(make_world):
    def make(directory=None, **arguments):
        world = make_world(**arguments)
        bed = world.bed
        bed.captures = directory or bed.lab.dir / "captures"
        bed.captures.mkdir(exist_ok=True)
        bed.settings += f"capture: {{directory: {bed.captures}}}\n"
        config = bed.config_text
        bed.config_text = lambda: config().replace('mode: "0660"', f'mode: "0666", operators: {OPERATORS}')
        world.start()
        return bed
    return make


@pytest.fixture(name="bed")
def fixture_bed(make_bed):
    return make_bed()


def ask(bed, *words):
    return json.loads(bed.shuntctl(*words, "json"))["data"]


def start(bed, *words, name="a.pcapng"):
    """The file's path. All workers copy by now."""
    answer = ask(bed, "capture", "start", name, *words)
    path = pathlib.Path(answer["file"])
    assert path == bed.captures / name, answer
    return path


def stop(bed):
    answer = ask(bed, "capture", "stop")
    assert answer["state"] == "off" and answer["ended"] == "stopped", answer
    return answer


def tshark(path, *fields, chosen=None):
    """A tuple of these fields for each frame."""
    words = ["-Y", chosen] if chosen else []
    done = command(["tshark", "-r", str(path), "-d", f"tcp.port=={PORT},http2", *words, "-T", "fields",
                    *(w for field in ("frame.number", *fields) for w in ("-e", field))])
    return [tuple(line.split("\t"))[1:] for line in done.stdout.splitlines()]


def wait_for_end(bed, why):
    wait_until(lambda: ask(bed, "show", "capture")["state"] == "off", TIMEOUT_S, "the end of a capture")
    answer = ask(bed, "show", "capture")
    assert answer["ended"] == why, answer
    return answer


@contextlib.contextmanager
def kernels_capture(bed):
    """The same link's frames of our port, as the client's kernel sees them; yields the file's path."""
    path = bed.lab.dir / "kernel.pcapng"
    process = bed.lab.start("client", "kernel", ["dumpcap", "-q", "-i", "c0", "-w", path, "-f", f"tcp port {PORT}"])
    seen = [0]

    def catch_up():
        """Until a request made now is in it."""
        assert bed.run_h2load(requests=1, clients=1).perfect
        n = len(tshark(path, "frame.len")) if path.exists() else 0
        seen[0], grew = n, n > seen[0]
        return grew
    wait_until(catch_up, TIMEOUT_S, "the kernel's capture", interval=0.2)
    try:
        yield path
    finally:
        process.signal(signal.SIGINT)
        process.wait(TIMEOUT_S)


def clients_of(path):
    """The ports of connections that began in this file."""
    return {row[0] for row in tshark(path, "tcp.srcport", chosen="tcp.flags.syn==1 && tcp.flags.ack==0")}


def of_clients(path, begun):
    """The segments in one file, in order, of connections that began in the other and have ended in the first."""
    clients, rows = clients_of(begun), tshark(path, *SEGMENT)
    ended = {row[0] for row in tshark(path, "tcp.srcport", chosen="tcp.flags.fin==1 || tcp.flags.reset==1")}
    ended |= {row[0] for row in tshark(path, "tcp.dstport", chosen="tcp.flags.fin==1 || tcp.flags.reset==1")}
    return clients and clients <= ended and sorted(r for r in rows if r[0] in clients or r[1] in clients)


def test_ops_100_a_capture_has_the_frames_that_the_other_end_has(bed):
    """Those of connections that began and ended meanwhile, each once, in both directions."""
    with kernels_capture(bed) as kernel:
        path = start(bed, "interface=0", f"port={PORT}", f"host={VIP}")
        assert bed.run_h2load(requests=50, clients=4).perfect
        # Both while they grow: one of them may have the last frame sooner, or get one more after the other's end.
        wait_until(lambda: of_clients(path, path) and of_clients(path, path) == of_clients(kernel, path), TIMEOUT_S,
                   "the same frames in both")
        answer = stop(bed)
    assert len(tshark(path, "frame.len")) == answer["frames"] and path.stat().st_size == answer["bytes"]
    assert answer["dropped"] == 0
    assert len(clients_of(path)) == 4
    assert len(tshark(path, "http2.streamid", chosen="http2.headers.path")) > 0
    directions = {(row[0] == str(PORT), row[1]) for row in tshark(path, "tcp.srcport", "frame.packet_flags")}
    assert directions == {(True, TX), (False, RX)}


def test_ops_101_filters_choose_by_host_port_direction_and_interface(bed):
    path = start(bed, f"host={BACKEND}", "snaplen=80")
    assert bed.run_h2load(requests=400, clients=4).perfect
    stop(bed)
    rows = tshark(path, "ip.src", "ip.dst", "frame.interface_id", "frame.cap_len", "frame.len")
    assert len(rows) > 10
    for src, dst, interface, kept, length in rows:
        assert BACKEND in (src, dst) or src == ""  # ARP
        assert interface == "1" and int(kept) == min(int(length), 80)
    assert any(int(row[4]) > 80 for row in rows)
    path = start(bed, "direction=tx", name="b.pcapng")
    assert bed.run_h2load(requests=20, clients=1).perfect
    stop(bed)
    rows = tshark(path, "frame.packet_flags", "frame.interface_name")
    assert {row[0] for row in rows} == {TX} and {row[1] for row in rows} == {"port0", "port1"}
    path = start(bed, "port=1", name="c.pcapng")
    assert bed.run_h2load(requests=20, clients=1).perfect
    assert stop(bed)["frames"] == 0 and tshark(path, "frame.len") == []


def test_ops_102_dropped_frames_say_why(bed):
    path = start(bed, "direction=rx", "interface=0")
    for what in (f"echo > /dev/udp/{VIP}/9", f": < /dev/tcp/{VIP}/81"):
        bed.lab.exec("client", ["bash", "-c", what], check=False)
    assert bed.run_h2load(requests=5, clients=1).perfect
    stop(bed)
    comments = dict(tshark(path, "udp.dstport", "frame.comment", chosen="udp"))
    assert comments == {"9": "dropped: net.ip_unknown_protocol"}
    comments = {row[0] for row in tshark(path, "frame.comment", chosen="tcp.dstport==81")}
    assert comments == {"dropped: tcp.drop_no_connection"}
    requests = tshark(path, "frame.comment", chosen="http2.headers.path")
    assert requests and {row[0] for row in requests} == {""}


def test_ops_104_a_capture_ends_by_count_time_and_size(bed):
    path = start(bed, "count=5", f"port={PORT}")
    assert bed.run_h2load(requests=100, clients=4).perfect
    assert wait_for_end(bed, "count")["frames"] == len(tshark(path, "frame.len")) == 5
    path = start(bed, "seconds=1", name="b.pcapng")
    answer = wait_for_end(bed, "seconds")
    assert 1 <= answer["seconds"] < TIMEOUT_S
    assert len(tshark(path, "frame.len")) == answer["frames"]
    path = start(bed, "size=1", name="c.pcapng")
    load = bed.start_h2load("load", requests=8000, clients=4)
    answer = wait_for_end(bed, "size")
    bed.h2load_report(load)
    assert 900_000 < path.stat().st_size == answer["bytes"] <= 1_000_000
    assert len(tshark(path, "frame.len")) == answer["frames"]
    ended = [row["details"] for row in ask(bed, "show", "events") if row["event"] == "capture ended"]
    assert [f'end="{why}"' in row for why, row in zip(("count", "seconds", "size"), ended)] == [True] * 3


def refused(bed, *words):
    with pytest.raises(LabError) as refusal:
        bed.shuntctl("capture", "start", *words)
    return str(refusal.value)


@pytest.mark.parametrize("words, key", ((("port=8080", "port=8081"), "port"), (("snaplen=64", "count=1", "snaplen=64"),
                                        "snaplen"), (("keys", "keys"), "keys")))
def test_ops_237_a_condition_that_comes_twice_is_refused_by_name(bed, words, key):
    assert f"{key} is given twice" in refused(bed, "a.pcapng", *words)
    assert not list(bed.captures.iterdir())


def test_ops_105_files_are_made_below_the_directory_alone(bed):
    elsewhere = bed.lab.dir / "elsewhere.pcapng"
    (bed.captures / "link.pcapng").symlink_to(elsewhere)
    (bed.captures / "up").symlink_to(bed.lab.dir)
    (bed.captures / "there.pcapng").write_text("mine")
    assert "is not below" in refused(bed, str(elsewhere))
    assert "a part that is" in refused(bed, "../elsewhere.pcapng")
    assert "symbolic links" in refused(bed, "up/elsewhere.pcapng")
    assert "exists" in refused(bed, "link.pcapng")
    assert "exists" in refused(bed, "there.pcapng")
    assert "No such file" in refused(bed, "nowhere/a.pcapng")
    for word, why in (("host=nobody", "host: 'nobody' is not an address"), ("port=0", "'0' is not between 1 and 65535"),
                      ("interface=2", "interface: '2' is not between 0 and"), ("colour=red", "unexpected argument"),
                      ("direction=up", "direction: 'up' is neither rx nor tx"), ("size=x", "'x' is not between 1 and")):
        assert why in refused(bed, "a.pcapng", word)
    assert not elsewhere.exists() and (bed.captures / "there.pcapng").read_text() == "mine"
    assert ask(bed, "show", "capture")["state"] == "off"
    assert "there is no capture" in str(pytest.raises(LabError, bed.shuntctl, "capture", "stop").value)
    start(bed)
    assert "already" in refused(bed, "b.pcapng")
    stop(bed)


def test_ops_106_captures_are_an_admins(bed):
    for groups, level in (("", "user"), (OPERATORS, "operator")):
        for what in (("start", "a.pcapng"), ("stop",)):
            with pytest.raises(LabError, match=f"needs the level admin, and yours is {level}"):
                as_user(bed, groups, "capture", *what)
    assert "state: off" in as_user(bed, "", "show", "capture")
    start(bed)
    stop(bed)
    actions = [row["details"] for row in ask(bed, "show", "events") if row["event"] == "operator's action"]
    assert ["capture start a.pcapng" in actions[0], "capture stop" in actions[1], len(actions)] == [True, True, 2]


def test_without_a_directory_there_are_no_captures(world):
    for what in (("capture", "start", "a.pcapng"), ("capture", "stop"), ("show", "capture")):
        with pytest.raises(LabError, match="no capture.directory in shunt.yaml"):
            world.bed.shuntctl(*what)


def test_ops_107_the_file_can_be_read_while_it_grows(bed):
    path = start(bed, f"port={PORT}")
    before = 0
    for _ in range(2):
        assert bed.run_h2load(requests=20, clients=1).perfect
        wait_until(lambda: len(tshark(path, "frame.len")) > before + 10, TIMEOUT_S, "frames in the file")
        before = len(tshark(path, "frame.len"))
    assert ask(bed, "show", "capture")["state"] == "on"
    stop(bed)


@pytest.mark.ends_daemon
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ops_107_a_daemon_that_ends_leaves_a_file_that_can_be_read(bed, number):
    path = start(bed, f"port={PORT}")
    assert bed.run_h2load(requests=20, clients=1).perfect
    wait_until(lambda: ask(bed, "show", "capture")["frames"] > 10, TIMEOUT_S, "frames")
    bed.daemon.signal(number)
    bed.daemon.wait(TIMEOUT_S)
    assert len(tshark(path, "frame.len")) > 10


def test_ops_107_a_disk_that_is_full_ends_the_capture_and_harms_nobody(make_bed, lab):
    disk = lab.dir / "disk"
    disk.mkdir()
    command(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)])
    try:
        bed = make_bed(directory=disk)
        path = start(bed)
        assert bed.run_h2load(requests=4000, clients=4).perfect
        answer = wait_for_end(bed, "No space left on device")
        assert 0 < answer["frames"] == len(tshark(path, "frame.len"))
        assert path.stat().st_size == answer["bytes"]
        with contextlib.suppress(OSError):  # what was cut off the first file left room
            (disk / "rest").write_bytes(bytes(1 << 20))
        assert "No space left" in refused(bed, "b.pcapng")
    finally:
        command(["umount", "-l", str(disk)])


def test_frames_of_two_workers_are_in_one_file(make_bed):
    bed = make_bed(workers=(0, 1))
    path = start(bed)
    assert bed.run_h2load(requests=800, clients=16).perfect
    answer = stop(bed)
    rows = tshark(path, "frame.interface_queue", "frame.time_epoch")
    assert len(rows) == answer["frames"] and answer["dropped"] == 0
    assert {row[0] for row in rows} == {"0", "1"}
    assert abs(float(rows[0][1]) - time.time()) < 60
