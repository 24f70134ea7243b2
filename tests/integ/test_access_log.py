# SPDX-License-Identifier: Apache-2.0
"""The access log: the same lines as Envoy's, and files that fill, vanish or move under load."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import types

import pytest

import envoy_proxy
from envoy_table import all_resources, case_lists, clusters, routes_of
from lab import command, wait_until
from policy_cases import FAULTS
from resources import TYPES
from test_envoy import Pair, start_peers
from testbed import EXIT_TIMEOUT_S, Testbed

FORMAT = ("%REQ(USER-AGENT)% %REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL% %RESPONSE_CODE% "
          "%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_RECEIVED% %UPSTREAM_CLUSTER% %UPSTREAM_HOST% "
          "%UPSTREAM_REMOTE_PORT% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %REQ(X-FORWARDED-FOR):3% %REQ(TRACEPARENT)% "
          "%START_TIME(%Y%%)% %% %PATH% %PATH(NQ)% %RESPONSE_FLAGS_LONG% %BYTES_SENT% %GRPC_STATUS% "
          "%GRPC_STATUS(SNAKE_STRING)% %GRPC_STATUS_NUMBER% %RESP(GRPC-STATUS)% %TRAILER(GRPC-STATUS)% "
          "%RESP(:STATUS)% %UPSTREAM_PROTOCOL% %UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %ROUTE_NAME% "
          "%VIRTUAL_CLUSTER_NAME%\n")
MIN_SAME = 50
LOADED_S = 60


def settings(path, text_format=None, **filters):
    form = f", text_format: {json.dumps(text_format)}" if text_format else ""
    chosen = ", ".join(f"{k}: {v}" for k, v in filters.items())
    return f"access_log: {{path: {path}{form}, filter: {{{chosen}}}}}\n"


def lines_of(path):
    return pathlib.Path(path).read_text(encoding="utf-8").splitlines()


def by_tag(path):
    return {line.split()[0]: line for line in lines_of(path)}


def envoys(config, path):
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["access_log"] = [{"name": "file", "typed_config": {
        "@type": TYPES + "extensions.access_loggers.file.v3.FileAccessLog", "path": str(path),
        "log_format": {"text_format_source": {"inline_string": FORMAT}}}}]
    return config


def tagged(calls):
    return [types.SimpleNamespace(**{**vars(call), "metadata": [*call.metadata, ("user-agent", f"r{i}"),
                                                                ("traceparent", f"t{i}")]})
            for i, call in enumerate(calls)]


@pytest.mark.timeout(120)
def test_ops_35_the_same_lines_as_envoy(lab):
    cases, _, _ = case_lists()
    bed = Testbed(lab)
    ours, theirs = bed.lab.dir / "ours.log", bed.lab.dir / "theirs.log"
    start_peers(bed, all_resources(cases))
    config = envoy_proxy.configuration(routes_of(cases), clusters(), [FAULTS])
    envoy_proxy.start(bed, "oracle", envoys(config, theirs))
    bed.settings += settings(ours, FORMAT)
    bed.start_xds()
    bed.start_daemon()
    calls = [call for case in cases for call in case.calls if getattr(call, "fields", None) is None]
    calls = tagged(calls[:200])
    answers = list(zip(*Pair(bed).ask(calls)))
    wait_until(lambda: len(lines_of(ours)) >= len(calls), 20, "all lines of ours")
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
    wait_until(lambda: len(lines_of(theirs)) >= len(calls), 30, "all lines of Envoy's")
    mine, envoy = by_tag(ours), by_tag(theirs)
    same = [i for i, (a, b) in enumerate(answers) if a.get("status") == b.get("status")]
    wrong = [f"{envoy.get(f'r{i}')}\n{mine.get(f'r{i}')}" for i in same if envoy.get(f"r{i}") != mine.get(f"r{i}")]
    assert len(same) >= MIN_SAME and not wrong, "\n".join(wrong[:10])


@pytest.fixture(name="logged")
def fixture_logged(make_world):
    def make(path, *args, idle="backoff", **filters):
        world = make_world()
        world.bed.settings += settings(path, *args, **filters)
        world.bed.idle = idle
        return world.start()
    return make


def rotated(bed, path, times):
    """All lines of a log whose file is renamed so many times under load."""
    old = []
    for i in range(times):
        load = bed.start_h2load(f"load{i}", requests=5000)
        wait_until(lambda: path.exists() and path.stat().st_size > 1000, LOADED_S, "lines")
        old.append(path.with_name(f"{path.name}.{i}"))
        path.rename(old[-1])
        bed.daemon.signal(signal.SIGUSR1)
        report = bed.h2load_report(load)
        assert report.perfect, report
        wait_until(path.exists, LOADED_S, "a new file")
    wait_until(lambda: sum(len(lines_of(p)) for p in (*old, path)) >= 5000 * times, LOADED_S, "all lines")
    found = [line for p in (*old, path) for line in lines_of(p)]
    assert len(found) == 5000 * times
    return found


def test_ops_38_rotation_under_load_loses_and_doubles_nothing(logged, lab):
    path = lab.dir / "access.log"
    bed = logged(path, "%REQ(:PATH)% %RESPONSE_CODE%").bed
    assert {line.split()[1] for line in rotated(bed, path, 4)} == {"200"}


def metric(bed, name):
    """Its line without labels' help, as `show metrics` has it."""
    return [line for line in bed.shuntctl("show", "metrics").splitlines() if line.startswith(name)]


def found_by_doctor(bed, check):
    done = command(bed.shuntctl_argv("--json", "doctor"), timeout=LOADED_S, check=False)
    return [f["what"] for f in json.loads(done.stdout)["data"]["findings"] if f["check"] == check]


def test_ops_243_a_path_that_is_in_the_way_is_told_until_the_log_is_open_again(logged, lab):
    path, old = lab.dir / "access.log", lab.dir / "access.log.1"
    bed = logged(path, "%REQ(:PATH)% %RESPONSE_CODE%").bed

    def error():
        return bed.show("info")["access_log_error"]

    path.rename(old)
    path.mkdir()
    bed.daemon.signal(signal.SIGUSR1)
    assert wait_until(error, LOADED_S, "the error") == "reopening: Is a directory"
    assert bed.run_h2load(requests=1000).perfect
    wait_until(lambda: len(lines_of(old)) == 1000, LOADED_S, "all lines in the file that was renamed")
    assert error() and "Is a directory" in found_by_doctor(bed, "log-reopened")[0]
    tried = metric(bed, 'shunt_log_reopen_failures_total{log="access"}')
    wait_until(lambda: metric(bed, 'shunt_log_reopen_failures_total{log="access"}') != tried, LOADED_S, "another try")
    path.rmdir()
    wait_until(lambda: not error(), LOADED_S, "its end")
    assert not found_by_doctor(bed, "log-reopened")
    assert bed.run_h2load(requests=1000).perfect
    wait_until(lambda: len(lines_of(path)) == 1000, LOADED_S, "all lines in the new file")
    assert len(lines_of(old)) == 1000


LINE = re.compile(r"/mark 200 \d+ #")


def copied_and_cut(bed, path, copy):
    """As logrotate's copytruncate does. Returns how many lines were written from the copy's begin to the cut."""
    before = bed.show("info")["access_log_written"]
    subprocess.run(["cp", path, copy], check=True)
    subprocess.run(["truncate", "-s", "0", path], check=True)
    return bed.show("info")["access_log_written"] - before


def test_ops_244_a_log_that_is_copied_and_cut_loses_what_is_written_between_and_nothing_else(logged, lab):
    path = lab.dir / "access.log"
    copies = [lab.dir / f"access.log.{i}" for i in range(4)]
    bed = logged(path, "%REQ(:PATH)% %RESPONSE_CODE% %BYTES_SENT% #").bed
    between = 0
    for i, copy in enumerate(copies):
        load = bed.start_h2load(f"load{i}", requests=5000)
        wait_until(lambda: path.exists() and path.stat().st_size > 1000, LOADED_S, "lines")
        between += copied_and_cut(bed, path, copy)
        assert bed.h2load_report(load).perfect
    total = 5000 * len(copies)
    wait_until(lambda: bed.show("info")["access_log_written"] == total, LOADED_S, "all lines")
    found = [lines_of(p) for p in (path, *copies)]
    # A copy may end within a line that is written at that moment; its rest is cut then.
    whole = [line for lines in found for n, line in enumerate(lines, 1)
             if LINE.fullmatch(line) or n < len(lines) or lines is found[0]]
    assert [line for line in whole if not LINE.fullmatch(line)] == []
    assert total - between - len(copies) <= len(whole) <= total, (len(whole), between)


FEW_WAITS = 100  # the kernel's own, for a lock of its memory, say; a reader that is waited for costs thousands


class Worker:
    """The thread of a daemon's only worker, which polls (`idle: poll`), as the kernel saw it."""

    def __init__(self, bed):
        tasks = pathlib.Path(f"/proc/{bed.daemon.pid}/task").iterdir()
        self.task, = (t for t in tasks if (t / "comm").read_text(encoding="ascii").startswith("rte-worker"))

    def waits(self):
        """How often it gave its core away, to wait in the kernel: no more of it because others take the core."""
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (self.task / "status").read_text(encoding="ascii"),
                             re.MULTILINE)[1])


@pytest.fixture(name="polling")
def fixture_polling(logged):
    """As `logged`; in the end the worker has not waited since the daemon served."""
    made = []

    def make(path, **filters):
        world = logged(path, idle="poll", **filters)
        worker = Worker(world.bed)
        made.append((worker, worker.waits()))
        return world
    yield make
    for worker, before in made:
        assert worker.waits() - before < FEW_WAITS


def test_ops_36_a_reader_that_goes_fails_no_request(polling, lab):
    path = lab.dir / "fifo"
    os.mkfifo(path)
    bed = polling(path).bed
    with subprocess.Popen(["/usr/bin/head", "-n", "100", path], stdout=subprocess.DEVNULL):
        assert bed.run_h2load(requests=3000).perfect
    assert bed.run_h2load(requests=30000).perfect  # nobody reads
    wait_until(lambda: "access log" in bed.daemon.output(), LOADED_S, "a word in the log")


SLOW_READER = """
import sys, time
with open(sys.argv[1], "rb", buffering=0) as fifo, open(sys.argv[2], "wb", buffering=0) as to:
    while True:
        to.write(fifo.read(2000))
        time.sleep(0.02)
"""


def test_ops_36_a_slow_reader_fails_no_request(polling, lab):
    """What it gets are whole lines, and what it is too slow for is told as dropped."""
    path, got = lab.dir / "fifo", lab.dir / "got"
    os.mkfifo(path)
    bed = polling(path).bed
    with subprocess.Popen([sys.executable, "-c", SLOW_READER, path, got]) as reader:
        try:
            assert bed.run_h2load(requests=60000).perfect  # some 30 MB of lines
            wait_until(lambda: re.search(r"access log.*dropped=[1-9]", bed.daemon.output()), LOADED_S,
                       "dropped lines in the log")
            assert bed.run_h2load(requests=1000).perfect
            wait_until(lambda: got.exists() and len(lines_of(got)) > 100, LOADED_S, "lines")
        finally:
            reader.kill()
    for line in lines_of(got)[:-1]:
        assert json.loads(line)["status"] == 200


def test_ops_36_a_full_disk_fails_no_request(polling, lab):
    folder = lab.dir / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    try:
        bed = polling(folder / "access.log").bed
        assert bed.run_h2load(requests=30000).perfect
        wait_until(lambda: "No space left" in bed.daemon.output(), LOADED_S, "a word in the log")
        for line in lines_of(folder / "access.log")[:-1]:
            json.loads(line)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
