# SPDX-License-Identifier: Apache-2.0
"""Frontends and vips that a reload of shunt.yaml adds, changes and removes while requests go on, and none is lost for
it."""

import json
import re

import pytest

import resources
from lab import LabError, wait_until
from pki import Pki
from steady import steady_load
from test_certs import CERT, KEY
from test_tls import provider
from test_vips import Vips, listener
from testbed import EXAMPLE, PORT, SENDS_AGAIN, VIP
from world import RPC_PATH, SIZES

LOAD = {"requests": 20_000, "clients": 8, "streams": 8}
MORE_PORT, MOVED_PORT = 8081, 8082
TAKES_S = 20
PATTERNS, COMPILES_S = 2000, 60  # some seconds
COMPILING = "compiling regular expressions"
DRAINS = "listener_drain_s: 5\n"


def url(port):
    return f"http://{VIP}:{port}"


def frontend(name, port, more="target: web"):
    return f"{{name: {name}, address: {VIP}, port: {port}, {more}}}"


def reload(bed):
    """What `reload` says of the bed as it is now."""
    (bed.lab.dir / "shunt.yaml").write_text(bed.config_text())
    return json.loads(bed.shuntctl("--json", "reload"))["data"]


def change(bed, *more_frontends):
    bed.more_frontends = more_frontends
    report = reload(bed)
    assert report["needs_restart"] == "", report
    return report["changed"]


def curl(bed, target, *words):
    """How many bytes a new connection gets; 0 = none."""
    argv = ["curl", "-s", "-m", "20", "--http2-prior-knowledge", *words, f"{target}/mark"]
    return len(bed.lab.exec("client", argv, check=False).stdout)


def refuses(bed, port):
    probe = ["timeout", "10", "bash", "-c", f": </dev/tcp/{VIP}/{port}"]
    return bed.lab.exec("client", probe, check=False).returncode == 1


def names(bed):
    return [row["name"] for row in bed.show("info")["frontends"]]


def causes(bed):
    """Of all requests that did not end well, but for those that h2load drops when its time is over."""
    return {cause: n for worker in bed.show_workers() for cause, n in worker["ended"].items()
            if n and cause not in ("ok", "client_lost", "client_reset")}


def sent_away(bed, load):
    """What GOAWAY leaves unasked counts with h2load as not started."""
    report = bed.h2load_report(load)
    assert report.failed == report.errored and report.succeeded > 0, report


def requests_of(bed, name):
    rows = [row for row in bed.show("stat") if (row["pxname"], row["svname"]) == (name, "FRONTEND")]
    return sum(row["req_tot"] for row in rows)


@pytest.mark.timeout(150)
def test_ops_323_325_one_comes_moves_and_goes_under_load(make_world):
    world = make_world()
    bed = world.bed
    bed.settings += DRAINS
    world.start()
    with steady_load(bed, LOAD):
        assert change(bed, frontend("more", MORE_PORT)) == "frontends[1]"
        assert names(bed) == ["web", "more"]
        wait_until(lambda: curl(bed, url(MORE_PORT)), TAKES_S, "the new one")
        assert bed.run_h2load(url=url(MORE_PORT), requests=200).perfect
        moves = bed.start_h2load("moves", url=url(MORE_PORT), seconds=12, clients=8, streams=8)
        wait_until(lambda: requests_of(bed, "more") > 1000, TAKES_S, "a load on it")
        assert change(bed, frontend("more", MOVED_PORT)) == "frontends[1].port"
        wait_until(lambda: curl(bed, url(MOVED_PORT)), TAKES_S, "the other port")
        assert refuses(bed, MORE_PORT)
        sent_away(bed, moves)
        goes = bed.start_h2load("goes", url=url(MOVED_PORT), seconds=12, clients=8, streams=8)
        before = requests_of(bed, "more")
        wait_until(lambda: requests_of(bed, "more") > before + 1000, TAKES_S, "a load on it")
        assert change(bed) == "frontends[more]"
        wait_until(lambda: refuses(bed, MOVED_PORT), TAKES_S, "its end")
        assert names(bed) == ["web"]
        sent_away(bed, goes)
        events = lambda: [row["event"] for row in bed.show("events")]
        wait_until(lambda: "frontend has no clients left" in events(), TAKES_S, "the last client")
        # Its place is another's, who begins with nothing counted.
        change(bed, frontend("new", MORE_PORT))
        wait_until(lambda: curl(bed, url(MORE_PORT)), TAKES_S, "the newest")
        assert requests_of(bed, "new") < 20
    assert causes(bed) == {}


@pytest.mark.timeout(120)
def test_ops_324_another_target_serves_once_it_is_there_and_no_call_fails(make_world):
    world = make_world()
    bed = world.bed
    bed.settings += DRAINS
    world.start()
    stop = bed.lab.dir / "stop"
    load = bed.start_calls("steady", "steady", stop_file=str(stop), options=SENDS_AGAIN)
    wait_until(lambda: "ready" in load.output(), TAKES_S, "calls")
    text = bed.config_text().replace("target: web", "target: other")
    (bed.lab.dir / "shunt.yaml").write_text(text)
    assert json.loads(bed.shuntctl("--json", "reload"))["data"]["changed"] == "frontends[0].target"
    shown = bed.show("info")["frontends"][0]
    assert (shown["target"], shown["waiting"]) == ("web", "listener other")
    assert curl(bed, url(PORT)) in SIZES.values()
    routes = resources.route_config("other-routes", resources.virtual_host(
        "all", ["*"], resources.route(RPC_PATH, "rpc"), resources.route("/", "green")))
    world.folder.put(routes, resources.listener("other", "other-routes"))
    wait_until(lambda: bed.show("info")["frontends"][0]["target"] == "other", TAKES_S, "the other target")
    assert {curl(bed, url(PORT)) for _ in range(10)} == {SIZES["green"]}
    assert change(bed) == "frontends[0].target"  # back
    wait_until(lambda: bed.show("info")["frontends"][0]["target"] == "web", TAKES_S, "the first target")
    stop.touch()
    assert bed.calls_result(load)["calls"] > 100
    assert causes(bed) == {}


@pytest.mark.timeout(150)
def test_ops_302_one_whose_patterns_are_compiled_is_what_it_was_until_all_of_it_changes(make_world):
    """Beside a load at another frontend of the same clusters. The old target's endpoints move meanwhile."""
    world = make_world()
    bed = world.bed
    bed.settings += DRAINS
    bed.more_frontends = (frontend("more", MORE_PORT),)
    world.start()
    slow = [resources.route({"safe_regex": {"regex": f"/(a|bc){{1,20}}{n}/(x|yz)*"}}, "blue") for n in range(PATTERNS)]
    routes = resources.route_config("other-routes", resources.virtual_host(
        "all", ["*"], *slow, resources.route("/", "green")))
    moved = frontend("more", MOVED_PORT, "target: other")

    def row():
        return bed.show("info")["frontends"][1]
    with steady_load(bed, LOAD):
        bed.more_frontends = (moved,)
        assert reload(bed)["pending"] == "more"
        world.folder.put(routes, resources.listener("other", "other-routes"))
        wait_until(lambda: row()["waiting"] == COMPILING, TAKES_S, "patterns")
        world.folder.put(resources.endpoints("blue", world.addresses("blue")[0]))
        wait_until(lambda: len([e for e in bed.show("endpoints") if e["cluster"] == "blue"]) == 1, TAKES_S, "endpoints")
        old, is_refused = curl(bed, url(MORE_PORT)), refuses(bed, MOVED_PORT)
        try:
            why = change(bed, moved, frontend("new", MORE_PORT))
        except LabError as error:
            why = str(error)
        shown = row()
        compiles = shown["waiting"] == COMPILING
        if compiles:
            assert old in SIZES.values() and is_refused
            assert re.search(rf"port: {VIP}:{MORE_PORT} is still that of .*, until its target", why), why
            assert (shown["port"], shown["target"]) == (MORE_PORT, "web")
        wait_until(lambda: row()["target"] == "other", COMPILES_S, "the other target")
        assert row()["port"] == MOVED_PORT
        wait_until(lambda: curl(bed, url(MOVED_PORT)) == SIZES["green"], TAKES_S, "the other address")
        assert not compiles or refuses(bed, MORE_PORT)
        assert "frontends[2]" in (why, change(bed, moved, frontend("new", MORE_PORT)))
        wait_until(lambda: curl(bed, url(MORE_PORT)), TAKES_S, "another one at the old address")
        assert reload(bed)["pending"] == ""
    assert causes(bed) == {}
    if not compiles:
        pytest.skip("on cores that others have, all was compiled before anybody could ask")


@pytest.mark.timeout(120)
def test_ops_324_tls_comes_to_a_frontend_with_its_certificate_or_not_at_all(make_world, tmp_path):
    made = Pki(tmp_path / "pki")
    made.authority("ca")
    made.leaf("server", "ca", sans=f"IP:{VIP}")
    text = json.loads((EXAMPLE / "bootstrap.json").read_text())
    files = {name: {CERT: made.folder / f"{name}.pem", KEY: made.folder / f"{name}.key"} for name in ("server", "none")}
    text["certificate_providers"] = {name: provider(**paths) for name, paths in files.items()}
    path = tmp_path / "bootstrap.json"
    path.write_text(json.dumps(text))
    bed = make_world().bed
    bed.settings += DRAINS
    bed.start_xds()
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
    with pytest.raises(LabError, match=r"frontends\[1\]: tls: "):
        change(bed, frontend("secure", MORE_PORT, "target: web, tls: {certificate: none}"))
    assert names(bed) == ["web"]
    change(bed, frontend("secure", MORE_PORT))
    wait_until(lambda: curl(bed, url(MORE_PORT)), TAKES_S, "the new one, in the clear")
    secure = f"https://{VIP}:{MORE_PORT}", "--cacert", str(made.folder / "ca.pem")
    assert not curl(bed, *secure)
    assert change(bed, frontend("secure", MORE_PORT, "target: web, tls: {certificate: server}")) == "frontends[1].tls"
    wait_until(lambda: curl(bed, *secure), TAKES_S, "TLS")
    assert not curl(bed, url(MORE_PORT))
    assert curl(bed, url(PORT))


@pytest.mark.timeout(120)
def test_ops_328_a_certificate_that_is_new_in_the_bootstrap_comes_with_a_reload(make_world, tmp_path):
    made = Pki(tmp_path / "pki")
    made.authority("ca")
    text, path = json.loads((EXAMPLE / "bootstrap.json").read_text()), tmp_path / "bootstrap.json"

    def write(*names):
        for name in names:
            made.leaf(name, "ca", sans=f"IP:{VIP}")
        text["certificate_providers"] = {
            name: provider(**{CERT: made.folder / f"{name}.pem", KEY: made.folder / f"{name}.key"}) for name in names}
        path.write_text(json.dumps(text))
    write("first")
    bed = make_world().bed
    bed.settings += DRAINS
    bed.start_xds()
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
    by = {name: frontend(name, port, f"target: web, tls: {{certificate: {name}}}")
          for name, port in (("first", MORE_PORT), ("second", MOVED_PORT))}
    assert change(bed, by["first"]) == "frontends[1]"
    secure = "--cacert", str(made.folder / "ca.pem")
    wait_until(lambda: curl(bed, f"https://{VIP}:{MORE_PORT}", *secure), TAKES_S, "the first one")
    with steady_load(bed, LOAD):
        with pytest.raises(LabError, match="no certificate provider .*second.* in the bootstrap"):
            change(bed, *by.values())
        path.write_text(path.read_text()[:-1])
        with pytest.raises(LabError, match=f"bootstrap {path}: line"):
            change(bed, *by.values())
        write("first", "second")
        assert change(bed, *by.values()) == 'frontends[2], certificate_providers["second"]'
        wait_until(lambda: curl(bed, f"https://{VIP}:{MOVED_PORT}", *secure), TAKES_S, "the second one")
        assert curl(bed, f"https://{VIP}:{MORE_PORT}", *secure)
        write("second")
        report = reload(bed)
        assert (report["changed"], report["needs_restart"]) == ("", 'certificate_providers["first"]')
        assert curl(bed, f"https://{VIP}:{MORE_PORT}", *secure)


def test_ops_326_what_cannot_be_is_named_and_changes_nothing(make_world):
    bed = make_world().start().bed
    refused = {
        frontend("more", PORT): rf"frontends\[1\]: port: {VIP}:{PORT} belongs to frontends\[0\] already",
        "{name: more, address: 10.99.0.1, port: 81, target: web}": r"frontends\[1\]: address: 10\.99\.0\.1 is not an",
        frontend("more", MORE_PORT, "target: web, tls: {certificate: nobody}"): r"frontends\[1\]: tls\.certificate: ",
        "{name: more, address: 10.81.0.10, port: loud, target: web}": r"frontends\[1\]\.port: 'loud'",
    }
    with steady_load(bed, LOAD):
        for more, error in refused.items():
            with pytest.raises(LabError, match=error):
                change(bed, more)
            assert names(bed) == ["web"]
        bed.more_frontends = (frontend("own", MORE_PORT, "listener: sock"),)
        bed.settings += "retries: {max_attempts: 3}\n"
        report = reload(bed)  # nobody had a Listener's at the start
        assert (report["changed"], report["needs_restart"]) == ("retries.max_attempts", "frontends[1]")
    assert names(bed) == ["web"]


@pytest.mark.timeout(150)
def test_ops_327_vips_come_and_go_with_what_is_served_there(make_world):
    """Beside a load at one that stays. 10.9.0.0/24 and 10.7.0.0/24 are routed to the host, 10.81.0.192/26 is the
    clients' own subnet, where ARP has to find it."""
    vips = Vips(make_world(), vips=("10.9.0.0/24",), quiet=())
    bed, settings = vips.bed, vips.bed.settings
    bed.lab.ip("client", "route", "add", "10.7.0.0/24", "via", VIP)
    stays, goes, near = listener("stays", "10.9.0.1"), listener("goes", "10.7.0.1"), listener("near", "10.81.0.200")
    vips.put(stays, goes, near)
    vips.world.start()
    vips.wait_for("what stays", lambda: vips.size("10.9.0.1"))
    assert vips.state("goes") == vips.state("near") == "outside"

    def say(*prefixes):
        listed = ", ".join(f"{{prefix: '{prefix}'}}" for prefix in prefixes)
        bed.settings = settings.replace("{prefix: '10.9.0.0/24'}", listed)
        return reload(bed)["changed"]
    stop = bed.lab.dir / "stop"
    load = bed.start_calls("steady", "steady", target="10.9.0.1:8080", stop_file=str(stop), options=SENDS_AGAIN)
    vips.wait_for("calls", lambda: "ready" in load.output())
    assert say("10.9.0.0/24", "10.7.0.0/24", "10.81.0.192/26") == "vips"
    vips.wait_for("the others", lambda: vips.size("10.7.0.1") and vips.size("10.81.0.200"))
    assert vips.state("goes") == vips.state("near") == "serving"
    bed.more_frontends = ("{name: own, address: 10.7.0.2, port: 80, target: web}",)
    assert reload(bed)["changed"] == "frontends[1]"
    vips.wait_for("a frontend of a new prefix", lambda: vips.size("10.7.0.2", 80))
    with pytest.raises(LabError, match=r"frontends\[1\]: address: 10\.7\.0\.2 is not an address"):
        say("10.9.0.0/24")
    bed.more_frontends = ()
    assert say("10.9.0.0/24") == "vips, frontends[own]"
    vips.wait_for("their end", lambda: not any(
        vips.size(ip, port) for ip, port in (("10.7.0.1", PORT), ("10.81.0.200", PORT), ("10.7.0.2", 80))))
    vips.wait_for("the end of the prefixes", lambda: "vips are gone" in [row["event"] for row in bed.show("events")])
    rows = bed.show("addresses")["addresses"]
    assert [row["address"] for row in rows if row["kind"] == "vips"] == ["10.9.0.0"]
    stop.touch()
    assert bed.calls_result(load)["calls"] > 100
    assert causes(bed) == {}


@pytest.mark.timeout(120)
def test_a36_72_clients_of_vips_that_a_reload_takes_are_sent_away_while_their_listener_stays(make_world):
    """Before the prefix is gone, behind which nothing reaches them any more."""
    vips = Vips(make_world(), vips=("10.9.0.0/24", "10.7.0.0/24"), quiet=())
    bed = vips.bed
    bed.lab.ip("client", "route", "add", "10.7.0.0/24", "via", VIP)
    vips.put(listener("two", "10.9.0.1", "10.7.0.1"))
    vips.world.start()
    vips.wait_for("both", lambda: vips.size("10.9.0.1") and vips.size("10.7.0.1"))

    def lose():
        bed.settings = bed.settings.replace(", {prefix: '10.7.0.0/24'}", "")
        assert reload(bed)["changed"] == "vips"
    vips.loses("10.7.0.1", lose)
    vips.wait_for("the end of the prefix", lambda: "vips are gone" in [row["event"] for row in bed.show("events")])
    assert vips.size("10.9.0.1")
