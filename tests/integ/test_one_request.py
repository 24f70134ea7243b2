# SPDX-License-Identifier: Apache-2.0
"""What operators are told of single requests and of what happens, with the tools that they have."""

import json
import pathlib
import re
import signal
import sys

import pytest

import resources
from agent import Agent
from lab import LabError, wait_until
from resources import route
from testbed import PORT, VIP
from world import RPC_PORT, rpc_address

HERE = pathlib.Path(__file__).resolve().parent
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


def test_ops_276_what_a_backend_answered_can_be_asked_for(make_world, lab):
    """gRPC's status with and without a head before it, by a real server, and HTTP's 500 in HTTP/1.1 and HTTP/2."""
    sick, says = rpc_address(2), lab.dir / "says"
    says.write_text("500")
    world = make_world(extra_routes=[route("/calls/", "rpc"), route("/healthz", "sick")],
                       extra=[resources.cluster("sick"), resources.endpoints("sick", (sick, RPC_PORT))])
    world.bed.add_backend_address(sick)
    backend = lab.start("backends", "sick", [sys.executable, HERE / "health_backend.py", "http", f"{sick}:{RPC_PORT}",
                                             says])
    world.bed.wait_connect("backends", sick, RPC_PORT, backend)
    world.start()
    calls = Agent(lab, "client", "calls", "grpc_agent.py")
    for script, own, http in (("14", "ticket 21", 200), ("13head", "", None)):
        metadata = [["x-script", script], *([["x-request-id", own]] if own else [])]
        answer, = calls.ask(target=f"{VIP}:{PORT}", calls=[
            {"authority": "calls.example", "path": "/calls/any", "metadata": metadata}])
        told = why(world, dict([*answer["initial"], *answer["trailing"]])["x-request-id"])
        assert told["id"] == own or len(told["id"]) == 36 and not own, told
        expected = {"cause": "answered", "flag": "-", "grpc_status": int(script[:2]), "http_status": http,
                    "text": "attempt 0 at rpc-1", "path": "/calls/any", "cluster": "rpc", "n_attempts": 1}
        assert {key: told[key] for key in expected} == expected, told
        assert [row["result"] for row in told["attempts"]] == ["answered"], told
    calls.process.stop()
    client = Agent(lab, "client", "client", "h2_agent.py")
    told = why(world, dict(ask(client, "/healthz")["fields"])["x-request-id"])
    assert (told["http_status"], told["grpc_status"], told["endpoint"]) == (500, None, f"{sick}:{RPC_PORT}"), told
    head = lab.exec("client", ["curl", "-sS", "--http1.1", "--max-time", "20", "-D-", "-o", "/dev/null",
                               f"http://{VIP}:{PORT}/healthz"]).stdout
    assert head.startswith("HTTP/1.1 500 "), head
    assert why(world, re.search(r"^x-request-id: (.*?)\r?$", head, re.M)[1])["http_status"] == 500
    assert "x-request-id" not in dict(ask(client, "/mark")["fields"])
    rows = json.loads(world.bed.shuntctl("show", "errors", "cause=answered", "json"))["data"]
    assert [row["text"] for row in rows] == ["HTTP status 500", "HTTP status 500", "gRPC status 13: attempt 0 at rpc-1",
                                             "gRPC status 14: attempt 0 at rpc-1"], rows
    client.process.stop()


def totals(world, name):
    """Of a metric, by its labels but the frontend."""
    told = world.bed.lab.exec("lb", world.bed.shuntctl_argv("show", "metrics")).stdout
    lines = re.findall(rf'^{name}{{frontend="web"(?:,(.*?))?}} (\d+)$', told, re.M)
    return {labels: int(number) for labels, number in lines if int(number)}


def speak(lab, text):
    """What a client hears that says this on a connection of its own, and reads to its end."""
    path = lab.dir / "says"
    path.write_bytes(text.encode("latin-1"))
    script = ("import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 25)\n"
              "s.sendall(open(sys.argv[3], 'rb').read())\n"
              "while data := s.recv(65536): sys.stdout.buffer.write(data)")
    return lab.exec("client", [sys.executable, "-c", script, VIP, str(PORT), path]).stdout


def test_ops_251_a_request_that_is_refused_before_it_is_one_can_be_asked_for(make_world, lab):
    """By curl, on raw sockets, and in HTTP/2: id, log, metrics and `why` agree on each."""
    world = make_world()
    bed = world.bed
    log = lab.dir / "access.log"
    bed.settings += f"access_log: {{path: {log}}}\n"
    world.start()
    curl = ["curl", "-sS", "--http1.1", "--max-time", "20", "-D-", "-o", "/dev/null", f"http://{VIP}:{PORT}/mark"]
    chunked = "POST /mark HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    heard = [lab.exec("client", [*curl, "-X", "BAD METHOD", "-H", "x-request-id: ticket 18"]).stdout,
             lab.exec("client", [*curl, "-H", "x-big: " + "a" * 70000]).stdout,
             speak(lab, "GET /mark HTTP/1.1\r\nX-Request-Id: ticket 19\r\nHost:"),
             speak(lab, "GET /mark HTTP/9.9\r\nHost: a\r\n\r\n"),
             speak(lab, f"GET /{'a' * 70000}"),
             speak(lab, "CONNECT b:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
             speak(lab, chunked + "x\r\n"),
             speak(lab, "\x01\x02\r\n\r\n")]
    statuses = [int(re.match(r"HTTP/1\.1 (\d+) ", answer)[1]) for answer in heard]
    ids = [re.search(r"^x-request-id: (.*?)\r?$", answer, re.M)[1] for answer in heard]
    assert statuses == [400, 431, 408, 505, 414, 501, 400, 400], heard
    assert ids[0] == "ticket 18" and ids[2] == "ticket 19", ids
    client = Agent(lab, "client", "client", "h2_agent.py")
    assert ask(client, "/mark", ["te", "gzip"], ["x-request-id", "ticket 20"])["reset"]
    client.process.stop()
    ids.append("ticket 20")
    statuses.append(0)
    told = [why(world, request) for request in ids]
    assert {(row["cause"], row["flag"], row["frontend"]) for row in told} == {("client_protocol", "DPE", "web")}, told
    asked = [(row["method"], row["path"][:5]) for row in told]
    assert asked == [("BAD", "METHO"), ("GET", "/mark"), ("GET", "/mark"), ("GET", "/mark"), ("GET", "/aaaa"),
                     ("CONNECT", ""), ("POST", "/mark"), ("", ""), ("GET", "/mark")], told
    assert all(row["text"] for row in told) and "malformed request line" in told[0]["text"], told
    wait_until(lambda: log.read_text().count("\n") == len(ids), TIMEOUT_S, "the lines of the log")
    lines = {line["request_id"]: line for line in map(json.loads, log.read_text().splitlines())}
    assert [(lines[request]["status"] or 0, lines[request]["cause"]) for request in ids] == [
        (status, "client_protocol") for status in statuses], lines
    assert lines[ids[7]]["method"] is None and lines[ids[7]]["path"] is None, lines[ids[7]]
    n = len(ids)
    assert totals(world, "shunt_frontend_requests_total") == {"": n}
    assert totals(world, "shunt_frontend_requests_ended_total") == {'cause="client_protocol"': n}
    assert sum(totals(world, "shunt_frontend_answers_total").values()) == n
    assert len(json.loads(bed.shuntctl("show", "errors", "json"))["data"]) == n


def test_ops_252_who_goes_before_its_head_is_whole_has_asked_nothing(make_world, lab):
    world = make_world().start()
    for text in ("", "GET /ma", "GET /mark HTTP/1.1\r\nHost: a\r\n"):
        lab.exec("client", [sys.executable, "-c", "import socket, sys\nwith socket.create_connection((sys.argv[1], "
                            "int(sys.argv[2])), 10) as s: s.sendall(sys.argv[3].encode())", VIP, str(PORT), text])
    wait_until(lambda: not world.bed.show_workers()[0]["proxy"]["clients"], TIMEOUT_S, "their ends")
    assert totals(world, "shunt_frontend_requests_total") == {}
    assert json.loads(world.bed.shuntctl("show", "errors", "json"))["data"] == []


def test_ops_54_events_are_told_as_they_come(make_world):
    world = make_world().start()
    bed = world.bed
    before = json.loads(bed.shuntctl("show", "events", "json"))["data"]
    assert {"started", "ready", "endpoint connected"} <= {row["event"] for row in before}, before
    watch = bed.lab.start("lb", "watch", bed.shuntctl_argv("show", "events", "1", "-w"))
    wait_until(lambda: watch.output().count("\n") >= 1, TIMEOUT_S, "the event before")
    bed.shuntctl("reconnect", "blue")
    wait_until(lambda: 'reconnect  asked_for="blue"' in watch.output(), TIMEOUT_S, "the operator's action")
    world.backends["rpc-1"].stop()
    wait_until(lambda: f"endpoint unreachable  endpoint={rpc_address(1)}:{RPC_PORT}" in watch.output(), TIMEOUT_S,
               "the endpoint that is lost")
    watch.stop()


def test_ops_274_a_clusters_outage_is_an_event_with_what_its_requests_hear(make_world):
    world = make_world().start()

    def told():
        return [row for row in json.loads(world.bed.shuntctl("show", "events", "json"))["data"]
                if row["event"].startswith("cluster ")]
    world.bed.run_calls("unary", count=1)
    assert not told()
    world.backends["rpc-1"].stop()
    wait_until(told, TIMEOUT_S, "the outage")
    outage, = told()
    assert outage["event"] == "cluster fails" and outage["level"] == "warn", outage
    assert 'cluster="rpc" cause="' in outage["details"] and rpc_address(1) in outage["details"], outage
    world.backends["rpc-1"] = world.bed.start_grpc_backend("rpc-1-again", rpc_address(1), RPC_PORT)
    wait_until(lambda: len(told()) == 2, 3 * TIMEOUT_S, "its end")
    assert (told()[1]["event"], told()[1]["details"]) == ("cluster serves again", 'cluster="rpc"'), told()


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
    with pytest.raises(LabError, match="no cause 'x', there are"):
        bed.shuntctl("log", "cause=x")
    watch.stop()
