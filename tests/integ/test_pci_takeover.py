# SPDX-License-Identifier: Apache-2.0
"""A process that takes a card on PCI over from another, which goes on through it (`tools/test pci`, docs/takeover.md).

    client and backends 10.81.0.1 -- the card 10.81.0.10 (two processes of shuntd, one after the other)

Likewise a bond of two cards (bond_world.py).
"""

import json
import re
import shlex
import sys
import time

import pytest

import resources
import vm
from bond_world import NS as FAR, BondWorld
from card_world import READY_TIMEOUT_S, SECOND, SECOND_CLIENT, CardWorld
from guest_world import BACKEND
from lab import wait_until
from lab_fixtures import module_lab_of
from takeover_world import (CRASHES, N_CRASHES, N_TAKEOVERS, Pings, Silences, StreamsOfEach, after_crash, check_relay,
                            count_resets, crashes, quantiles, resets, talking, tell_costs)
from testbed import HERE, SENDS_AGAIN, VIP, Testbed

GRPC_BACKEND = (BACKEND[0], 8090)
SOON_S = 180  # some seconds on an idle machine
PING_S = 0.01  # between two pings: how well a gap is told
CARDS = ("virtio", "virtio-vfio", "vmxnet3", "e1000e")
TAKEOVER = "/run/takeover.sock"
VLANS = {"vlan": 7, "second": 9}

pytestmark = [pytest.mark.timeout(1800),
              pytest.mark.skipif(bool(vm.missing()), reason=vm.missing() or "-")]


def only(name):
    return pytest.mark.parametrize("world", [name], indirect=True)


class TakeoverWorld(CardWorld):
    """gRPC's backend beside the other one, and processes by number."""

    def __init__(self, lab, name):
        super().__init__(lab, name)
        if name == "virtio-vfio":  # each page is mapped by the emulated IOMMU, when the card is opened
            self.eal = '[-m, "160"]'
        lab.start(vm.NS, "grpc", [sys.executable, HERE / "grpc_server.py", "grpc", ":".join(map(str, GRPC_BACKEND))])
        everything = resources.virtual_host("all", ["*"], resources.route("/shunt.test.Echo/", "green"),
                                            resources.route("/", "blue"))
        self.xds_folder.put(resources.cluster("green"), resources.endpoints("green", GRPC_BACKEND),
                            resources.route_config("routes", everything))
        self.n_started = 0
        self.vlans = {}

    def configure(self, more="", **changes):
        config = super().configure(**changes)
        config.write_text(config.read_text().replace("drain_s: 1\n", "drain_s: 1800\n") +
                          f"takeover_socket: {TAKEOVER}\nlame_duck_s: 1\n{more}")
        return config

    def launch(self, words="", env=None, **changes):
        """A process, which may not come to serve."""
        self.n_started += 1
        command = self.command(**{**self.vlans, **changes})
        given = shlex.join(f"{name}={value}" for name, value in (env or {}).items())
        return self.guest.start(f"shuntd-{self.n_started}", f"env {given} {command} {words}")

    def begin(self):
        self.bind()
        self.daemon = self.launch()
        self.wait_until_ready()
        return self.daemon

    def info(self):
        return self.show("info")

    def follow(self, workers=(1,)):
        """One that takes over, once it has; the one before."""
        older = self.daemon
        self.daemon = self.launch("--takeover", workers=workers)
        self.daemon.wait_for('msg="took over"', READY_TIMEOUT_S)
        self.wait_until_ready()
        return older

    def pings(self):
        return Pings(self.lab, vm.NS, PING_S)

    def call(self, name, scenario, ip=VIP, **arguments):
        return self.lab.start(vm.NS, f"{name}-{ip}", [sys.executable, HERE / "grpc_calls.py", f"{ip}:8080", scenario,
                                                      json.dumps(arguments)])


class Streams:
    """They stay open until finish(); no message of them may be lost."""

    def __init__(self, world, ip=VIP):
        self.stop_file = world.lab.dir / f"stop-streams-{len(world.lab.processes)}"
        self.process = world.call(f"streams-{len(world.lab.processes)}", "held_chats", ip,
                                  stop_file=str(self.stop_file))
        wait_until(lambda: "ready" in self.process.output(), SOON_S, "streams")

    def finish(self):
        self.stop_file.touch()
        return min(Testbed.calls_result(self.process)["rounds"]) > 10


class Calls:
    """Unary calls until end(); none may fail."""

    def __init__(self, world, ip=VIP):
        self.stop_file = world.lab.dir / f"stop-calls-{len(world.lab.processes)}"
        self.process = world.call(f"steady-{len(world.lab.processes)}", "steady", ip, stop_file=str(self.stop_file),
                                  parallel=2, options=SENDS_AGAIN)
        time.sleep(2)

    def end(self):
        self.stop_file.touch()
        assert Testbed.calls_result(self.process)["calls"] > 10


class Load:
    """Streams, and calls beside them, from before a takeover to behind it."""

    def __init__(self, world, ip=VIP):
        self.streams, self.calls = Streams(world, ip), Calls(world, ip)

    def end_streams(self):
        assert self.streams.finish()

    def end_calls(self):
        self.calls.end()


@pytest.fixture(name="world", scope="module", params=CARDS)
def fixture_world(request):
    with module_lab_of(request) as lab:
        yield TakeoverWorld(lab, request.param)


def test_fl_101_a_takeover_of_a_card_fails_no_call_and_cuts_no_stream(world):
    """FL-101, FL-102, FL-103, FL-104."""
    world.begin()
    load, pings = Load(world), world.pings()
    older = world.follow()
    time.sleep(3)  # of streams that go through the newer one
    gap_ms = pings.longest_gap_ms()
    info = world.info()
    print(f"gap: {gap_ms} ms without an answer, takeover_gap_ms {info['takeover_gap_ms']}")
    assert info["generation"] == 2 and info["role"] == "front" and info["processes_behind"] == 1
    check_relay(world.workers()[0])
    assert older.alive()
    load.end_streams()
    older.wait(SOON_S)
    assert "requests_cut=0" in older.output()
    load.end_calls()
    assert world.load().perfect
    world.stop()


@pytest.mark.timeout(600 + 60 * N_TAKEOVERS)
@only("virtio")
def test_fl_101_takeovers_of_a_card_in_a_row_lose_nothing(world):
    """There are always streams that outlive three generations; more of them in the long form (docs/testing.md)."""
    world.begin()
    count_resets(world.lab, vm.NS, of="tcp sport 8080")  # of clients: backends are there, too
    calls, streams, older, gaps = Calls(world), StreamsOfEach(lambda: Streams(world)), [], []
    silences = Silences(world.pings)
    for number in range(2, N_TAKEOVERS + 2):
        wait_until(lambda: world.info()["processes_behind"] < 3, SOON_S, "a process to end")
        with silences.at_event():
            older.append(world.follow())
        info = world.info()
        assert info["generation"] == number and info["role"] == "front"
        gaps.append(info["takeover_gap_ms"])
        if number == 4:
            assert info["processes_behind"] == 3  # the first one is there for the streams
        streams.followed()
    assert streams.n_outlived == max(0, N_TAKEOVERS - 2)
    assert streams.finish()
    calls.end()
    for process in older:
        process.wait(SOON_S)
        assert "requests_cut=0" in process.output()
    assert resets(world.lab, vm.NS) == 0
    print(f"takeover_gap_ms: {quantiles(gaps)}")
    silences.tell()
    world.stop()


def cost_of_crash(world, place):
    """In ms: as after_crash(); then how long there were no frames."""
    serving, pings = world.daemon, world.pings()
    seen, failed = len(serving.output()), world.info()["takeovers_failed"]
    newer = world.launch("--takeover", env=talking(place))
    newer.wait(SOON_S)
    assert "crashes at" in newer.output()
    if place != CRASHES["had not asked"]:
        serving.wait_for("device back", SOON_S, since=seen)
    time.sleep(3)  # of load
    info = world.info()
    assert info["takeovers_failed"] == failed + 1 and info["role"] == "front" and info["pid"] == serving.pid
    return *after_crash(newer.output(), serving.output()[seen:]), pings.longest_gap_ms()


@pytest.mark.timeout(900 + 240 * N_CRASHES)
@only("virtio")
def test_fl_105_a_newer_process_that_fails_gives_the_card_back(world):
    """A bad configuration, and a crash before it asks, with the place and with the card in its hands, in the long form
    at each stage: calls and streams go on."""
    world.begin()
    count_resets(world.lab, vm.NS, of="tcp sport 8080")
    load = Load(world)
    bad = world.launch("--takeover", more="no_such_option: 1\n")
    bad.wait(SOON_S)
    assert "no_such_option" in bad.output()
    for stage, place in crashes("had not asked", "was given the place", "had them").items():
        tell_costs(stage, [cost_of_crash(world, place) for _ in range(N_CRASHES)])
    older = world.follow()  # a good one
    load.end_streams()
    older.wait(SOON_S)
    load.end_calls()
    assert resets(world.lab, vm.NS) == 0
    assert world.load().perfect
    world.stop()


@only("virtio")
def test_fl_106_the_older_one_ends_when_the_newer_one_does_and_the_card_is_free(world):
    world.begin()
    streams = world.call("streams", "held_chats", stop_file=str(world.lab.dir / "never"))
    wait_until(lambda: "ready" in streams.output(), SOON_S, "streams")
    older = world.follow()
    world.daemon.signal("KILL")
    older.wait(SOON_S)
    assert "the newer process ended" in older.output()
    world.begin()
    streams.wait(SOON_S)  # it hears from the next one that nobody knows its connection
    assert world.load().perfect
    world.stop()


@only("virtio")
def test_fl_107_frames_go_through_each_of_three_with_other_numbers_of_workers(world):
    world.begin()
    load = Load(world)
    first = world.follow(workers=(1, 2))
    second = world.follow()
    time.sleep(3)
    assert world.info()["processes_behind"] == 2
    load.end_streams()
    first.wait(SOON_S)
    second.wait(SOON_S)
    assert all("requests_cut=0" in p.output() for p in (first, second))
    load.end_calls()
    assert world.load().perfect
    world.stop()


@only("virtio")
def test_fl_110_a_trunk_of_a_card_moves_as_one(world):
    """FL-111: one without one of its VLANs is refused before."""
    with world.in_vlans({VLANS["vlan"]: BACKEND[0], VLANS["second"]: SECOND_CLIENT}):
        world.vlans = VLANS
        world.begin()
        loads = [Load(world), Load(world, SECOND)]
        lacks = world.launch("--takeover", second=None)
        lacks.wait(SOON_S)
        assert f"VLAN {VLANS['second']} of 0000:01:00.0 is the older process's" in lacks.output()
        older = [world.follow(), world.follow()]
        time.sleep(3)  # of streams that go through the newer ones
        assert [port["vlan"] for port in world.show("ports")] == list(VLANS.values())
        check_relay(world.workers()[0])
        for load in loads:
            load.end_streams()
        for process in older:
            process.wait(SOON_S)
            assert "requests_cut=0" in process.output()
        for load in loads:
            load.end_calls()
        world.stop()
    world.vlans = {}


class BondTakeoverWorld(BondWorld):
    """gRPC's backend beside the other one, in the guest, and processes by number."""

    drain_s, more = 1800, f"takeover_socket: {TAKEOVER}\nlame_duck_s: 1\n"

    def __init__(self, lab, mode):
        super().__init__(lab, mode)
        self.start_far("grpc", "grpc_server.py", "grpc", ":".join(map(str, GRPC_BACKEND)))
        everything = resources.virtual_host("all", ["*"], resources.route("/", "green"))
        self.folder.put(resources.cluster("green"), resources.endpoints("green", GRPC_BACKEND),
                        resources.route_config("routes", everything))

    def start_far(self, name, program, *arguments):
        """A program at the other end of the cables."""
        words = shlex.join([sys.executable, str(HERE / program), *arguments])
        return self.guest.start(name, f"ip netns exec {FAR} {words}")

    def call(self, name, scenario, **arguments):
        return self.start_far(f"{name}-{self.n_started}", "grpc_calls.py", f"{VIP}:8080", scenario,
                              json.dumps(arguments))

    def follow(self):
        older = self.daemon
        self.daemon = self.launch("--takeover")
        self.daemon.wait_for('msg="took over"', READY_TIMEOUT_S)
        self.wait_until_ready()
        return older


def told_by(process):
    """What a scenario of grpc_calls.py in the guest says last, where it has not failed."""
    process.wait(SOON_S)
    return json.loads(process.output().splitlines()[-1])


BONDS = {"802.3ad": ["distributing"] * 2, "active-backup": ["active", "standby"]}


@pytest.fixture(name="bond", scope="module", params=BONDS)
def fixture_bond(request):
    with module_lab_of(request) as lab:
        yield BondTakeoverWorld(lab, request.param)


def test_fl_115_a_bond_of_cards_moves_with_its_members(bond):
    states = BONDS[bond.mode]
    bond.serve()
    bond.wait_for(*states, timeout=SOON_S)
    mac = bond.port()["mac"]
    stops = [bond.lab.dir / f"stop-{name}" for name in ("streams", "calls")]
    streams = bond.call("streams", "held_chats", stop_file=str(stops[0]), streams=2)
    calls = bond.call("calls", "steady", stop_file=str(stops[1]), parallel=1, options=SENDS_AGAIN)
    streams.wait_for("ready", SOON_S)
    time.sleep(3)
    pings = bond.guest.start("pings", f"ip netns exec {FAR} ping -D -i 0.1 {VIP}")
    older = bond.follow()
    bond.wait_for(*states, timeout=SOON_S)
    time.sleep(5)  # of streams that go through the newer one
    pings.signal("INT")
    times = [float(t) for t in re.findall(r"^\[(\d+\.\d+)\].* bytes from", pings.output(), re.M)]
    gap_s = max(b - a for a, b in zip(times, times[1:]))
    print(f"gap: {gap_s * 1000:.0f} ms without an answer, takeover_gap_ms {bond.show('info')['takeover_gap_ms']}")
    assert bond.port()["mac"] == mac
    check_relay(list(bond.show("workers").values())[0])
    stops[0].touch()
    assert min(told_by(streams)["rounds"]) > 10
    older.wait(SOON_S)
    assert "requests_cut=0" in older.output()
    stops[1].touch()
    assert told_by(calls)["calls"] > 10
