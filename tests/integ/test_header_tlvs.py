# SPDX-License-Identifier: Apache-2.0
"""TLVs of clients' PROXY headers on their way to backends, beside Envoy: of the same Listener, cluster and header both
send the same bytes."""

import collections
import json
import sys

import pytest

import envoy_proxy
import resources
from differential import add_oracle
from header_relay import SIGNATURE
from lab import wait_until
from lab_fixtures import check_end
from test_forwarded import PROXY_FILTER
from test_header_backends import CLIENT, HAPROXY_PORT, IP, LIMIT_S, RELAY_PORT, HeaderWorld, headed
from testbed import HERE, VIP

pytestmark = [pytest.mark.timeout(400), pytest.mark.skipif(not envoy_proxy.BINARY.exists(), reason="no Envoy")]

FIRST = envoy_proxy.PORT  # port of the first case's listener, on either side
CRC32C = 3
ADDED = [{"type": 2, "value": "bGFuZS50ZXN0"}]
TWICE = [{"type": 225, "value": "eA=="}, {"type": 225, "value": "eQ=="}]
ALL = {}


def some(*types):
    return {"match_type": "INCLUDE", "tlv_type": list(types)}


def tlv(kind, value):
    return bytes([kind]) + len(value).to_bytes(2, "big") + value


VPC, NAME, NOOP = tlv(0xea, b"\1vpce-1"), tlv(2, b"theirs.test"), tlv(4, b"")
LANES = tlv(0xe0, b"a") + tlv(0xe0, b"b")
THEIRS = VPC + NAME + LANES + NOOP
OURS = tlv(2, b"lane.test")

# front, back: pass_through_tlvs of the listener and of the cluster, None = absent; seen: by the backend.
Case = collections.namedtuple("Case", "name front back added seen", defaults=((), b""))
CASES = (
    Case("all", ALL, ALL, seen=THEIRS),
    Case("one's own count", ALL, ALL, ADDED, OURS + VPC + LANES + NOOP),
    Case("kept of a type, all of it", some(0xe0), ALL, seen=LANES),
    Case("sent of two types", ALL, some(0xea, 2), seen=VPC + NAME),
    Case("of both sides what both name", some(0xea, 4), some(4, 2), seen=NOOP),
    Case("none kept", None, ALL),
    Case("none sent", ALL, None),
    Case("an empty list", some(), ALL),
    Case("one's own of a type twice", None, None, TWICE, tlv(225, b"x") + tlv(225, b"y")),
)


def filter_of(case):
    passing = {} if case.front is None else {"pass_through_tlvs": case.front}
    return [{"name": "proxy", "typed_config": {"@type": PROXY_FILTER, **passing}}]


def transport(case):
    passing = {} if case.back is None else {"pass_through_tlvs": case.back}
    return headed("V2", added_tlvs=list(case.added), **passing)


def listener(ip, number, case):
    routes = resources.route_config("r", resources.virtual_host("all", ["*"], resources.route("/", f"c{number}")))
    manager = dict(resources.listener("x", "r")["api_listener"]["api_listener"])
    del manager["rds"]
    manager["route_config"] = {k: v for k, v in routes.items() if k != "@type"}
    return {"name": f"l{number}", "address": envoy_proxy.address_of(ip, FIRST + number),
            "listener_filters": filter_of(case), "filter_chains": [{"filters": [{
                "name": "http", "typed_config": manager}]}]}


def start_envoy(bed):
    clusters = [dict(envoy_proxy.cluster(f"c{i}", [(IP[4], RELAY_PORT)]), transport_socket=transport(case))
                for i, case in enumerate(CASES)]
    envoy_proxy.start(bed, "oracle", {"node": {"id": "oracle", "cluster": "oracle"}, "static_resources": {
        "listeners": [listener(envoy_proxy.ADDRESS, i, case) for i, case in enumerate(CASES)], "clusters": clusters}})


def start_shunt(world):
    world.bed.more_frontends = [
        f"{{name: l{i}, address: {VIP}, port: {FIRST + i}, listener: l{i}, "
        f"proxy_protocol: {{allow: [{CLIENT[4]}/32]}}}}" for i in range(len(CASES))]
    listeners, clusters = [], []
    for i, case in enumerate(CASES):
        listeners.append({"@type": resources.LISTENER, **listener(VIP, i, case)})
        clusters += [{**resources.cluster(f"c{i}"), "transport_socket": transport(case)},
                     resources.endpoints(f"c{i}", (IP[4], RELAY_PORT))]
    world.folder.set(
        resources.listener("web", "routes"),
        resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "c0"))),
        *listeners, *clusters)
    world.bed.start_xds()
    world.bed.start_daemon()


def client_header(port, tlvs):
    body = bytes([192, 0, 2, 7, 198, 51, 100, 8]) + port.to_bytes(2, "big") + b"\1\xbb" + tlvs
    return SIGNATURE + b"\x21\x11" + len(body).to_bytes(2, "big") + body


def ask(world, ns, ip, port, source_port, tlvs):
    """Whether a client with this header is answered."""
    request = client_header(source_port, tlvs) + b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    path = world.bed.lab.dir / "rows.json"
    path.write_text(json.dumps([{"pieces": [request.hex()], "answers": 1, "closed": True}]))
    done = world.bed.lab.exec(ns, [
        "sh", "-c", f"exec {sys.executable} {HERE / 'h1_agent.py'} {ip} {port} < {path}"])
    return json.loads(done.stdout)[0]["statuses"] == [200]


@pytest.fixture(name="relay")
def fixture_relay(lab):
    """(world, headers): what backends were told of the client with this port, behind the addresses."""
    world = HeaderWorld(lab)
    relay = world.bed.lab.start("backends", "relay", [
        sys.executable, HERE / "header_relay.py", IP[4], str(RELAY_PORT), str(HAPROXY_PORT)])
    wait_until(lambda: "listens" in relay.output(), LIMIT_S, "the relay")

    def headers(port):
        begin = client_header(port, b"")
        found = [bytes.fromhex(line) for line in relay.output().splitlines() if line != "listens"]
        return [h[len(begin):] for h in found
                if h[:14] == begin[:14] and h[16:len(begin)] == begin[16:] and
                len(h) == 16 + int.from_bytes(h[14:16], "big")]
    yield world, headers
    check_end(world.bed)


def test_pp_21_tlvs_of_clients_pass_as_through_envoy(relay):
    """Whatever both sides ask for. Both also end a connection whose TLVs are cut off, PP-22."""
    world, headers = relay
    add_oracle(world.bed)
    start_envoy(world.bed)
    start_shunt(world)
    port = 1000
    for i, case in enumerate(CASES):
        for ns, ip in (("oracle", envoy_proxy.ADDRESS), ("client", VIP)):
            port += 1
            assert ask(world, ns, ip, FIRST + i, port, THEIRS), (case, ns)
            assert headers(port) == [case.seen], (case, ns)
    before = world.counter("headers_bad_tlvs")
    for ns, ip in (("oracle", envoy_proxy.ADDRESS), ("client", VIP)):
        assert not ask(world, ns, ip, FIRST, port + 1, b"\xea\0\2a")
    assert headers(port + 1) == [] and world.counter("headers_bad_tlvs") == before + 1


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_pp_21_a_checksum_is_not_passed_on_since_who_verifies_it_would_refuse(relay):
    """HAProxy does; and Envoy passes it on."""
    world, headers = relay
    add_oracle(world.bed)
    start_envoy(world.bed)
    start_shunt(world)
    begin = VPC + bytes([CRC32C]) + b"\0\4"
    for ns, ip, answered, seen in (
            ("oracle", envoy_proxy.ADDRESS, False, OURS + begin),
            ("client", VIP, True, OURS + VPC)):
        port = 2001 if answered else 2002
        value = crc32c(client_header(port, begin + b"\0\0\0\0"))
        assert ask(world, ns, ip, FIRST + 1, port, begin + value.to_bytes(4, "big")) == answered, ns
        assert headers(port) and all(h.startswith(seen) for h in headers(port)), ns
        assert not answered or headers(port) == [seen], ns
