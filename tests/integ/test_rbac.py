# SPDX-License-Identifier: Apache-2.0
"""Access control (A41-*): the rows of tests/support/rbac_rows.json as virtual hosts' overrides, given to
Envoy, or to servers of gRPC C-core and grpc-go, and to shuntd, which must let the same requests through; and what
operators are told.

Rows that ask for addresses or TLS are asked in test_rbac_connections.py; those that Envoy or gRPC judges otherwise say
so, and shuntd is asked them alone.
"""

import dataclasses
import json
import sys

import pytest

import envoy_proxy
import rbac_server
import resources
from agent import Agent
from differential import add_oracle
from go_build import go_build
from http_cases import BACKENDS, PORT, Http, fields_of, outcome
from lab import wait_until
from resources import TYPES, Folder, route, route_config, virtual_host
from routing_cases import ALPHA
from testbed import EXAMPLE, EXIT_TIMEOUT_S, HERE, ROOT, VIP, Testbed
from testbed import PORT as FRONTEND_PORT

RBAC = TYPES + "extensions.filters.http.rbac.v3.RBAC"
PER_ROUTE = TYPES + "extensions.filters.http.rbac.v3.RBACPerRoute"
ROWS = ROOT / "tests" / "support" / "rbac_rows.json"
FILTER = {"name": "rbac", "typed_config": {"@type": RBAC}}  # of the listener: does nothing yet
OF_A_CONNECTION = {"direct", "source", "remote", "destination", "port", "tls"}
REFUSED = ("403", "grpc 7")
MIN_ROWS = 60
GRPC_PORT, GO_PORT = 50051, 50052
TIMEOUT_S = 10
SILENCE_S = 5  # of calls that were let in
START_S = 45
ANY = [{"any": True}]


def rows_for(*, envoy, of_a_connection=False):
    """[(row, action, host)] of what can be asked over the wire, by requests or by connections."""
    for index, row in enumerate(json.loads(ROWS.read_text())):
        if bool(OF_A_CONNECTION & set(row["request"])) != of_a_connection or (envoy and "envoy" in row):
            continue
        for action in ("ALLOW", "DENY"):
            host = f"{action.lower()}-{index}.test"
            yield json.loads(json.dumps(row).replace("row.test", host)), action, host


def policy_of(row):
    return {"permissions": [row["permission"]] if "permission" in row else ANY,
            "principals": [row["principal"]] if "principal" in row else ANY}


def hosts_of(rows):
    for row, action, host in rows:
        made = virtual_host(host, [host], route("", ALPHA))
        made["typed_per_filter_config"] = {"rbac": {"@type": PER_ROUTE, "rbac": {
            "rules": {"action": action, "policies": {"p": policy_of(row)}}}}}
        yield made


def call_of(row, host):
    request = row["request"]
    return Http(row["name"], request.get("path", "/"), request.get("headers", []), host,
                method=request.get("method", "GET"))


def listener(typed_config=None, **fields):
    made = resources.listener("web", "routes")
    manager = made["api_listener"]["api_listener"]
    mine = FILTER if typed_config is None else {**FILTER, "typed_config": {"@type": RBAC, **typed_config}}
    manager.update(fields, http_filters=[mine, *manager["http_filters"]])
    return made


def start_backends(bed):
    bed.lab.ip("backends", "route", "add", "local", "10.82.2.0/24", "dev", "lo")
    bed.lab.start("backends", "peers", [sys.executable, HERE / "h2_peer.py", "serve", PORT])
    for ip in BACKENDS.values():
        bed.wait_connect("backends", ip, PORT)


def alpha():
    made = resources.cluster(ALPHA)
    made["circuit_breakers"] = {"thresholds": [{"max_requests": 100_000}]}
    return made, resources.endpoints(ALPHA, (BACKENDS[ALPHA], PORT))


def ask(agent, ip, port, calls, timeout=TIMEOUT_S, **more):
    answers = agent.ask(ip=ip, port=port, timeout=timeout, **more, requests=[
        {"fields": fields_of(call), "open": call.open} for call in calls])
    return [outcome({**answer, "call": call}).split(" path")[0] for answer, call in zip(answers, calls)]


def differences(rows, who, got):
    for (row, action, _), answer in zip(rows, got):
        let_through = row["hit"] == (action == "ALLOW")
        if (answer.split(" ")[0] == ALPHA) != let_through or (not let_through and answer not in REFUSED):
            yield f"{row['name']}, {action}: {who} says {answer}"


@pytest.mark.timeout(120)
def test_same_verdict_as_envoy(lab):
    bed = Testbed(lab)
    add_oracle(bed)
    start_backends(bed)
    rows, shared = list(rows_for(envoy=False)), list(rows_for(envoy=True))
    assert len(shared) >= 2 * MIN_ROWS
    Folder(bed.xds_folder).set(listener(), route_config("routes", *hosts_of(rows)), *alpha())
    envoy_proxy.start(bed, "oracle", envoy_proxy.configuration(
        route_config("routes", *hosts_of(shared)), {ALPHA: [(BACKENDS[ALPHA], PORT)]}, [FILTER]))
    bed.start_xds()
    bed.start_daemon()
    theirs = ask(Agent(bed.lab, "oracle", "oracle", "h2_agent.py"), envoy_proxy.ADDRESS, envoy_proxy.PORT,
                 [call_of(row, host) for row, _, host in shared])
    ours = ask(Agent(bed.lab, "client", "ours", "h2_agent.py"), VIP, FRONTEND_PORT,
               [call_of(row, host) for row, _, host in rows])
    wrong = [*differences(shared, "Envoy", theirs), *differences(rows, "shuntd", ours)]
    assert not wrong, "\n".join(wrong)
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def grpc_listener(rows, port=GRPC_PORT):
    """Of a gRPC server with the rows as virtual hosts."""
    hosts = list(hosts_of(rows))
    for host in hosts:
        host["routes"] = [{"match": {"prefix": ""}, "non_forwarding_action": {}}]
    manager = {"@type": resources.HTTP_MANAGER, "route_config": {"name": "routes", "virtual_hosts": hosts},
               "http_filters": [FILTER, {"name": "router", "typed_config": {"@type": resources.ROUTER}}]}
    return {"@type": resources.LISTENER, "name": rbac_server.LISTENER.format(f"127.0.0.1:{port}"),
            "address": envoy_proxy.address_of("127.0.0.1", port),
            "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}


def as_grpc(call):
    """The same of a gRPC client."""
    names = {name for name, _ in call.metadata}
    mine = [[name, value] for name, value in (("content-type", "application/grpc"), ("te", "trailers"))
            if name not in names]
    path = "/x.T/M" if call.path == "/" else call.path  # grpc-go looks at nothing else of a call without a method
    return dataclasses.replace(call, path=path, method="POST", metadata=[*mine, *call.metadata])


class GrpcServers:
    """C-core's and grpc-go's, of one namespace with shuntd."""

    def __init__(self, bed, rows, program):
        self.bed = bed
        (bed.lab.dir / "server.json").write_text(json.dumps(grpc_listener(rows)))
        Folder(bed.xds_folder).set(listener(), route_config("routes", *hosts_of(rows)), *alpha(),
                                   grpc_listener(rows, GO_PORT))
        bed.start_xds()
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        made["server_listener_resource_name_template"] = rbac_server.LISTENER.format("%s")
        path = bed.lab.dir / "go.json"
        path.write_text(json.dumps(made))
        servers = {GRPC_PORT: bed.lab.start("lb", "core", [sys.executable, HERE / "rbac_server.py", bed.lab.dir,
                                                           GRPC_PORT]),
                   GO_PORT: bed.lab.start("lb", "go", [program, "serve", f"127.0.0.1:{GO_PORT}"],
                                          env={"GRPC_XDS_BOOTSTRAP": str(path)})}
        bed.start_daemon()
        for port, server in servers.items():
            bed.wait_connect("lb", "127.0.0.1", port, server)
        self.client = Agent(bed.lab, "lb", "theirs", "h2_agent.py")

    def wait_ready(self, denied):
        """grpc-go hangs up on clients until it has its listener."""
        wait_until(lambda: self.ask(GO_PORT, [denied], 1) == ["grpc 7"], START_S, "the server of grpc-go")

    def ask(self, port, calls, silence_s=SILENCE_S):
        """Calls never end, since C-core's server dies of one that has ended when it is refused: what was let in waits
        for its message."""
        endless = [dataclasses.replace(call, open=True) for call in calls]
        answers = ask(self.client, "127.0.0.1", port, endless, silence_s)
        return [ALPHA if answer == "reset none" else answer for answer in answers]


@pytest.mark.timeout(500)  # grpc-go is built once, of many packages
def test_same_verdict_as_grpc_servers(lab, tmp_path):
    program = go_build("grpcgo", ".", tmp_path / "bin" / "grpcgo", timeout=380)
    bed = Testbed(lab)
    start_backends(bed)
    rows = [each for each in rows_for(envoy=False) if "grpc" not in each[0]]
    calls = [as_grpc(call_of(row, host)) for row, _, host in rows]
    servers = GrpcServers(bed, rows, program)
    servers.wait_ready(next(call for (row, action, _), call in zip(rows, calls) if row["hit"] and action == "DENY"))
    ours = ask(Agent(lab, "client", "ours", "h2_agent.py"), VIP, FRONTEND_PORT, calls)
    wrong = [*differences(rows, "C-core", servers.ask(GRPC_PORT, calls)),
             *differences(rows, "grpc-go", servers.ask(GO_PORT, calls)), *differences(rows, "shuntd", ours)]
    assert not wrong, "\n".join(wrong)
    assert len(rows) >= 2 * MIN_ROWS
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def rules(action, **policies):
    return {"action": action, "policies": {
        name: {"permissions": [permission], "principals": [principal]}
        for name, (permission, principal) in policies.items()}}


def test_addresses_decide_and_operators_are_told_why(lab):
    """A41-13 to A41-15, A41-17."""
    bed = Testbed(lab)
    start_backends(bed)
    anything, nobody = {"any": True}, {"not_id": {"any": True}}
    near = {"direct_remote_ip": {"address_prefix": "10.0.0.0", "prefix_len": 8}}
    here = {"and_rules": {"rules": [{"destination_ip": {"address_prefix": VIP, "prefix_len": 32}},
                                    {"destination_port": FRONTEND_PORT}]}}
    shut, opened = virtual_host("shut", ["shut.test"], route("", ALPHA)), virtual_host("*", ["*"], route("", ALPHA))
    shut["typed_per_filter_config"] = {"rbac": {"@type": PER_ROUTE, "rbac": {
        "rules": rules("DENY", near=(anything, near))}}}
    folder = Folder(bed.xds_folder)
    folder.set(listener({"rules": rules("ALLOW", never=(anything, nobody), near=(here, near)),
                         "shadow_rules": rules("ALLOW")}), route_config("routes", shut, opened), *alpha())
    bed.start_xds()
    bed.start_daemon()
    client = Agent(bed.lab, "client", "client", "h2_agent.py")

    def got(host, *headers):
        return ask(client, VIP, FRONTEND_PORT, [Http(host, "/x.T/M", list(headers), host, method="POST")])[0]

    grpc = ["content-type", "application/grpc"]
    assert (got("open.test"), got("shut.test"), got("shut.test", grpc)) == (ALPHA, *REFUSED)
    counts = {key: sum(w["proxy"][key] for w in bed.show_workers()) for key in (
        "rbac_allowed", "rbac_denied", "rbac_shadow_denied", "rbac_shadow_allowed")}
    assert counts == {"rbac_allowed": 1, "rbac_denied": 2, "rbac_shadow_denied": 1, "rbac_shadow_allowed": 0}
    wait_until(lambda: "filter rbac: policy near denies it" in bed.shuntctl("show", "failures"), 20, "the failure")
    for host, address, decision in (
            ("open.test", "10.9.9.9", "allows: policy near; shadow denies: no policy"),
            ("open.test", "192.0.2.1", "denies: no policy; shadow denies: no policy"),
            ("shut.test", "10.9.9.9", "denies: policy near"), ("shut.test", "192.0.2.1", "allows: no policy")):
        said = bed.shuntctl("explain", "--authority", host, "--path", "/", "--from", address)
        assert f'"decision":"{decision}"' in said, said
    folder.put(listener({"rules": {"action": "DENY"}}))
    wait_until(lambda: got("open.test") == ALPHA, 20, "the listener that denies nothing")
    assert got("shut.test") == "403"
    far = {"remote_ip": {"address_prefix": "192.0.2.0", "prefix_len": 24}}
    folder.put(listener({"rules": rules("DENY", far=(anything, far))}, use_remote_address=False))
    said = ["x-forwarded-for", "192.0.2.7"]
    wait_until(lambda: got("open.test", said) == "403", 20, "the listener that trusts a proxy before it")
    assert got("open.test", ["x-forwarded-for", "10.1.1.1"]) == ALPHA
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
