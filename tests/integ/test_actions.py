# SPDX-License-Identifier: Apache-2.0
"""What operators do by the stats socket: who may, drains, waits, and what they say of endpoints."""

import json
import signal
import time

import pytest

import resources
from lab import LabError, command, wait_until
from testbed import PORT, VIP
from world import SIZES, WEB_PORT

OTHER_PORT = 8081
OTHER_URL = f"http://{VIP}:{OTHER_PORT}"
TIMEOUT_S = 30
METRICS = "127.0.0.1:9464"
# Ids of groups that no host here has.
OPERATORS, ADMINS = 42001, 42002
STRANGER = 42000


def ask(bed, *words):
    return json.loads(bed.shuntctl(*words, "json"))["data"]


def as_user(bed, groups, *words):
    """shuntctl of a process without any right of root's."""
    who = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}",
           f"--groups={groups}" if groups else "--clear-groups"]
    return command([*who, *bed.shuntctl_argv(*words)]).stdout


@pytest.fixture(name="levels")
def fixture_levels(make_world):
    world = make_world()
    config = world.bed.config_text
    world.bed.config_text = lambda: config().replace(
        'mode: "0660"', f'mode: "0666", operators: {OPERATORS}, admins: {ADMINS}')
    return world.start()


def test_ops_70_levels_come_from_groups(levels):
    bed = levels.bed
    operator, admin = OPERATORS, f"7,{ADMINS}"
    for groups in ("", operator, admin):
        assert "state: ready" in as_user(bed, groups, "show", "info")
        as_user(bed, groups, "reconnect")
    for groups, level in (("", "user"), (f"{OPERATORS - 1}", "user"), (operator, "operator")):
        with pytest.raises(LabError, match=f"'reload' needs the level admin, and yours is {level}"):
            as_user(bed, groups, "reload")
    with pytest.raises(LabError, match="'drain' needs the level operator, and yours is user"):
        as_user(bed, "", "drain")
    assert "serving: 0" in as_user(bed, operator, "undrain")
    assert "needs_restart:" in as_user(bed, admin, "reload")
    assert "needs_restart:" in bed.shuntctl("reload")


def test_ops_71_an_action_is_told_with_who_did_it(levels):
    bed = levels.bed
    as_user(bed, OPERATORS, "undrain", "all")
    with pytest.raises(LabError):
        as_user(bed, "", "undrain", "all")
    bed.shuntctl("reload")
    actions = [row["details"] for row in ask(bed, "show", "events") if row["event"] == "operator's action"]
    assert len(actions) == 2, actions
    assert f'user="" uid={STRANGER} pid=' in actions[0] and 'command="undrain all"' in actions[0]
    assert 'user="root" uid=0 pid=' in actions[1] and 'command="reload"' in actions[1]


@pytest.fixture(name="make_two")
def fixture_make_two(make_world):
    def make(lame_duck_s=2, drain_s=5):
        """Two frontends, web and other."""
        world = make_world()
        world.bed.more_frontends = (f"{{name: other, address: {VIP}, port: {OTHER_PORT}, target: web}}",)
        world.bed.settings += f"lame_duck_s: {lame_duck_s}\ndrain_s: {drain_s}\nmetrics: {{listen: '{METRICS}'}}\n"
        return world.start()
    return make


@pytest.fixture(name="two")
def fixture_two(make_two):
    return make_two()


def states(bed):
    return {row["name"]: row["state"] for row in bed.show("info")["frontends"]}


def readiness(bed):
    """(what /ready answers, the metrics of frontends that drain)"""
    fetch = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://{METRICS}/ready"]
    lines = bed.shuntctl("show", "metrics").splitlines()
    return (bed.lab.exec("lb", fetch).stdout,
            {line for line in lines if line.startswith("shunt_frontend_draining{")})


def refuses(bed, port):
    probe = ["timeout", "10", "bash", "-c", f": </dev/tcp/{VIP}/{port}"]
    return bed.lab.exec("client", probe, check=False).returncode == 1


def causes(bed):
    """Of all requests that did not end well, but for those that h2load drops when its time is over."""
    return {cause: n for worker in bed.show_workers() for cause, n in worker["ended"].items()
            if n and cause not in ("ok", "client_lost", "client_reset")}


@pytest.mark.ends_daemon
def test_ops_240_the_ready_file_is_there_while_ready_says_yes(make_world, lab):
    path = lab.dir / "ready"
    path.touch()  # left over
    world = make_world()
    bed = world.bed
    bed.settings += f"ready_file: {path}\nlame_duck_s: 60\ndrain_s: 5\nmetrics: {{listen: '{METRICS}'}}\n"
    world.start()
    wait_until(path.exists, TIMEOUT_S, "the file")
    assert readiness(bed)[0] == "200"
    ask(bed, "drain")
    assert not path.exists() and readiness(bed)[0] == "503"
    ask(bed, "undrain")
    assert path.exists() and readiness(bed)[0] == "200"
    path.unlink()
    path.mkdir()
    wait_until(lambda: bed.show("info")["ready_file_error"] == "it is no empty file", TIMEOUT_S, "the error")
    assert [row["details"] for row in ask(bed, "show", "events") if row["event"] == "ready file"]
    path.rmdir()
    wait_until(path.is_file, TIMEOUT_S, "the file, a second later")
    assert bed.show("info")["ready_file_error"] == ""
    bed.daemon.signal(signal.SIGTERM)
    wait_until(lambda: not path.exists(), TIMEOUT_S, "the file to go in the lame duck")
    assert bed.daemon.alive()


def test_ops_72_73_a_drain_under_load_fails_no_request(make_two):
    """What GOAWAY leaves unasked counts with h2load as not started."""
    bed = make_two(lame_duck_s=6).bed
    wait_until(lambda: set(states(bed).values()) == {"serving"}, TIMEOUT_S, "links that are up")
    assert readiness(bed)[0] == "200"
    leaving = bed.start_h2load("leaving", seconds=12, clients=8, streams=8)
    staying = bed.start_h2load("staying", url=OTHER_URL, requests=28_800, clients=4, streams=4, rate=600)
    wait_until(lambda: bed.show("info")["requests"] > 3000, TIMEOUT_S, "a load")
    assert ask(bed, "drain", "frontend", "web") == {"draining": 1}
    assert states(bed) == {"web": "lame_duck", "other": "serving"}
    assert bed.show("info")["state"] == "draining"
    assert readiness(bed) == ("503", {'shunt_frontend_draining{frontend="web"} 1',
                                      'shunt_frontend_draining{frontend="other"} 0'})
    assert bed.run_h2load(requests=200).perfect  # a newcomer
    waited = ask(bed, "wait", "drained")["waited_s"]
    assert waited > 1, waited
    assert states(bed) == {"web": "drained", "other": "serving"}
    assert refuses(bed, PORT) and not refuses(bed, OTHER_PORT)
    report = bed.h2load_report(leaving)
    assert report.failed == report.errored and report.succeeded > 0, report
    assert bed.h2load_report(staying).perfect
    assert causes(bed) == {}
    events = [row["event"] for row in ask(bed, "show", "events")]
    order = [events.index(event) for event in ("frontends begin to drain", "operator's action",
                                               "frontends send clients away", "frontends drained")]
    assert order == sorted(order), events
    ask(bed, "undrain")
    assert bed.run_h2load(requests=200).perfect
    assert readiness(bed)[0] == "200"


def test_ops_74_a_drain_is_taken_back_while_clients_are_lame_ducks(make_two):
    bed = make_two(lame_duck_s=15).bed
    load = bed.start_h2load("load", requests=24_000, clients=8, streams=8, rate=600)
    time.sleep(1)
    assert ask(bed, "drain") == {"draining": 2}
    time.sleep(0.5)
    assert ask(bed, "undrain") == {"serving": 2}
    assert states(bed) == {"web": "serving", "other": "serving"}
    assert bed.h2load_report(load).perfect  # nobody was told anything
    assert causes(bed) == {} and readiness(bed)[0] == "200"


def test_ops_74_a_drain_is_taken_back_while_streams_are_open(make_two):
    bed = make_two(drain_s=8).bed
    calls = bed.start_calls("held", "held_streams", streams=4, seconds=12.0)
    wait_until(lambda: "ready" in calls.output(), TIMEOUT_S, "open streams")
    ask(bed, "drain", "all")
    wait_until(lambda: states(bed)["web"] == "draining", TIMEOUT_S, "clients that are sent away")
    assert refuses(bed, PORT)
    ask(bed, "undrain", "frontend", "web")
    assert bed.run_h2load(requests=200).perfect
    # They would have been cut 10 s after the drain.
    assert all(s["complete"] and s["code"] == 0 for s in bed.calls_result(calls))
    assert causes(bed) == {}


@pytest.mark.ends_daemon
def test_ops_75_sigterm_goes_on_from_a_drain(two):
    bed = two.bed
    ask(bed, "drain")
    ask(bed, "wait", "drained")
    bed.daemon.popen.terminate()
    assert bed.daemon.wait(TIMEOUT_S) == 0, bed.daemon.output()
    assert 'msg="lame duck"' not in bed.daemon.output()  # it is one no more
    assert 'msg="stopped" requests_cut=0' in bed.daemon.output(), bed.daemon.output()


@pytest.mark.ends_daemon
def test_ops_75_sigterm_while_another_frontend_serves_takes_its_time(two):
    bed = two.bed
    ask(bed, "drain", "frontend", "web")
    ask(bed, "wait", "drained")
    bed.daemon.popen.terminate()
    assert bed.run_h2load(requests=200, url=OTHER_URL).perfect
    with pytest.raises(LabError, match="the daemon is stopping"):
        bed.shuntctl("undrain")
    assert bed.daemon.wait(TIMEOUT_S) == 0, bed.daemon.output()


def test_ops_76_who_waits_is_told_what_is_missing(make_two):
    bed = make_two(lame_duck_s=4, drain_s=60).bed
    assert ask(bed, "wait", "ready")["waited_s"] == 0
    with pytest.raises(LabError, match="no frontend drains"):
        bed.shuntctl("wait", "drained")
    calls = bed.start_calls("held", "held_streams", streams=1, seconds=12.0)
    wait_until(lambda: "ready" in calls.output(), TIMEOUT_S, "an open stream")
    ask(bed, "drain", "frontend", "web")
    with pytest.raises(LabError, match="not within 1 s: frontend web is lame_duck"):
        bed.shuntctl("wait", "ready", "1")
    wait_until(lambda: states(bed)["web"] == "draining", TIMEOUT_S, "clients that are sent away")
    with pytest.raises(LabError, match="not within 1 s: frontend web is draining: 1 clients are left"):
        bed.shuntctl("wait", "drained", "1")
    ready = bed.lab.start("lb", "wait", bed.shuntctl_argv("wait", "ready"))
    gone = bed.lab.start("lb", "gone", bed.shuntctl_argv("wait", "ready", "3600"))
    time.sleep(0.5)
    gone.kill()
    assert bed.show("info")["state"] == "draining"  # others are answered meanwhile
    ask(bed, "undrain")
    assert ready.wait(TIMEOUT_S) == 0 and "waited_s:" in ready.output(), ready.output()
    bed.calls_result(calls)


def test_ops_76_a_version_is_waited_for(world):
    bed = world.bed

    def version():
        return next(row["version"] for row in bed.show("xds")["resources"] if row["type"] == "route configuration")
    before = version()
    assert ask(bed, "wait", "config", before)["waited_s"] < 1
    with pytest.raises(LabError, match="not within 1 s: no resource has version never"):
        bed.shuntctl("wait", "config", "never", "1")
    world.set_weights(50, 50)
    wait_until(lambda: version() != before, TIMEOUT_S, "another version")
    ask(bed, "wait", "config", version())
    with pytest.raises(LabError, match="not within 1 s: no resource has version"):
        bed.shuntctl("wait", "config", before + "x", "1")


def test_ops_80_the_logs_level_is_set_until_a_reload(world):
    bed = world.bed
    assert ask(bed, "set", "log", "level", "warn") == {"level": "warn", "was": "info"}
    n_lines = bed.daemon.output().count("\n")
    bed.shuntctl("reconnect")
    assert bed.daemon.output().count("\n") == n_lines
    assert ask(bed, "reload")["applied"] is True
    assert ask(bed, "reload")["applied"] is False
    assert bed.shuntctl("reload").startswith("applied: nothing to change\n")
    bed.shuntctl("reconnect")
    wait_until(lambda: 'msg="reconnect"' in bed.daemon.output().split('msg="reloaded"')[-1], TIMEOUT_S, "the line")


def requests_of(bed):
    """Of blue's endpoints, and what they are like."""
    rows = ask(bed, "show", "endpoints", "blue")
    return {row["endpoint"]: row for row in rows}


def test_ops_77_78_an_endpoint_drained_under_load_fails_no_request(world):
    bed = world.bed
    first, second = f"10.82.1.1:{WEB_PORT}", f"10.82.1.2:{WEB_PORT}"
    load = bed.start_h2load("load", requests=28_800, clients=8, streams=8, rate=600)
    time.sleep(1)
    row = ask(bed, "set", "endpoint", f"blue/{first}", "drain")
    assert row == {"cluster": "blue", "endpoint": first, "override": "drain", "state": "applied", "note": ""}
    wait_until(lambda: requests_of(bed)[first]["connections"] == 0, TIMEOUT_S, "its connections to be closed")
    counts = bed.show("stat")
    before = next(r["req_tot"] for r in counts if r["pxname"] == "blue" and r["svname"] == first)
    world.web_backends["blue-3"] = ("blue", "10.82.1.4")  # an update of the endpoints
    world.set_weights(75, 25)
    wait_until(lambda: len(requests_of(bed)) == 3, TIMEOUT_S, "the update")
    time.sleep(0.5)
    shown = requests_of(bed)
    assert (shown[first]["health"], shown[first]["override"]) == ("DRAINING", "drain"), shown
    assert shown[second]["override"] == "", shown
    after = next(r["req_tot"] for r in bed.show("stat") if r["pxname"] == "blue" and r["svname"] == first)
    assert after == before
    assert {r["override"] for r in bed.show("clusters")["endpoints"] if r["endpoint"] == first} == {"drain"}
    assert bed.h2load_report(load).perfect
    assert causes(bed) == {}
    ask(bed, "unset", "endpoint", f"blue/{first}")
    wait_until(lambda: requests_of(bed)[first]["state"] == "READY", TIMEOUT_S, "the endpoint")
    assert bed.run_h2load(requests=2000).perfect
    assert requests_of(bed)[first]["requests"] > 0
    assert bed.show("overrides") == []


RING, KEYED = "ring", 200


def ring():
    return [{**resources.cluster(RING), "lb_policy": "RING_HASH"},
            resources.endpoints(RING, ("10.82.1.1", WEB_PORT), ("10.82.1.3", WEB_PORT))]


def answers_of_the_first(bed):
    """Of so many requests with a key each, which one of ring's endpoints answers, blue's."""
    path = bed.lab.dir / "keyed"
    path.write_text("next\n".join(
        f'url = "http://{VIP}:{PORT}/mark"\nheader = "x-key: {i}"\noutput = "/dev/null"\nsilent\nshow-error\nhttp1.1\n'
        'write-out = "%{size_download}\\n"\nmax-time = 10\n' for i in range(KEYED)))
    sizes = bed.lab.exec("client", ["curl", "-K", path], timeout=60).stdout.split()
    assert len(sizes) == KEYED and set(map(int, sizes)) <= set(SIZES.values()), sizes
    return sizes.count(str(SIZES["blue"]))


def test_ops_77_295_a_weight_counts_where_the_policy_looks_at_it_and_else_says_so(make_world):
    keyed = {"cluster": RING, "hash_policy": [{"header": {"header_name": "x-key"}}]}
    bed = make_world(extra=ring(), extra_routes=[resources.route("/mark", keyed)]).start().bed
    assert 0.3 * KEYED < answers_of_the_first(bed) < 0.7 * KEYED
    first = f"10.82.1.1:{WEB_PORT}"
    assert ask(bed, "set", "endpoint", f"{RING}/{first}", "weight", "20")["note"] == ""
    wait_until(lambda: answers_of_the_first(bed) > 0.85 * KEYED, TIMEOUT_S, "its share")
    ask(bed, "unset", "endpoint", f"{RING}/{first}")
    wait_until(lambda: answers_of_the_first(bed) < 0.7 * KEYED, TIMEOUT_S, "its end")
    assert "weighs no endpoints" in ask(bed, "set", "endpoint", f"blue/{first}", "weight", "20")["note"]


def test_ops_79_an_override_waits_for_its_endpoint(world):
    bed = world.bed
    late = f"10.82.1.4:{WEB_PORT}"
    assert ask(bed, "set", "endpoint", f"blue/{late}", "down")["state"] == "waits for the endpoint"
    assert ask(bed, "set", "endpoint", f"blue/{late}", "weight", "3")["override"] == "down weight 3"
    assert ask(bed, "set", "endpoint", f"absent/{late}", "up")["state"] == "waits for the cluster"
    world.web_backends["blue-3"] = ("blue", "10.82.1.4")
    world.set_weights(75, 25)
    wait_until(lambda: bed.show("overrides")[0]["state"] == "applied", TIMEOUT_S, "the endpoint")
    row = requests_of(bed)[late]
    assert (row["health"], row["weight"], row["override"]) == ("UNHEALTHY", 3, "down weight 3"), row
    assert bed.show("overrides")[1]["state"] == "waits for the cluster"
