# SPDX-License-Identifier: Apache-2.0
"""The Debian package in a Debian of its own, which systemd booted in a virtual machine.

    client and backends 10.81.0.1 -- eth0 10.81.0.10 (shunt.service, by af_packet, af_xdp, or the card)

SHUNT_PACKAGES is a folder with the packages (tests/package/make) and that Debian's root (tests/package/root);
`tools/test package service` makes both. The xDS server is the package's own, on the guest's loopback.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import initramfs
import resources
from guest_world import GuestWorld
from lab import LabError, wait_until
from testbed import HERE, PORT, ROOT, SENDS_AGAIN, VIP, XDS_ADDRESS
from vm import CARD, INTEL_IOMMU, NS, UIO, VFIO, VIRTIO_IOMMU, Guest
from world import RPC_PATH

PACKAGES = pathlib.Path(os.environ.get("SHUNT_PACKAGES", ROOT / "build-package"))
LATER = ROOT / "tests" / "package" / "later"
RPC = ("10.81.0.1", 9090)
FILE = "/etc/shunt/shunt.yaml"
SOON_S = 90  # emulated, on a busy machine
LONG_S = 180
PACKET = "net_af_packet0,iface=eth0"
TAKEOVER = "takeover_socket: /run/shunt/takeover.sock\n"  # of packet sockets alone
CONFIG = f"""workers: [1]
ports:
  - device: {PACKET}
    addresses: [{VIP}/24]
frontends:
  - {{name: web, address: {VIP}, port: {PORT}, target: web}}
state_dir: /var/lib/shunt
{TAKEOVER}access_log: {{path: /var/log/shunt/access.log, filter: {{sample_per_million: 1000000}}}}
stats: {{socket: /run/shunt/stats.sock, mode: "0660", operators: shunt}}
"""
HUGEPAGES = "eal: [--in-memory]\n"
N_HUGEPAGES = 100  # of 2 MiB
# What docs/package.md has for AF_XDP, for uio_pci_generic, and for a log that is a file.
XDP = """[Service]
CapabilityBoundingSet=CAP_SYS_ADMIN
AmbientCapabilities=CAP_SYS_ADMIN
"""
PHYSICAL = """[Service]
User=root
CapabilityBoundingSet=CAP_SYS_ADMIN CAP_SYS_RAWIO
AmbientCapabilities=CAP_SYS_ADMIN CAP_SYS_RAWIO
ProtectKernelTunables=no
"""
LOG_FILE = """[Service]
StandardError=append:/var/log/shunt/shuntd.log
ExecStartPre=+chown shunt: /var/log/shunt/shuntd.log
"""
DROP_IN = "/etc/systemd/system/shunt.service.d/test.conf"


def package(name):
    """The path of a package, or None."""
    return next(iter(sorted(PACKAGES.glob(f"{name}_*.deb"))), None)


def missing():
    """What is not there, in words; empty = nothing."""
    if not package("shunt") or not (PACKAGES / "root").is_dir():
        return f"no packages and root in {PACKAGES.name} (tools/test package service)"
    return ""


class ServiceWorld(GuestWorld):
    """A machine that has booted, without the package."""

    def __init__(self, lab):
        # "pt": for the kernel's drivers and uio the card sees physical addresses, as without an IOMMU.
        guest = Guest(lab, VIRTIO_IOMMU, memory_mib=3072, devices=INTEL_IOMMU, root=PACKAGES / "root",
                      first=initramfs.SYSTEMD, cmdline="net.ifnames=0 systemd.show_status=0 intel_iommu=on iommu=pt "
                                                       f"hugepages={N_HUGEPAGES}")
        super().__init__(lab, guest)
        self._calls = None
        lab.start(NS, "rpc", ["/usr/bin/python3", HERE / "grpc_server.py", "rpc", f"{RPC[0]}:{RPC[1]}"])
        # A regular expression is compiled under the unit's MemoryDenyWriteExecute.
        everything = resources.virtual_host("all", ["*"], resources.route(RPC_PATH, "rpc"),
                                            resources.route({"safe_regex": {"regex": "/[a-z]+(\\.[a-z]*)?"}}, "blue"))
        self.xds_folder.put(resources.cluster("rpc"), resources.endpoints("rpc", RPC),
                            resources.route_config("routes", everything))
        for name in ("shunt", "shunt-doc"):
            shutil.copy(package(name), lab.dir / f"{name}.deb")
        subprocess.run([LATER, package("shunt"), lab.dir / "later.deb"], check=True, timeout=60)
        guest.wait_for_boot()
        state = guest.try_run("systemctl is-system-running --wait", LONG_S)[1].strip()
        if state != "running":
            raise LabError(f"{state}: {guest.try_run('systemctl --failed --no-pager')[1]}")
        guest.load_drivers(VFIO, UIO)
        guest.run("ip link set eth0 up")
        shutil.copy(HERE / "still_agent.py", lab.dir)

    def start_xds(self):
        if self.guest.try_run("systemctl is-active -q xds")[0] != 0:
            self.guest.run(f"systemd-run -q --unit=xds --collect shunt-xds serve {self.xds_folder.path} "
                           f"--listen {XDS_ADDRESS}")

    def install(self, *names, check=True):
        """Packages of the Lab's folder, as an operator would who answers no question."""
        paths = " ".join(f"{self.lab.dir}/{name}.deb" for name in names)
        words = "DEBIAN_FRONTEND=noninteractive apt-get install -q -y -o Dpkg::Options::=--force-confdef " \
                f"-o Dpkg::Options::=--force-confold {paths}"
        return self.guest.run(words, LONG_S) if check else self.guest.try_run(words, LONG_S)

    def configure(self, more="", device=PACKET):
        text = CONFIG if device == PACKET else CONFIG.replace(PACKET, device).replace(TAKEOVER, "")
        self.write(FILE, text + more)

    def write(self, path, text):
        """A file of the guest, by way of the shared folder."""
        (self.lab.dir / "text").write_text(text)
        self.guest.run(f"mkdir -p {os.path.dirname(path)} && cat {self.lab.dir}/text >{path}")

    def get(self, name):
        """A property of the service."""
        return self.guest.run(f"systemctl show -P {name} shunt").strip()

    def pid(self):
        return int(self.get("MainPID"))

    def wait_for(self, name, value, timeout=SOON_S):
        wait_until(lambda: self.get(name) == value, timeout, f"{name}={value} of shunt.service", 0.5)

    def journal(self, since=""):
        """What the service has said; since: a cursor()."""
        after = f"--after-cursor='{since}'" if since else ""
        return self.guest.run(f"journalctl -q --no-pager -o cat -u shunt {after}")

    def cursor(self):
        return self.guest.run("journalctl -q -n 1 --show-cursor -o cat | sed -n 's/^-- cursor: //p'").strip()

    def install_once(self):
        """The package, and its xDS server, whatever was before."""
        if self.guest.try_run("[ -x /usr/sbin/shuntd ]")[0] != 0:
            self.install("shunt", "shunt-doc")
        self.start_xds()

    def serve(self):
        """A service that serves, whatever was before; its process."""
        self.install_once()
        if self.guest.try_run("systemctl is-active -q shunt")[0] != 0:
            self.configure()
            self.guest.run("systemctl reset-failed shunt; systemctl enable --now shunt", LONG_S)
        return self.pid()

    @contextlib.contextmanager
    def started_on(self, device, more="", drop_in=""):
        """The service, started anew on another device meanwhile."""
        self.install_once()
        self.guest.run("systemctl stop shunt", LONG_S)
        self.configure(more, device)
        self.set_drop_in(drop_in)
        try:
            self.guest.run("systemctl start shunt", LONG_S)
            yield self.pid()
        finally:
            self.guest.run("systemctl stop shunt", LONG_S)
            self.set_drop_in("")
            self.configure()

    @contextlib.contextmanager
    def card(self, driver):
        """The card is given away by this driver meanwhile."""
        self.install_once()
        self.guest.run("systemctl stop shunt", LONG_S)
        self.guest.bind(driver)
        try:
            yield CARD
        finally:
            self.guest.bind("virtio-pci")
            self.guest.run("udevadm settle; ip link set eth0 up")

    def set_drop_in(self, text):
        """Of the unit; empty = none."""
        if text:
            self.write(DROP_IN, text)
        else:
            self.guest.run(f"rm -rf {os.path.dirname(DROP_IN)}")
        self.guest.run("systemctl daemon-reload")

    def hold_worker(self):
        """Stops the thread of the only worker, and no other one, until that process ends."""
        worker = self.guest.run(f"grep -lE '^(rte|lcore)-worker' /proc/{self.pid()}/task/*/comm").split("/")[4]
        holder = self.guest.start("holder", f"/usr/bin/python3 {self.lab.dir}/still_agent.py {worker}")
        holder.wait_for("held", SOON_S)

    def start_calls(self):
        """gRPC calls without a pause, until finish_calls(); each must succeed."""
        arguments = {"stop_file": str(self.lab.dir / "stop-calls"), "options": SENDS_AGAIN}
        self._calls = self.lab.start(NS, "calls", [sys.executable, HERE / "grpc_calls.py", f"{VIP}:{PORT}", "steady",
                                                   json.dumps(arguments)])

    def finish_calls(self):
        """How many there were; LabError if one failed."""
        (self.lab.dir / "stop-calls").touch()
        if self._calls.wait(SOON_S) != 0:
            raise LabError(f"calls failed: {self._calls.output()}")
        (self.lab.dir / "stop-calls").unlink()
        return json.loads(self._calls.output().splitlines()[-1])["calls"]
