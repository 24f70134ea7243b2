# SPDX-License-Identifier: Apache-2.0
"""shuntd in a virtual machine, on an emulated network card, between a client and a backend that are
both at the other end of its only link.

    client and backend 10.81.0.1 -- the card 10.81.0.10 (shuntd)

The xDS server runs beside shuntd, on the guest's loopback.
"""

import contextlib
import json
import sys

import h2load
from guest_world import BACKEND, GuestWorld
from lab import LabError, OFFLOADS
from testbed import BUILD, EXAMPLE, HERE, PORT, VIP, XDS_ADDRESS
from vm import CARD, INTEL_IOMMU, NS, SLOT, SYS, TAP, UIO, VFIO, VIRTIO_IOMMU, Guest

SOCKET = "/run/shunt.sock"  # the guest's own; a folder of the host cannot have a Unix socket of it
IP_AND_ICMP_LEN = 28
HUGEPAGES = "hugepages=200"  # of 2 MiB, on the kernel's command line
READY_TIMEOUT_S = 300  # 4 s on an idle machine
MTU = 1900  # the most with buffers of the usual size
XDP_MTU = 1500  # behind AF_XDP these have less room
HASHING = "mq=on,rss=on,hash=on"  # a virtio card has a queue for each worker, and a hash
# name: (the driver that the kernel has for it, the one it is given to, `eal`, the guest)
CARDS = {
    "virtio": ("virtio_net", UIO, "[--in-memory]", {
        "card": f"virtio-net-pci,{HASHING}", "queues": 2, "cmdline": HUGEPAGES}),
    "virtio-vfio": ("virtio_net", VFIO, "[]", {
        "card": f"{VIRTIO_IOMMU},{HASHING}", "queues": 2, "cmdline": "intel_iommu=on", "devices": INTEL_IOMMU}),
    "e1000e": ("e1000e", UIO, "[--in-memory]", {"card": "e1000e", "cmdline": HUGEPAGES}),
    "vmxnet3": ("vmxnet3", UIO, "[--in-memory]", {"card": "vmxnet3", "cmdline": HUGEPAGES}),
}
N_CPUS = 3  # two workers, and all else
NO_VLAN = "    vlan: None\n"
SECOND = "10.85.0.10"  # shuntd's address in a second VLAN of the card
SECOND_CLIENT = "10.85.0.1"
SECOND_PORT = f"""  - {{device: {CARD}, vlan: %s, addresses: [{SECOND}/24], mtu: {MTU}}}
frontends:
  - {{name: second, address: {SECOND}, port: {PORT}, target: web}}
"""
CONFIG = """
eal: {eal}
workers: {workers}
ports:
  - device: {device}
    addresses: [{vip}/24]
    gateway: {gateway}
    mtu: {mtu}
    vlan: {vlan}
frontends:
  - {{name: web, address: {vip}, port: 8080, target: web}}
stats: {{socket: {socket}}}
drain_s: 1
"""


class CardWorld(GuestWorld):
    """The guest runs and knows its card by the kernel's own driver; bind() and serve() do the rest."""

    def __init__(self, lab, name):
        self.name = name
        self.kernel_driver, self.driver, self.eal, arguments = CARDS[name]
        super().__init__(lab, Guest(lab, cpus=N_CPUS, **arguments), MTU)
        self.daemon = None
        self.config = None
        self.guest.wait_for_boot()
        self.guest.load_drivers(self.kernel_driver, self.driver)
        self.xds = self.guest.start("xds", f"{BUILD}/tools/shunt-xds/shunt-xds --listen {XDS_ADDRESS} "
                                    f"{self.xds_folder.path}")

    # -- the card

    def bind(self, driver=None):
        """Gives the card to a driver, by default the one for DPDK."""
        self.guest.bind(driver or self.driver)

    def unbind(self):
        self.guest.unbind()

    def unplug(self):
        """Asks the guest's kernel to let the card go."""
        self.guest.qmp("device_del", id="card")

    def is_plugged(self):
        return self.guest.try_run(f"[ -e {SYS}/{CARD} ]")[0] == 0

    def plug(self):
        driver, *properties = self.guest.card.split(",")
        self.guest.qmp("device_add", driver=driver, id="card", netdev="net0", bus=SLOT,
                       **dict(p.split("=") for p in properties))

    def reset(self):
        """By the kernel, behind shuntd's back."""
        self.guest.run(f"echo 1 > {SYS}/{CARD}/reset")

    # -- the balancer

    def configure(self, workers=(1,), eal=None, vlan=None, second=None, device=CARD):
        """Writes the documented config; where it is. second: another VLAN of the card."""
        config = self.lab.dir / "shunt.yaml"
        text = CONFIG.format(
            eal=eal or self.eal, workers=list(workers), device=device, vip=VIP, gateway=BACKEND[0],
            mtu=MTU if device == CARD else XDP_MTU, vlan=vlan, socket=SOCKET).replace(NO_VLAN, "")
        config.write_text(text.replace("frontends:\n", SECOND_PORT % second) if second else text)
        return config

    def command(self, **changes):
        """shuntd with that, as a command of the guest."""
        config = self.configure(**changes)
        return f"env GRPC_XDS_BOOTSTRAP={EXAMPLE}/bootstrap.json {BUILD}/ctrl/shuntd -c {config}"

    def refusal(self, **changes):
        """What shuntd says when it does not start."""
        status, said = self.guest.try_run(self.command(**changes))
        if status != 1:
            raise LabError(f"shuntd ended with status {status}: {said}")
        return said

    def serve(self, workers=(1,), vlan=None, second=None):
        """That command, when it is ready; the one that runs already if that has the same config."""
        wanted = (tuple(workers), vlan, second)
        if self.config == wanted and self.daemon.alive():
            return self.daemon
        self.stop()
        self.bind()
        return self.start(workers, vlan, second)

    def serve_by_xdp(self, workers):
        """On the interface of a virtio card that the kernel keeps, with a queue for each worker."""
        self.stop()
        self.bind("virtio-pci")
        (interface,) = self.guest.run(f"ls {SYS}/{CARD}/virtio*/net").split()
        self.guest.run(f"ethtool -L {interface} combined {len(workers)}; ip link set {interface} up")
        return self.start(workers, device=f"net_af_xdp0,iface={interface}")

    def start(self, workers=(1,), vlan=None, second=None, device=CARD):
        """The same on the card as it is bound."""
        self.daemon = self.guest.start("shuntd", self.command(workers=workers, vlan=vlan, second=second,
                                                              device=device))
        self.config = (tuple(workers), vlan, second) if device == CARD else None
        self.wait_until_ready()
        return self.daemon

    def wait_until_ready(self):
        script = f"until {self._shuntctl('show info')} | grep -q '\"state\":\"ready\"'; do " \
                 f"kill -0 {self.daemon.pid} || exit 3; sleep 0.3; done 2>/dev/null"
        status, _ = self.guest.try_run(script, READY_TIMEOUT_S)
        if status != 0:
            raise LabError(f"shuntd is not ready: {self.daemon.output()[-3000:]}")

    def stop(self):
        if not self.daemon or not self.daemon.alive():
            return
        self.daemon.signal("TERM")
        self.daemon.wait(READY_TIMEOUT_S)

    def answers(self):
        """Whether the stats socket does."""
        return self.guest.try_run(self._shuntctl("help"))[0] == 0

    def show(self, what):
        """The data of the JSON answer to `show WHAT`."""
        return json.loads(self.guest.run(self._shuntctl(f"show {what}")))["data"]

    @staticmethod
    def _shuntctl(words):
        return f"{BUILD}/tools/shuntctl --socket {SOCKET} --json {words}"

    def type(self, line):
        """(status, output) of a line that an operator types in the guest."""
        return self.guest.try_run(f"export GRPC_XDS_BOOTSTRAP={EXAMPLE}/bootstrap.json SHUNT_SOCKET={SOCKET} "
                                  f"PATH={BUILD}/tools:{BUILD}/ctrl:$PATH; {line}")

    def port(self):
        (port,) = self.show("ports")
        return port

    def workers(self):
        return list(self.show("workers").values())

    # -- the client

    def in_vlan(self, vlan):
        """Client and backend are behind a switch meanwhile, which gives their frames this tag."""
        return self.in_vlans({vlan: BACKEND[0]})

    @contextlib.contextmanager
    def in_vlans(self, addresses):
        """The same of several: {vlan: the client's address in it}. The first has the backend."""
        ways = []
        self.lab.ip(NS, "address", "del", f"{BACKEND[0]}/24", "dev", TAP)
        for number, (vlan, address) in enumerate(addresses.items()):
            inner, outer = f"inner{number}", f"outer{number}"
            self.lab.ip(NS, "link", "add", inner, "mtu", str(MTU), "type", "veth", "peer", outer, "mtu", str(MTU))
            for end in (inner, outer):
                self.lab.exec(NS, ["ethtool", "-K", end, *(word for name in OFFLOADS for word in (name, "off"))])
                self.lab.ip(NS, "link", "set", end, "up")
            self.lab.ip(NS, "address", "add", f"{address}/24", "dev", inner)
            ways.append(f"{outer}={vlan}")
        switch = self.lab.start(NS, f"switch-{len(self.lab.processes)}", [
            sys.executable, HERE / "trunk_agent.py", TAP, "0", *ways])
        try:
            yield
        finally:
            switch.stop()
            for number in range(len(ways)):
                self.lab.ip(NS, "link", "del", f"inner{number}")
            self.lab.ip(NS, "address", "add", f"{BACKEND[0]}/24", "dev", TAP)

    def start_load(self, requests, ip=VIP):
        """In the background; give it to end_load()."""
        return self.lab.start(NS, f"load-{len(self.lab.processes)}", h2load.arguments(
            f"http://{ip}:{PORT}{h2load.MARK}", requests=requests, clients=4, streams=4))

    @staticmethod
    def end_load(load):
        load.wait(READY_TIMEOUT_S)
        return h2load.parse(load.output())

    def count_frames(self):
        """From now on, counts what comes from the card by its length as an IP packet."""
        self.lab.nft(NS, FRAMES.format(vip=VIP, mtu=MTU))

    def frames(self):
        """What was counted: how many in full, and longer ones."""
        rules = json.loads(self.lab.exec(NS, ["nft", "-j", "list", "counters"]).stdout)["nftables"]
        counts = {c["counter"]["name"]: c["counter"]["packets"] for c in rules if "counter" in c}
        return counts["full"], counts["longer"]

    def carry_full_frames(self):
        """A load that none of fails, with full frames and none that are longer."""
        self.count_frames()
        report = self.load()
        assert report.perfect, report
        full, longer = self.frames()
        assert full > 0 and longer == 0

    def ping(self, size, ip=VIP):
        """Whether an echo comes back, in an IP packet of this size that may not be fragmented."""
        argv = ["ping", "-M", "do", "-c", "1", "-w", "20", "-s", str(size - IP_AND_ICMP_LEN), ip]
        return self.lab.exec(NS, argv, check=False).returncode == 0

    def send_bad_segments(self, count):
        """TCP segments to the frontend, in good IP packets, whose checksum is wrong."""
        self.lab.exec(NS, ["/usr/bin/python3", HERE / "bad_segments.py", BACKEND[0], VIP, str(count)])


FRAMES = """
table inet frames
delete table inet frames
table inet frames {{
  counter full {{ }}
  counter longer {{ }}
  chain input {{
    type filter hook input priority 0;
    ip saddr {vip} meta length {mtu} counter name full
    ip saddr {vip} meta length > {mtu} counter name longer
  }}
}}
"""
