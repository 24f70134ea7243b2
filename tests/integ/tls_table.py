# SPDX-License-Identifier: Apache-2.0
"""TLS contexts of clusters and listeners for test_validation: good ones and bad ones, by the bootstrap
that bootstrap() writes."""

import json

import resources
from cluster_table import SOCKETS, changed
from listener_table import ROUTER_FILTER
from testbed import EXAMPLE
from validation_table import ACK, ROUTES, UNKNOWN_FIELD, Row

PROVIDER = "default"
UPSTREAM, DOWNSTREAM = (SOCKETS + f"tls.v3.{name}TlsContext" for name in ("Upstream", "Downstream"))
INSTANCE = {"instance_name": PROVIDER, "certificate_name": "any"}
STRANGE = {"instance_name": "strange"}
CA = {"ca_certificate_provider_instance": INSTANCE}
OWN = {"tls_certificate_provider_instance": INSTANCE}


def bootstrap(folder, **files):
    """The example's, with a provider of these files."""
    made = json.loads((EXAMPLE / "bootstrap.json").read_text())
    config = {name: str(path) for name, path in files.items()}
    made["certificate_providers"] = {PROVIDER: {"plugin_name": "file_watcher", "config": config}}
    path = folder / "bootstrap.json"
    path.write_text(json.dumps(made))
    return path


def cluster_with(common=None, **fields):
    context = {"@type": UPSTREAM, **fields}
    if common is not None:
        context["common_tls_context"] = common
    return changed(transport_socket={"name": "envoy.transport_sockets.tls", "typed_config": context})


def good(label, common, core="", **fields):
    return Row(label, ACK, resource=cluster_with(common, **fields), core=core)


def bad(label, common, *texts, core="", **fields):
    return Row(label, ("transport_socket", *texts), resource=cluster_with(common, **fields), core=core)


def trusting(**fields):
    return {"validation_context": {**CA, **fields}}


def trust_rows():
    yield bad("no context (TLS-122)", None, "common_tls_context", "CA")
    yield bad("an empty context (TLS-122)", {}, "common_tls_context", "CA")
    yield bad("no CA (TLS-122)", {"validation_context": {}}, "CA")
    yield bad("a CA by file alone (TLS-122)", {"validation_context": {"trusted_ca": {"filename": "/ca"}}}, "CA")
    yield good("CAs of a provider (TLS-122)", trusting())
    yield good("CAs of a provider beside a file (TLS-127)", trusting(trusted_ca={"filename": "/ca"}))
    yield bad("CAs of nobody (TLS-121)", {"validation_context": {"ca_certificate_provider_instance": STRANGE}},
              "ca_certificate_provider_instance", "strange")
    yield bad("CAs of a provider without a name (TLS-121)",
              {"validation_context": {"ca_certificate_provider_instance": {}}}, "ca_certificate_provider_instance")
    yield good("the system's CAs (TLS-124)", {"validation_context": {"system_root_certs": {}}})
    yield good("the system's CAs behind a provider's (TLS-124)", trusting(system_root_certs={}))
    yield good("combined (TLS-122)", {"combined_validation_context": {"default_validation_context": CA}})
    yield bad("combined, empty (TLS-122)", {"combined_validation_context": {}}, "CA")
    yield bad("combined, of nobody (TLS-121)", {"combined_validation_context": {
        "default_validation_context": {"ca_certificate_provider_instance": STRANGE}}},
        "combined_validation_context", "default_validation_context", "strange")
    old = "validation_context_certificate_provider_instance"
    yield good("combined, by the old field (TLS-126)", {"combined_validation_context": {old: INSTANCE}})
    yield bad("combined, by the old field, of nobody (TLS-126)", {"combined_validation_context": {old: STRANGE}},
              old, "strange")
    yield good("combined, both fields (TLS-126)", {"combined_validation_context": {
        "default_validation_context": CA, old: STRANGE}})
    yield bad("CAs by SDS (TLS-123)", {"validation_context_sds_secret_config": {"name": "x"}},
              "validation_context_sds_secret_config")
    yield bad("an old field that is not read (TLS-122)", {old: INSTANCE}, "CA")


def refused_rows():
    for field, value in (("verify_certificate_spki", ["x"]), ("verify_certificate_hash", ["x"]),
                         ("require_signed_certificate_timestamp", True), ("crl", {"filename": "/x"}),
                         ("custom_validator_config", {"name": "x"})):
        yield bad(f"{field} (TLS-123)", trusting(**{field: value}), "validation_context", field)
    yield good("no timestamps (TLS-123)", trusting(require_signed_certificate_timestamp=False))
    yield bad("tls_params (TLS-123)", {**trusting(), "tls_params": {}}, "tls_params")
    yield bad("tls_params with something (TLS-123)", {**trusting(), "tls_params": {
        "tls_minimum_protocol_version": "TLSv1_3"}}, "tls_params")
    yield bad("custom_handshaker (TLS-123)", {**trusting(), "custom_handshaker": {"name": "x"}}, "custom_handshaker")
    yield bad("certificates (TLS-123)", {**trusting(), "tls_certificates": [{}]}, "tls_certificates")
    yield bad("certificates by SDS (TLS-123)", {**trusting(), "tls_certificate_sds_secret_configs": [{"name": "x"}]},
              "tls_certificate_sds_secret_configs")
    yield good("certificates beside a provider's (TLS-123)", {**trusting(), **OWN, "tls_certificates": [{}]})
    yield good("our certificate (TLS-121)", {**trusting(), **OWN})
    yield bad("our certificate, of nobody (TLS-121)", {**trusting(), "tls_certificate_provider_instance": STRANGE},
              "tls_certificate_provider_instance", "strange")
    old = "tls_certificate_certificate_provider_instance"
    yield good("our certificate by the old field (TLS-126)", {**trusting(), old: INSTANCE})
    yield bad("our certificate by the old field, of nobody (TLS-126)", {**trusting(), old: STRANGE}, old, "strange")
    yield good("the newer field beside the old one (TLS-126)", {**trusting(), **OWN, old: STRANGE})
    yield good("ALPN (TLS-127)", {**trusting(), "alpn_protocols": ["h2"]})
    yield good("renegotiation and session keys (TLS-127)", trusting(), allow_renegotiation=True, max_session_keys=3)
    yield good("expired ones allowed (TLS-127)", trusting(allow_expired_certificate=True))
    yield good("untrusted ones allowed (TLS-127)", trusting(trust_chain_verification="ACCEPT_UNTRUSTED"))
    row = good("another name of the socket (TLS-127)", trusting())
    row.resource["transport_socket"]["name"] = "tls"
    yield row
    row = good("an unknown field (TLS-127)", trusting())
    row.patch = [["", UNKNOWN_FIELD]]
    yield row


def name_rows():
    def names(*matchers):
        return trusting(match_subject_alt_names=list(matchers))

    def typed(*matchers):
        return trusting(match_typed_subject_alt_names=list(matchers))
    where = "match_subject_alt_names[0]"
    yield good("names of all kinds (TLS-125)", names(
        {"exact": "a"}, {"prefix": "a"}, {"suffix": "a"}, {"contains": "a", "ignore_case": True},
        {"safe_regex": {"regex": "a.*"}}))
    yield good("an empty exact name (TLS-125)", names({"exact": ""}))
    yield bad("a name without pattern (TLS-125)", names({}), where)
    for kind in ("prefix", "suffix", "contains"):
        yield bad(f"an empty {kind} (TLS-125)", names({kind: ""}), where, kind,
                  core="ACK: it does not check, grpc-go does")
    yield bad("a bad pattern (TLS-125)", names({"safe_regex": {"regex": "("}}), where, "safe_regex")
    yield bad("a pattern without case (TLS-125)", names({"safe_regex": {"regex": "a"}, "ignore_case": True}), where,
              "ignore_case")
    yield bad("custom (TLS-125)", names({"custom": {"name": "x"}}), where, "custom")
    exact = {"matcher": {"exact": "a"}}
    yield good("typed names (TLS-125)", typed(*({"san_type": t, **exact} for t in (
        "DNS", "URI", "EMAIL", "IP_ADDRESS"))))
    where = "match_typed_subject_alt_names[0]"
    unread = "ACK: it does not read them"
    yield bad("a typed name of no type (TLS-125)", typed(exact), where, "san_type", core=unread)
    yield bad("a typed name of another type (TLS-125)", typed({"san_type": "OTHER_NAME", "oid": "1.2", **exact}),
              where, "OTHER_NAME", core=unread)
    yield bad("a typed name without matcher (TLS-125)", typed({"san_type": "DNS"}), where, core=unread)


def sni_rows():
    yield good("SNI of 255 bytes (TLS-129)", trusting(), sni="a" * 255)
    yield bad("SNI of 256 bytes (TLS-129)", trusting(), "sni", "255", sni="a" * 256)
    yield good("SNI by the host's name (TLS-129)", trusting(), auto_host_sni=True, auto_sni_san_validation=True)


def tls_cluster_rows():
    yield from trust_rows()
    yield from refused_rows()
    yield from name_rows()
    yield from sni_rows()


# -- listeners

def socket_listener(context, default=False):
    """web, with an address and one chain; for a client it is no listener to resolve."""
    manager = resources.listener("web", ROUTES)["api_listener"]["api_listener"]
    manager["http_filters"] = [ROUTER_FILTER]
    chain = {"name": "c", "filters": [{"name": "hcm", "typed_config": manager}]}
    if context is not None:
        chain["transport_socket"] = {"name": "envoy.transport_sockets.tls",
                                     "typed_config": {"@type": DOWNSTREAM, **context}}
    made = {"@type": resources.LISTENER, "name": "web",
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": 1}}}
    made.update({"default_filter_chain": chain} if default else {"filter_chains": [chain]})
    return made


def bad_listener(label, context, *texts, default=False, core=""):
    chain = "default_filter_chain" if default else "filter_chains[0]"
    return Row(label, (chain, "transport_socket", *texts), resource=socket_listener(context, default), core=core)


def tls_listener_rows():
    def owning(**fields):
        return {"common_tls_context": {**OWN, **fields}}
    yield bad_listener("no context (TLS-128)", {}, "tls_certificate_provider_instance")
    yield bad_listener("no certificate (TLS-128)", {"common_tls_context": trusting()},
                       "tls_certificate_provider_instance")
    yield bad_listener("a certificate of nobody (TLS-121)", {"common_tls_context": {
        "tls_certificate_provider_instance": STRANGE}}, "strange")
    yield bad_listener("certificates (TLS-123)", {"common_tls_context": {"tls_certificates": [{}]}},
                       "tls_certificates")
    yield bad_listener("clients must have a certificate, of nobody (TLS-128)",
                       {**owning(), "require_client_certificate": True}, "require_client_certificate")
    yield bad_listener("system roots (TLS-128)", owning(validation_context={"system_root_certs": {}}),
                       "system_root_certs")
    yield bad_listener("names of clients (TLS-128)", owning(**trusting(match_subject_alt_names=[{"exact": "a"}])),
                       "match_subject_alt_names")
    yield bad_listener("SNI (TLS-128)", {**owning(), "require_sni": True}, "require_sni")
    for policy in ("STRICT_STAPLING", "MUST_STAPLE"):
        yield bad_listener(f"{policy} (TLS-128)", {**owning(), "ocsp_staple_policy": policy}, "ocsp_staple_policy")
    yield bad_listener("parameters (TLS-123)", owning(tls_params={}), "tls_params")
    yield bad_listener("a pinned key (TLS-123)", owning(**trusting(verify_certificate_spki=["x"])),
                       "verify_certificate_spki")
    yield bad_listener("CAs by SDS (TLS-123)", owning(validation_context_sds_secret_config={"name": "x"}),
                       "validation_context_sds_secret_config")
    yield bad_listener("of the default chain (TLS-128)", {}, "tls_certificate_provider_instance", default=True)
