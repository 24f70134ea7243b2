# SPDX-License-Identifier: Apache-2.0
"""Virtual machines with emulated network cards, in a namespace of a Lab.

    net 10.81.0.1 (tap0) -- the card, 0000:01:00.0 of the guest

A guest sees a folder as its root, read-only by 9p with an overlay in memory above; with the root of
the machine that it runs on it has the same programs, the build, and the tests' Python. The kernel is
Debian's, unpacked by `tools/setup` and not installed. The Lab's directory is shared for writing
under the same path. Emulated without KVM, so that it runs everywhere.
"""

import contextlib
import json
import pathlib
import shutil
import socket
import time

import initramfs
from lab import LabError, wait_until
from testbed import HERE, ROOT

KERNEL = ROOT / "build-vm"
QEMU = "qemu-system-x86_64"
NS = "net"
TAP = "tap0"
# Without what costs time under emulation and protects nobody there.
CMDLINE = "console=ttyS0 panic=-1 loglevel=5 mitigations=off nokaslr cryptomgr.notests"
CARD = "0000:01:00.0"  # the only device behind the only root port
SLOT = "root-port"
SYS = "/sys/bus/pci/devices"
# Kernel drivers that give a card away, with what it takes.
UIO = "uio_pci_generic"
VFIO = "vfio-pci"
# A card behind an IOMMU.
VIRTIO_IOMMU = "virtio-net-pci,iommu_platform=on,disable-legacy=on"
INTEL_IOMMU = ("-device", "intel-iommu,intremap=off,caching-mode=on")
BOOT_TIMEOUT_S = 240  # 10 s on an idle machine
COMMAND_TIMEOUT_S = 60
NICE = 5  # it takes all that it gets, and tests that run beside it have times to keep


def missing():
    """What a guest lacks here, in words; empty = nothing."""
    if not shutil.which(QEMU):
        return f"no {QEMU} (tools/setup)"
    if not initramfs.vmlinuz(KERNEL):
        return f"no kernel in {KERNEL.name} (tools/setup)"
    if not pathlib.Path(initramfs.BUSYBOX).exists():
        return f"no {initramfs.BUSYBOX} (tools/setup)"
    if not pathlib.Path("/dev/net/tun").exists():
        return "no /dev/net/tun"
    return ""


class Line:
    """A JSON document a line, over a Unix socket of QEMU's."""

    def __init__(self, path, process):
        def connect():
            if not process.alive():
                raise LabError(f"{process.name} ended: {process.output()}")
            with contextlib.suppress(OSError):
                self._socket.connect(str(path))
                return True
            return False
        self._process = process
        self._socket = socket.socket(socket.AF_UNIX)
        wait_until(connect, COMMAND_TIMEOUT_S, f"{path}")
        self._stream = self._socket.makefile("rw")

    def read(self, timeout, what):
        self._socket.settimeout(timeout)
        try:
            text = self._stream.readline()
        except TimeoutError:
            raise TimeoutError(f"{what}: not within {timeout} s") from None
        except ConnectionError:
            text = ""
        if not text:
            raise LabError(f"{what}: {self._process.name} ended: {self._process.output()[-3000:]}")
        return json.loads(text)

    def write(self, document):
        self._stream.write(json.dumps(document) + "\n")
        self._stream.flush()


class Guest:
    """One machine with one card. card: QEMU's device and its properties; queues: pairs of them that
    the tap has; devices: more of QEMU's command line; cmdline: of the kernel; root: a folder with
    Python in it; first: what initramfs.py has for the first process."""

    def __init__(self, lab, card, queues=1, cpus=2, memory_mib=1280, devices=(), cmdline="", root="/",
                 first=initramfs.AGENT):
        self.lab = lab
        self.card = card
        many = ["multi_queue"] if queues > 1 else []
        lab.ip(NS, "tuntap", "add", TAP, "mode", "tap", *many)
        lab.address(NS, TAP, "10.81.0.1/24")
        lab.ip(NS, "link", "set", TAP, "up")
        image = lab.dir / "initramfs"
        agent = shutil.copy(HERE / "vm_agent.py", lab.dir)
        image.write_bytes(initramfs.build(KERNEL, lab.dir, agent, first))
        many = f",queues={queues}" if queues > 1 else ""
        self.qemu = lab.start(NS, "guest", [
            QEMU, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", cpus, "-m", memory_mib,
            "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
            "-kernel", initramfs.vmlinuz(KERNEL), "-initrd", image,
            "-append", f"{CMDLINE} {cmdline}",
            *devices,
            *_share("root", root, "readonly=on"), *_share("lab", lab.dir),
            *_share("modules", initramfs.modules_of(KERNEL), "readonly=on"),
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={lab.dir}/agent,server=on,wait=off",
            "-device", "virtserialport,chardev=agent",
            "-qmp", f"unix:{lab.dir}/qmp,server=on,wait=off",
            "-netdev", f"tap,id=net0,ifname={TAP},script=no,downscript=no,vhost=off{many}",
            "-device", f"pcie-root-port,id={SLOT},chassis=1,addr=1c.0",
            "-device", f"{card},id=card,netdev=net0,bus={SLOT}",
        ], cpu=None, nice=NICE)
        self._qmp = Line(lab.dir / "qmp", self.qemu)
        self._qmp.read(COMMAND_TIMEOUT_S, "QEMU's greeting")
        self._agent = Line(lab.dir / "agent", self.qemu)
        self.qmp("qmp_capabilities")

    def wait_for_boot(self):
        self._agent.read(BOOT_TIMEOUT_S, "the guest's agent")
        self.run("ip link set lo up")
        return self

    def qmp(self, command, **arguments):
        """Tells QEMU something; what it returns."""
        self._qmp.write({"execute": command, "arguments": arguments})
        while True:
            answer = self._qmp.read(COMMAND_TIMEOUT_S, f"QEMU's answer to {command}")
            if "error" in answer:
                raise LabError(f"{command} {arguments}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def try_run(self, script, timeout=COMMAND_TIMEOUT_S):
        """Runs a script of bash in the guest to its end; (status, output)."""
        self._agent.write({"script": script, "timeout": timeout})
        answer = self._agent.read(timeout + COMMAND_TIMEOUT_S, f"in the guest: {script}")
        return answer["status"], answer["output"]

    def run(self, script, timeout=COMMAND_TIMEOUT_S):
        """The same; its output, or LabError when it fails."""
        status, output = self.try_run(script, timeout)
        if status != 0:
            raise LabError(f"in the guest: {script}: status {status}: {output}")
        return output

    def bind(self, driver):
        """Gives the card to a driver of the kernel, as docs/devices.md does it."""
        self.unbind()
        self.run(f"""
            echo {driver} > {SYS}/{CARD}/driver_override
            echo {CARD} > /sys/bus/pci/drivers_probe
            [ $(basename $(readlink {SYS}/{CARD}/driver)) = {driver} ]""")

    def unbind(self):
        self.try_run(f"echo {CARD} > {SYS}/{CARD}/driver/unbind")

    def load_drivers(self, *names):
        """Modules of the kernel; the emulated IOMMU does not remap interrupts, which vfio-pci is told to bear."""
        self.run("; ".join(f"modprobe {name}" for name in names))
        if VFIO in names:
            self.run("echo 1 > /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts")

    def start(self, name, command):
        """A command in the background of the guest, its output in NAME.log of the Lab's directory."""
        log = self.lab.dir / f"{name}.log"
        pid = self.run(f"setsid {command} >>{log} 2>&1 </dev/null & echo $!")
        return GuestProcess(self, name, log, int(pid))


class GuestProcess:
    """A command in the background of a guest."""

    def __init__(self, guest, name, log_path, pid):
        self.guest, self.name, self.log_path, self.pid = guest, name, log_path, pid
        self._seen = log_path.stat().st_size if log_path.exists() else 0

    def output(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def alive(self):
        return self.guest.try_run(f"kill -0 {self.pid}")[0] == 0

    def signal(self, name):
        self.guest.run(f"kill -{name} {self.pid}")

    def wait(self, timeout):
        wait_until(lambda: not self.alive(), timeout, f"the end of {self.name}", interval=0.3)

    def wait_for(self, text, timeout, since=0):
        """Until its output has a text, at or behind an offset; the offset behind it."""
        def find():
            at = self.output().find(text, since)
            if at < 0 and not self.alive():
                raise LabError(f"{self.name} ended: {self.output()[-3000:]}")
            return at + len(text) if at >= 0 else None
        return wait_until(find, timeout, f"{text!r} of {self.name}", interval=0.2)


def _share(tag, path, more=""):
    return ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap,{more}".rstrip(","),
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
