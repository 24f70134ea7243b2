# SPDX-License-Identifier: Apache-2.0
"""Timeouts, retries, faults and session cookies, end to end: a real gRPC client and an HTTP/2 one,
scripted backends."""

import base64
import json
import sys

import pytest

import resources
from agent import Agent
from http_cases import Http, fields_of
from lab import wait_until
from listener_table import SESSION_PER_ROUTE, session_filter
from policy_cases import DELAY, FAULTS, faults, fixed_delay, grpc_abort, limits, percent, retry
from resources import Folder, cluster, endpoints, route, route_config, virtual_host
from testbed import EXIT_TIMEOUT_S, HERE, PORT, VIP, Testbed

ALPHA, BETA, PAIR, WEB, OTHER = "alpha", "beta", "pair", "web", "other"
RPC = {ALPHA: "10.82.1.1", BETA: "10.82.1.2"}
RPC_PORT, WEB_PORT = 9090, 8081
WEB_ADDRESSES = ["10.82.2.1", "10.82.2.2", "10.82.2.3"]
OTHER_ADDRESS = "10.82.2.9"
COOKIE = "sid"
LISTENER_MAX_S = 1.5
# How late is the machine's: what is not ended in time ends otherwise.
EARLY_S, LATE_S = 0.05, 10
SOON_S = 0.4  # less than any delay here
PATIENCE_S = 20


def with_override(made, name, config):
    made["typed_per_filter_config"] = {name: config}
    return made


def routes():
    def action(target=ALPHA, **more):
        return {"cluster": target, **more}
    header_delay = {"delay": {"header_delay": {}, "percentage": percent(100)}}
    return [
        route("/shunt.test.Echo/", action(PAIR, **limits(max_stream_duration="1s"))),
        route("/limited.T/", action(**limits(max_stream_duration="1s"))),
        route("/unlimited.T/", action(**limits(max_stream_duration="0s"))),
        route("/plain.T/", ALPHA),
        route("/capped.T/", action(**limits(grpc_timeout_header_max="1s"))),
        route("/retried.T/", action(PAIR, retry_policy=retry("unavailable", 3))),
        with_override(route("/abort.T/", ALPHA), "fault", faults(grpc_abort(7))["fault"]),
        with_override(route("/delay.T/", ALPHA), "fault", faults(fixed_delay("0.5s"))["fault"]),
        with_override(route("/asked.T/", ALPHA), "fault", faults(header_delay)["fault"]),
        route("/web/weighted", {WEB: 1, OTHER: 3}),
        with_override(route("/web/off", WEB), "session", {"@type": SESSION_PER_ROUTE,
                                                          "disabled": True}),
        route("/", WEB),
    ]


def listener():
    made = resources.listener("web", "policies")
    manager = made["api_listener"]["api_listener"]
    session = session_filter(path="/web", ttl="60s")
    session["typed_config"]["session_state"]["typed_config"]["cookie"]["name"] = COOKIE
    manager["http_filters"] = [FAULTS, session, *manager["http_filters"]]
    manager["common_http_protocol_options"] = {"max_stream_duration": f"{LISTENER_MAX_S}s"}
    return made


class World:
    def __init__(self, lab):
        self.bed = bed = Testbed(lab)
        lab.ip("backends", "route", "add", "local", "10.82.2.0/24", "dev", "lo")
        for name, ip in RPC.items():
            bed.add_backend_address(ip)
            bed.start_grpc_backend(name, ip, RPC_PORT)
        lab.start("backends", "peers", [sys.executable, HERE / "h2_peer.py", "serve", WEB_PORT])
        self.folder = Folder(bed.xds_folder)
        members = {ALPHA: [(RPC[ALPHA], RPC_PORT)], PAIR: [(ip, RPC_PORT) for ip in RPC.values()],
                   WEB: [(ip, WEB_PORT) for ip in WEB_ADDRESSES],
                   OTHER: [(OTHER_ADDRESS, WEB_PORT)]}
        self.folder.set(listener(), route_config("policies", virtual_host("all", ["*"], *routes())),
                        *(made for name, addresses in members.items()
                          for made in (cluster(name), endpoints(name, *addresses))))
        for ip in RPC.values():
            bed.wait_connect("backends", ip, RPC_PORT)
        bed.wait_connect("backends", OTHER_ADDRESS, WEB_PORT)
        bed.start_xds()
        bed.start_daemon()
        self.grpc = Agent(lab, "client", "grpc", "grpc_agent.py")
        self.web = Agent(lab, "client", "web", "h2_agent.py")

    def call(self, path, *metadata, count=1, parallel=None, **more):
        """The outcomes of equal calls, made at once if not told otherwise."""
        call = {"authority": "any.test", "path": path, "metadata": metadata, "timeout": 10, **more}
        return self.grpc.ask(target=f"{VIP}:{PORT}", calls=[call] * count,
                             parallel=parallel or count)

    def requests(self, path, fields, count=1):
        request = Http("get", path, fields, "any.test")
        return self.web.ask(ip=VIP, port=PORT, requests=[{"fields": fields_of(request)}] * count)

    def get(self, path, *cookies, count=1):
        """[(address that answered, value of the session cookie that was set or None)]"""
        answers = self.requests(path, [["cookie", c] for c in cookies], count)
        return [(dict(a["fields"]).get("x-address"), cookie_of(a["fields"])) for a in answers]


def cookie_of(fields):
    """(value, attributes) of the session cookie that an answer sets."""
    for name, value in fields:
        if name == "set-cookie" and value.startswith(COOKIE + "="):
            first, *attributes = value.split("; ")
            return first.split("=", 1)[1], sorted(attributes)
    return None


def ends_in(answer, seconds):
    return seconds - EARLY_S <= answer["seconds"] <= seconds + LATE_S


@pytest.fixture(name="policies", scope="module")
def fixture_policies(module_lab):
    world = World(module_lab)
    yield world
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def test_stream_ends_at_its_deadline_with_whole_messages(policies):
    """A31-T01, A31-T08: DEADLINE_EXCEEDED comes after whole messages, as trailers."""
    body = json.dumps({"chunks": 100, "bytes": 50, "pause_s": 0.1})
    (long,) = policies.call("/shunt.test.Echo/Expand", body=body, stream=True)
    assert long["code"] == "DEADLINE_EXCEEDED" and 1 <= long["messages"] <= 11, long
    assert ends_in(long, 1), long


@pytest.mark.parametrize("path,client_s,ends_s", (
    ("/limited.T/M", 0, 1), ("/limited.T/M", 0.4, 0.4), ("/plain.T/M", 0, LISTENER_MAX_S),
    ("/capped.T/M", 0, 1), ("/capped.T/M", 9, 1)))
def test_limits_end_calls(policies, path, client_s, ends_s):
    """A31-T01, A31-T03, A31-T04, A31-T05."""
    (answer,) = policies.call(path, ["x-script", "0wait3000"], timeout=client_s)
    assert answer["code"] == "DEADLINE_EXCEEDED" and ends_in(answer, ends_s), answer


def test_limit_of_0_switches_off_the_listeners(policies):
    """A31-T02."""
    (answer,) = policies.call("/unlimited.T/M", ["x-script", "0wait2000"], timeout=0)
    assert answer["code"] == "OK" and ends_in(answer, 2), answer


@pytest.mark.parametrize("path,client_s,most_ms", (
    ("/capped.T/M", 9, 1000), ("/limited.T/M", 0, 1000), ("/limited.T/M", 0.6, 600),
    ("/plain.T/M", 0, 1500)))
def test_backend_sees_the_time_that_is_left(policies, path, client_s, most_ms):
    """A31-T09: never more, and hardly less where nobody else takes the machine's time."""
    def nearly_all():
        (answer,) = policies.call(path, ["x-script", "0wait1"], ["x-want-deadline", "1"], timeout=client_s)
        seen = int(dict(answer["trailing"]).get("x-deadline-ms", 0))
        assert seen <= most_ms, answer
        return seen >= most_ms - 300
    wait_until(nearly_all, PATIENCE_S, f"{most_ms} ms at the backend")


def test_retry_succeeds_at_the_other_backend(policies):
    """RT-07, RT-08, RT-09."""
    answers = policies.call("/retried.T/M", ["x-script-alpha", "14"], ["x-script-beta", "0wait1"],
                            count=20, parallel=1)
    assert {(a["code"], a["backend"]) for a in answers} == {("OK", BETA)}, answers
    attempts = {dict(a["trailing"])["x-attempt"] for a in answers}
    assert "1" in attempts and attempts <= {"0", "1"}, answers


def test_retries_come_to_an_end(policies):
    """RT-03: the fourth attempt's status is the call's."""
    (answer,) = policies.call("/retried.T/M", ["x-script", "14"])
    assert answer["code"] == "UNAVAILABLE", answer
    assert dict(answer["trailing"])["x-attempt"] == "3", answer
    assert answer["details"].startswith("attempt 3"), answer


REFUSED_STREAM, INTERNAL_ERROR, NO_ERROR = 7, 2, 0


@pytest.mark.parametrize("code,resets,delivered,status", (
    (REFUSED_STREAM, 1, 2, "200"), (REFUSED_STREAM, 7, 8, "200"), (REFUSED_STREAM, 9, 8, "503"),
    (INTERNAL_ERROR, 9, 1, "503"), (NO_ERROR, 9, 1, "503")))
def test_only_what_was_refused_is_sent_again(policies, code, resets, delivered, status):
    """RT-06, RT-11, D12: eight times in all, and nothing that an application may have seen."""
    wish = [["x-id", f"{code}-{resets}"], ["x-resets", f"{code} {resets}"]]
    (answer,) = policies.requests("/other", wish)
    assert dict(answer["fields"])[":status"] == status, answer
    (later,) = policies.requests("/other", [wish[0]])
    assert int(dict(later["fields"])["x-seen"]) == delivered, later


def check_not_delayed(policies, path, code):
    """A busy machine delays some calls, a fault each of them."""
    def ends_soon():
        (answer,) = policies.call(path)
        assert answer["code"] == code, answer
        return answer["seconds"] < SOON_S
    wait_until(ends_soon, PATIENCE_S, f"a call of {path} without a delay")


def test_faults_abort_and_delay(policies):
    """FI-01, FI-02, FI-05."""
    check_not_delayed(policies, "/abort.T/M", "PERMISSION_DENIED")
    late = policies.call("/delay.T/M", count=8)
    assert all(a["code"] == "OK" and ends_in(a, 0.5) for a in late), late
    (asked,) = policies.call("/asked.T/M", [DELAY, "700"])
    assert asked["code"] == "OK" and ends_in(asked, 0.7), asked
    check_not_delayed(policies, "/asked.T/M", "OK")


def test_delay_counts_towards_the_deadline(policies):
    """A31-T07: delayed by 0.7 s, and cut by its own deadline before."""
    (answer,) = policies.call("/asked.T/M", [DELAY, "700"], timeout=0.3)
    assert answer["code"] == "DEADLINE_EXCEEDED" and ends_in(answer, 0.3), answer


def pinned(value):
    """addr[,addr…] and cluster of a cookie's value."""
    addresses, _, name = base64.b64decode(value, validate=True).decode().partition(";")
    return addresses.split(","), name


def test_session_cookie_names_the_backend(policies):
    """SA-06, SA-17."""
    ((address, (value, attributes)),) = policies.get("/web/a")
    assert pinned(value) == ([f"{address}:{WEB_PORT}"], WEB)
    assert attributes == ["HttpOnly", "Max-Age=60", "Path=/web"]


def test_session_cookie_pins(policies):
    """SA-11, SA-16: the same backend, no further cookie; others spread."""
    ((address, (value, _)),) = policies.get("/web/a")
    again = policies.get("/web/a", f"{COOKIE}={value}", count=30)
    assert set(again) == {(address, None)}, again
    split = policies.get("/web/a", "a=b", f'{COOKIE}="{value}"; c=d', count=10)
    assert set(split) == {(address, None)}, split
    others = {found for found, _ in policies.get("/web/a", count=30)}
    assert others == set(WEB_ADDRESSES)


@pytest.mark.parametrize("path", ("/webbing", "/other", "/web/off"))
def test_no_session_elsewhere(policies, path):
    """SA-03, SA-04, SA-19: neither read nor set."""
    ((_, (value, _)),) = policies.get("/web/a")
    answers = policies.get(path, f"{COOKIE}={value}", count=30)
    assert {found for found, _ in answers} == set(WEB_ADDRESSES)
    assert {cookie for _, cookie in answers} == {None}


@pytest.mark.parametrize("value", ("", "!", "MTAu", "bm9ib2R5", "MTAuODIuMi43OjgwODE7d2Vi"))
def test_useless_cookie_is_replaced(policies, value):
    """SA-09, SA-11: no base64, no address, an address that nobody has."""
    ((address, cookie),) = policies.get("/web/a", f"{COOKIE}={value}")
    assert cookie and pinned(cookie[0]) == ([f"{address}:{WEB_PORT}"], WEB)


def test_cookie_beats_the_draw_of_a_cluster(policies):
    """SA-10: the cookie's cluster is one of the route's."""
    drawn = policies.get("/web/weighted", count=60)
    assert {OTHER_ADDRESS} < {found for found, _ in drawn}
    by_cluster = {pinned(cookie[0])[1]: (found, cookie[0]) for found, cookie in drawn}
    assert set(by_cluster) == {WEB, OTHER}
    for address, value in by_cluster.values():
        again = policies.get("/web/weighted", f"{COOKIE}={value}", count=20)
        assert set(again) == {(address, None)}, again


def test_session_moves_when_its_backend_leaves(policies):
    """SA-11, SA-13: a draining backend keeps its sessions and gets no new ones; a removed one is
    replaced, and the new cookie says so."""
    ((address, (value, _)),) = policies.get("/web/a")
    kept = [(ip, WEB_PORT) for ip in WEB_ADDRESSES if ip != address]
    made = endpoints(WEB, (address, WEB_PORT), *kept)
    made["endpoints"][0]["lb_endpoints"][0]["health_status"] = "DRAINING"
    draining = cluster(WEB)
    draining["common_lb_config"] = {"override_host_status": {"statuses": [
        "UNKNOWN", "HEALTHY", "DRAINING"]}}
    policies.folder.put(draining, made)
    wait_until(lambda: address not in {found for found, _ in policies.get("/web/a", count=20)}, PATIENCE_S,
               "no new sessions at the draining backend")
    assert set(policies.get("/web/a", f"{COOKIE}={value}", count=10)) == {(address, None)}
    policies.folder.put(endpoints(WEB, *kept))
    wait_until(lambda: policies.get("/web/a", f"{COOKIE}={value}")[0][0] != address, PATIENCE_S,
               "another backend")
    ((elsewhere, cookie),) = policies.get("/web/a", f"{COOKIE}={value}")
    assert elsewhere != address and pinned(cookie[0]) == ([f"{elsewhere}:{WEB_PORT}"], WEB)
    policies.folder.put(cluster(WEB), endpoints(WEB, *((ip, WEB_PORT) for ip in WEB_ADDRESSES)))
