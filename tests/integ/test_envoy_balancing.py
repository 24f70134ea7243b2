# SPDX-License-Identifier: Apache-2.0
"""Retry budgets and active health checks, which gRPC's clients lack, beside Envoy: the same resources, backends and
faults, and what becomes of requests through both."""

import collections
import sys

import pytest

import envoy_proxy
import resources
from agent import Agent
from differential import add_oracle
from lab import wait_until
from lab_fixtures import check_end
from test_health_checks import HERE, LIMIT_S, PORT, HealthWorld, check
from testbed import PORT as FRONTEND_PORT
from testbed import VIP, Testbed

OURS, THEIRS = "10.82.255.254", "10.83.0.1"  # as backends see them
# Envoy tells its load balancer of changes within a second of the last one at that second's end, unless it may not wait.
AT_ONCE = {"update_merge_window": "0s"}
NEVER = {"healthy_panic_threshold": {"value": 0}}
TIMEOUT_S = 20
N = 60  # calls at a time
TOLERANCE = 2  # retries: the places that a worker keeps (CB-07), and Envoy's backoff of 0 to the base


class Pair:
    """Envoy and shuntd, asked the same at the same time."""

    def __init__(self, bed):
        self.agents = [Agent(bed.lab, ns, ns, "h2_agent.py") for ns in ("oracle", "client")]

    def ask(self, requests):
        """(Envoy's answers, ours). Each request says which way it goes."""
        where = ((THEIRS, envoy_proxy.ADDRESS, envoy_proxy.PORT), (OURS, VIP, FRONTEND_PORT))
        for agent, (who, ip, port) in zip(self.agents, where):
            signed = [{**request, "fields": [*request["fields"], ["x-who", who]]} for request in requests]
            agent.begin(ip=ip, port=port, requests=signed, timeout=TIMEOUT_S)
        return [agent.answer() for agent in self.agents]

    def stop(self):
        for agent in self.agents:
            agent.process.stop()


def start_envoy(bed, routes, *clusters):
    """clusters: (resource, [(ip, port)]); all but where endpoints come from is as in the resource."""
    config = envoy_proxy.configuration(routes, {}, [])
    for made, endpoints in clusters:
        more = {key: made[key] for key in ("health_checks", "circuit_breakers", "common_lb_config") if key in made}
        config["static_resources"]["clusters"].append({**envoy_proxy.cluster(made["name"], endpoints), **more})
    return envoy_proxy.start(bed, "oracle", config)


def call(path, name):
    fields = [[":method", "POST"], [":scheme", "http"], [":path", path], [":authority", "a.example"],
              ["content-type", "application/grpc"], ["te", "trailers"], ["x-id", name]]
    return {"fields": fields, "body": "\0\0\0\0\0"}


def status_of(answer):
    """gRPC's status, or else HTTP's."""
    return dict(answer["fields"] + answer["trailers"]).get("grpc-status", f"http {answer['status']}")


# What a threshold says, and how many of 60 calls that fail together are sent again: with k of them waiting for that
# 60 - k are in flight, and the limit is a share of these.
BUDGETS = {
    "share": ({"retry_budget": {"budget_percent": {"value": 20}, "min_retry_concurrency": 3}}, 10),
    "half": ({"retry_budget": {"budget_percent": {"value": 50}, "min_retry_concurrency": 3}}, 20),
    "least": ({"retry_budget": {"budget_percent": {"value": 10}, "min_retry_concurrency": 12}}, 12),
    "default": ({"retry_budget": {}}, 10),
    "number": ({"max_retries": 5}, 5),
    "none": ({"max_retries": 0}, 0),
}


def test_cb_08_as_many_retries_are_let_through_as_envoy_lets(lab):
    bed = Testbed(lab, workers=(1,))
    add_oracle(bed)
    ip = "10.82.1.1"
    bed.add_backend_address(ip)
    backend = bed.lab.start("backends", "backend", [sys.executable, HERE / "retry_backend.py", f"{ip}:{PORT}", N])
    wait_until(lambda: "listens" in backend.output(), LIMIT_S, "the backend listens")
    clusters = [{**resources.cluster(name), "circuit_breakers": {"thresholds": [limits]}}
                for name, (limits, _) in BUDGETS.items()]
    policy = {"retry_on": "unavailable", "num_retries": 1,
              "retry_back_off": {"base_interval": "2s", "max_interval": "2s"}}
    routes = resources.route_config("routes", resources.virtual_host("all", ["*"], *(
        resources.route(f"/{name}", {"cluster": name, "retry_policy": policy}) for name in BUDGETS)))
    resources.Folder(bed.xds_folder).set(
        resources.listener("web", "routes"), routes, *clusters,
        *(resources.endpoints(name, (ip, PORT)) for name in BUDGETS))
    bed.start_xds()
    bed.start_daemon()
    start_envoy(bed, routes, *((made, [(ip, PORT)]) for made in clusters))
    pair = Pair(bed)
    for name, (_, wanted) in BUDGETS.items():
        answers = pair.ask([call(f"/{name}", f"{name}-{i}") for i in range(N)])
        theirs, ours = (collections.Counter(map(status_of, heard)) for heard in answers)
        for who, peer, heard in (("Envoy", THEIRS, theirs), ("shuntd", OURS, ours)):
            again = backend.output().count(f"again {peer} /{name}\n")
            assert heard["0"] == again and heard["14"] == N - again, (name, who, heard, again)
            assert abs(again - wanted) <= min(wanted, TOLERANCE), (name, who, wanted, again)
        assert abs(ours["0"] - theirs["0"]) <= TOLERANCE, (name, theirs, ours)
    pair.stop()
    check_end(bed)


class HealthPair(HealthWorld):
    """The world of test_health_checks, with Envoy beside."""

    def __init__(self, lab, kind, health_check, more):
        super().__init__(lab, kind, health_check, WELL[kind], prepare=add_oracle, more=more)
        routes = resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "main")))
        start_envoy(self.bed, routes, (self.cluster, [(ip, PORT) for ip in self.ips]))
        self.pair = Pair(self.bed)

    def ask(self):
        """Of ten calls, which backends (0, 1) answered through Envoy and through shuntd; -1: some got no answer."""
        numbers = {ip: number for number, ip in enumerate(self.ips)}
        return [{numbers.get(dict(answer["fields"]).get("x-backend"), -1) for answer in heard}
                for heard in self.pair.ask([call("/any.Thing/Method", "x")] * 10)]

    def settle(self, theirs, ours, spotless=False):
        """Until these answer. spotless: meanwhile no call may fail. For each (Envoy, shuntd), what the second backend
        had printed of it before the last round with another answer, and after the first round with this one: however
        slow rounds are, the change was between the two."""
        before, after = {}, {}

        def settled():
            began = {peer: self.lines(peer) for peer in (THEIRS, OURS)}
            heard = self.ask()
            assert not spotless or -1 not in heard[0] | heard[1], heard
            for peer, got, wanted in zip((THEIRS, OURS), heard, (theirs, ours)):
                if got == wanted:
                    after.setdefault(peer, self.lines(peer))
                else:
                    before[peer] = began[peer]
            return heard == [theirs, ours]
        wait_until(settled, LIMIT_S, f"{theirs} through Envoy and {ours} through shuntd")
        return [(before.get(peer, []), after[peer]) for peer in (THEIRS, OURS)]

    def lines(self, peer):
        """What the second backend printed of checks and calls that came from there."""
        return [line for line in self.backends[1].output().splitlines() if f" from={peer}" in line]


WELL = {"grpc": "1", "http": "200"}
HTTP = {"http_health_check": {"path": "/healthz", "codec_client_type": "HTTP2"}}
TCP = {"tcp_health_check": {"send": {"text": b"PING".hex()}, "receive": [{"text": b"PONG".hex()}]}}
# Kind of backend, check, what a sick one says, after how many checks it is out, whether Envoy panics.
CHECKS = {
    "grpc-not-serving": ("grpc", {"grpc_health_check": {"service_name": "x"}}, "2", 1, False),
    "grpc-silent": ("grpc", {"grpc_health_check": {}}, "", 3, False),
    "http-503": ("http", HTTP, "503", 1, True),
    "http-silent": ("http", HTTP, "", 3, False),
    "tcp-silent": ("http", TCP, "", 3, False),
}


def checks_that_failed(lines, said):
    return sum(line.startswith("check") and line.endswith(f"says={said}") for line in lines)


def checks_that_passed(lines, said):
    """Behind the last that failed."""
    last = max(i for i, line in enumerate(lines) if line.startswith("check") and line.endswith(f"says={said}"))
    return sum(line.startswith("check") for line in lines[last + 1:])


@pytest.mark.parametrize("name", CHECKS)
def test_ahc_11_endpoints_leave_and_come_back_as_with_envoy(lab, name):
    kind, how, sick, n_failed, panics = CHECKS[name]
    asked = check(**how, healthy_threshold=3)
    asked.update(timeout="0.3s", unhealthy_threshold=3)
    world = HealthPair(lab, kind, asked, {"common_lb_config": {**AT_ONCE, **({} if panics else NEVER)}})
    world.settle({0, 1}, {0, 1})
    world.say(1, sick)
    told = [[checks_that_failed(lines, sick) for lines in when] for when in world.settle({0}, {0}, spotless=True)]
    # A busy backend may never see a check that times out. Envoy says its deadline to gRPC's servers: if theirs ends
    # first, it has an answer, DEADLINE_EXCEEDED, which counts at once.
    least = (1, n_failed - 1 or 1)
    assert all(before <= n_failed + 1 and after >= n for (before, after), n in zip(told, least)), (
        told, world.backends[1].output())
    world.say(0, sick)
    world.settle({0, 1} if panics else {-1}, {-1})  # ENV-02
    world.say(0, WELL[kind])
    world.settle({0}, {0})
    world.say(1, WELL[kind])
    told = [[checks_that_passed(lines, sick) for lines in when] for when in world.settle({0, 1}, {0, 1}, spotless=True)]
    assert all(before <= 4 and after >= 3 for before, after in told), (told, world.backends[1].output())
    world.pair.stop()
    check_end(world.bed)
