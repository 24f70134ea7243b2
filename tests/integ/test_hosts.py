# SPDX-License-Identifier: Apache-2.0
"""Three hosts with Shunt before the same backends and one xDS server: what their load reports sum up to, and whom each
of them ejects (docs/scale.md#what-is-each-hosts-own)."""

import re
import time

import pytest

import resources
from balance_case import policies, policy
from balance_cases import ROUND_ROBIN
from hosts_world import RPC_PORT, Hosts, Tally, backend, cluster, endpoints
from lab import wait_until
from testbed import EXIT_TIMEOUT_S

LIMIT_S = 45
NEVER_S = 3600  # between reports
HALF = {"policy": {"drop_overloads": [
    {"category": "half", "drop_percentage": {"numerator": 50, "denominator": "HUNDRED"}}]}}
NARROW = {"circuit_breakers": {"thresholds": [{"max_requests": 2}]}}
EVERYBODY = (1, 2, 3, 4, 5)


def judged(name, percent, hosts=2, volume=5, interval="0.5s", **more):
    """Who fails more than half of its requests is ejected, for long."""
    return [{**resources.cluster(name), "outlier_detection": {
        "interval": interval, "base_ejection_time": "300s", "max_ejection_percent": percent,
        "enforcing_success_rate": 0, "enforcing_failure_percentage": 100, "failure_percentage_threshold": 50,
        "failure_percentage_minimum_hosts": hosts, "failure_percentage_request_volume": volume}, **more},
        resources.endpoints(name, *((backend(n), RPC_PORT) for n in EVERYBODY))]


def in_a_subset(hosts):
    few = policy("random_subsetting", subset_size=3, child_policy={"policies": [ROUND_ROBIN]})
    return judged("subset", 60, hosts=hosts, **policies(few))


CLUSTERS = {
    "probed": [cluster("probed"), endpoints("probed", 5)],
    "judged": judged("judged", 40),
    "refused": judged("refused", 40),
    "thin": judged("thin", 40, hosts=5, volume=15, interval="1s"),
    "subset": in_a_subset(4),
    "counted": [cluster("counted"), endpoints("counted", 1, 2, 3)],
    "dropping": [cluster("dropping"), endpoints("dropping", 1, 2, **HALF)],
    "narrow": [cluster("narrow", **NARROW), endpoints("narrow", 3)],
    "stopped": [cluster("stopped"), endpoints("stopped", 1, 2, 3)],
    "slow": [cluster("slow"), endpoints("slow", 1, 2, 3)],
    "restarted": [cluster("restarted"), endpoints("restarted", 1, 2, 3)],
    "lost": [cluster("lost"), endpoints("lost", 1, 2, 3)],
}


@pytest.fixture(name="world", scope="module")
def fixture_world(module_lab):
    world = Hosts(module_lab, CLUSTERS)
    yield world
    for host in world.hosts:
        host.stop()


@pytest.fixture(autouse=True)
def fixture_all_run(world):
    """Whatever the test before has ended, and backends answer OK."""
    world.at_backends("behave", *EVERYBODY)
    if not world.server:
        world.start_server()
    for host in world.hosts:
        if not host.daemon.alive():
            host.start()
            host.wait_ready("probed")
    world.report_every(1)


def until_told(world, name, sent):
    wait_until(lambda: world.told(name) == sent, LIMIT_S,
               f"reports of {sent}, last {world.told(name)}")


def test_fl_99_sums_over_hosts_are_what_clients_sent_and_backends_counted(world):
    """By host, by locality (each of which is one endpoint here) and by outcome; and drops."""
    sent, by_host, before = Tally(), {}, world.counted()
    for host in world.hosts:
        answers = host.call("counted", 30 + 10 * host.n)
        assert {a["code"] for a in answers} == {"OK"}
        by_host[host] = Tally().add_answers(answers)
    world.at_backends("behave", 2, status=14)
    for host in world.hosts:
        by_host[host].add_answers(host.call("counted", 20 + host.n))
    world.at_backends("behave", 2)
    for host in world.hosts:
        sent.update(by_host[host])
    until_told(world, "counted", sent)
    for host in world.hosts:
        assert world.told("counted", host) == by_host[host]
        shown = {kind: sum(row[kind] for row in host.endpoints("counted").values()) for kind in ("ok", "failed")}
        assert shown == {"ok": sum(n for (_, kind), n in by_host[host].items() if kind == "ok"),
                         "failed": by_host[host]["lab/zone-2/", "error"]}, host.n
    served = {where: n - before[where] for where, n in world.counted().items() if n > before[where]}
    assert served == sent.issued()
    assert sum(sent.issued().values()) == 216 and sent["lab/zone-2/", "error"] > 0


def test_fl_99_drops_sum_up_and_requests_in_progress_go_back_to_none(world):
    dropped, refused = Tally(), Tally()
    for host in world.hosts:
        host.begin("dropping", 60)
    for host in world.hosts:
        dropped.add_answers(host.answers())
    for host in world.hosts:
        host.begin("narrow", 6, ["x-hold-ms", "60000"], parallel=6)
    wait_until(lambda: world.in_progress("narrow") == 6, LIMIT_S, "two at each of three hosts, as the breaker allows")
    world.at_backends("let_go")
    for host in world.hosts:
        refused.add_answers(host.answers())
    assert refused == {("lab/zone-3/", "issued"): 6, ("lab/zone-3/", "ok"): 6, (None, "dropped"): 12}
    until_told(world, "dropping", dropped)
    until_told(world, "narrow", refused)
    wait_until(lambda: world.in_progress("narrow") == 0, LIMIT_S, "none in progress")


def test_fl_99_the_last_report_of_a_host_that_stops_leaves_before_it_ends(world):
    """LR-12: with what its drain still waited for; no other report is due in this hour."""
    world.report_every(NEVER_S)
    host = world.hosts[2]
    answers = host.call("stopped", 40)
    host.begin("stopped", 3, ["x-hold-ms", "60000"])
    wait_until(lambda: host.endpoints("stopped") and
               sum(row["active"] for row in host.endpoints("stopped").values()) == 3, LIMIT_S, "three on their way")
    host.daemon.signal(15)
    wait_until(lambda: 'msg="draining"' in host.daemon.output(), LIMIT_S, "the drain")
    world.at_backends("let_go")
    answers += host.answers()
    assert {a["code"] for a in answers} == {"OK"} and len(answers) == 43
    let_go = time.monotonic()
    assert host.daemon.wait(EXIT_TIMEOUT_S) == 0
    print(f"ended {time.monotonic() - let_go:.2f} s after the last answer")
    assert world.told("stopped", host) == Tally().add_answers(answers)
    assert world.in_progress("stopped") == 0


def test_fl_99_a_host_ends_when_a_slow_server_has_read_its_last_report(world):
    """LR-12: the second report finds the server busy with the first."""
    host = world.hosts[2]
    world.server.ask(op="pause", seconds=0.2)
    answers = host.call("slow", 20)
    until_told(world, "slow", Tally().add_answers(answers))
    answers += host.call("slow", 10)
    host.stop()
    world.server.ask(op="pause", seconds=0)
    assert world.told("slow") == Tally().add_answers(answers)


def test_fl_99_a_server_that_restarts_is_told_what_was_counted_meanwhile(world):
    sent = Tally()
    for host in world.hosts:
        sent.add_answers(host.call("restarted", 20))
    until_told(world, "restarted", sent)  # what left when a connection broke may be lost: nothing is under way
    world.report_every(NEVER_S)
    for host in world.hosts:
        sent.add_answers(host.call("restarted", 10 + host.n))
    world.end_server()
    for host in world.hosts:
        sent.add_answers(host.call("restarted", 10))
    world.start_server()
    until_told(world, "restarted", sent)
    assert sum(sent.issued().values()) == 126


def test_fl_99_a_host_that_dies_takes_what_it_has_not_told_and_nothing_else(world):
    host, kept = world.hosts[0], Tally()
    for one in world.hosts:
        kept.add_answers(one.call("lost", 20))
    until_told(world, "lost", kept)
    world.report_every(NEVER_S)
    host.call("lost", 17)
    host.daemon.kill()
    kept.add_answers(world.hosts[1].call("lost", 10))
    host.start()
    host.wait_ready("probed")
    world.report_every(1)
    kept.add_answers(host.call("lost", 5))
    until_told(world, "lost", kept)


def test_fl_99_a_host_that_stops_without_a_server_says_how_much_nobody_was_told(world):
    """LR-12."""
    host = world.hosts[1]
    world.report_every(NEVER_S)
    assert len(host.call("lost", 12)) == 12
    world.end_server()
    wait_until(lambda: host.show("info")["lrs_state"] != "CONNECTED", LIMIT_S, "the server's end seen")
    log = host.stop()
    assert re.search(r"load reports: .*10\.70\.2\.1:18000 .* 12 requests", log), log[-2000:]


def ejected(world, name):
    """{host's number: whom it has ejected}"""
    return {host.n: host.ejected(name) for host in world.hosts}


def until_ejected(world, name, wanted, hosts, count=100):
    """These hosts have requests until they have ejected just those."""
    def asked():
        if ejected(world, name) == wanted:
            return True
        for host in hosts:
            host.call(name, count)
        return False
    wait_until(asked, LIMIT_S, f"{wanted} ejected, last {ejected(world, name)}", interval=0.2)


def answered_by(host, name, count=60):
    answers = host.call(name, count)
    return {int(a["backend"]) for a in answers if a["backend"]}


def test_fl_100_each_host_ejects_what_it_has_seen_fail_up_to_its_own_percentage(world):
    """40 % of five are two for each host; in sum more are out somewhere, and others use them still."""
    one, two, three = world.hosts
    world.at_backends("behave", 1, status=14)
    until_ejected(world, "judged", {1: {1}, 2: {1}, 3: set()}, (one, two))  # the third has had no request
    until_ejected(world, "judged", {1: {1}, 2: {1}, 3: {1}}, (three,))
    world.at_backends("behave", 2, peers={one.ip: 14})
    world.at_backends("behave", 3, peers={two.ip: 14})
    until_ejected(world, "judged", {1: {1, 2}, 2: {1, 3}, 3: {1}}, world.hosts)
    assert answered_by(two, "judged") == {2, 4, 5} and answered_by(three, "judged") == {2, 3, 4, 5}
    world.at_backends("behave", 4, status=14)
    until_ejected(world, "judged", {1: {1, 2}, 2: {1, 3}, 3: {1, 4}}, world.hosts)
    assert answered_by(one, "judged") == {3, 4, 5}  # the percentage is used up


def test_fl_100_a_backend_that_refuses_one_host_is_left_by_that_host_alone_without_an_ejection(world):
    """Who cannot be connected to gets no request, and so nothing to be ejected for."""
    host = world.hosts[2]
    assert answered_by(host, "refused") == set(EVERYBODY)
    world.lab.nft("backends", f"""
        add table ip wall
        add chain ip wall in {{ type filter hook input priority 0; }}
        add rule ip wall in ip saddr {host.ip} ip daddr {backend(5)} tcp dport {RPC_PORT} reject with tcp reset
        """)
    wait_until(lambda: answered_by(host, "refused", 20) == {1, 2, 3, 4}, LIMIT_S, "it is left")
    assert {a["code"] for a in host.call("refused", 60)} == {"OK"}
    assert host.endpoints("refused")[5]["state"] != "READY"
    for other in world.hosts[:2]:
        assert answered_by(other, "refused") == set(EVERYBODY)
    assert ejected(world, "refused") == {1: set(), 2: set(), 3: set()}
    world.lab.exec("backends", ["nft", "delete", "table", "ip", "wall"])
    wait_until(lambda: answered_by(host, "refused", 20) == set(EVERYBODY), LIMIT_S, "it is back")


def test_fl_100_request_volume_is_each_hosts_own(world):
    """Thirty requests of three hosts are above a volume of fifteen, the ten of each are not."""
    world.at_backends("behave", 1, status=14)
    for _ in range(2):
        for host in world.hosts:
            host.begin("thin", 50)
        assert all(len(host.answers()) == 50 for host in world.hosts)
        time.sleep(2.4)  # two sweeps
        assert ejected(world, "thin") == {1: set(), 2: set(), 3: set()}
    until_ejected(world, "thin", {1: {1}, 2: set(), 3: set()}, world.hosts[:1], count=300)


def test_fl_100_minimum_hosts_counts_the_subset_and_the_percentage_everybody(world):
    """Three of five are in a host's subset: four can never have the volume; and 60 % of five are all three."""
    host = world.hosts[0]
    world.at_backends("behave", *EVERYBODY, status=14)
    for _ in range(3):
        host.call("subset", 90)
        time.sleep(0.6)
    assert host.ejected("subset") == set()
    world.folder.put(*in_a_subset(3))
    wait_until(lambda: host.call("subset", 90) and len(host.ejected("subset")) == 3, LIMIT_S, "all three", interval=0.2)
