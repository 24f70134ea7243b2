# SPDX-License-Identifier: Apache-2.0
"""What scapy has no layers for of an L4 tier's packets, and those. Only programs that make packets import it."""

from scapy.fields import (BitEnumField, BitField, BitFieldLenField, ByteEnumField, ByteField, FieldLenField,
                          FieldListField, IPField, ShortField, StrLenField)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet, bind_layers

GUE_PORT = 6080


class Gue(Packet):
    """draft-ietf-intarea-gue-09 3.1, variant 0. What is private is all that its optional part has."""

    name = "GUE"
    fields_desc = [BitField("variant", 0, 2),
                   BitEnumField("control", 0, 1, {0: "data", 1: "control"}),
                   BitFieldLenField("words", None, 5, length_of="private", adjust=lambda _, n: n // 4),
                   ByteEnumField("protocol", 59, {4: "IPv4", 41: "IPv6", 59: "nothing"}),
                   ShortField("flags", 0),
                   StrLenField("private", b"", length_from=lambda p: 4 * p.words)]


class Chain(Packet):
    """GLB's private data: hosts to be asked, and the number of the next one (docs of github/glb-director)."""

    name = "GLB"
    fields_desc = [ShortField("type", 0),
                   ByteField("next", 0),
                   FieldLenField("count", None, fmt="B", count_of="hops"),
                   FieldListField("hops", [], IPField("", "0.0.0.0"), count_from=lambda p: p.count)]


bind_layers(UDP, Gue, dport=GUE_PORT)
bind_layers(Gue, IP, protocol=4)
bind_layers(Gue, IPv6, protocol=41)


def outer(source, target, payload, protocol=None):
    """The packet around a payload; protocol: where that is bytes."""
    if ":" in source:
        return IPv6(src=source, dst=target, **({"nh": protocol} if protocol else {})) / payload
    return IP(src=source, dst=target, flags="DF", **({"proto": protocol} if protocol else {})) / payload


def udp(**fields):
    return UDP(**{"sport": 50000, "dport": GUE_PORT, **fields})


def gue(payload, **fields):
    """UDP, and GUE's header with these fields."""
    return udp() / Gue(**fields) / payload
