# SPDX-License-Identifier: Apache-2.0
"""A frontend whose Listener comes from shunt-xds, with filter chains by source address (gRFC A36)."""

import json

import pytest

import resources
from lab import wait_until
from pki import Pki
from test_certs import CERT, KEY
from test_tls import provider
from testbed import EXAMPLE, PORT, SENDS_AGAIN, VIP
from tls_table import DOWNSTREAM
from world import ROUTES, SIZES

NAME = "socket"
SECOND, THIRD, STRANGER = "10.81.0.2", "10.81.0.3", "10.81.0.4"
TAKES_S = 20
DRAIN_S = 10


class Chains:
    """The standard world behind chains: the client's own address has the routes by name, others the
    chains that are put there."""

    def __init__(self, world):
        self.world, self.bed = world, world.bed
        self.bed.listener = NAME
        self.bed.settings = f"listener_drain_s: {DRAIN_S}\n"
        for ip in (SECOND, THIRD, STRANGER):
            self.bed.lab.address("client", "c0", f"{ip}/24")

    def chain(self, source, cluster=None, **fields):
        manager = dict(resources.listener("x", ROUTES)["api_listener"]["api_listener"], **fields)
        if cluster:
            del manager["rds"]
            routes = resources.route_config(
                cluster, resources.virtual_host("all", ["*"], resources.route("/", cluster)))
            manager["route_config"] = {k: v for k, v in routes.items() if k != "@type"}
        ip, bits = source.split("/")
        return {"filter_chain_match": {"source_prefix_ranges": [{"address_prefix": ip, "prefix_len": int(bits)}]},
                "filters": [{"name": "hcm", "typed_config": manager}]}

    def put(self, *chains, port=PORT, name=NAME, more=(), **fields):
        address = {"socket_address": {"address": VIP, "port_value": port}}
        listener = {"@type": resources.LISTENER, "name": name, "address": address,
                    "filter_chains": list(chains), **fields}
        world = self.world
        world.folder.set(*world._clusters(), world.routes(100, 0), listener, *more)

    def own(self, **fields):
        return self.chain("10.81.0.1/32", **fields)

    def size(self, source, port=PORT):
        """Of the answer that a new connection from this address gets; 0 = none."""
        argv = ["curl", "-s", "-m", "20", "--http2-prior-knowledge", "--interface", source, f"http://{VIP}:{port}/mark"]
        return len(self.bed.lab.exec("client", argv, check=False).stdout)

    def count(self, name):
        return sum(worker["proxy"][name] for worker in self.bed.show_workers())

    def frontend(self):
        return self.bed.show("info")["frontends"][0]

    def wait_for(self, what, condition):
        wait_until(condition, TAKES_S, what)


@pytest.fixture(name="chains")
def fixture_chains(make_world):
    return Chains(make_world())


def test_each_source_has_the_most_specific_chain_and_strangers_none(chains):
    """A36-22, A36-30."""
    chains.put(chains.own(), chains.chain("10.81.0.2/31", "green"), chains.chain("10.81.0.2/32", "blue"))
    chains.world.start()
    chains.wait_for("the chains", lambda: chains.frontend()["state"] == "serving")
    chains.wait_for("the second's chain", lambda: chains.size(SECOND) == SIZES["blue"])
    chains.wait_for("the third's chain", lambda: chains.size(THIRD) == SIZES["green"])
    assert chains.bed.run_h2load(requests=100).perfect
    before = chains.count("clients_unmatched")
    assert chains.size(STRANGER) == 0
    assert chains.count("clients_unmatched") > before
    other = chains.chain("10.81.0.2/31", "green")
    chains.put(chains.own(), other, default_filter_chain=chains.chain("0.0.0.0/0", "green"))
    chains.wait_for("the default chain", lambda: chains.size(STRANGER) == SIZES["green"])


def test_a_change_of_one_chain_leaves_the_others_alone_and_fails_nothing(chains):
    """A36-33, A36-34: under load, which stays connected while other chains change."""
    chains.put(chains.own(), chains.chain("10.81.0.2/31", "blue"))
    chains.world.start()
    stop = chains.bed.lab.dir / "stop"
    load = chains.bed.start_calls("steady", "steady", stop_file=str(stop), options=SENDS_AGAIN)
    chains.wait_for("the first client", lambda: chains.count("clients") > 0)
    for number in range(10):
        color = ("green", "blue")[number % 2]
        chains.put(chains.own(), chains.chain("10.81.0.2/31", color))
        chains.wait_for(color, lambda: chains.size(SECOND) == SIZES[color])
    assert chains.count("clients_drained") == 0
    chains.put(chains.own(stream_idle_timeout="77s"), chains.chain("10.81.0.2/31", "blue"))
    chains.wait_for("clients sent away", lambda: chains.count("clients_drained") > 0)
    chains.put(chains.chain("10.81.0.1/32", "rpc"))
    chains.wait_for("clients sent away again", lambda: chains.count("clients_drained") > 1)
    stop.touch()
    result = chains.bed.calls_result(load)
    assert result, result


def test_an_address_of_another_is_not_served_until_it_is_right(chains):
    """A36-31, A36-32."""
    chains.put(chains.own(), port=PORT + 1)
    chains.world.start(wait=False)
    chains.wait_for("the reason", lambda: (chains.bed.stats_socket.exists()
                                           and "another address" in chains.frontend()["error"]))
    assert chains.frontend()["state"] == "failing"
    assert chains.size("10.81.0.1") == 0
    chains.put(chains.own())
    chains.wait_for("service", lambda: chains.size("10.81.0.1") == SIZES["blue"])
    assert chains.frontend()["state"] == "serving"
    chains.put(chains.own(), port=PORT + 1)
    chains.wait_for("its end", lambda: chains.size("10.81.0.1") == 0)


def test_a_frontend_that_names_nothing_has_the_listener_of_the_template(make_world, tmp_path):
    """A36-36."""
    made = json.loads((EXAMPLE / "bootstrap.json").read_text())
    made["server_listener_resource_name_template"] = "servers/%s"
    bootstrap = tmp_path / "bootstrap.json"
    bootstrap.write_text(json.dumps(made))
    chains = Chains(make_world())
    chains.bed.listener = None
    chains.bed.more_frontends = [f"{{name: own, address: {VIP}, port: {PORT + 1}}}"]
    chains.put(chains.own(), port=PORT + 1, name=f"servers/{VIP}:{PORT + 1}", more=[resources.listener("web", ROUTES)])
    chains.bed.start_xds()
    chains.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(bootstrap)})
    chains.wait_for("the template's listener", lambda: chains.size("10.81.0.1", PORT + 1) == SIZES["blue"])
    assert chains.size("10.81.0.1") == SIZES["blue"]


def secured(chain, instance="front"):
    common = {"tls_certificate_provider_instance": {"instance_name": instance}}
    return {**chain, "transport_socket": {
        "name": "tls", "typed_config": {"@type": DOWNSTREAM, "common_tls_context": common}}}


def test_a_chain_with_tls_speaks_nothing_else_beside_one_in_the_clear(chains, tmp_path):
    """A36-35."""
    pki = Pki(tmp_path / "pki")
    pki.authority("ca")
    pki.leaf("front", "ca", f"IP:{VIP}")
    made = json.loads((EXAMPLE / "bootstrap.json").read_text())
    made["certificate_providers"] = {
        "front": provider(**{CERT: pki.folder / "front.pem", KEY: pki.folder / "front.key"})}
    bootstrap = tmp_path / "bootstrap.json"
    bootstrap.write_text(json.dumps(made))
    chains.put(chains.own(), secured(chains.chain("10.81.0.2/32", "green")))
    chains.bed.start_xds()
    chains.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(bootstrap)})

    def secure_size(source):
        argv = ["curl", "-s", "-m", "20", "--http2", "--cacert", str(pki.folder / "ca.pem"), "--interface", source,
                f"https://{VIP}:{PORT}/mark"]
        return len(chains.bed.lab.exec("client", argv, check=False).stdout)

    chains.wait_for("the second's chain", lambda: secure_size(SECOND) == SIZES["green"])
    assert chains.size(SECOND) == 0
    chains.wait_for("our own chain", lambda: chains.size("10.81.0.1") == SIZES["blue"])
    assert secure_size("10.81.0.1") == 0
    chains.put(chains.own(), chains.chain("10.81.0.2/32", "green"))
    chains.wait_for("plain text", lambda: chains.size(SECOND) == SIZES["green"])
    chains.put(chains.own(), secured(chains.chain("10.81.0.2/32", "blue")))
    chains.wait_for("TLS again", lambda: secure_size(SECOND) == SIZES["blue"])
    assert chains.size(SECOND) == 0
