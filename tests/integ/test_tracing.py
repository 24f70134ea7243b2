# SPDX-License-Identifier: Apache-2.0
"""Traces: what a collector hears of requests, and what their backends are told."""

import pytest

import resources
from agent import Agent
from lab import wait_until
from policy_cases import retry
from resources import TYPES
from testbed import PORT, VIP
from world import ROUTES, RPC_PATH, RPC_PORT, rpc_address

COLLECTOR = "127.0.0.1:4317"
HEADERS = RPC_PATH + "Headers"
TAKES_S = 20
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
UNAVAILABLE = 14


class Traced:
    """The standard world with a collector beside the daemon, and a client that sees what backends see."""

    def __init__(self, world, **options):
        self.world, self.bed = world, world.bed
        chosen = ", ".join(f"{k}: {v}" for k, v in options.items())
        self.bed.settings += f"tracing: {{collector: '{COLLECTOR}', service_name: edge, {chosen}}}\n"
        self.collector = Agent(self.bed.lab, "lb", "collector", "otlp_agent.py", COLLECTOR)
        self.client = Agent(self.bed.lab, "client", "caller", "otlp_agent.py")
        world.start()

    def call(self, *metadata, path=HEADERS, calls=1):
        answer = self.client.ask(target=f"{VIP}:{PORT}", path=path, metadata=metadata, calls=calls)
        seen = {}
        for name, value in answer["metadata"]:
            seen.setdefault(name, []).append(value)
        return answer["code"], seen

    def more_spans(self, than):
        """All so far, which are more than these."""
        def look():
            found = self.collector.ask(op="spans")["spans"]
            return found if len(found) > than else None
        return wait_until(look, TAKES_S, f"more than {than} spans")

    def spans(self, number):
        found = self.more_spans(number - 1)
        assert len(found) == number, found
        return found


@pytest.fixture(name="traced")
def fixture_traced(make_world):
    started = []

    def make(extra_routes=(), **options):
        started.append(Traced(make_world(extra_routes=extra_routes), **options))
        return started[-1]
    yield make
    for one in started:
        one.client.process.stop()
        one.collector.process.stop()


def parts_of(seen):
    (parent,) = seen["traceparent"]
    version, trace, span, flags = parent.split("-")
    assert (version, flags) == ("00", "01"), parent
    return trace, span


def test_ops_165_a_collector_hears_of_requests_and_backends_of_their_spans(traced):
    """OPS-160, OPS-162: a trace that came goes on, one that did not begins; the client's forms are kept."""
    world = traced(sample_per_million=1000000)
    code, seen = world.call(("traceparent", f"00-{TRACE}-{SPAN}-01"), ("tracestate", "a=1"))
    trace, span = parts_of(seen)
    assert code == 0 and trace == TRACE and span != SPAN and seen["tracestate"] == ["a=1"], seen
    (told,) = world.spans(1)
    assert (told["trace"], told["id"], told["parent"]) == (TRACE, span, SPAN), told
    assert told["name"] == HEADERS[1:] and told["kind"] == "SPAN_KIND_SERVER" and not told["error"], told
    assert told["resource"]["service.name"] == "edge", told
    want = {"http.request.method": "POST", "url.path": HEADERS, "url.scheme": "http", "rpc.system": "grpc",
            "rpc.service": "shunt.test.Echo", "rpc.method": "Headers", "rpc.grpc.status_code": 0,
            "http.response.status_code": 200, "network.protocol.version": "2", "network.peer.address": "10.81.0.1",
            "shunt.cluster": "rpc", "shunt.cause": "ok", "shunt.frontend": "web",
            "shunt.endpoint": f"{rpc_address(1)}:{RPC_PORT}"}
    assert {k: told.get(k) for k in want} == want, told
    assert 0 <= told["ended_ns"] - told["began_ns"] < 20e9
    _, seen = world.call(("x-b3-traceid", TRACE), ("x-b3-spanid", SPAN), ("x-b3-sampled", "1"))
    trace, span = parts_of(seen)
    assert (seen["x-b3-traceid"], seen["x-b3-spanid"], seen["x-b3-sampled"]) == ([TRACE], [span], ["1"]), seen
    assert trace == TRACE
    _, seen = world.call(("b3", f"{TRACE}-{SPAN}-1"))
    trace, span = parts_of(seen)
    assert seen["b3"] == [f"{TRACE}-{span}-1"], seen
    _, seen = world.call()
    trace, span = parts_of(seen)
    told = world.spans(4)[-1]
    assert trace != TRACE and (told["trace"], told["id"], told["parent"]) == (trace, span, ""), told


def test_ops_166_each_attempt_is_a_span(traced):
    route = resources.route("/tried.", {"cluster": "rpc", "retry_policy": retry("unavailable", 2)})
    world = traced([route], sample_per_million=1000000, upstream_spans="true")
    code, _ = world.call(("x-script", "14,14,0"), path="/tried.T/M")
    assert code == 0
    server, *attempts = world.spans(4)
    assert all(a["parent"] == server["id"] and a["kind"] == "SPAN_KIND_CLIENT" for a in attempts), attempts
    assert [a["rpc.grpc.status_code"] for a in attempts] == [14, 14, 0]
    assert [a["error"] for a in attempts] == [True, True, False] and server["shunt.attempts"] == 3
    assert [a.get("http.request.resend_count") for a in attempts] == [None, 1, 2]
    assert server["began_ns"] <= attempts[0]["began_ns"] <= attempts[0]["ended_ns"] <= attempts[1]["began_ns"]
    assert attempts[2]["ended_ns"] <= server["ended_ns"]
    _, seen = world.call()
    assert parts_of(seen)[1] == world.spans(6)[5]["id"]  # the attempt's, not the request's


def test_ops_168_a_collector_that_is_away_loses_no_span(traced):
    world = traced(sample_per_million=1000000)
    world.collector.ask(op="answer", code=UNAVAILABLE)
    assert world.call(calls=50)[0] == 0
    wait_until(lambda: world.collector.ask(op="spans")["tries"] >= 2, TAKES_S, "another try")
    assert "traces not sent" in world.bed.daemon.output()
    world.collector.ask(op="answer", code=0)
    assert len({span["trace"] for span in world.spans(50)}) == 50
    wait_until(lambda: "traces sent again" in world.bed.daemon.output(), TAKES_S, "a word in the log")


def test_ops_164_who_is_not_traced_passes_as_it_came_until_a_listener_says_otherwise(traced):
    """OPS-161, OPS-163."""
    world = traced(sample_per_million=0, xds="true")
    _, seen = world.call(("traceparent", f"00-{TRACE}-{SPAN}-00"), ("b3", "0"))
    assert seen["traceparent"] == [f"00-{TRACE}-{SPAN}-00"] and seen["b3"] == ["0"], seen
    assert "traceparent" not in world.call()[1]
    _, seen = world.call(("traceparent", f"00-{TRACE}-{SPAN}-01"))
    assert parts_of(seen)[0] == TRACE
    assert [span["parent"] for span in world.spans(1)] == [SPAN]
    listener = resources.listener("web", ROUTES)
    listener["api_listener"]["api_listener"]["tracing"] = {
        "spawn_upstream_span": True, "max_path_tag_length": 4,
        "provider": {"name": "envoy.tracers.opentelemetry",
                     "typed_config": {"@type": TYPES + "config.trace.v3.OpenTelemetryConfig", "service_name": "x"}}}
    world.world.folder.set(*world.world._clusters(), world.world.routes(100, 0), listener)
    wait_until(lambda: "traceparent" in world.call()[1], TAKES_S, "traces")
    server, client = world.more_spans(2)[1:3]
    assert client["parent"] == server["id"] and server["url.path"] == HEADERS[:4], server


def test_ops_220_spans_have_the_tags_that_a_listener_asks_for(traced):
    world = traced(sample_per_million=1000000, xds="true")
    listener = resources.listener("web", ROUTES)
    listener["api_listener"]["api_listener"]["tracing"] = {"spawn_upstream_span": True, "custom_tags": [
        {"tag": "zone", "literal": {"value": "a"}},
        {"tag": "home", "environment": {"name": "SHUNT_TEST_NONE", "default_value": "here"}},
        {"tag": "tenant", "request_header": {"name": "X-Tenant", "default_value": "nobody"}},
        {"tag": "meta", "metadata": {"kind": {"request": {}}, "default_value": "none"}}]}
    world.world.folder.set(*world.world._clusters(), world.world.routes(100, 0), listener)
    wait_until(lambda: "custom_tags: meta: metadata is not kept" in world.bed.daemon.output(), TAKES_S, "a warning")

    def told(tenant):
        return [span for span in world.collector.ask(op="spans")["spans"] if span.get("tenant") == tenant]
    wait_until(lambda: world.call()[0] == 0 and len(told("nobody")) >= 2, TAKES_S, "tags")
    assert world.call(("x-tenant", "blue"))[0] == 0
    spans = wait_until(lambda: len(told("blue")) == 2 and told("blue"), TAKES_S, "a request's own")
    assert {span["kind"] for span in spans} == {"SPAN_KIND_SERVER", "SPAN_KIND_CLIENT"}
    assert all((span["zone"], span["home"], span["meta"]) == ("a", "here", "none") for span in spans), spans
