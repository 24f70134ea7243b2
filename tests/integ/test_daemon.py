# SPDX-License-Identifier: Apache-2.0
"""The daemon as an operator meets it: checking a configuration, and leaving in order."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import h2load
from lab import wait_until
from testbed import BUILD, EXAMPLE, START_TIMEOUT_S, VIP

SHUNTD = BUILD / "ctrl" / "shuntd"
HARMLESS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
GOOD = (EXAMPLE / "shunt.yaml").read_text()
GOOD_FRONTEND = next(line + "\n" for line in GOOD.splitlines() if "target: web}" in line)
MAX_FRONTENDS = 4096
FIRST_PORT = 10000
TAKES_S = 20  # bounds, not what is measured; less than a whole drain
LONG_S = 50.0  # of streams that are cut
# (what is replaced, by what, words that the complaint must have)
MISTAKES = (
    ("idle: backoff", "idle: sometimes", ("idle", "sometimes")),
    ("workers: [1]", "workers: [one]", ("workers", "one")),
    ("workers: [1]", "workers: [999]", ("workers[0]", "999")),
    ("workers: [1]", "workers: [0, 0]", ("workers[1]", "0", "workers[0]")),
    ("[10.81.0.10/24]", "[10.81.0.10/24]\n    steering: magic", ("steering", "magic")),
    ("[10.81.0.10/24]", "[10.81.0.10]", ("ports[0]", "addresses[0]", "10.81.0.10")),
    ("[10.81.0.10/24]", "[10.81.0.300/24]", ("ports[0]", "addresses[0]", "10.81.0.300")),
    ("target: web}", "taget: web}", ("frontends[0]", "taget")),
    ("address: 10.81.0.10,", "address: 10.99.0.1,", ("frontends[0]", "address:", "10.99.0.1")),
    ("port: 8080", "port: 0", ("frontends[0]", "port", "0")),
    ("port: 8080", "port: 80800", ("frontends[0]", "port", "80800")),
    ('mode: "0660"', 'mode: "rw"', ("stats.mode",)),
    ("level: info", "level: loud", ("log.level", "loud")),
    ("log:", "csds: {listen: 10.81.0.1:50052}\nlog:", ("csds.listen", "loopback", "allow_remote")),
    ("log:", "csds: {listen: localhost:50052}\nlog:", ("csds.listen", "localhost:50052")),
    ("log:", "csds: {}\nlog:", ("csds", "listen")),
    ("frontends:", "frontend:", ("frontend",)),
    ("ports:", "ports: [", ()),
)


def check(path, **env):
    return subprocess.run([SHUNTD, "-c", path, "--check"], capture_output=True, text=True,
                          timeout=60, check=False,
                          env={"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json"), **env})


def test_check_accepts_the_example():
    done = check(EXAMPLE / "shunt.yaml")
    assert done.returncode == 0, done.stderr


def test_check_prints_what_dpdk_will_be_told(tmp_path):
    path = tmp_path / "shunt.yaml"
    path.write_text(GOOD.replace("net_af_packet1,iface=lb-b", "01:00.0").replace(
        'eal: [--in-memory, --no-huge, -m, "512"]', 'eal: [-m, "640", -a, "0000:01:00.0"]'))
    done = check(path)
    assert done.returncode == 0, done.stderr
    fine, told = done.stdout.splitlines()
    assert fine == f"{path}: configuration OK"
    words = told.split()
    assert "--no-huge" in words and words[words.index("-m") + 1] == "640", told
    assert "01:00.0" not in told and "--lcores" in words, told


def test_check_refuses_what_dpdk_would_not_be_told(tmp_path):
    path = tmp_path / "shunt.yaml"
    path.write_text(GOOD.replace("--in-memory", "--lcores=1"))
    done = check(path)
    assert done.returncode == 1 and "eal[0]: --lcores=1" in done.stderr, done


@pytest.mark.parametrize("old, new, words", MISTAKES, ids=[new for _, new, _ in MISTAKES])
def test_check_names_file_field_and_reason(tmp_path, old, new, words):
    path = tmp_path / "mistake.yaml"
    assert GOOD.count(old) >= 1
    path.write_text(GOOD.replace(old, new, 1))
    done = check(path)
    assert done.returncode == 1, done
    for word in ("mistake.yaml", *words):
        assert word in done.stderr, (word, done.stderr)


def test_check_needs_a_file_that_is_there(tmp_path):
    done = check(tmp_path / "none.yaml")
    assert done.returncode == 1 and "none.yaml" in done.stderr


@pytest.mark.parametrize("text, words", (
    ("{", ()),
    ("{}", ("xds_servers",)),
    ('{"xds_servers": [{"channel_creds": [{"type": "insecure"}]}]}', ("server_uri",)),
    ('{"xds_servers": [{"server_uri": "x", "channel_creds": [{"type": "odd"}]}]}',
     ("channel_creds",)),
))
def test_check_reads_the_bootstrap_too(tmp_path, text, words):
    path = tmp_path / "bootstrap.json"
    path.write_text(text)
    done = check(EXAMPLE / "shunt.yaml", GRPC_XDS_BOOTSTRAP=str(path))
    assert done.returncode == 1, done
    for word in ("bootstrap", *words):
        assert word in done.stderr, (word, done.stderr)


def test_check_without_any_bootstrap_says_so(tmp_path):
    """BT-01: none beside the file either."""
    config = tmp_path / "shunt.yaml"
    config.write_text((EXAMPLE / "shunt.yaml").read_text())
    done = check(config, GRPC_XDS_BOOTSTRAP="")
    assert done.returncode == 1 and "GRPC_XDS_BOOTSTRAP" in done.stderr, done


@pytest.mark.ends_daemon
@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT),
                         ids=lambda n: n.name)
def test_a_signal_to_stop_lets_streams_finish_then_exits_0(make_world, number):
    bed = make_world().start().bed
    calls = bed.start_calls("held", "held_streams", streams=4, seconds=3.0)
    wait_until(lambda: "ready" in calls.output(), TAKES_S, "open streams")
    time.sleep(1)
    bed.daemon.signal(number)
    for harmless in HARMLESS:  # while it drains
        bed.daemon.signal(harmless)
    streams = bed.calls_result(calls)
    assert all(s["complete"] and s["code"] == 0 for s in streams), streams
    assert bed.daemon.wait(TAKES_S) == 0, bed.daemon.output()  # and not drain_s later
    assert not bed.stats_socket.exists()
    assert 'msg="stopped" requests_cut=0' in bed.daemon.output(), bed.daemon.output()
    assert "second signal" not in bed.daemon.output()


def test_signals_that_are_not_to_stop_cut_nobody(make_world):
    bed = make_world().start().bed
    calls = bed.start_calls("held", "held_streams", streams=4, seconds=3.0)
    wait_until(lambda: "ready" in calls.output(), TAKES_S, "open streams")
    for number in HARMLESS:
        bed.daemon.signal(number)
    said = ("nothing to do", "reopened", "name=SIGUSR2")
    wait_until(lambda: all(text in bed.daemon.output() for text in said), TAKES_S, "a line for each")
    assert all(s["complete"] and s["code"] == 0 for s in bed.calls_result(calls))
    assert bed.daemon.alive()


@pytest.mark.ends_daemon
def test_sighup_takes_what_it_can_and_names_the_rest(make_world):
    bed = make_world().start().bed
    path = bed.lab.dir / "shunt.yaml"
    good = path.read_text()

    def reload(text, *said):
        path.write_text(text)
        bed.daemon.signal(signal.SIGHUP)
        wait_until(lambda: all(words in bed.daemon.output() for words in said), TAKES_S, str(said))
    reload(good.replace("target: web", "target: other").replace("frontends:", "frontends: 7\nx:"),
           "reload refused", f"{path}:", "frontends")
    reload(good.replace("idle: backoff", "idle: poll") + "drain_s: 1\n", 'needs_restart="idle"', "drain_s=1")
    assert bed.show("info")["frontends"][0]["target"] == "web"
    assert bed.run_h2load(requests=200).perfect
    calls = bed.start_calls("held", "held_streams", streams=1, seconds=LONG_S)
    wait_until(lambda: "ready" in calls.output(), TAKES_S, "open streams")
    bed.daemon.popen.terminate()
    assert bed.daemon.wait(TAKES_S) == 0, bed.daemon.output()  # and not 30
    bed.calls_result(calls)


def test_sigusr1_opens_the_log_again(make_world):
    bed = make_world().start().bed
    moved = bed.lab.dir / "moved.log"
    bed.daemon.log_path.rename(moved)
    bed.daemon.signal(signal.SIGUSR1)
    wait_until(bed.daemon.log_path.exists, TAKES_S, "a new log")
    wait_until(lambda: "reopened" in bed.daemon.output(), TAKES_S, "a line in it")
    assert "ready" in moved.read_text() and "ready" not in bed.daemon.output()


def test_signals_at_the_start_are_kept_until_it_runs(make_world):
    bed = make_world().start().bed
    bed.daemon.kill()
    daemon = bed.start_daemon(wait=False)

    def is_deaf():  # to SIGHUP, bit 0
        text = Path(f"/proc/{daemon.pid}/status").read_text(encoding="ascii")
        return int(text.split("SigBlk:")[1].split()[0], 16) & 1
    wait_until(is_deaf, TAKES_S, "shuntd's main()")
    for number in HARMLESS:
        daemon.signal(number)
    bed.wait_for_daemon()
    said = ("nothing to do", "reopened", "name=SIGUSR2")
    wait_until(lambda: all(text in daemon.output() for text in said), TAKES_S, "a line for each")
    assert bed.run_h2load(requests=200).perfect


def test_nothing_takes_the_place_of_a_closed_standard_stream(make_world):
    """OPS-288: libgrpc opens a descriptor of its own before main()."""
    bed = make_world().start().bed
    bed.daemon.kill()
    argv = ["bash", "-c", 'exec "$0" -c "$1" <&- >&-', SHUNTD, bed.lab.dir / "shunt.yaml"]
    env = {"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")}
    bed.daemon = bed.lab.start("lb", "closed", argv, env=env, cpu=None)
    bed.wait_for_daemon()
    assert {os.readlink(f"/proc/{bed.daemon.pid}/fd/{n}") for n in (0, 1)} == {"/dev/null"}


@pytest.mark.ends_daemon
def test_sigterm_ends_streams_at_the_deadline(make_world):
    world = make_world()
    config = world.bed.config_text
    world.bed.config_text = lambda: config() + "drain_s: 1\n"
    bed = world.start().bed
    calls = bed.start_calls("held", "held_streams", streams=4, seconds=LONG_S)
    wait_until(lambda: "ready" in calls.output(), TAKES_S, "open streams")
    bed.daemon.popen.terminate()
    assert bed.daemon.wait(TAKES_S) == 0, bed.daemon.output()
    assert all(not s["complete"] and s["code"] != 0 for s in bed.calls_result(calls))
    assert 'msg="stopped" requests_cut=4' in bed.daemon.output(), bed.daemon.output()


@pytest.mark.ends_daemon
def test_sigterm_under_load_loses_no_request_already_taken(make_world):
    """TH-76: h2load opens no second connection: what GOAWAY leaves unasked counts as not started."""
    bed = make_world().start().bed
    load = bed.start_h2load("load", seconds=12, clients=8, streams=8)
    wait_until(lambda: bed.show("info")["requests"] > 1000, START_TIMEOUT_S, "a load")
    bed.daemon.popen.terminate()
    assert bed.daemon.wait(TAKES_S) == 0, bed.daemon.output()
    report = bed.h2load_report(load)
    assert report.failed == report.errored and report.succeeded > 1000, (report, VIP)


def frontends_text(n):
    """shunt.yaml's frontends: that of the world, and n - 1 others on ports of their own."""
    return GOOD_FRONTEND + "".join(
        f"  - {{name: f{i}, address: {VIP}, port: {FIRST_PORT + i}, target: web}}\n"
        for i in range(n - 1))


def test_4096_frontends_serve(make_world):
    world = make_world()
    config = world.bed.config_text
    world.bed.config_text = lambda: config().replace(GOOD_FRONTEND, frontends_text(MAX_FRONTENDS))
    bed = world.start().bed
    wait_until(lambda: [row["state"] for row in bed.show("info")["frontends"]] == ["serving"] * MAX_FRONTENDS,
               START_TIMEOUT_S, "all to serve, for which a port's link must have been looked at")
    last = f"http://{VIP}:{FIRST_PORT + MAX_FRONTENDS - 2}{h2load.MARK}"
    done = bed.lab.exec("client", h2load.arguments(last, requests=500), timeout=60)
    assert h2load.parse(done.stdout).perfect, done.stdout
    asked = {row["pxname"]: row["req_tot"] for row in bed.show("stat") if row["svname"] == "FRONTEND"}
    assert len(asked) == MAX_FRONTENDS
    assert {name: n for name, n in asked.items() if n} == {f"f{MAX_FRONTENDS - 2}": 500}
    assert bed.run_h2load(requests=500).perfect
    world.set_weights(50, 50)  # all of them take an update
    assert bed.run_h2load(requests=500).perfect


def test_check_refuses_4097_frontends(tmp_path):
    path = tmp_path / "many.yaml"
    path.write_text(GOOD.replace(GOOD_FRONTEND, frontends_text(MAX_FRONTENDS)))
    assert check(path).returncode == 0
    path.write_text(GOOD.replace(GOOD_FRONTEND, frontends_text(MAX_FRONTENDS + 1)))
    done = check(path)
    assert done.returncode == 1
    assert "many.yaml:" in done.stderr and "frontends: more than 4096 of them" in done.stderr


def test_a_killed_daemon_starts_again_at_once(world):
    """TH-71: A stale socket and half-open peers do not stand in the way."""
    world.bed.daemon.kill()
    assert world.bed.stats_socket.exists()
    world.bed.start_daemon()
    assert world.bed.run_h2load(requests=2000).perfect
