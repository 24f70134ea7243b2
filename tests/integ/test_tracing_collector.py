# SPDX-License-Identifier: Apache-2.0
"""Traces in OpenTelemetry's own collector, which prints what came. It is large to build, hence run by tools/test mesh
alone."""

import re

import pytest

import resources
from agent import Agent
from go_build import go_build
from lab import wait_until
from policy_cases import retry
from test_tracing import COLLECTOR, HEADERS, SPAN, TAKES_S, TRACE
from testbed import PORT, ROOT, VIP
from world import RPC_PORT, rpc_address

PROGRAM = ROOT / "build-go" / "otelcol"
BUILD_S = 900  # once
CONFIG = f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{COLLECTOR}'}}}}}}}}
exporters: {{debug: {{verbosity: detailed, use_internal_logger: false}}}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}
"""


@pytest.fixture(name="program", scope="module")
def fixture_program():
    return go_build("otelcol", ".", PROGRAM, timeout=BUILD_S, min_go=(1, 26))


def pairs_of(text):
    """The lines `-> key: Str(value)` and `Key : value` of a block."""
    found = {m[1]: m[3] for m in re.finditer(r"-> (\S+): (\w+)\((.*)\)", text)}
    return {**found, **{m[1].strip(): m[2].strip() for m in re.finditer(r"^ {4}(\w[\w ]*?) *: (.*)$", text, re.M)}}


def spans_in(text):
    """What the collector printed, each span with its resource's attributes."""
    spans = []
    for of_resource in re.split(r"^ResourceSpans #", text, flags=re.M)[1:]:
        head, *blocks = re.split(r"^Span #", of_resource, flags=re.M)
        spans += [{"resource": pairs_of(head), **pairs_of(block)} for block in blocks]
    return spans


class Traced:
    """The standard world, whose traces go to a collector that can be restarted."""

    def __init__(self, world, program):
        self.bed, self.program = world.bed, program
        self.config = self.bed.lab.dir / "otelcol.yaml"
        self.config.write_text(CONFIG)
        self.bed.settings += (f"tracing: {{collector: '{COLLECTOR}', service_name: edge, sample_per_million: 1000000, "
                              "upstream_spans: true}\n")
        self.starts = 0
        self.start()
        self.client = Agent(self.bed.lab, "client", "caller", "otlp_agent.py")
        world.start()

    def start(self):
        self.starts += 1
        self.process = self.bed.lab.start("lb", f"otelcol{self.starts}",
                                          [self.program, "--config", f"file:{self.config}"])
        self.bed.wait_connect("lb", *COLLECTOR.split(":"), self.process)

    def call(self, *metadata, path=HEADERS, calls=1):
        return self.client.ask(target=f"{VIP}:{PORT}", path=path, metadata=metadata, calls=calls)["code"]

    def spans(self, number):
        def look():
            found = spans_in(self.process.output())
            return found if len(found) >= number else None
        found = wait_until(look, TAKES_S, f"{number} spans")
        assert len(found) == number, found
        return found


@pytest.mark.timeout(BUILD_S + 120)
def test_ops_165_opentelemetrys_collector_hears_of_requests_and_attempts(make_world, program):
    """OPS-166, OPS-168: and goes on to when it was away."""
    route = resources.route("/tried.", {"cluster": "rpc", "retry_policy": retry("unavailable", 2)})
    world = Traced(make_world(extra_routes=[route]), program)
    assert world.call(("traceparent", f"00-{TRACE}-{SPAN}-01")) == 0
    server, attempt = sorted(world.spans(2), key=lambda span: span["Kind"], reverse=True)
    assert (server["Trace ID"], server["Parent ID"], server["Kind"]) == (TRACE, SPAN, "Server"), server
    assert (attempt["Trace ID"], attempt["Parent ID"], attempt["Kind"]) == (TRACE, server["ID"], "Client"), attempt
    assert server["resource"]["service.name"] == "edge" and server["Name"] == HEADERS[1:], server
    assert server["Status code"] == "Unset", server
    want = {"http.request.method": "POST", "url.path": HEADERS, "rpc.system": "grpc", "rpc.service": "shunt.test.Echo",
            "rpc.grpc.status_code": "0", "http.response.status_code": "200", "shunt.cluster": "rpc",
            "shunt.endpoint": f"{rpc_address(1)}:{RPC_PORT}"}
    assert {key: server.get(key) for key in want} == want, server
    # Away, and there again: what was told meanwhile comes, and so does what follows.
    world.process.stop()
    assert world.call(("x-script", "14,0"), path="/tried.T/M") == 0
    wait_until(lambda: "traces not sent" in world.bed.daemon.output(), TAKES_S, "a word in the log")
    world.start()
    spans = world.spans(3)
    (server,) = [span for span in spans if span["Kind"] == "Server"]
    attempts = [span for span in spans if span["Kind"] == "Client"]
    assert server["Parent ID"] == "" and {a["Parent ID"] for a in attempts} == {server["ID"]}, spans
    assert sorted((a["rpc.grpc.status_code"], a["Status code"]) for a in attempts) == [("0", "Unset"), ("14", "Error")]
    assert world.call(calls=20) == 0
    assert len({span["Trace ID"] for span in world.spans(3 + 40)}) == 21
    assert "traces sent again" in world.bed.daemon.output()
