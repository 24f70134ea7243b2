# SPDX-License-Identifier: Apache-2.0
"""The stats socket against counts made elsewhere."""

import json
import os
import socket
import subprocess

import pytest

from lab import LabError, wait_until
from testbed import BUILD, EXAMPLE
from world import split_of

COMMANDS = ("show info", "show stat", "show clusters", "show routes", "show xds", "show workers",
            "show ports", "show metrics", "show requests", "show conns")


def test_every_show_command_has_both_forms(world):
    for command in COMMANDS:
        text = world.bed.shuntctl(*command.split())
        assert text.strip() and not text.lstrip().startswith("{"), command
        assert json.loads(world.bed.shuntctl(*command.split(), "json")), command


def test_help_names_every_command(world):
    text = world.bed.shuntctl("help")
    assert all(command in text for command in COMMANDS)


def test_explain_says_what_requests_then_meet(world):
    args = ("explain", "--authority", "web.example", "-H", "note: two words\n", "--path")
    data = json.loads(world.bed.shuntctl("--json", *args, "/mark"))["data"]
    assert {row["cluster"]: row["percent"] for row in data["clusters"]} == {"blue": "75",
                                                                            "green": "25"}
    assert all(row["state"] == "READY" for row in data["clusters"])
    rpc = json.loads(world.bed.shuntctl(*args, "/shunt.test.Echo/Unary", "--grpc", "--json"))["data"]
    assert rpc["outcomes"][0]["action"] == "cds:rpc"
    assert rpc["grpc"] is True


def test_explain_refuses_what_is_no_question(world):
    with pytest.raises(LabError, match="needs --authority"):
        world.bed.shuntctl("explain", "--path", "/")


def test_socket_has_the_mode_of_the_configuration(world):
    assert world.bed.stats_socket.stat().st_mode & 0o777 == 0o660


def test_counters_equal_what_the_client_counted(world):
    report = world.bed.run_h2load(requests=20_000)
    world.bed.run_calls("unary", count=50)
    blue, green = split_of(report)
    shown = world.bed.show("clusters")
    counts = {row["cluster"]: (row["requests"], row["ok"]) for row in shown["clusters"]}
    assert counts == {"blue": (blue, blue), "green": (green, green), "rpc": (50, 50)}
    assert sum(row["requests"] for row in shown["endpoints"]) == 20_050


def test_every_request_has_one_ending(world):
    """Answered by the backend, cancelled by the client, and without a route."""
    world.bed.run_calls("cancellation", calls=10)
    world.bed.run_calls("statuses")
    workers = world.bed.show_workers()
    for worker in workers:
        assert sum(worker["ended"].values()) == worker["requests"], worker
    assert sum(worker["ended"]["client_reset"] for worker in workers) == 10, workers


def run(bed, *words, **options):
    return subprocess.run(bed.shuntctl_argv(*words), check=False, text=True, timeout=30, **options)


def captured(bed, *words):
    return run(bed, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(name="open_socket")
def fixture_open_socket(make_world):
    """A world whose stats socket is open to all users."""
    world = make_world()
    config = world.bed.config_text
    world.bed.config_text = lambda: config().replace('mode: "0660"', 'mode: "0666"')
    return world.start()


STRANGER = ["setpriv", "--reuid=42000", "--regid=42000", "--clear-groups"]


@pytest.mark.parametrize("who", ([], STRANGER), ids=("root", "stranger"))
def test_ops_235_followers_lock_nobody_out(open_socket, who):
    """40 of them, for 32 places; idle connections likewise."""
    bed = open_socket.bed
    idle = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for each in idle:
        each.connect(str(bed.stats_socket))
    follow = [*who, *map(str, bed.shuntctl_argv("show", "events", "0", "-w"))]
    followers = [subprocess.Popen(follow, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                 for _ in range(40)]
    try:
        wait_until(lambda: sum(f.poll() is not None for f in followers) >= 12, 20, "those without a place to end")
        assert captured(bed, "undrain").returncode == 0
        asked = subprocess.run([*STRANGER, *map(str, bed.shuntctl_argv("show", "info"))], check=False, text=True,
                               capture_output=True)
        assert asked.returncode == 0 and "state: ready" in asked.stdout
        info = bed.show("info")
        assert info["stats_connections_cut"] >= 12 + 20 * (not who) and info["stats_connections"] <= 32
        for gone in (f for f in followers if f.poll() is not None):
            assert gone.returncode == 2
            assert "all 32 places are taken, and a newcomer has this one" in gone.stderr.read()
    finally:
        for each in [*idle]:
            each.close()
        for follower in followers:
            follower.kill()
            follower.communicate()


def test_ops_236_output_that_is_lost_is_an_error(world):
    bed = world.bed
    config = bed.lab.dir / "shunt.yaml"
    shuntd = BUILD / "ctrl" / "shuntd"
    rows = [(2, bed.shuntctl_argv("show", "metrics")), (2, bed.shuntctl_argv("--json", "show", "load")),
            (2, bed.shuntctl_argv("--help")), (1, [shuntd, "--check", "-c", config]), (1, [shuntd, "--commands"])]
    for status, argv in rows:
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(argv, check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30,
                                  env={**os.environ, "GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")})
        assert done.returncode == status, (argv, done)
        assert "standard output could not be written whole" in done.stderr, (argv, done)
    argv = " ".join(map(str, bed.shuntctl_argv("show", "metrics")))
    piped = subprocess.run(f"trap '' PIPE; {argv} | head -n 1", shell=True, check=True, capture_output=True, text=True)
    assert piped.stdout.count("\n") == 1 and piped.stderr == ""


def test_ops_238_maxima_begin_anew_and_counters_stay(world):
    bed = world.bed
    assert world.bed.run_h2load(requests=2000, clients=8, streams=8).perfect

    def peaks():
        return max(row["peak"] for row in bed.show("pools") if row["pool"] == "requests")
    before, turns = peaks(), bed.show("workers")["worker0"]["turns"]
    assert before > 1
    assert json.loads(bed.shuntctl("clear", "counters", "json"))["data"] == {"cleared": "maxima"}
    wait_until(lambda: peaks() < before, 20, "the peak to be gone")
    row = bed.show("workers")["worker0"]
    assert row["turns"] > turns and row["requests"] >= 2000 and row["maxima_s"] < 60
    assert any('command="clear counters' in row["details"] for row in bed.show("events"))


def test_ops_242_what_scripts_are_told(world):
    bed = world.bed
    wrong = captured(bed, "--json", "show", "nosuch")
    assert (wrong.returncode, wrong.stderr) == (1, "")
    said = json.loads(wrong.stdout)
    assert said["schema_version"] == 1
    assert said["error"].startswith("unknown command 'show nosuch', show may be followed by info, listeners, ")
    assert captured(bed, "--version").stdout.startswith("shuntctl ")
    assert captured(bed, "ping", "10.82.1.1", "count", "1").returncode == 0
    for form in ((), ("json",)):
        assert captured(bed, "ping", "10.82.1.77", "count", "1", *form).returncode == 1
    assert bed.show("neighbours") == bed.show("neighbors") or bed.show("neighbours")["neighbors"]
