# SPDX-License-Identifier: Apache-2.0
"""Bad and odd resources over the wire, from a real management server: each is accepted or refused
as the tables say. What is accepted does what it must; what is refused is told by resource and
field, and the last good version keeps serving. gRPC's own xDS client (C-core) hears the same bytes
and must give the same verdict, unless the row says why not.
"""

import sys

import pytest

from agent import Agent
from cluster_table import CLUSTER, PATHS, cluster_rows, good_cluster
from connect_table import connect_cluster_rows, connect_endpoint_rows, start_proxy, wrapped
from endpoint_table import NAME as ENDPOINTS_NAME
from endpoint_table import PATH as ENDPOINTS_PATH
from endpoint_table import eds_rows, good_endpoints
from http_cases import BACKENDS, PORT, Http, fields_of, outcome
from lab import wait_until
from listener_table import good_listener, listener_rows
from pki import Pki
from rbac_table import RBAC, rbac_rows
from resources import CLUSTER as CLUSTER_TYPE, ENDPOINTS as ENDPOINTS_TYPE
from resources import ROUTE_CONFIG, cluster, endpoints, route, route_config, virtual_host
from routing_cases import ALPHA, BETA
from socket_table import socket_rows
from testbed import EXAMPLE, EXIT_TIMEOUT_S, HERE, VIP, XDS_ADDRESS, Testbed
from testbed import PORT as FRONTEND_PORT
from tls_fields import cluster_field_rows, listener_field_rows
from tls_table import bootstrap, tls_cluster_rows, tls_listener_rows
from validation_table import ACK, ROUTES, Row, route_rows

MIN_ROWS = 120
TAKES_S = 20  # at most, from acceptance to the new behaviour
OURS, CORE = "shunt", "gRPC C-core"  # how the clients name themselves
MIN_CLUSTER_ROWS = 130
MIN_ENDPOINT_ROWS = 80
MIN_TLS_ROWS = 50
MIN_RBAC_ROWS = 40
MIN_SOCKET_ROWS = 80
PLAIN = Row("the good listener again", ACK, answers={"/x.T/M": ALPHA})


class World:
    """shuntd and a gRPC client of one management server, and a client that asks shuntd. switches: what experiments of
    the gRPC client are on beside those of all tests."""

    def __init__(self, bed, bootstrap=EXAMPLE / "bootstrap.json", switches=None):
        self.bed = bed
        self.version = 0
        self.live = None  # the version that serves
        bed.lab.ip("backends", "route", "add", "local", "10.82.2.0/24", "dev", "lo")
        bed.lab.start("backends", "peers", [sys.executable, HERE / "h2_peer.py", "serve", PORT])
        self.server = Agent(bed.lab, "lb", "ads", "ads_agent.py", XDS_ADDRESS)
        self.client = Agent(bed.lab, "client", "client", "h2_agent.py")
        for ip in BACKENDS.values():
            bed.wait_connect("backends", ip, PORT)
        self.publish([resource for name, ip in BACKENDS.items()
                      for resource in (cluster(name), endpoints(name, (ip, PORT)))])
        self.publish([good_listener(), self.routes([virtual_host("row", ["*"], route("", BETA))])])
        self.live = self.version
        env = {"GRPC_XDS_BOOTSTRAP": str(bootstrap)}
        bed.start_daemon(env=env)
        env = {**env, "GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT": "true",
               "GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS": "true", **(switches or {})}
        self.core = Agent(bed.lab, "lb", "core", "grpc_agent.py", env=env)
        self.core.ask(target="xds:///{}", calls=[
            {"authority": "web", "path": "/x/y", "metadata": [], "timeout": TAKES_S}])

    def routes(self, hosts, has_versions=True):
        """A route configuration with a number of its own, which requests can ask for."""
        self.version += 1
        mark = virtual_host("versions", ["versions.test"],
                            route({"path": f"/version/{self.version}"}, ALPHA))
        return route_config(ROUTES, *([mark] if has_versions else []), *hosts)

    def publish(self, resources, patch=(), raw=(), copies=1):
        """{client: verdict}, "" = accepted."""
        answers = self.server.ask(put=list(resources), patch=list(patch), raw=list(raw),
                                  copies=copies)
        return {name: text for agent, text in answers.items() for name in (OURS, CORE)
                if agent.startswith(name)}

    def wait_wanted(self, url, *names):
        """Until both clients have asked for these, as new routes make them do, each in its time."""
        self.server.ask(wanted=[[url, name] for name in names])

    def ask(self, *calls, alone=False):
        requests = [{"fields": fields_of(call), "alone": alone} for call in calls]
        answers = self.client.ask(ip=VIP, port=FRONTEND_PORT, requests=requests, timeout=TAKES_S)
        return [outcome({**answer, "call": call}) for answer, call in zip(answers, calls)]

    def serves(self, version):
        call = Http("version", f"/version/{version}", authority="versions.test")
        return self.ask(call) == [ALPHA]


def asks_of(row):
    return [Http(path, path, row.headers) for path in row.answers]


def verdicts_wrong(row, name, verdicts):
    """What is wrong with what the two clients said."""
    ours, core = verdicts[OURS], verdicts[CORE]
    if row.wanted == ACK and ours:
        yield f"refused: {ours}"
    if row.wanted != ACK and not ours:
        yield "accepted"
    texts = (name, *row.wanted)
    missing = [text for text in texts if text not in ours]
    if row.wanted != ACK and ours and missing:
        yield f"the refusal lacks {missing}: {ours}"
    agree = (core == "") == (row.wanted == ACK)
    if agree and row.core:
        yield f"C-core agrees, though the row says {row.core}"
    if not agree and not row.core:
        yield f"C-core says {core or 'ACK'}"


def behaves(world, row, alone):
    """Whether requests get what the row wants, in time; else what they get."""
    asks = asks_of(row)
    wanted = list(row.answers.values())
    try:
        wait_until(lambda: world.ask(*asks, alone=alone) == wanted, TAKES_S, row.label)
    except TimeoutError:
        yield f"wanted {row.answers}, got {world.ask(*asks, alone=alone)}"


def check_routes(world, row):
    """Everything that is wrong with one row."""
    resource = world.routes(row.hosts, row.has_versions)
    yield from verdicts_wrong(row, ROUTES, world.publish([resource], [[0, *p] for p in row.patch]))
    if row.wanted != ACK:
        if not world.serves(world.live) or world.serves(world.version):
            yield "the last good version does not serve any more"
        return
    if row.has_versions:
        wait_until(lambda: world.serves(world.version), TAKES_S, row.label)
        world.live = world.version
        got = world.ask(*asks_of(row))
        if got != list(row.answers.values()):
            yield f"wanted {row.answers}, got {got}"
    else:
        yield from behaves(world, row, False)
        world.publish([world.routes([virtual_host("row", ["*"], route("", BETA))])])
        wait_until(lambda: world.serves(world.version), TAKES_S, row.label)
        world.live = world.version


def check_listener(world, row):
    """A change of the listener may end connections, so that every request has one of its own."""
    verdicts = world.publish([row.resource], [[0, *p] for p in row.patch])
    yield from verdicts_wrong(row, "web", verdicts)
    if row.wanted == ACK:
        yield from behaves(world, row, True)
    elif world.ask(Http("any", "/x.T/M"), alone=True) != [ALPHA]:
        yield "the last good version does not serve any more"
    world.publish([good_listener()])
    yield from behaves(world, PLAIN, True)


def check_cluster(world, row):
    name = row.resource["name"]
    yield from check_change(world, row, name, PATHS[name], good_cluster(name))


def check_endpoints(world, row):
    yield from check_change(world, row, ENDPOINTS_NAME, ENDPOINTS_PATH, good_endpoints())


def check_change(world, row, name, path, good):
    """The row's resource takes the good one's place, and leaves it again."""
    again = Row("the good one again", ACK, answers={path: ALPHA})
    verdicts = world.publish([row.resource], [[0, *p] for p in row.patch])
    yield from verdicts_wrong(row, name, verdicts)
    if row.wanted == ACK:
        yield from behaves(world, row, False)
    elif world.ask(*asks_of(again)) != [ALPHA]:
        yield "the last good version does not serve any more"
    world.publish([good])
    yield from behaves(world, again, False)


GARBAGE = {
    "no message": "ff", "cut off": "0a10", "endless varint": "0a" + "ff" * 12,
    "nested beyond its room": "12060a016112ff01", "name that is no UTF-8": "0a02fffe",
    "prefix that is no UTF-8": "0a0b776972652d726f7574657312190a01611201611a110a060a042ffffe2f"
                               "12070a05616c706861",
}


def check_garbage(world):
    """Bytes that are no RouteConfiguration."""
    for label, text in GARBAGE.items():
        verdicts = world.publish([], raw=[[ROUTE_CONFIG, ROUTES, text]])
        for name in (OURS, CORE):
            if not verdicts[name]:
                yield f"{label}: {name} accepted it"
        if not world.serves(world.live):
            yield f"{label}: the last good version does not serve any more"


def complaints(world, check, rows):
    wrong = []
    for row in rows:
        try:
            wrong += [f"{row.label}: {text}" for text in check(world, row)]
        except TimeoutError as error:
            wrong.append(f"{row.label}: {error}")
    return wrong


@pytest.fixture(name="wire")
def fixture_wire(lab):
    world = World(Testbed(lab))
    yield world
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


@pytest.mark.timeout(400)
def test_route_configurations(wire):
    rows = list(route_rows())
    assert len(rows) >= MIN_ROWS
    wrong = [*complaints(wire, check_routes, rows), *check_garbage(wire)]
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_nothing_is_used_of_a_response_that_lists_a_resource_twice(wire):
    def state():
        entry = {r["name"]: r for r in wire.bed.show("xds")["resources"]}[ROUTES]
        return entry["state"], entry["version"]
    state_before, version = state()
    assert state_before == "ACKED"
    changed = wire.routes([virtual_host("row", ["*"], route("", ALPHA))])
    verdicts = wire.publish([changed], copies=2)
    assert f'"{ROUTES}": is listed more than once' in verdicts[OURS], verdicts
    assert wire.serves(wire.live) and not wire.serves(wire.version)
    assert state() == ("NACKED", version)
    assert wire.publish([changed])[OURS] == ""
    wait_until(lambda: wire.serves(wire.version), TAKES_S, "the same content, once")
    assert state()[0] == "ACKED"


@pytest.mark.timeout(400)
def test_listeners(wire):
    wire.publish([wire.routes([virtual_host("row", ["*"], route("", ALPHA))])])
    wrong = complaints(wire, check_listener, listener_rows())
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_access_control(wire):
    listener = good_listener()
    manager = listener["api_listener"]["api_listener"]
    manager["http_filters"] = [{"name": "rbac", "is_optional": True, "typed_config": {"@type": RBAC}},
                               *manager["http_filters"]]
    assert wire.publish([listener]) == {OURS: "", CORE: ""}
    rows = list(rbac_rows())
    assert len(rows) >= MIN_RBAC_ROWS
    wrong = complaints(wire, check_routes, rows)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


def check_verdict(world, row):
    """Nothing but that: a socket listener, for one, is none of a target."""
    yield from verdicts_wrong(row, row.resource["name"], world.publish([row.resource]))


@pytest.mark.timeout(400)
def test_socket_listeners(wire):
    rows = list(socket_rows())
    assert len(rows) >= MIN_SOCKET_ROWS
    wrong = complaints(wire, check_verdict, rows)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_clusters(wire):
    rows = list(cluster_rows())
    assert len(rows) >= MIN_CLUSTER_ROWS
    wire.publish([good_cluster(name) for name in PATHS])
    routes = [route(path, name) for name, path in PATHS.items()]
    wire.publish([wire.routes([virtual_host("row", ["*"], *routes)])])
    wire.wait_wanted(CLUSTER_TYPE, *PATHS)
    wrong = complaints(wire, check_cluster, rows)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.fixture(name="tls_wire")
def fixture_tls_wire(lab):
    """The same with a certificate provider in the bootstrap."""
    made = Pki(lab.dir / "pki")
    made.leaf("leaf", made.authority("ca"))
    path = bootstrap(lab.dir, certificate_file=made.folder / "leaf.pem", private_key_file=made.folder / "leaf.key",
                     ca_certificate_file=made.folder / "ca.pem")
    world = World(Testbed(lab), path)
    yield world
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


@pytest.mark.timeout(400)
def test_tls_of_clusters(tls_wire):
    tls_wire.publish([good_cluster(CLUSTER)])
    tls_wire.publish([tls_wire.routes([virtual_host("row", ["*"], route(PATHS[CLUSTER], CLUSTER))])])
    tls_wire.wait_wanted(CLUSTER_TYPE, CLUSTER)
    rows = list(tls_cluster_rows())
    assert len(rows) >= MIN_TLS_ROWS
    wrong = complaints(tls_wire, check_cluster, rows)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_tls_of_listeners(tls_wire):
    tls_wire.publish([tls_wire.routes([virtual_host("row", ["*"], route("", ALPHA))])])
    wrong = complaints(tls_wire, check_listener, tls_listener_rows())
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_fields_of_tls_contexts(tls_wire):
    """TLS-239: each is ignored or refused as its row says, and gRPC does the same."""
    tls_wire.publish([good_cluster(CLUSTER)])
    tls_wire.publish([tls_wire.routes([virtual_host("row", ["*"], route(PATHS[CLUSTER], CLUSTER))])])
    tls_wire.wait_wanted(CLUSTER_TYPE, CLUSTER)
    wrong = complaints(tls_wire, check_verdict, [*cluster_field_rows(), *listener_field_rows()])
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_endpoints(wire):
    rows = list(eds_rows())
    assert len(rows) >= MIN_ENDPOINT_ROWS
    wire.publish([cluster(ENDPOINTS_NAME), good_endpoints()])
    wire.publish([wire.routes([virtual_host("row", ["*"], route(ENDPOINTS_PATH, ENDPOINTS_NAME))])])
    wire.wait_wanted(ENDPOINTS_TYPE, ENDPOINTS_NAME)
    wrong = complaints(wire, check_endpoints, rows)
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_http_proxies_of_clusters(tls_wire):
    """HC-01 to HC-03."""
    tls_wire.publish([good_cluster(CLUSTER)])
    tls_wire.publish([tls_wire.routes([virtual_host("row", ["*"], route(PATHS[CLUSTER], CLUSTER))])])
    tls_wire.wait_wanted(CLUSTER_TYPE, CLUSTER)
    wrong = complaints(tls_wire, check_cluster, connect_cluster_rows())
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)


@pytest.mark.timeout(400)
def test_http_proxies_of_endpoints(wire):
    """HC-04 to HC-06: of a cluster that uses them."""
    start_proxy(wire.bed, "open")
    wire.publish([{**cluster(ENDPOINTS_NAME), "transport_socket": wrapped()}, good_endpoints()])
    wire.publish([wire.routes([virtual_host("row", ["*"], route(ENDPOINTS_PATH, ENDPOINTS_NAME))])])
    wire.wait_wanted(ENDPOINTS_TYPE, ENDPOINTS_NAME)
    wrong = complaints(wire, check_endpoints, connect_endpoint_rows())
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)
