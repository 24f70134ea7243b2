# SPDX-License-Identifier: Apache-2.0
"""A daemon whose server is a caching proxy (xRFC TP2): `shunt-xds proxy` before `shunt-xds serve`."""

import json

import pytest

from lab import wait_until
from resources import both, has, lacks, variant
from test_xds import resource_state, wait_for_split
from testbed import BUILD, EXAMPLE
from world import ROUTES, split_of

SERVER = "127.0.0.1:18001"
PROD, V1 = has("env", "prod"), has("version", "v1")


class Proxied:
    """The standard world, of which the daemon hears by a proxy at the usual address."""

    def __init__(self, world, lab, protocol):
        self.bed = world.bed
        self.world = world
        self.upstream = lab.dir / "upstream.json"
        self.upstream.write_text(json.dumps({
            "xds_servers": [{"server_uri": SERVER, "channel_creds": [{"type": "insecure"}]}],
            "node": {"id": "proxy"}}))
        self.binary = BUILD / "tools" / "shunt-xds" / "shunt-xds"
        self.bed.settings = f"xds: {{protocol: {protocol}}}\n"
        self.server = None
        self.start_server()
        self.bed.start_xds([self.binary, "proxy", "--upstream", self.upstream, "--listen",
                            "127.0.0.1:18000", "--protocol", protocol])

    def start_server(self):
        self.server = self.bed.lab.start("lb", "xds-upstream", [
            self.binary, "serve", self.bed.xds_folder, "--listen", SERVER])
        self.bed.wait_connect("lb", *SERVER.split(":"), self.server)

    def start_daemon(self, **fields):
        bootstrap = {**json.loads((EXAMPLE / "bootstrap.json").read_text()), **fields}
        path = self.bed.lab.dir / "bootstrap.json"
        path.write_text(json.dumps(bootstrap))
        self.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})


@pytest.fixture(name="proxied", params=["sotw", "delta"])
def fixture_proxied(make_world, request, lab):
    return Proxied(make_world(), lab, request.param)


def test_the_servers_death_and_return_fail_no_request(proxied):
    bed, world = proxied.bed, proxied.world
    proxied.start_daemon()
    load = bed.start_h2load("load", requests=32_000, clients=8, streams=8, rate=250)
    world.set_weights(0, 100)
    wait_for_split(bed, 0)
    proxied.server.kill()
    report = bed.run_h2load(requests=1000)
    assert report.perfect, report
    world.set_weights(100, 0)
    proxied.start_server()
    wait_for_split(bed, 100)
    assert load.alive(), "the load ended too early to prove anything"
    report = bed.h2load_report(load)
    assert report.perfect, report
    assert bed.show("xds")["server"]["nacks"] == 0


def test_variant_that_is_split_in_two_under_load_fails_nothing(proxied):
    bed, world = proxied.bed, proxied.world
    world.set_routes(variant(world.routes(100, 0), PROD),
                     variant(world.routes(0, 100), lacks("env", "prod")))
    proxied.start_daemon(dynamic_parameters={"env": "prod", "version": "v1"})
    report = bed.run_h2load(requests=1000)
    assert report.perfect and split_of(report)[1] == 0, report
    load = bed.start_h2load("load", requests=16_000, clients=8, streams=8, rate=250)
    world.set_routes(variant(world.routes(0, 100), both(PROD, V1)),
                     variant(world.routes(100, 0), both(PROD, lacks("version", "v1"))),
                     variant(world.routes(100, 0), lacks("env", "prod")))
    wait_for_split(bed, 0)
    report = bed.h2load_report(load)
    assert report.perfect, report
    wait_until(lambda: resource_state(bed, ROUTES)["state"] == "ACKED", 10, "routes")
    assert bed.show("xds")["server"]["nacks"] == 0
