# SPDX-License-Identifier: Apache-2.0
"""The stats socket against counts made elsewhere."""

import json

import pytest

from lab import LabError
from world import split_of

COMMANDS = ("show info", "show stat", "show clusters", "show routes", "show xds", "show workers",
            "show ports", "show metrics", "show requests", "show conns")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_show_command_has_both_forms(world, command):
    text = world.bed.shuntctl(*command.split())
    assert text.strip() and not text.lstrip().startswith("{")
    assert json.loads(world.bed.shuntctl(*command.split(), "json"))


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
