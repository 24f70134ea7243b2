# SPDX-License-Identifier: Apache-2.0
"""Access control that is odd or bad, as overrides of routes, for test_validation: C-core reads those of its
servers on its clients, too. The listener there has the filter as an optional one, which C-core's clients leave out."""

from resources import TYPES, route, virtual_host
from routing_cases import ALPHA
from validation_table import ACK, Row

RBAC = TYPES + "extensions.filters.http.rbac.v3.RBAC"
PER_ROUTE = TYPES + "extensions.filters.http.rbac.v3.RBACPerRoute"
ANY = {"any": True}
PASSES, DENIED = {"/x.T/M": ALPHA}, {"/x.T/M": "403"}
WHERE = ('virtual host "row"', "route 0", "typed_per_filter_config[rbac]")


def per_route(label, wanted, config, answers=None, **more):
    made = route("", ALPHA)
    made["typed_per_filter_config"] = {"rbac": {"@type": PER_ROUTE, **config}}
    return Row(f"rbac: {label}", wanted, [virtual_host("row", ["*"], made)], answers or {}, **more)


def policy(label, wanted, made, answers=None, **more):
    rules = {"action": "DENY", "policies": {"p": made}}
    return per_route(label, wanted, {"rbac": {"rules": rules}}, answers, **more)


def permission(label, rule, *texts, answers=None, **more):
    wanted = (*WHERE, "policies[p]", "permissions[0]", *texts) if texts else ACK
    return policy(label, wanted, {"permissions": [rule], "principals": [ANY]}, answers, **more)


def principal(label, identifier, *texts, answers=None, **more):
    wanted = (*WHERE, "policies[p]", "principals[0]", *texts) if texts else ACK
    return policy(label, wanted, {"permissions": [ANY], "principals": [identifier]}, answers, **more)


def shape_rows():
    yield per_route("nothing (A41-17)", ACK, {}, PASSES)
    yield per_route("no rules (A41-01)", ACK, {"rbac": {}}, PASSES)
    yield per_route("empty rules (A41-01)", ACK, {"rbac": {"rules": {}}}, DENIED)
    yield per_route("rules that deny nothing (A41-01)", ACK, {"rbac": {"rules": {"action": "DENY"}}}, PASSES)
    yield per_route("rules that log (A41-03)", ACK, {"rbac": {"rules": {"action": "LOG"}}}, PASSES)
    bad = {"policies": {"p": {"permissions": [{}], "principals": [ANY]}}}
    yield per_route("bad rules that log (A41-03)", ACK, {"rbac": {"rules": {"action": "LOG", **bad}}}, PASSES)
    yield per_route("bad shadow rules (A41-03)", ACK, {"rbac": {"shadow_rules": bad}}, PASSES)
    yield per_route("matcher (A41-02)", ACK, {"rbac": {"matcher": {}}}, PASSES)
    yield per_route("audit loggers (A41-16)", ACK, {"rbac": {"rules": {
        "audit_logging_options": {"audit_condition": "ON_DENY"}}}}, DENIED)
    yield policy("an empty policy (A41-05)", ACK, {}, PASSES)
    for field in ("condition", "checked_condition"):
        yield policy(f"{field} (A41-05)", (*WHERE, "policies[p]", field), {
            "permissions": [ANY], "principals": [ANY], field: {}})
    made = route("", ALPHA)
    made["typed_per_filter_config"] = {"rbac": {"@type": RBAC}}
    yield Row("rbac: a filter's type as an override (FLT-08)", WHERE, [virtual_host("row", ["*"], made)])


def rule_rows():
    yield permission("any that is false (A41-05)", {"any": False}, answers=DENIED)
    yield permission("a list of none (A41-05)", {"and_rules": {}}, answers=DENIED)
    yield permission("one of none (A41-05)", {"or_rules": {}}, answers=PASSES)
    yield permission("no rule (A41-05)", {}, "no rule")
    yield permission("no rule within not (A41-05)", {"not_rule": {}}, "not_rule", "no rule")
    yield permission("no rule within and (A41-05)", {"and_rules": {"rules": [ANY, {}]}}, "rules[1]")
    yield principal("no identifier (A41-05)", {}, "no identifier")
    yield principal("no identifier within or (A41-05)", {"or_ids": {"ids": [{}]}}, "or_ids", "ids[0]")
    yield permission("url_path without a path (A41-05)", {"url_path": {}}, "url_path")
    yield permission("path without a pattern (SM-03)", {"url_path": {"path": {}}}, "url_path")
    yield permission("path (A41-08)", {"url_path": {"path": {"exact": "/x.T/M"}}}, answers=DENIED)
    yield principal("header (A41-09)", {"header": {"name": ":method", "string_match": {"exact": "GET"}}},
                    answers=DENIED)
    for name in (":scheme", "grpc-timeout"):
        yield permission(f"header {name} (A41-06)", {"header": {"name": name, "present_match": True}},
                         "header", name)
    yield permission("header without a matcher (A28-H14)", {"header": {"name": "k"}}, "header")
    yield permission("inverted metadata (A41-11)", {"metadata": {"filter": "f", "invert": True}}, answers=DENIED)
    yield permission("metadata (A41-11)", {"metadata": {"filter": "f"}}, answers=PASSES)
    yield permission("server name (A41-11)", {"requested_server_name": {"exact": ""}}, answers=DENIED)
    yield permission("server name without a pattern (SM-03)", {"requested_server_name": {}},
                     "requested_server_name")
    yield principal("a name without TLS (A41-12)", {"authenticated": {}}, answers=PASSES)
    yield principal("principal name without a pattern (SM-03)", {"authenticated": {"principal_name": {}}},
                    "principal_name")
    for label, text in (("all of IPv4", "0.0.0.0"), ("a range", "10.0.0.0")):
        for kind in ("source_ip", "direct_remote_ip", "remote_ip"):
            yield principal(f"{label}, {kind} (A41-13)", {kind: {
                "address_prefix": text, "prefix_len": 8 if text != "0.0.0.0" else 0}}, answers=DENIED)
    yield permission("no address (A41-07)", {"destination_ip": {"address_prefix": "a", "prefix_len": 8}},
                     "destination_ip", "address_prefix", core="ACK: it never matches (A41-07)")
    yield principal("33 bits (A41-07)", {"remote_ip": {"address_prefix": "10.0.0.0", "prefix_len": 33}},
                    "remote_ip", "prefix_len", core="ACK: it shortens them (A41-07)")


def nested(rule, depth):
    """A rule within so many lists, and one within so many negations."""
    in_lists, in_nots = rule, rule
    for _ in range(depth):
        in_lists, in_nots = {"and_rules": {"rules": [in_lists]}}, {"not_rule": in_nots}
    return in_lists, in_nots


def depth_rows():
    for kind, rule in zip(("lists", "negations"), nested(ANY, 16)):
        yield permission(f"16 {kind} deep (A41-04)", rule, answers=DENIED)
    for kind, rule in zip(("lists", "negations"), nested(ANY, 17)):
        yield policy(f"17 {kind} deep (A41-04)", (*WHERE, "policies[p]", "16 deep"), {
            "permissions": [rule], "principals": [ANY]})
    deep = ANY
    for _ in range(17):
        deep = {"not_id": deep}
    yield policy("17 principals deep (A41-04)", (*WHERE, "policies[p]", "16 deep"), {
        "permissions": [ANY], "principals": [deep]})
    yield policy("16 principals deep (A41-04)", ACK, {"permissions": [ANY], "principals": [deep["not_id"]]}, DENIED)


def rbac_rows():
    yield from shape_rows()
    yield from rule_rows()
    yield from depth_rows()
