# SPDX-License-Identifier: Apache-2.0
"""What operators are told of single requests and of what happens, with the tools that they have."""

import json
import signal

import pytest

from agent import Agent
from lab import LabError, wait_until
from resources import route
from testbed import PORT, VIP
from world import RPC_PORT, rpc_address

SLOW_MS = 300
TIMEOUT_S = 10


def named(name, made):
    return {**made, "name": name}


def slow():
    return named("slow", route("/slow", {"cluster": "rpc", "max_stream_duration": {
        "max_stream_duration": f"{SLOW_MS / 1000}s"}}))


@pytest.fixture(name="failing")
def fixture_failing(make_world):
    """A world whose server of gRPC answers nothing."""
    world = make_world(extra_routes=[slow(), {"match": {"path": "/away"}, "redirect": {}}]).start()
    server = world.backends["rpc-1"]
    world.bed.run_calls("unary", count=1)
    server.signal(signal.SIGSTOP)
    yield world
    server.signal(signal.SIGCONT)


def ask(client, path, *headers):
    fields = [[":method", "GET"], [":scheme", "http"], [":path", path], [":authority", "web.example"], *headers]
    return client.ask(ip=VIP, port=PORT, requests=[{"fields": fields}], timeout=TIMEOUT_S)[0]


def why(world, request):
    return json.loads(world.bed.shuntctl("why", request, "json"))["data"]


def test_ops_50_why_a_request_failed_by_the_id_of_its_answer(failing):
    client = Agent(failing.bed.lab, "client", "client", "h2_agent.py")
    answer = ask(client, "/slow", ["x-request-id", "ticket 17"])
    assert answer["status"] == 504 and ["x-request-id", "ticket 17"] in answer["fields"], answer
    told = why(failing, "ticket 17")
    endpoint = f"{rpc_address(1)}:{RPC_PORT}"
    expected = {"id": "ticket 17", "frontend": "web", "method": "GET", "authority": "web.example", "path": "/slow",
                "virtual_host": "all", "route": "slow", "route_index": 0, "cluster": "rpc", "endpoint": endpoint,
                "cause": "timeout", "flag": "UT", "n_attempts": 1, "n_older": 0}
    assert {key: told[key] for key in expected} == expected, told
    attempt, = told["attempts"]
    assert (attempt["endpoint"], attempt["result"], attempt["grpc_status"]) == (endpoint, "timeout", 4), attempt
    assert SLOW_MS * 0.9 <= attempt["took_ms"] <= told["took_ms"], told
    away = ask(client, "/away")
    made = dict(away["fields"])["x-request-id"]
    told = why(failing, made)
    assert (told["cause"], told["route_index"], told["attempts"]) == ("unsupported_action", 1, []), told
    text = failing.bed.shuntctl("why", made)
    assert "path: /away" in text and "cause: unsupported_action" in text, text
    rows = json.loads(failing.bed.shuntctl("show", "errors", "1", "cause=timeout", "json"))["data"]
    assert [row["id"] for row in rows] == ["ticket 17"], rows
    wait_until(lambda: f'id="{made}"' in failing.bed.daemon.output(), TIMEOUT_S, "the line in the log")
    with pytest.raises(LabError, match="no request 'nobody'"):
        failing.bed.shuntctl("why", "nobody")
    client.process.stop()


def test_ops_54_events_are_told_as_they_come(make_world):
    world = make_world().start()
    bed = world.bed
    before = json.loads(bed.shuntctl("show", "events", "json"))["data"]
    assert {"started", "ready", "endpoint connected"} <= {row["event"] for row in before}, before
    watch = bed.lab.start("lb", "watch", bed.shuntctl_argv("show", "events", "1", "-w"))
    wait_until(lambda: watch.output().count("\n") == 1, TIMEOUT_S, "the event before")
    bed.shuntctl("reconnect", "blue")
    wait_until(lambda: 'reconnect  asked_for="blue"' in watch.output(), TIMEOUT_S, "the operator's action")
    world.backends["rpc-1"].stop()
    wait_until(lambda: f"endpoint unreachable  endpoint={rpc_address(1)}:{RPC_PORT}" in watch.output(), TIMEOUT_S,
               "the endpoint that is lost")
    watch.stop()


def test_ops_56_the_access_log_is_followed(make_world):
    world = make_world()
    bed = world.bed
    bed.settings += f"access_log: {{path: {bed.lab.dir}/access.log, text_format: '%REQ(:PATH)% %UPSTREAM_CLUSTER%'}}\n"
    world.start()
    watch = bed.lab.start("lb", "watch", bed.shuntctl_argv("log", "0", "-f", "cluster=blue"))
    wait_until(watch.alive, TIMEOUT_S, "the reader")
    assert bed.run_h2load(requests=400).perfect

    def lines():
        return bed.shuntctl("log", "1000", "path=/mark").splitlines()
    wait_until(lambda: len(lines()) == 400, TIMEOUT_S, "all requests")
    told = lines()
    n_blue = told.count("/mark blue")
    assert n_blue + told.count("/mark green") == 400 and 0 < n_blue < 400, told[:3]
    bed.run_h2load(requests=400)
    wait_until(lambda: watch.output().count("/mark blue\n") >= 100, TIMEOUT_S, "lines of one cluster")
    assert "green" not in watch.output()
    last, = json.loads(bed.shuntctl("log", "1", "status=200", "json"))["data"]
    assert (last["path"], last["status"], last["frontend"]) == ("/mark", 200, "web"), last
    assert bed.shuntctl("log", "cause=timeout") == ""
    with pytest.raises(LabError, match="unexpected argument 'cause=x'"):
        bed.shuntctl("log", "cause=x")
    watch.stop()
