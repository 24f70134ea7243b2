# SPDX-License-Identifier: Apache-2.0
"""Listeners with filter chains, TLS and access control, and Clusters with TLS, for test_verdicts: rows of the tables
that test_validation has, and some more that are judged here alone."""

import dataclasses

import resources
from cluster_table import TYPES
from connect_table import connect_cluster_rows, wrapped
from policy_cases import FAULT
from rbac_table import RBAC, WHERE, rbac_rows
from socket_table import chain, listener, manager, socket_rows
from tls_table import (CA, DOWNSTREAM, INSTANCE, OWN, STRANGE, UPSTREAM, cluster_with, socket_listener,
                       tls_cluster_rows, tls_listener_rows, trusting)
from validation_table import ACK, UNKNOWN_FIELD, XDS_STRUCT, Row

OLD_OWN = {"tls_certificate_certificate_provider_instance": INSTANCE}
OLD_CA = {"combined_validation_context": {"validation_context_certificate_provider_instance": INSTANCE}}
SDS = {"name": "x"}
UNREAD = "ACK: it does not read typed names"
NO_STRUCT = "NACK: it knows a context by its type alone"
CHAIN = "filter_chains[0].transport_socket.typed_config"  # where a patch of a chain's context begins


def good(label, resource, **more):
    return Row(label, ACK, resource=resource, **more)


def bad(label, resource, *texts, **more):
    return Row(label, texts, resource=resource, **more)


# -- clusters

def more_cluster_rows():
    where = "transport_socket"
    exact = {"exact": "a"}

    def names(*matchers):
        return cluster_with(trusting(match_subject_alt_names=list(matchers)))
    yield good("a name twice (TLS-125)", names(exact, exact))
    yield good("names in a combined context (TLS-125)", cluster_with({"combined_validation_context": {
        "default_validation_context": {**CA, "match_subject_alt_names": [exact]}}}))
    yield bad("a bad name behind a good one (TLS-125)", names(exact, {}), where, "match_subject_alt_names[1]")
    yield bad("a typed name of type 99 (TLS-125)", cluster_with(trusting(match_typed_subject_alt_names=[
        {"san_type": 99, "matcher": exact}])), where, "san_type", core=UNREAD)
    yield good("system roots with names (TLS-124)", cluster_with({"validation_context": {
        "system_root_certs": {}, "match_subject_alt_names": [exact]}}))
    yield bad("an empty combined context's default (TLS-122)", cluster_with({"combined_validation_context": {
        "default_validation_context": {}}}), where, "CA")
    yield bad("combined, with SDS (TLS-122)", cluster_with({"combined_validation_context": {
        "default_validation_context": {}, "validation_context_sds_secret_config": SDS}}), where, "CA")
    yield bad("combined, with a CRL (TLS-123)", cluster_with({"combined_validation_context": {
        "default_validation_context": {**CA, "crl": {"filename": "/x"}}}}), where, "crl")
    yield bad("our certificate of a provider without a name (TLS-121)", cluster_with(
        {**trusting(), "tls_certificate_provider_instance": {}}), where, "tls_certificate_provider_instance")
    yield good("certificates by SDS beside a provider's (TLS-123)", cluster_with(
        {**trusting(), **OWN, "tls_certificate_sds_secret_configs": [SDS]}))
    yield good("certificates beside a provider's by the old field (TLS-123)", cluster_with(
        {**trusting(), **OLD_OWN, "tls_certificates": [{}]}))
    yield good("trust of kind 99 (TLS-127)", cluster_with(trusting(trust_chain_verification=99)))
    yield good("a folder that is watched (TLS-127)", cluster_with(trusting(watched_directory={"path": "/x"})))
    yield good("SNI beside a name (TLS-129)", cluster_with(trusting(match_subject_alt_names=[exact]), sni="a.test"))
    yield good("validation by SNI alone (TLS-165)", cluster_with(trusting(), auto_sni_san_validation=True))
    yield bad("a listener's context (CL-03)", cluster_of(DOWNSTREAM, common_tls_context=OWN), where,
              "DownstreamTlsContext")
    yield bad("another type (CL-03)", cluster_of(FAULT), where, "HTTPFault")
    yield good("a context in a struct (TLS-217)", cluster_of(
        XDS_STRUCT, type_url=UPSTREAM, value={"common_tls_context": trusting()}), core=NO_STRUCT)
    yield bad("a bad context in a struct (TLS-217)", cluster_of(XDS_STRUCT, type_url=UPSTREAM, value={}), where, "CA")
    yield bad("bytes that are no context (CL-03)", cluster_with(trusting()), where,
              patch=[["transport_socket.typed_config", "1201ff"]])
    row = good("no name of the socket (TLS-127)", cluster_with(trusting()))
    del row.resource["transport_socket"]["name"]
    yield row
    inner = {"name": "envoy.transport_sockets.tls", "typed_config": {"@type": UPSTREAM}}
    yield bad("TLS without CAs around which a proxy is (HC-02)", {**cluster_with(), "transport_socket": wrapped(inner)},
              where, "CA")


def cluster_of(url, **config):
    made = cluster_with()
    made["transport_socket"]["typed_config"] = {"@type": url, **config}
    return made


# -- listeners: TLS

def serving(common=None, **fields):
    return socket_listener({"common_tls_context": {**OWN, **(common or {})}, **fields})


def server_rows():
    where = "filter_chains[0]", "transport_socket"
    must = {"require_client_certificate": True}
    yield good("a certificate by a provider (TLS-128)", serving())
    yield good("of the default chain alone (TLS-128)", socket_listener({"common_tls_context": OWN}, default=True))
    yield good("by the old field (TLS-126)", socket_listener({"common_tls_context": OLD_OWN}))
    yield good("by both fields (TLS-126)", socket_listener({"common_tls_context": {
        **OWN, "tls_certificate_certificate_provider_instance": STRANGE}}))
    yield bad("by a provider without a name (TLS-121)", socket_listener({"common_tls_context": {
        "tls_certificate_provider_instance": {}}}), *where, "tls_certificate_provider_instance")
    yield bad("by the old field, of nobody (TLS-121)", socket_listener({"common_tls_context": {
        "tls_certificate_certificate_provider_instance": STRANGE}}), *where, "strange")
    yield bad("by SDS (TLS-123)", socket_listener({"common_tls_context": {
        "tls_certificate_sds_secret_configs": [SDS]}}), *where, "tls_certificate_sds_secret_configs")
    yield good("certificates beside a provider's (TLS-123)", serving({"tls_certificates": [{}]}))
    yield good("certificates by SDS beside a provider's (TLS-123)",
               serving({"tls_certificate_sds_secret_configs": [SDS]}))
    yield good("CAs of clients (TLS-128)", serving(trusting()))
    yield good("clients must have a certificate (TLS-128)", serving(trusting(), **must))
    yield good("clients need not (TLS-128)", serving(require_client_certificate=False))
    yield good("clients must, combined (TLS-128)", serving({"combined_validation_context": {
        "default_validation_context": CA}}, **must))
    yield good("clients must, by the old field (TLS-126)", serving(OLD_CA, **must))
    yield bad("clients must, by a file (TLS-128)", serving({"validation_context": {"trusted_ca": {"filename": "/ca"}}},
                                                           **must), *where, "ca_certificate_provider_instance")
    yield bad("clients must, by the system's CAs (TLS-128)", serving({"validation_context": {
        "system_root_certs": {}}}, **must), *where, "system_root_certs")
    yield bad("clients must, by nobody's CAs (TLS-121)", serving({"validation_context": {
        "ca_certificate_provider_instance": STRANGE}}, **must), *where, "strange")
    yield good("the system's CAs behind a provider's (TLS-128)", serving(trusting(system_root_certs={})))
    for label, validation in (("a validation", {"validation_context": {}}), ("a combined one", {
            "combined_validation_context": {"default_validation_context": {}}})):
        yield bad(f"{label} without CAs (TLS-128)", serving(validation), *where, "ca_certificate_provider_instance",
                  core="ACK: clients need not have a certificate")
    yield good("a combined one of nothing (TLS-128)", serving({"combined_validation_context": {}}))
    yield bad("names in a combined context (TLS-128)", serving({"combined_validation_context": {
        "default_validation_context": {**CA, "match_subject_alt_names": [{"exact": "a"}]}}}), *where,
        "match_subject_alt_names")
    yield bad("typed names of clients (TLS-128)", serving(trusting(match_typed_subject_alt_names=[
        {"san_type": "DNS", "matcher": {"exact": "a"}}])), *where, "match_subject_alt_names", core=UNREAD)
    for field, value in (("verify_certificate_hash", ["x"]), ("require_signed_certificate_timestamp", True),
                         ("crl", {"filename": "/x"}), ("custom_validator_config", {"name": "x"})):
        yield bad(f"{field} (TLS-123)", serving(trusting(**{field: value})), *where, field)
    yield bad("a handshaker (TLS-123)", serving({"custom_handshaker": {"name": "x"}}), *where, "custom_handshaker")
    yield good("LENIENT_STAPLING (TLS-128)", serving(ocsp_staple_policy="LENIENT_STAPLING"))
    yield bad("stapling 99 (TLS-128)", serving(ocsp_staple_policy=99), *where, "ocsp_staple_policy")
    yield good("no SNI needed (TLS-128)", serving(require_sni=False))
    yield good("ALPN (TLS-127)", serving({"alpn_protocols": ["h2"]}))
    yield good("session tickets (TLS-127)", serving(session_ticket_keys={"keys": [{"inline_bytes": "A" * 107 + "="}]}))
    yield good("no tickets (TLS-127)", serving(disable_stateless_session_resumption=True))
    yield good("a session's timeout (TLS-127)", serving(session_timeout="300s"))
    yield good("an unknown field (TLS-127)", serving(), patch=[["", UNKNOWN_FIELD]])


def of_socket(url=None, name="envoy.transport_sockets.tls", **config):
    typed = {"typed_config": {"@type": url, **config}} if url else {}
    return listener(chain(transport_socket={"name": name, **typed}))


def chain_rows():
    where = "filter_chains[0]", "transport_socket"
    tls, broken = ({"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": {
        "@type": DOWNSTREAM, "common_tls_context": common}}} for common in (OWN, {}))
    ten, eleven = ({"prefix_ranges": [{"address_prefix": f"{n}.0.0.0", "prefix_len": 8}]} for n in (10, 11))
    yield good("another name of the socket (TLS-127)", of_socket(DOWNSTREAM, "tls", common_tls_context=OWN))
    yield good("no name of the socket (TLS-127)", of_socket(DOWNSTREAM, "", common_tls_context=OWN))
    yield bad("a socket without config (A36-10)", of_socket(), *where, "typed_config")
    yield bad("a cluster's context (A36-10)", of_socket(UPSTREAM, common_tls_context=trusting()), *where,
              "UpstreamTlsContext")
    yield bad("another type (A36-10)", of_socket(FAULT), *where, "HTTPFault")
    yield good("a context in a struct (TLS-217)", of_socket(
        XDS_STRUCT, type_url=DOWNSTREAM, value={"common_tls_context": OWN}), core=NO_STRUCT)
    yield bad("a bad context in a struct (TLS-217)", of_socket(XDS_STRUCT, type_url=DOWNSTREAM, value={}), *where,
              "tls_certificate_provider_instance")
    yield bad("bytes that are no context (A36-10)", serving(), *where, patch=[[CHAIN, "1201ff"]])
    yield good("TLS in one chain, plain text in another (A36-10)", listener(chain(ten, **tls), chain(eleven)))
    yield good("TLS in two chains (A36-10)", listener(chain(ten, **tls), chain(eleven, **tls)))
    yield bad("a bad context in the second chain (A36-10)", listener(chain(ten, **tls), chain(eleven, **broken)),
              "filter_chains[1]", "transport_socket")
    yield bad("a bad context in the default chain (A36-10)",
              listener(chain(ten, **tls), default_filter_chain=chain(**broken)), "default_filter_chain",
              "transport_socket")
    yield bad("a bad context in a chain that never matches (A36-07)",
              listener(chain(), chain({"destination_port": 1}, **broken)), "filter_chains[1]", "transport_socket")
    yield bad("source type 99 (A36-11)", listener(chain({"source_type": 99})), "filter_chains[0]", "source_type")


# -- listeners: access control

def guarded(config, *more):
    filters = [{"name": "rbac", "typed_config": {"@type": RBAC, **config}}, *more,
               {"name": "router", "typed_config": {"@type": resources.ROUTER}}]
    return listener(chain(filters=[{"name": "hcm", "typed_config": manager(http_filters=filters)}]))


def access_rows():
    """What overrides of routes have, as a filter of a server."""
    for row in rbac_rows():
        made = row.hosts[0]["routes"][0]["typed_per_filter_config"]["rbac"]
        if made["@type"] != RBAC:
            wanted = ("filter_chains[0]", "rbac", *row.wanted[len(WHERE):]) if row.wanted else ACK
            yield dataclasses.replace(row, wanted=wanted, hosts=None, answers={},
                                      resource=guarded(made.get("rbac", {})))
    second = {"name": "again", "typed_config": {"@type": RBAC}}
    yield good("rbac: two filters (A41-17)", guarded({}, second))
    yield bad("rbac: two filters of one name (FLT-01)", guarded({}, {**second, "name": "rbac"}), "duplicate")
    yield bad("rbac: an override as a filter (FLT-02)", guarded({}, {"name": "o", "typed_config": {
        "@type": TYPES + "extensions.filters.http.rbac.v3.RBACPerRoute"}}), "RBACPerRoute")


def prefixed(**tables):
    """The rows of all tables, with a label that no other row has."""
    for name, rows in tables.items():
        for row in rows():
            yield dataclasses.replace(row, label=f"{name}: {row.label}")


def all_cluster_rows():
    yield from prefixed(tls=tls_cluster_rows, cluster=more_cluster_rows, proxy=connect_cluster_rows)


def all_listener_rows():
    yield from prefixed(socket=socket_rows, context=tls_listener_rows, server=server_rows, chain=chain_rows,
                        filter=access_rows)
