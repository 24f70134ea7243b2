# SPDX-License-Identifier: Apache-2.0
"""IPv6 clients and backends beside IPv4 ones, all in one world: half of the backends have either family."""

import base64
import json
import pathlib
import sys

import load_agent
import pytest

import resources
from go_build import go_build
from lab import wait_until
from lab_fixtures import check_end
from listener_table import session_filter
from testbed import PORT, URL, URL6, VIP6, Testbed
from world import ROUTES, SIZES, WEB_PORT, split_of

HERE = pathlib.Path(__file__).parent
BLUE = [f"[fd82::1:1]:{WEB_PORT}", f"[fd82::1:2]:{WEB_PORT}"]
NAME_SERVER, NAME_PORT = "127.0.0.1", 5353
NAME = "both.test"
NAMED = ["10.82.7.7", "fd82::1:2"]


@pytest.fixture(name="world6")
def fixture_world6(make_world):
    return make_world(ip6=True).start()


@pytest.mark.parametrize("url", [URL, URL6])
def test_clients_and_backends_of_either_family_meet(world6, url):
    report = world6.bed.run_h2load(url=url, requests=20_000)
    assert report.perfect, report
    blue, green = split_of(report)
    assert abs(blue / 20_000 - 0.75) < 0.02, (blue, green)


def test_grpc_calls_take_ipv6_from_end_to_end(world6):
    result = world6.bed.run_calls("unary", count=200, target=f"[{VIP6}]:{PORT}")
    assert result, result


def test_a_neighbor_is_asked_for_and_answered(world6):
    lab = world6.bed.lab
    assert not lab.unanswered("client", VIP6, 3, 0.2)
    neighbors = lab.ip("client", "-6", "neigh", "show", "dev", "c0").stdout
    assert f"{VIP6} lladdr" in neighbors and "router" not in neighbors.split(VIP6)[1].splitlines()[0]
    net = world6.bed.show_workers()[0]["net"]
    assert net["nd_asked"] >= 1 and net["nd_answered"] >= 1 and net["nd_learned"] >= 1, net
    assert net["icmp6_echo"] >= 3 and net["nd_malformed"] == 0, net


def test_link_local_addresses_answer_too(world6):
    lab = world6.bed.lab
    mac = json.loads(lab.exec("lb", ["ip", "-j", "link", "show", "dev", "lb-c"]).stdout)[0]["address"]
    octets = [int(part, 16) for part in mac.split(":")]
    octets[0] ^= 2
    half = [*octets[:3], 0xff, 0xfe, *octets[3:]]
    groups = [f"{half[i] << 8 | half[i + 1]:x}" for i in range(0, 8, 2)]
    assert not lab.unanswered("client", "fe80::" + ":".join(groups) + "%c0", 2, 0.2)


def test_a_backend_that_leaves_its_address_is_noticed(world6):
    """Its address goes to nobody: connects fail by neighbor discovery, the others serve."""
    bed = world6.bed
    assert bed.run_h2load(requests=2000).perfect
    for name in ("blue-1", "green-1"):
        world6.backends[name].kill()
    bed.lab.ip("backends", "addr", "del", "fd82::1:1/128", "dev", "b0")
    bed.lab.ip("backends", "addr", "del", "10.82.1.3/32", "dev", "b0")
    wait_until(lambda: bed.run_h2load(requests=1000, url=URL6).perfect, 60, "the other backends alone")


def test_a_router_that_advertises_itself_is_the_gateway(lab):
    """IP6-20, IP6-22. The client's address is not of the link, and nothing else leads there."""
    bed = Testbed(lab, ip6=True)
    bed.port_settings[0] = ["accept_ra: true"]
    lab.ip("client", "addr", "add", "fd99::1/128", "dev", "c0", "nodad")
    lab.ip("client", "-6", "route", "replace", f"{VIP6}/128", "dev", "c0", "src", "fd99::1")
    bed.start_http_backend("one", "10.82.0.1", 100)
    load_agent.serve_echo(bed, ("10.82.0.1", 8080))
    lab.ip("client", "neigh", "replace", VIP6, "lladdr", bed.show("ports")[0]["mac"], "dev", "c0")
    assert not lab.accepts("client", VIP6, PORT, 2)
    lab.start("client", "router", [sys.executable, HERE / "ra_agent.py", "c0"])
    bed.wait_connect("client", VIP6, PORT)
    assert bed.run_h2load(url=URL6, requests=100, clients=2, streams=2).perfect
    nets = [worker["net"] for worker in bed.show_workers()]
    assert all(net["ra_heard"] and not net["ra_malformed"] for net in nets), nets
    assert any(net["ra_asked"] and net["mld_reported"] >= 2 for net in nets), nets
    check_end(bed)


def curl(bed, *words):
    """The status and the headers of the answer."""
    return bed.lab.exec("client", ["curl", "-sS", "-g", "--http2-prior-knowledge", "--max-time", "20",
                                   "-o", "/dev/null", "-D", "-", *words, URL6 + "/mark"], timeout=30).stdout


def requests_of(bed):
    """Of each of blue's endpoints, as `show` tells them."""
    requests = {row["endpoint"]: row["requests"] for row in bed.show("clusters")["endpoints"]}
    return [requests[endpoint] for endpoint in BLUE]


def test_curl_keeps_a_session_with_an_ipv6_backend(make_world):
    """The cookie holds [address]:port and the cluster (gRFC A55, A75); show and explain write the same address."""
    world = make_world(ip6=True)
    world.set_weights(100, 0)
    listener = resources.listener("web", ROUTES)
    manager = listener["api_listener"]["api_listener"]
    manager["http_filters"] = [session_filter(ttl="60s"), *manager["http_filters"]]
    world.folder.put(listener)
    bed = world.start().bed
    cookies = {}
    for _ in range(20):
        answer = curl(bed)
        assert answer.startswith("HTTP/2 200"), answer
        value = answer.split("set-cookie: c=")[1].split(";")[0].strip('"').strip()
        cookies[base64.b64decode(value).decode()] = f"c={value}"
    assert sorted(cookies) == [f"{endpoint};blue" for endpoint in BLUE], cookies
    cookie, before = cookies[f"{BLUE[1]};blue"], requests_of(bed)
    for _ in range(20):
        answer = curl(bed, "-b", cookie)
        assert answer.startswith("HTTP/2 200") and "set-cookie" not in answer, answer
    wait_until(lambda: [now - then for now, then in zip(requests_of(bed), before)] == [0, 20], 10, "the counters")
    explained = json.loads(bed.shuntctl("--json", "explain", "--frontend", "web6", "--authority", "x",
                                        "--path", "/mark", "-H", f"cookie: {cookie}"))["data"]
    assert [row["endpoint"] for row in explained["sessions"]] == [BLUE[1]], explained


def test_a_name_has_an_address_of_either_family(make_world):
    """A logical DNS cluster whose IPv4 address leads nowhere."""
    cluster = resources.cluster("named")
    del cluster["eds_cluster_config"]
    address = {"socket_address": {"address": NAME, "port_value": WEB_PORT}}
    cluster.update(type="LOGICAL_DNS", load_assignment={
        "cluster_name": "named", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]})
    header = {"name": "x-named", "present_match": True}
    world = make_world(ip6=True, extra=[cluster],
                       extra_routes=[resources.route({"prefix": "/", "headers": [header]}, "named")])
    world.bed.settings = f"dns: {{servers: ['{NAME_SERVER}:{NAME_PORT}']}}\n"
    hosts = world.bed.lab.dir / "hosts"
    hosts.write_text("".join(f"{ip} {NAME}\n" for ip in NAMED))
    world.bed.lab.start("lb", "dns", [
        "dnsmasq", "--keep-in-foreground", "--user=root", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
        f"--addn-hosts={hosts}", "--pid-file=", f"--port={NAME_PORT}", f"--listen-address={NAME_SERVER}",
        "--bind-interfaces"])
    world.bed.wait_connect("lb", NAME_SERVER, NAME_PORT)
    bed = world.start().bed

    def answered():
        said = curl(bed, "-H", "x-named: 1")
        return said.startswith("HTTP/2 200") and said
    # The name is asked for, and both of its addresses are tried, in a time of which others may have most.
    answer = wait_until(answered, 60, "an answer")
    assert f"content-length: {SIZES['blue']}" in answer, answer


@pytest.mark.timeout(400)  # the client is built once, of many packages
def test_grpc_go_calls_over_ipv6(make_world, tmp_path):
    program = go_build("grpcgo", ".", tmp_path / "grpcgo", timeout=380)
    world = make_world(ip6=True, n_rpc=2, extra_routes=[resources.route("/a.B/", "rpc")]).start()
    batch = tmp_path / "batch"
    batch.write_text(json.dumps({"method": "/a.B/C", "count": 200}) + "\n")
    done = world.bed.lab.exec("client", ["sh", "-c", f"'{program}' 'passthrough:///[{VIP6}]:{PORT}' < '{batch}'"],
                              timeout=60)
    found = json.loads(done.stdout)
    assert found["failures"] == {} and sorted(found["answers"].values()) == [100, 100], found
