# SPDX-License-Identifier: Apache-2.0
"""Addresses that the host answers for beside its ports' (`vips`), and the Listeners of shunt-xds that are
served there (`listeners: wildcard`)."""

import time

import pytest

import resources
from lab import wait_until
from testbed import PORT, VIP
from world import ROUTES, SIZES

ROUTED = "10.9.0.0/24"  # by a router alone
NEAR = "10.81.0.128/25"  # in the clients' subnet
QUIET = "10.81.0.64/26"  # likewise, but without ARP
STAYS = "10.9.0.1"
TAKES_S = 20
DRAIN_S = 5


def address(ip, port=PORT):
    return {"socket_address": {"address": ip, "port_value": port}}


def listener(name, *ips, cluster=None, port=PORT, **manager_fields):
    manager = dict(resources.listener("x", ROUTES)["api_listener"]["api_listener"], **manager_fields)
    if cluster:
        del manager["rds"]
        routes = resources.route_config(
            cluster, resources.virtual_host("all", ["*"], resources.route("/", cluster)))
        manager["route_config"] = {k: v for k, v in routes.items() if k != "@type"}
    made = {"@type": resources.LISTENER, "name": name, "address": address(ips[0], port),
            "default_filter_chain": {"filters": [{"name": "hcm", "typed_config": manager}]}}
    if ips[1:]:
        made["additional_addresses"] = [{"address": address(ip, port)} for ip in ips[1:]]
    return made


class Vips:
    """The standard world with a wildcard beside its frontend."""

    def __init__(self, world, vips=(ROUTED, NEAR), quiet=(QUIET,)):
        self.world, self.bed = world, world.bed
        listed = [f"{{prefix: '{v}'}}" for v in vips] + [f"{{prefix: '{v}', arp: false}}" for v in quiet]
        self.bed.settings = f"listener_drain_s: {DRAIN_S}\nlisteners: wildcard\nvips: [{', '.join(listed)}]\n"
        self.bed.lab.ip("client", "route", "add", ROUTED, "via", VIP)

    def put(self, *listeners):
        world = self.world
        web = resources.listener("web", ROUTES)
        world.folder.set(*world._clusters(), world.routes(100, 0), web, *listeners)

    def size(self, ip, port=PORT):
        """Of the answer that a new connection to this address gets; 0 = none."""
        url = f"http://[{ip}]:{port}/mark" if ":" in ip else f"http://{ip}:{port}/mark"
        argv = ["curl", "-s", "-m", "20", "--http2-prior-knowledge", url]
        return len(self.bed.lab.exec("client", argv, check=False).stdout)

    def shown(self):
        return {row["name"]: row for row in self.bed.show("listeners")}

    def state(self, name):
        return self.shown().get(name, {"state": "none"})["state"]

    def count(self, group, name):
        return sum(worker[group][name] for worker in self.bed.show_workers())

    def loses(self, ip, lose):
        """Of calls at STAYS and at this other address of the same Listener those at the latter alone are sent away."""
        bed, stop = self.bed, self.bed.lab.dir / "stop"
        stays, leaves = (bed.start_calls(f"at-{at}", "steady", target=f"{at}:{PORT}", stop_file=str(stop))
                         for at in (STAYS, ip))
        self.wait_for("calls", lambda: all("ready" in load.output() for load in (stays, leaves)))
        before = self.count("proxy", "clients_drained")
        lose()
        self.wait_for("who is sent away", lambda: self.count("proxy", "clients_drained") > before)
        self.wait_for("nobody there", lambda: not leaves.alive() and not self.size(ip))
        stop.touch()
        assert bed.calls_result(stays)["calls"] > 0
        assert self.count("proxy", "clients_drained") == before + 1

    def wait_for(self, what, condition):
        wait_until(condition, TAKES_S, what)


@pytest.fixture(name="vips")
def fixture_vips(make_world):
    return Vips(make_world())


def test_ten_addresses_come_and_go_and_fail_nothing_at_those_that_stay(vips):
    """A36-65, A36-68: under load at one that stays and at shunt.yaml's own frontend."""
    stays = listener("stays", STAYS)
    vips.put(stays)
    vips.world.start()
    vips.wait_for("what stays", lambda: vips.size(STAYS) == SIZES["blue"])
    assert vips.bed.show("info")["frontends"][-1]["name"] == "listeners"
    stop = vips.bed.lab.dir / "stop"
    loads = [vips.bed.start_calls(f"steady-{ip}", "steady", target=f"{ip}:{PORT}", stop_file=str(stop))
             for ip in (STAYS, VIP)]
    for cluster in ("green", "blue"):
        more = [listener(f"vip-{n}", f"10.9.0.{n}", cluster=cluster) for n in range(10, 20)]
        vips.put(stays, *more)
        for n in range(10, 20):
            vips.wait_for(f"10.9.0.{n}", lambda n=n: vips.size(f"10.9.0.{n}") == SIZES[cluster])
        shown = vips.shown()
        assert shown["vip-12"]["state"] == "serving"
        assert shown["vip-12"]["addresses"] == f"10.9.0.12:{PORT}"
        vips.put(stays, *more[5:])
        vips.wait_for("the end of five", lambda: not any(vips.size(f"10.9.0.{n}") for n in range(10, 15)))
        assert vips.size("10.9.0.17") == SIZES[cluster]
    vips.put(stays)
    vips.wait_for("the end of all", lambda: set(vips.shown()) == {"stays", "web"})
    assert not vips.size("10.9.0.17")
    stop.touch()
    for load in loads:
        assert vips.bed.calls_result(load)
    assert vips.count("proxy", "vips_refused") == 0


def test_ops_73_74_all_of_them_drain_and_return_as_they_are_by_then(vips):
    """They are one frontend: `listeners`. That of shunt.yaml goes on."""
    bed, stays = vips.bed, listener("stays", STAYS)
    bed.settings += "drain_s: 2\n"
    vips.put(stays, listener("goes", "10.9.0.2"))
    vips.world.start()
    vips.wait_for("both", lambda: vips.size(STAYS) == vips.size("10.9.0.2") == SIZES["blue"])
    bed.shuntctl("drain", "frontend", "listeners")
    bed.shuntctl("wait", "drained")
    assert not vips.size(STAYS) and not vips.size("10.9.0.2") and vips.size(VIP)
    assert vips.state("stays") == "drained"
    vips.put(stays, listener("comes", "10.9.0.3", cluster="green"))
    vips.wait_for("the change", lambda: {"stays", "comes"} <= set(vips.shown()) and vips.state("goes") == "none")
    assert not vips.size(STAYS) and not vips.size("10.9.0.3")
    bed.shuntctl("undrain")
    vips.wait_for("both", lambda: (vips.size(STAYS), vips.size("10.9.0.3")) == (SIZES["blue"], SIZES["green"]))
    assert not vips.size("10.9.0.2") and vips.state("stays") == "serving"
    assert vips.count("proxy", "vips_refused") == 0


def test_incremental_ads_brings_them_likewise(vips):
    """A36-64, A36-68."""
    vips.bed.settings += "xds: {protocol: delta}\n"
    vips.put(listener("stays", STAYS), listener("goes", "10.9.0.2", cluster="green"))
    vips.world.start()
    vips.wait_for("service", lambda: vips.size("10.9.0.2") == SIZES["green"])
    vips.put(listener("stays", STAYS), listener("comes", "10.9.0.3", cluster="green"))
    vips.wait_for("the new one", lambda: vips.size("10.9.0.3") == SIZES["green"])
    vips.wait_for("the end of the other", lambda: not vips.size("10.9.0.2"))
    assert vips.size(STAYS) == SIZES["blue"]
    vips.wait_for("nothing of it", lambda: set(vips.shown()) == {"stays", "comes", "web"})


def test_clients_of_an_address_that_goes_have_their_time(vips):
    """A36-68."""
    vips.put(listener("goes", STAYS))
    vips.world.start()
    vips.wait_for("service", lambda: vips.size(STAYS) == SIZES["blue"])
    stop = vips.bed.lab.dir / "stop"
    vips.bed.start_calls("leaving", "steady", target=f"{STAYS}:{PORT}", stop_file=str(stop))
    vips.wait_for("a client", lambda: vips.bed.show("info")["client_connections"] > 0)
    drained = vips.count("proxy", "clients_drained")
    vips.put()
    vips.wait_for("leaving", lambda: vips.state("goes") == "leaving")
    vips.wait_for("clients sent away", lambda: vips.count("proxy", "clients_drained") > drained)
    vips.wait_for("nothing of it", lambda: vips.state("goes") == "none")
    stop.touch()


def test_a36_75_what_comes_back_is_served_at_once_and_stays(vips):
    vips.put(listener("back", STAYS))
    vips.world.start()
    vips.wait_for("service", lambda: vips.size(STAYS) == SIZES["blue"])
    vips.put()
    vips.wait_for("leaving", lambda: vips.state("back") == "leaving")
    assert not vips.size(STAYS)
    vips.put(listener("back", STAYS))
    vips.wait_for("service again", lambda: vips.size(STAYS) == SIZES["blue"])
    assert set(vips.shown()) == {"back", "web"}
    stop = vips.bed.lab.dir / "stop"
    drained = vips.count("proxy", "clients_drained")
    load = vips.bed.start_calls("back", "steady", target=f"{STAYS}:{PORT}", stop_file=str(stop))
    time.sleep(DRAIN_S + 3)  # beyond what those who were sent away had
    stop.touch()
    assert vips.bed.calls_result(load)
    assert vips.state("back") == "serving"
    assert vips.count("proxy", "clients_drained") == drained


def test_a36_72_clients_of_an_address_that_a_listener_loses_are_sent_away(vips):
    other = "10.9.0.2"
    vips.put(listener("two", STAYS, other))
    vips.world.start()
    vips.wait_for("both", lambda: vips.size(STAYS) and vips.size(other))
    vips.loses(other, lambda: vips.put(listener("two", STAYS)))
    assert vips.state("two") == "serving"


def test_who_is_first_at_an_address_keeps_it_and_strangers_are_only_told(vips):
    """A36-66, A36-67, A36-70."""
    vips.put(listener("first", STAYS, "10.9.0.2", cluster="green"))
    vips.world.start()
    vips.wait_for("the first", lambda: vips.size("10.9.0.2") == SIZES["green"])
    first = listener("first", STAYS, "10.9.0.2", cluster="green")
    vips.put(first, listener("second", "10.9.0.3", "10.9.0.2", cluster="blue"),
             listener("stranger", "10.99.0.1"), listener("other-port", "10.9.0.2", port=PORT + 1))
    vips.wait_for("another port", lambda: vips.size("10.9.0.2", PORT + 1) == SIZES["blue"])
    vips.wait_for("the refusal", lambda: vips.state("second") == "failing")
    shown = vips.shown()
    assert f'10.9.0.2:{PORT} is the address of listener "first" already' in shown["second"]["error"]
    assert vips.size("10.9.0.2") == SIZES["green"]
    assert not vips.size("10.9.0.3")
    assert shown["stranger"]["state"] == "outside"
    assert "10.99.0.1" in shown["stranger"]["error"]
    assert shown["web"]["error"] == "it is not a socket listener"
    vips.put(listener("first", STAYS, cluster="green"), listener("second", "10.9.0.3", "10.9.0.2", cluster="blue"))
    vips.wait_for("the second", lambda: vips.size("10.9.0.2") == SIZES["blue"])
    assert vips.size(STAYS) == SIZES["green"]
    assert vips.size("10.9.0.3") == SIZES["blue"]


def test_arp_answers_where_it_is_wanted_and_what_is_routed_is_taken_everywhere(vips):
    """A36-61, A36-62."""
    vips.put(listener("near", "10.81.0.130"), listener("quiet", "10.81.0.70"))
    vips.world.start()
    vips.wait_for("by ARP", lambda: vips.size("10.81.0.130") == SIZES["blue"])
    vips.wait_for("the quiet one", lambda: vips.state("quiet") == "serving")
    assert not vips.size("10.81.0.70")
    vips.bed.lab.ip("client", "route", "add", "10.81.0.70/32", "via", VIP)
    assert vips.size("10.81.0.70") == SIZES["blue"]


def test_neighbor_discovery_answers_likewise(make_world):
    """A36-61, A36-62."""
    vips = Vips(make_world(ip6=True), ("10.9.0.0/24", "fd81::9:0/112"), ("fd81::8:0/112",))
    vips.put(listener("near", "fd81::9:7"), listener("quiet", "fd81::8:7"))
    vips.world.start()
    vips.wait_for("by neighbor discovery", lambda: vips.size("fd81::9:7") == SIZES["blue"])
    vips.wait_for("the quiet one", lambda: vips.state("quiet") == "serving")
    assert not vips.size("fd81::8:7")
    vips.bed.lab.ip("client", "-6", "route", "add", "fd81::8:7/128", "via", "fd81::10")
    assert vips.size("fd81::8:7") == SIZES["blue"]
