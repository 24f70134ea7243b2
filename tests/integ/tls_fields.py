# SPDX-License-Identifier: Apache-2.0
"""Rows for test_validation of the tables of fields by which shuntd reads TLS contexts (ctrl/res/tls.c): one for each
field that is ignored or refused, in clusters and in listeners."""

import pathlib
import sys

from envoy.extensions.transport_sockets.tls.v3.common_pb2 import CertificateValidationContext
from envoy.extensions.transport_sockets.tls.v3.tls_pb2 import (CommonTlsContext, DownstreamTlsContext,
                                                               UpstreamTlsContext)
from tls_table import CA, OWN, cluster_with, socket_listener, trusting
from validation_table import ACK, Row

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lint"))
import fields  # noqa: E402

API = {m.DESCRIPTOR.name: m.DESCRIPTOR for m in (
    UpstreamTlsContext, DownstreamTlsContext, CommonTlsContext,
    CommonTlsContext.CombinedCertificateValidationContext, CertificateValidationContext)}
TABLES = fields.tables((ROOT / "ctrl" / "res" / "tls.c").read_text())
VALUES = {  # of messages that say something only if something is in them
    "google.protobuf.BoolValue": True, "google.protobuf.UInt32Value": 1, "google.protobuf.Duration": "1s",
    "envoy.config.core.v3.DataSource": {"filename": "/x"},
    "envoy.config.core.v3.WatchedDirectory": {"path": "/x"}}


def value(field):
    """One that is not its default."""
    if field.message_type:
        one = VALUES.get(field.message_type.full_name, {})
    elif field.enum_type:
        one = field.enum_type.values[-1].number
    else:
        one = True if field.type == field.TYPE_BOOL else "x"
    return [one] if field.is_repeated else one


def common_with(message, name, set_to, base):
    """A CommonTlsContext of `base` and CAs, with this field of that message."""
    field = {name: set_to}
    if message == "CertificateValidationContext":
        return {**base, **trusting(**field)}
    if message == "CombinedCertificateValidationContext":
        return {**base, "combined_validation_context": {"default_validation_context": CA, **field}}
    in_place_of_cas = API[message].fields_by_name[name].containing_oneof
    return {**base, **({} if in_place_of_cas else trusting()), **field}


def decided():
    """What is not read: (message, row, value)."""
    for message, rows in TABLES.items():
        for row in rows:
            if row.kind not in ("READ", "INSIDE"):
                yield message, row, value(API[message].fields_by_name[row.field])


def cluster_field_rows():
    for message, row, set_to in decided():
        wanted = ACK if row.kind == "IGNORED" else ("transport_socket", row.field)
        if message == "UpstreamTlsContext":
            resource = cluster_with(trusting(), **{row.field: set_to})
        elif message != "DownstreamTlsContext":
            common = common_with(message, row.field, set_to, {})
            if row.kind == "IGNORED" and API[message].fields_by_name[row.field].containing_oneof:
                wanted = ("transport_socket", "no CA")  # it took the place of what has some
            resource = cluster_with(common)
        else:
            continue
        yield Row(f"cluster: {message}.{row.field} (TLS-239)", wanted, resource=resource)


def listener_field_rows():
    for message, row, set_to in decided():
        wanted = ("filter_chains[0]", row.field) if row.kind == "REFUSED" else ACK
        if message == "DownstreamTlsContext":
            context = {"common_tls_context": OWN, row.field: set_to}
        elif message != "UpstreamTlsContext":
            context = {"common_tls_context": common_with(message, row.field, set_to, OWN)}
        else:
            continue
        yield Row(f"listener: {message}.{row.field} (TLS-239)", wanted, resource=socket_listener(context))
