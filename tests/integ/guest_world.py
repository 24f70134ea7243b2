# SPDX-License-Identifier: Apache-2.0
"""What is at the other end of the only link of a guest (vm.py): a client and a backend, and the resources that shuntd
in the guest is to be given.

    client and backend 10.81.0.1 -- the card 10.81.0.10 (shuntd)
"""

import h2load
import resources
from lab import OFFLOADS
from resources import Folder
from testbed import URL
from vm import NS, TAP

BACKEND = ("10.81.0.1", 8080)
MARK_SIZE = 20_000  # of an answer: frames of full length


class GuestWorld:
    """guest: one that may be booting still."""

    def __init__(self, lab, guest, mtu=1500):
        self.lab = lab
        self.guest = guest
        lab.ip(NS, "link", "set", TAP, "mtu", str(mtu))
        lab.exec(NS, ["ethtool", "-K", TAP, *(word for name in OFFLOADS for word in (name, "off"))])
        www = lab.dir / "www"
        www.mkdir()
        (www / h2load.MARK.lstrip("/")).write_bytes(b"#" * MARK_SIZE)
        lab.start(NS, "backend", ["nghttpd", "--no-tls", "-a", BACKEND[0], "-d", www, str(BACKEND[1])])
        self.xds_folder = Folder(lab.dir / "xds")
        everything = resources.virtual_host("all", ["*"], resources.route("/", "blue"))
        self.xds_folder.set(resources.listener("web", "routes"), resources.cluster("blue"),
                            resources.endpoints("blue", BACKEND),
                            resources.route_config("routes", everything))

    def set_link(self, up):
        """Of the card."""
        self.guest.qmp("set_link", name="card", up=up)

    def run_h2load(self, **amount):
        """As a Testbed has it."""
        return self.load(**amount)

    def load(self, requests=400, clients=4, streams=4, timeout=120):
        argv = h2load.arguments(URL + h2load.MARK, requests=requests, clients=clients, streams=streams)
        return h2load.parse(self.lab.exec(NS, argv, timeout=timeout).stdout)
