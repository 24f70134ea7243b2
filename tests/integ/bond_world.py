# SPDX-License-Identifier: Apache-2.0
"""shuntd in a virtual machine (vm.py), on a bond of two emulated cards.

BondWorld: at the other ends of its cables, in a namespace of the guest, is the kernel's own bond of two further cards,
or a bridge of them: a switch.

    client and backend 10.81.0.1 -- `far`: bond0, or lan --+-- f1 ==== 0000:00:10.0 --+
                                                           +-- f2 ==== 0000:00:11.0 --+-- 10.81.0.10 (shuntd)

SwitchedWorld: the switch is a bridge outside, which does not see that a cable is out; the cards have a queue and a hash
for each of two workers, and one of them can be unplugged.

    client and backend 10.81.0.1 -- lan --+-- tap0 ==== 0000:01:00.0 --+
                                          +-- tap1 ==== 0000:00:10.0 --+-- 10.81.0.10 (shuntd)
"""

import json
import re

import h2load
import resources
from guest_world import GuestWorld
from lab import LabError, wait_until
from resources import Folder
from testbed import BUILD, EXAMPLE, URL, VIP, XDS_ADDRESS
from vm import CARD, NS as OUTSIDE, SYS, TAP, UIO, Guest

SOCKET = "/run/shunt.sock"
NEAR = ("0000:00:10.0", "0000:00:11.0")  # shuntd's
FAR = ("0000:00:12.0", "0000:00:13.0")  # the kernel's
NS = "far"
BACKEND = ("10.81.0.1", 8080)
MARK_SIZE = 3000
HUGEPAGES = "hugepages=220"
READY_TIMEOUT_S = 300
START_S = 30
# Both ends say how fast they are: LACP is for links of full duplex.
CABLED = "virtio-net-pci,id={id},netdev={id},bus=pcie.0,addr={addr},mac=52:54:00:81:00:{mac},speed=10000,duplex=full"
HASHING = "virtio-net-pci,mq=on,rss=on,hash=on"
BOTH_ENDS = 0x3c  # aggregated, in sync, collecting, distributing (IEEE 802.1AX 6.4.2.3)
CONFIG = """
eal: [--in-memory]
workers: {workers}
ports:
  - bond: {{mode: {mode}, members: [{members}]}}
    addresses: [{vip}/24]
frontends:
  - {{name: web, address: {vip}, port: 8080, target: web}}
stats: {{socket: {socket}}}
drain_s: {drain_s}
"""
# The kernel's end: a card by its place on the bus, named for its cable.
TAKE = """
    ip link set $(basename {sys}/{card}/virtio*/net/*) netns {ns} name {name}
    ip -n {ns} link set {name} down"""
FAR_ENDS = {
    "802.3ad": "ip -n far link add bond0 type bond mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4",
    "active-backup": "ip -n far link add name lan type bridge forward_delay 0",
}


def cards():
    """QEMU's words for the four cards and the two cables between them."""
    words = []
    for place, name in enumerate(("n1", "n2", "f1", "f2")):
        words += ["-netdev", f"hubport,id={name},hubid={name[1]}",
                  "-device", CABLED.format(id=name, addr=f"{0x10 + place:x}.0", mac=f"{place + 1:02}")]
    return words


class BondGuest:
    """What both have: shuntd with a bond of these cards."""

    mode, cards, n_workers, daemon = "active-backup", NEAR, 1, None
    n_started, drain_s, more = 0, 1, ""  # processes; more of shunt.yaml

    def bind(self, card):
        """Gives a card to DPDK."""
        self.guest.try_run(f"echo {card} > {SYS}/{card}/driver/unbind")
        self.guest.run(f"""
            echo {UIO} > {SYS}/{card}/driver_override
            echo {card} > /sys/bus/pci/drivers_probe""")

    def serve(self):
        for card in self.cards:
            self.bind(card)
        self.daemon = self.launch()
        self.wait_until_ready()

    def launch(self, words=""):
        """A process, which may not come to serve."""
        config = self.lab.dir / "shunt.yaml"
        members = ", ".join(f"'{card}'" for card in self.cards)
        config.write_text(CONFIG.format(mode=self.mode, members=members, vip=VIP, socket=SOCKET, drain_s=self.drain_s,
                                        workers=list(range(1, self.n_workers + 1))) + self.more)
        self.n_started += 1
        return self.guest.start(f"shuntd-{self.n_started}", f"env GRPC_XDS_BOOTSTRAP={EXAMPLE}/bootstrap.json "
                                f"{BUILD}/ctrl/shuntd -c {config} {words}")

    def wait_until_ready(self):
        script = f"until {self._shuntctl('show info')} | grep -q '\"state\":\"ready\"'; do " \
                 f"kill -0 {self.daemon.pid} || exit 3; sleep 0.3; done 2>/dev/null"
        status, _ = self.guest.try_run(script, READY_TIMEOUT_S)
        if status != 0:
            raise LabError(f"shuntd is not ready: {self.daemon.output()[-3000:]}")

    @staticmethod
    def _shuntctl(words):
        return f"{BUILD}/tools/shuntctl --socket {SOCKET} --json {words}"

    def show(self, what):
        return json.loads(self.guest.run(self._shuntctl(f"show {what}")))["data"]

    def port(self):
        (port,) = self.show("ports")
        return port

    def states(self):
        return [m["state"] for m in self.port()["bond_members"]]

    def wait_for(self, *states, timeout=START_S):
        wait_until(lambda: self.states() == list(states), timeout, f"members that are {states}", interval=0.3)


class SwitchedWorld(BondGuest, GuestWorld):
    cards, n_workers = (CARD, NEAR[0]), 2

    def __init__(self, lab):
        lab.ip(OUTSIDE, "tuntap", "add", "tap1", "mode", "tap", "multi_queue")
        guest = Guest(lab, HASHING, queues=2, cpus=3, cmdline=HUGEPAGES, devices=[
            "-netdev", "tap,id=second,ifname=tap1,script=no,downscript=no,vhost=off,queues=2",
            "-device", f"{HASHING},id=second,netdev=second,bus=pcie.0,addr=10.0"])
        lab.ip(OUTSIDE, "addr", "flush", "dev", TAP)
        lab.bridge(OUTSIDE, "lan", TAP, "tap1")
        lab.ip(OUTSIDE, "link", "set", "tap1", "up")
        lab.address(OUTSIDE, "lan", f"{BACKEND[0]}/24")
        GuestWorld.__init__(self, lab, guest)
        lab.set_offloads(OUTSIDE, "tap1", "off")
        guest.wait_for_boot()
        guest.load_drivers("virtio_net", UIO)
        guest.start("xds", f"{BUILD}/tools/shunt-xds/shunt-xds --listen {XDS_ADDRESS} {self.xds_folder.path}")

    def unplug(self):
        """The first one."""
        self.guest.qmp("device_del", id="card")
        wait_until(lambda: self.guest.try_run(f"[ ! -e {SYS}/{CARD} ]")[0] == 0, START_S, "an empty slot", 0.5)

    def start_load(self, requests, clients, rate):
        argv = h2load.arguments(URL + h2load.MARK, requests=requests, clients=clients, streams=4, rate=rate)
        return self.lab.start(OUTSIDE, "load", argv)

    @staticmethod
    def report(load, timeout=120):
        load.wait(timeout)
        return h2load.parse(load.output())


class BondWorld(BondGuest):
    def __init__(self, lab, mode):
        self.lab, self.mode = lab, mode
        self.guest = Guest(lab, "virtio-net-pci", cpus=3, devices=cards(), cmdline=HUGEPAGES)
        www = lab.dir / "www"
        www.mkdir()
        (www / h2load.MARK.lstrip("/")).write_bytes(b"#" * MARK_SIZE)
        self.folder = folder = Folder(lab.dir / "xds")
        everything = resources.virtual_host("all", ["*"], resources.route("/", "blue"))
        folder.set(resources.listener("web", "routes"), resources.cluster("blue"),
                   resources.endpoints("blue", BACKEND), resources.route_config("routes", everything))
        self.guest.wait_for_boot()
        self.guest.load_drivers("virtio_net", UIO, "bonding", "bridge")
        self._make_far_end()
        self.guest.start("backend", f"ip netns exec {NS} nghttpd --no-tls -a {BACKEND[0]} -d {www} {BACKEND[1]}")
        self.guest.start("xds", f"{BUILD}/tools/shunt-xds/shunt-xds --listen {XDS_ADDRESS} {folder.path}")

    def _make_far_end(self):
        master = "bond0" if self.mode == "802.3ad" else "lan"
        take = "".join(TAKE.format(sys=SYS, card=card, ns=NS, name=f"f{n}") for n, card in enumerate(FAR, 1))
        self.guest.run(f"""set -e
            ip netns add {NS}
            {take}
            ip -n {NS} link set lo up
            {FAR_ENDS[self.mode]}
            for f in f1 f2; do ip -n {NS} link set $f master {master}; ip -n {NS} link set $f up; done
            ip -n {NS} address add {BACKEND[0]}/24 dev {master}
            ip -n {NS} link set {master} up""")

    # -- the kernel's end

    def kernel_ports(self):
        """Of the kernel's LACP: which cards have an end at each side that collects and distributes."""
        text = self.guest.run(f"ip netns exec {NS} cat /proc/net/bonding/bond0")
        ends = {}
        for part in text.split("Slave Interface: ")[1:]:
            states = [int(n) for n in re.findall(r"port state: (\d+)", part)]
            ends[part.split()[0]] = "MII Status: up" in part and len(states) == 2 and all(
                n & BOTH_ENDS == BOTH_ENDS for n in states)
        return [ends["f1"], ends["f2"]]

    def kernel_partner(self):
        """The system that the kernel has at the other end."""
        text = self.guest.run(f"ip netns exec {NS} cat /proc/net/bonding/bond0")
        return re.search(r"Partner Mac Address: (\S+)", text)[1]

    def kernel_system(self):
        return self.guest.run(f"ip netns exec {NS} cat /sys/class/net/bond0/address").strip()

    def received(self):
        """Frames that each card of the kernel's has got."""
        return [int(self.guest.run(f"ip netns exec {NS} cat /sys/class/net/f{n}/statistics/rx_packets"))
                for n in (1, 2)]

    # -- cables

    def set_cable(self, number, up):
        """Both of its ends see it."""
        for end in "nf":
            self.guest.qmp("set_link", name=f"{end}{number}", up=up)

    # -- the load

    def start_load(self, requests, clients, rate):
        """On so many connections, so many requests a second each."""
        argv = h2load.arguments(URL + h2load.MARK, requests=requests, clients=clients, streams=4, rate=rate)
        return self.guest.start("load", f"ip netns exec {NS} {' '.join(argv)}")

    def load(self, requests, clients):
        """The report of one that is awaited."""
        load = self.start_load(requests, clients, 1000)
        return self.report(load)

    @staticmethod
    def report(load, timeout=120):
        load.wait(timeout)
        return h2load.parse(load.output()[load.output().rindex("starting benchmark"):])
