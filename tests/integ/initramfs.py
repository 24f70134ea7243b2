# SPDX-License-Identifier: Apache-2.0
"""The first file system of a virtual machine: busybox, the modules that reach its root by 9p, and a
script that goes there. See vm.py."""

import pathlib
import stat

BUSYBOX = "/bin/busybox"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_console")
INIT = """#!/bin/busybox sh
set -e
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sys /sys
$bb mount -t devtmpfs dev /dev
for module in /modules/*; do $bb insmod $module; done
plan9=trans=virtio,version=9p2000.L,msize=512000
$bb mount -t 9p -o ro,$plan9,cache=loose root /lower
$bb mount -t tmpfs upper /upper
$bb mkdir /upper/files /upper/work
$bb mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /root
for folder in dev proc sys; do $bb mount --move /$folder /root/$folder; done
$bb mount -t tmpfs run /root/run
$bb mkdir -p /root{lab} /root/dev/shm /root/lib/modules/{version}
$bb mount -t 9p -o $plan9 lab /root{lab}
$bb mount -t 9p -o ro,$plan9,cache=loose modules /root/lib/modules/{version}
{first}"""
# What is the first process then: the agent itself, or systemd, of which it is a service.
AGENT = "exec $bb switch_root /root /usr/bin/python3 {agent} </dev/console >/dev/console 2>&1\n"
SYSTEMD = """units=/root/run/systemd/system
$bb mkdir -p $units/multi-user.target.wants
$bb cat >$units/agent.service <<END
[Service]
ExecStart=/usr/bin/python3 {agent}
END
$bb ln -s ../agent.service $units/multi-user.target.wants/
exec $bb switch_root /root /lib/systemd/systemd </dev/console >/dev/console 2>&1
"""


def vmlinuz(kernel):
    """The kernel of an unpacked package, or None."""
    return next(iter(sorted((kernel / "boot").glob("vmlinuz-*"))), None)


def modules_of(kernel):
    """The folder with the modules of an unpacked package, named for the kernel's version."""
    (folder,) = (kernel / "lib" / "modules").iterdir()
    return folder


def build(kernel, lab, agent, first=AGENT):
    """The archive, as bytes. kernel: a folder with the unpacked package; lab: what is shared for
    writing; agent: a program of Python's in there; first: AGENT or SYSTEMD."""
    modules = modules_of(kernel)
    script = INIT.format(lab=lab, version=modules.name, first=first.format(agent=agent))
    files = [(folder, stat.S_IFDIR | 0o755, b"") for folder in
             ("bin", "dev", "lower", "modules", "proc", "root", "sys", "upper")]
    files += [("init", stat.S_IFREG | 0o755, script.encode()),
              ("bin/busybox", stat.S_IFREG | 0o755, pathlib.Path(BUSYBOX).read_bytes())]
    for number, path in enumerate(_modules(modules)):
        files.append((f"modules/{number:02}-{path.name}", stat.S_IFREG | 0o644, path.read_bytes()))
    return b"".join(_entry(*file) for file in [*files, ("TRAILER!!!", 0, b"")])


def _modules(folder):
    """MODULES with what they need, each after what it needs itself."""
    needs = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[pathlib.Path(path).stem] = [path, *others.split()]
    order = {}
    for name in MODULES:
        order.update(dict.fromkeys(reversed(needs[name])))
    return [folder / path for path in order]


def _entry(name, mode, data):
    """One file of a cpio archive in the new ASCII format."""
    path = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % n for n in numbers) + path
    return _padded(head) + _padded(data)


def _padded(data):
    return data + bytes(-len(data) % 4)
