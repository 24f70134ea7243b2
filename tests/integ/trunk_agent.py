# SPDX-License-Identifier: Apache-2.0
"""trunk_agent.py NEAR STRAYS FAR=VLAN...: a switch whose port NEAR is a trunk: frames of each FAR, which have no tag,
go there with the tag of their VLAN (802.1Q), and back; those of VLAN 0 have none there either. First it sends STRAYS
frames of VLAN 8 to NEAR."""

import selectors
import sys

from vlan_agent import STRAY, open_interface, receive, tagged

STRAY_VLAN = 8


def put(port, frame):
    try:
        port.send(frame)
    except OSError:
        pass  # the port has no link, or is full: a switch drops it


def main(near, strays, *fars):
    near = open_interface(near)
    for _ in range(int(strays)):
        near.send(tagged(STRAY + b"\x08\x00" + bytes(46), STRAY_VLAN))
    vlans = {open_interface(name): int(vlan) for name, vlan in (far.split("=") for far in fars)}
    interfaces = {vlan: sock for sock, vlan in vlans.items()}
    selector = selectors.DefaultSelector()
    for sock in (near, *vlans):
        selector.register(sock, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            frame, tag = receive(key.fileobj)
            vlan = vlans.get(key.fileobj)
            if frame and vlan is not None:
                put(near, tagged(frame, vlan) if vlan else frame)
            elif frame and (tag or 0) in interfaces:
                put(interfaces[tag or 0], frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
