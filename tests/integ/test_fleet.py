# SPDX-License-Identifier: Apache-2.0
"""Hosts behind a router, by the recipes of contrib/fleet (docs/fleet.md): restarted, killed, and more or fewer. The
whole, with ExaBGP, more of FRR, more load and more rounds, is opt-in: tools/test fleet."""

import math
import os
import re
import signal
import time

import pytest

from agent import Agent
from fleet_world import FRR, PORT, READY, READY_FILE, VIP, VIP6, VIPS, Bird, Cpu, Exabgp, Fleet, Frr
from lab import wait_until

EXIT_S = 60
PHASES = ["farewell", "draining", "worker drained", "lame duck", "stopped"]  # clients go before readiness
SETTINGS = "farewell_s: 3\nlame_duck_s: 1\ndrain_s: 5"
# The full load, for machines that carry less or more.
RATE = int(os.environ.get("SHUNT_FLEET_RATE", "2000"))
STREAMS = int(os.environ.get("SHUNT_FLEET_STREAMS", "200"))
CHANNELS, STREAM_S = 24, 4
# By which the death of a host is known: BFD's detection time, three intervals of 100 ms after its last packet (RFC 5880
# 6.8.4), or without BFD the hold time after its last keepalive (RFC 4271 6.5). What else tells is sooner: of a link the
# kernel at once, of shuntd alone shunt-announce, which asks again after 0.1 s.
BFD_S, HOLD_S = 0.3, 9
THEN_S = 0.1  # until a new connection is served
with_frr = pytest.mark.skipif(not os.path.isdir(FRR), reason="no FRR")
whole = pytest.mark.skipif("not config.getoption('--fleet')", reason="tools/test fleet runs it")


@pytest.fixture(name="make_fleet")
def fixture_make_fleet(lab):
    """Fleet(...); at the end daemons that run must be at rest, and leave in order."""
    fleets = []

    def make(speakers=(Bird, Bird), **arguments):
        fleets.append(Fleet(lab, **arguments))
        fleets[-1].add(*speakers)
        return fleets[-1]
    yield make
    running = [host for fleet in fleets for host in fleet.hosts if host.is_alive()]
    for host in running:
        wait_until(host.is_at_rest, EXIT_S, f"no request at host {host.n}")
        host.daemon.signal(signal.SIGTERM)
    for host in running:
        wait_until(lambda h=host: any(f'msg="{phase}"' in h.daemon.output() for phase in PHASES), EXIT_S,
                   f"the end of host {host.n} to begin")
        host.daemon.signal(signal.SIGTERM)  # nobody is to be waited for
    for host in running:
        assert host.daemon.wait(EXIT_S) == 0, host.daemon.output()


class Flows:
    """Connections of the client, each known by its port."""

    def __init__(self, fleet, vip=VIP):
        self.fleet, self.to = fleet, {"ip": vip, "port": PORT}
        self.agent = Agent(fleet.lab, "client", f"flows-{VIPS.index(vip)}", "fleet_agent.py")

    def open(self, n):
        return self.agent.ask(op="open", n=n, **self.to)

    def ask(self):
        """(ports that were answered, ports that were lost)"""
        answers = {int(port): status for port, status in self.agent.ask(op="ask").items()}
        assert set(answers.values()) <= {"200", "lost"}, answers
        return {p for p, s in answers.items() if s == "200"}, {p for p, s in answers.items() if s != "200"}

    def knock(self, seconds):
        """Begins new connections, one after the other; knocked() or served_after() is to follow."""
        self.agent.begin(op="knock", seconds=seconds, **self.to)

    def knocked(self):
        """(when it began, when it was over, "served", "cut" or "refused") of each."""
        return [tuple(row) for row in self.agent.answer()]

    def served_after(self, when, noticed=False):
        """Seconds until a new connection was served behind which all were; noticed: some before must not have been."""
        tries = self.knocked()
        unserved = max((began for began, _, became in tries if became != "served"), default=0)
        assert unserved > when or not noticed, "nobody met the host that had died"
        return min((over for began, over, _ in tries if began > max(unserved, when)), default=math.inf) - when

    def hosts(self, ports):
        """{port: the number of the host that has its connection}"""
        found = {port: host.n for host in self.fleet.hosts if host.is_alive() for port in host.clients(self.to["ip"])}
        return {port: found[port] for port in ports}


def restart(host):
    """As systemd does it: SIGTERM, its end, a start, until it has its part again. Returns how many clients it had, for
    whom there was a GOAWAY each."""
    clients, told = sum(len(host.clients(vip)) for vip in VIPS), host.goaways()
    host.daemon.signal(signal.SIGTERM)
    wait_until(lambda: host.goaways() >= told + clients, EXIT_S, f"GOAWAY for {clients} clients")
    assert host.daemon.wait(EXIT_S) == 0, host.daemon.output()
    wait_until(host.is_withdrawn, EXIT_S, "the route withdrawn")
    log = host.daemon.output()
    assert [phase for phase in re.findall(r'msg="([^"]*)"', log) if phase in PHASES] == PHASES, log
    assert 'msg="stopped" requests_cut=0' in log, log
    host.start()
    wait_until(host.is_announced, EXIT_S, "the route again")
    return clients


def rolling_restart(fleet, rounds=1):
    """Returns how many clients each host had in each round."""
    had = []
    for _ in range(rounds):
        for host in fleet.hosts:
            had.append(restart(host))
            time.sleep(1)
    return had


@pytest.mark.timeout(300)
@pytest.mark.parametrize("router, speakers, ready", [
    (Bird, (Bird, Bird), READY_FILE), pytest.param(Frr, (Bird, Frr), READY, marks=with_frr)], ids=["bird", "frr"])
def test_fl_41_43_hosts_are_restarted_one_after_the_other_and_no_call_fails(make_fleet, router, speakers, ready):
    """Neither a unary call nor a stream of a second, by IPv4 or IPv6 (FL-136), by the ready file (FL-201) or /ready."""
    fleet = make_fleet(speakers, settings=SETTINGS, router=router, ready=ready)
    loads = [fleet.start_load(channels=4, per_s=50, streams=2, stream_s=1, vip=vip) for vip in VIPS]
    rolling_restart(fleet)
    for load in loads:
        report = fleet.end_load(load)
        assert report["failed"] == [], report
        assert report["calls"] > 150 and report["streams"] > 5, report
        print(f"calls {report['calls']}, streams {report['streams']}, longest {report['longest_s']:.2f} s")


def kill(host, how):
    """Returns when."""
    if how == "host":
        return host.kill_all()
    killed = time.monotonic()
    if how == "link":
        host.lab.ip(host.ns, "link", "set", "p0", "down")
    else:
        host.daemon.kill()
    return killed


def lost_is_what_was_there(flows, host, before):
    """Only connections of this host are lost, and all of them; returns what is left."""
    kept, lost = flows.ask()
    assert kept and lost == {port for port, n in before.items() if n == host.n}, (lost, before)
    return kept


@pytest.mark.timeout(300)
def test_fl_40_42_a_host_that_is_killed_costs_its_own_connections_alone(make_fleet):
    """By IPv4 and IPv6 (FL-136)."""
    fleet = make_fleet()
    both, host = [Flows(fleet, vip) for vip in VIPS], fleet.hosts[0]
    before = [flows.hosts(flows.open(24)) for flows in both]
    assert all(set(hosts.values()) == {1, 2} for hosts in before)
    strays = fleet.hosts[1].strays()
    for flows in both:
        flows.knock(2)
    killed = kill(host, "shuntd")
    print("new connections served after", *(f"{flows.served_after(killed):.3f} s" for flows in both))
    wait_until(host.is_withdrawn, EXIT_S, "the route withdrawn")
    kept = [lost_is_what_was_there(flows, host, hosts) for flows, hosts in zip(both, before)]
    assert fleet.hosts[1].strays() >= strays + 48 - sum(map(len, kept))  # RST at once, no silence
    host.start()
    wait_until(host.is_announced, EXIT_S, "the route again")
    assert all(1 in flows.hosts(flows.open(24)).values() for flows in both)
    assert not any(flows.ask()[1] for flows in both)  # none had to move for it


class FullLoad:
    """Unary calls and streams by grpc-go, on channels of which each has a connection."""

    def __init__(self, fleet, vip=VIP, channels=CHANNELS):
        self.fleet, self.cpu = fleet, Cpu(fleet.lab)
        self.process = fleet.start_load(channels, RATE, STREAMS, STREAM_S, vip)
        time.sleep(2)

    def end(self):
        """What it was, which must have been the load that it should be."""
        report = self.fleet.end_load(self.process)
        print(f"{report['per_s']:.0f} calls/s of {RATE}, {report['calls']} calls, {report['streams']} streams, "
              f"{len(report['failed'])} failed, {report['not_begun']} not begun, ms {report['ms']}, "
              f"longest without an answer {max(report['gaps_s']):.2f} s; CPU % of a core {self.cpu.told()}")
        assert report["per_s"] > 0.9 * RATE, report["per_s"]
        return report

    def end_without_failure(self):
        """Streams were on each connection at any time, until GOAWAY and the last one's end."""
        report = self.end()
        assert report["failed"] == [], report["failed"][:10]
        assert report["not_begun"] == 0
        turns = report["calls"] / report["per_s"] / STREAM_S
        assert report["streams"] > 0.8 * STREAMS * (turns - 1), (report["streams"], turns)
        return report


def reset_connections(report):
    """Those of the load that others reset while it had them open: {port: how much was on it}."""
    return {opened["port"]: opened["left"] for connections in report["connections"] for opened in connections
            if opened["reset"]}


def port_at(report, channel, when):
    """Of a channel's connection at that moment."""
    return [opened["port"] for opened in report["connections"][channel] if opened["at"] <= when][-1]


def only_these_were_cut(report, dead, when):
    """Calls and streams failed on connections that were lost, and no other channel had to connect anew; returns when
    the last of those that had was back."""
    for failed in report["failed"]:
        assert failed["ended"] > when and port_at(report, failed["channel"], when) in dead, failed
    back = []
    for channel, connections in enumerate(report["connections"]):
        anew = [opened["at"] for opened in connections if opened["at"] > when]
        assert bool(anew) == (port_at(report, channel, when) in dead), (channel, connections, dead)
        back += anew[:1]
    reset = reset_connections(report)
    assert reset and set(reset) <= dead, (reset, dead)
    return max(back, default=when) - when


def a_death_is_survived(load, flows, host, how, seconds=4):
    """Ends the load so much later; returns after how many of them a new connection was served."""
    dead = host.clients(flows.to["ip"])
    assert dead and len(dead) < CHANNELS
    flows.knock(seconds)
    killed = kill(host, how)
    served = flows.served_after(killed, noticed=how == "host")
    back = only_these_were_cut(load.end(), dead, killed)
    print(f"a new connection served after {served:.3f} s, the last of {len(dead)} that were lost after {back:.3f} s")
    return served


@whole
@pytest.mark.timeout(400)
@pytest.mark.parametrize("router", [Bird, Frr])
@pytest.mark.parametrize("speakers, vip", [((Bird, Frr), VIP), ((Bird, Frr, Exabgp), VIP), ((Bird, Frr, Exabgp), VIP6)],
                         ids=["two", "three", "three-ipv6"])
def test_fl_73_all_hosts_are_restarted_three_times_under_full_load(make_fleet, router, speakers, vip):
    """Each host with another speaker. No call fails, streams end by themselves behind GOAWAY, and no connection is
    reset (FL-182; FL-136: by IPv6 as well)."""
    fleet = make_fleet(speakers, settings=SETTINGS.replace("3", "6"), router=router, full=True)
    fleet.note_resets()
    load, cut = FullLoad(fleet, vip), fleet.cut_connections()
    had = rolling_restart(fleet, rounds=3)
    print(f"clients of each host as it was restarted: {had}")
    assert len(had) == 3 * len(speakers) and all(had), "a host was restarted that had no clients"
    reset = reset_connections(load.end_without_failure())
    counted, seen = fleet.lab.tcp_counters("client"), fleet.noted("resets")
    print({name: counted[name] for name in ("EstabResets", "TCPAbortOnClose", "TCPAbortOnData", "OutRsts")},
          f"RST from {sum('c' in who for who in seen.values())} ports of the client,"
          f" to {sum(who != {'c'} for who in seen.values())}")
    assert not reset and fleet.cut_connections() == cut, (reset, seen)


@whole
@pytest.mark.timeout(200)
@pytest.mark.parametrize("how", ["shuntd", "host", "link"])
@pytest.mark.parametrize("router, speakers, vip", [
    (Bird, (Bird, Bird), VIP), (Bird, (Bird, Bird, Bird), VIP), (Frr, (Frr, Frr), VIP), (Frr, (Bird, Frr, Exabgp), VIP),
    (Bird, (Frr, Bird), VIP), (Bird, (Bird, Exabgp), VIP6), (Frr, (Frr, Bird), VIP6)])
def test_fl_73_a_host_that_dies_under_full_load_costs_its_own_connections_alone(make_fleet, router, speakers, vip, how):
    """Whether shuntd is killed, all of the host's programs are (BFD tells), or its port has no link. Others serve in
    time (FL-134), by IPv6 as well (FL-136)."""
    fleet = make_fleet(speakers, router=router, full=True)
    load, host = FullLoad(fleet, vip), fleet.hosts[0]
    assert a_death_is_survived(load, Flows(fleet, vip), host, how) <= BFD_S + THEN_S
    if how == "link":
        host.lab.ip(host.ns, "link", "set", "p0", "up")


@whole
@pytest.mark.timeout(200)
@pytest.mark.parametrize("router", [Bird, Frr])
def test_fl_135_without_bfd_the_hold_time_tells_of_a_death(make_fleet, router):
    """ExaBGP has none. What repeats its segments does so last some 6 and 13 s after the death."""
    fleet = make_fleet((Exabgp, router), router=router, full=True)
    load = FullLoad(fleet)
    served = a_death_is_survived(load, Flows(fleet), fleet.hosts[0], "host", HOLD_S + 9)
    assert BFD_S + THEN_S < served <= HOLD_S + THEN_S




@whole
@pytest.mark.timeout(200)
@pytest.mark.parametrize("router", [Bird, Frr])
@pytest.mark.parametrize("vip", VIPS)
@pytest.mark.parametrize("resilient", [False, True])
def test_fl_73_more_and_fewer_hosts_under_full_load_cut_what_is_hashed_elsewhere(make_fleet, router, resilient, vip):
    """2 -> 3 -> 2. Whose call fails had to connect anew, as the router took him elsewhere: there RST was the answer:
    the router's own count of ways says so of each."""
    fleet = make_fleet((router, router), router=router, resilient=resilient, full=True)
    fleet.note_ways()
    load = FullLoad(fleet, vip)
    before, n_cut = time.monotonic(), fleet.cut_connections()
    resets = {host.n: host.resets() for host in fleet.hosts}
    fleet.add(router)
    time.sleep(3)
    assert fleet.hosts[2].resets() <= 0
    fleet.hosts[2].daemon.kill()
    fleet.wait_for(1, 2)
    time.sleep(3)
    n_cut = fleet.cut_connections() - n_cut
    # Of connections that it had no host sent any.
    assert all(host.resets() <= resets[host.n] for host in fleet.hosts[:2])
    report, ways = load.end(), fleet.noted("ways")
    anew = [n for n, connections in enumerate(report["connections"]) for opened in connections if opened["at"] > before]
    moved = set(anew)
    assert {failed["channel"] for failed in report["failed"]} <= moved
    assert all(failed["ended"] > before for failed in report["failed"])
    print(f"{len(moved)} of {CHANNELS} connections cut, {len(report['failed'])} calls and streams, {n_cut} by RST")
    assert bool(moved) != resilient and len(moved) < CHANNELS
    assert len(anew) <= n_cut if moved else n_cut == 0
    for connections in report["connections"]:
        *cut, last = (ways[opened["port"]] for opened in connections)
        assert len(last) == 1, "a connection is left whose segments went to several hosts"
        assert all(len(hosts) > 1 or hosts == {3} for hosts in cut), (cut, "cut, and always with the host that lived")


def withdrawn_within(host):
    """(when its routes were still there, when they were not any more)"""
    there = [time.monotonic()] * 2

    def is_withdrawn():
        there.append(time.monotonic())
        return not host.is_announced()
    wait_until(is_withdrawn, EXIT_S, "the route withdrawn")
    wait_until(host.is_withdrawn, EXIT_S, "both routes withdrawn")
    return there[-2], time.monotonic()


@whole
@pytest.mark.timeout(300)
@pytest.mark.parametrize("speaker", [Bird, Frr, Exabgp])
def test_fl_40_who_drains_is_withdrawn_before_clients_are_refused(make_fleet, speaker):
    """Whoever comes from before SIGTERM until the host has ended is served; the router cuts who is open as it moves
    flows."""
    fleet = make_fleet((Bird, speaker), settings="lame_duck_s: 4\ndrain_s: 2")
    flows, host = Flows(fleet), fleet.hosts[1]
    flows.knock(10)
    time.sleep(0.5)
    host.daemon.signal(signal.SIGTERM)
    asked = time.monotonic()
    before, withdrawn = withdrawn_within(host)
    ended = host.daemon.wait(EXIT_S), time.monotonic()
    tries = flows.knocked()
    met = sum(asked < began and over < before for began, over, _ in tries)
    unserved = [row for row in tries if row[2] != "served"]
    print(f"withdrawn after {withdrawn - asked:.2f} s, {met} came before; {len(unserved)} of {len(tries)} not served")
    assert ended[0] == 0, host.daemon.output()
    assert met and max(began for began, *_ in tries) > ended[1]
    assert all(became == "cut" and began < withdrawn and over > before for began, over, became in unserved), unserved


@whole
@pytest.mark.timeout(300)
@pytest.mark.parametrize("resilient", [False, True])
def test_fl_42_a_link_that_goes_down_costs_its_own_connections_alone(make_fleet, resilient):
    fleet = make_fleet(resilient=resilient)
    flows, host = Flows(fleet), fleet.hosts[0]
    before = flows.hosts(flows.open(24))
    flows.knock(2)
    print(f"new connections served after {flows.served_after(kill(host, 'link')):.3f} s")
    wait_until(host.is_withdrawn, EXIT_S, "the path gone")
    assert lost_is_what_was_there(flows, host, before)
    fleet.lab.ip(host.ns, "link", "set", "p0", "up")
    wait_until(host.is_announced, EXIT_S, "the path again")
    assert host.n in flows.hosts(flows.open(24)).values()


@whole
@pytest.mark.timeout(300)
@pytest.mark.parametrize("vip", VIPS)
@pytest.mark.parametrize("resilient", [False, True])
def test_fl_43_more_and_fewer_hosts_cut_what_is_hashed_elsewhere(make_fleet, resilient, vip):
    """2 -> 3 -> 2. With plain paths the router moves flows of all hosts; groups move those alone whose host goes
    (FL-136: by IPv6 as well)."""
    fleet = make_fleet(resilient=resilient)
    flows = Flows(fleet, vip)
    before = flows.hosts(flows.open(60))

    def changed(what):
        """What is lost is open where it was; another host has refused it. Returns where the others are."""
        kept, lost = flows.ask()
        alive = [host for host in fleet.hosts if host.is_alive()]
        for host in alive:
            assert {port for port in lost if before[port] == host.n} <= host.clients(vip), host.n
        assert sum(host.strays() for host in alive) >= len(lost)
        print(f"{what}: {len(lost)} of {len(before)} cut")
        return {port: before[port] for port in kept}, lost
    fleet.add(Bird)
    before, lost = changed("2 -> 3")
    assert bool(lost) != resilient
    before |= flows.hosts(flows.open(60))
    on_third = {port for port, n in before.items() if n == 3}
    assert on_third
    fleet.hosts[2].daemon.kill()
    fleet.wait_for(1, 2)
    before, lost = changed("3 -> 2")
    assert lost == on_third if resilient else lost > on_third
