# SPDX-License-Identifier: Apache-2.0
"""Bad and odd route configurations for test_validation, each with what must become of it.

A row is served whole: a virtual host of the row's own (or several) beside one that tells versions
apart. wanted: ACK, or the texts that the refusal must contain beside the resource's name. answers:
what requests get once it is accepted. `core` is what gRPC C-core's own client says of the same
bytes where that differs, with the reason; elsewhere both must agree.
"""

import dataclasses

from policy_cases import FAULT, FILTER_CONFIG, faults, grpc_abort, http_abort
from resources import ROUTER, TYPES, route, virtual_host
from routing_cases import ALPHA, BETA

ACK = ()
ROUTES = "wire-routes"
BUFFER = TYPES + "extensions.filters.http.buffer.v3.Buffer"
BUFFER_PER_ROUTE = TYPES + "extensions.filters.http.buffer.v3.BufferPerRoute"
SESSION = TYPES + "extensions.filters.http.stateful_session.v3.StatefulSession"
SESSION_PER_ROUTE = TYPES + "extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute"
TEMPLATE = TYPES + "extensions.path.match.uri_template.v3.UriTemplateMatchConfig"
XDS_STRUCT = "type.googleapis.com/xds.type.v3.TypedStruct"
UDPA_STRUCT = "type.googleapis.com/udpa.type.v1.TypedStruct"
ROUTE_FIELDS = "virtual_hosts[1].routes[0]"  # where a patch of a row's first route begins
UNKNOWN_FIELD = "ca3e00"  # number 1001, an empty message


@dataclasses.dataclass
class Row:
    label: str
    wanted: tuple
    hosts: list = None
    answers: dict = dataclasses.field(default_factory=dict)  # path: outcome
    core: str = ""  # "ACK" or "NACK", and why, where C-core differs
    patch: list = dataclasses.field(default_factory=list)  # of [path, hex]
    headers: list = dataclasses.field(default_factory=list)  # that requests have
    resource: dict = None  # a listener in place of the hosts
    has_versions: bool = True  # the host that tells versions apart is there


def routes_row(label, wanted, *routes, answers=None, **more):
    """These routes, and after them one to beta."""
    host = virtual_host("row", ["*"], *routes, route("", BETA))
    return Row(label, wanted, [host], answers or {}, **more)


def match_row(label, wanted, match, answers=None, **more):
    return routes_row(label, wanted, route(match, ALPHA), answers=answers, **more)


def taken(label, match, **more):
    return match_row(label, ACK, match, {"/x.T/M": ALPHA}, **more)


def passed_by(label, match, **more):
    """The route is ignored, or just does not match."""
    return match_row(label, ACK, match, {"/x.T/M": BETA}, **more)


def bad_match(label, match, *texts, **more):
    return match_row(label, ('virtual host "row"', "route 0", "match", *texts), match, **more)


# -- what a route matches

def path_rows():
    yield routes_row("no match (A28-V01)", ('virtual host "row"', "route 0", "match"),
                     {"route": {"cluster": ALPHA}})
    yield bad_match("empty match (A28-P03)", {}, "path")
    yield bad_match("the old regex field (A28-P03)", {}, "path",
                    patch=[[ROUTE_FIELDS + ".match", "1a022f61"]])
    yield bad_match("unknown path specifier (A28-P03)", {}, "path",
                    patch=[[ROUTE_FIELDS + ".match", UNKNOWN_FIELD]])
    yield bad_match("connect_matcher (A28-P08)", {"connect_matcher": {}}, "connect_matcher")
    yield bad_match("path_separated_prefix (A28-P08)", {"path_separated_prefix": "/a"},
                    "path_separated_prefix")
    template = {"name": "t", "typed_config": {"@type": TEMPLATE, "path_template": "/{a}"}}
    yield bad_match("path_match_policy (A28-P08)", {"path_match_policy": template}, "path_match_policy")
    yield taken("empty prefix (A28-P01)", {"prefix": ""})
    yield taken("prefix of nothing but a slash", {"prefix": "/"})
    yield passed_by("empty path", {"path": ""})
    yield passed_by("prefix without a slash (A28-P07)", {"prefix": "x.T/"})
    yield match_row("path that gRPC could not ask for (A28-P07)", ACK, {"path": "/a/b/c"},
                    {"/a/b/c": ALPHA, "/a/b": BETA})
    yield match_row("path with a NUL", ("routes[0]", "path", "NUL"), {"path": "/x.T/M\0"},
                    core="ACK: it takes any text")
    yield taken("case_sensitive unset", {"path": "/x.T/M", "case_sensitive": True})
    yield match_row("case_sensitive false (A28-P04)", ACK, {"path": "/X.t/m", "case_sensitive": False},
                    {"/x.T/M": ALPHA, "/x.T/N": BETA})


INVALID = {  # RX-03, RX-04
    "open group": "(", "close group": "a)", "legal once wrapped": "a)|(?:b", "look ahead": "(?=x)",
    "negative look ahead": "(?!x)", "look behind": "(?<=a)b", "possessive": "a++",
    "atomic group": "(?>a)", "back-reference": r"(a)\1", "repeat over 1000": "x{1001}",
    "nested repeats over 1000": "([^/]{1,255}/){1,32}", "capital Z": r"a\Z", "h class": r"\h",
    "free spacing": "(?x)a b", "comment": "(?#c)a", "open set": "[a", "bare star": "*",
    "double star": "a**", "unknown property": r"\p{Nope}", "trailing backslash": "a\\",
    "backward set": "[b-a]",
}
VALID = {  # RX-02, RX-05, RX-11: pattern, does it match /x.T/M
    "anchor inside": ("/x^.T/M", False), "dollar inside": ("/x$.T/M", False),
    "ungreedy": ("(?U)/x.*", True), "any byte": (r"/x\CT/M", True),
    "Greek": (r"/x.T/\p{Greek}", False), "code point": (r"/x.T/\x{4d}", True),
    "large": ("(/x.T/M|([a-z]|bc*d|xy?z){200})", True), "unclosed quote": (r"\Q/x.T/M", True),
    "empty": ("", False), "fold": ("(?i)/X.t/m", True), "name": ("/x.T/(?P<n>M)", True),
    "alternatives": ("/y|/x.T/M", True), "not the whole": ("/x", False),
    "multi line flag": ("(?m)^/x.T/M$", True), "repeat of 1000": ("/x.T/M{1,1000}", True),
}


def regex_rows():
    for label, pattern in INVALID.items():
        yield bad_match(f"regex: {label} (RX-03)", {"safe_regex": {"regex": pattern}}, "safe_regex")
    for label, (pattern, matches) in VALID.items():
        row = taken if matches else passed_by
        yield row(f"regex: {label}", {"safe_regex": {"regex": pattern}})
    nul = {"safe_regex": {"regex": "/x.T/M\0"}}
    yield match_row("regex with a NUL (RX-10)", ("routes[0]", "safe_regex", "NUL"), nul,
                    core="ACK: RE2 takes it (RX-10)")
    yield taken("regex: max_program_size (RX-02)", {
        "safe_regex": {"regex": "/x.*", "google_re2": {"max_program_size": 1}}})


def header_row(label, matcher, *texts, name="x-h", **more):
    match = {"prefix": "", "headers": [{"name": "x-z", "present_match": False},
                                       {"name": name, **matcher}]}
    return bad_match(label, match, "headers[1]", *texts, **more)


def header_rows():
    lax = "ACK: it takes an empty operand (A28-H02)"
    yield header_row("header without a name (A28-H13)", {"present_match": True}, "name", name="",
                     core="ACK: it takes a name of nothing (A28-H13)")
    yield header_row("header without a specifier (A28-H14)", {})
    yield header_row("header with the old regex_match (A28-H14)", {}, patch=[
        [ROUTE_FIELDS + ".match.headers[1]", "2a0161"]])
    yield header_row("header with an unknown specifier (A28-H14)", {}, patch=[
        [ROUTE_FIELDS + ".match.headers[1]", UNKNOWN_FIELD]])
    for kind in ("prefix", "suffix", "contains"):
        yield header_row(f"empty {kind}_match (A28-H02)", {f"{kind}_match": ""}, f"{kind}_match",
                         core=lax)
        yield header_row(f"empty {kind} of string_match (SM-03)", {"string_match": {kind: ""}},
                         kind, core=lax)
    yield header_row("string_match without a pattern (SM-03)", {"string_match": {}}, "string_match")
    custom = {"custom": {"name": "c", "typed_config": {"@type": ROUTER}}}
    yield header_row("string_match custom (SM-03)", {"string_match": custom}, "custom")
    yield header_row("bad safe_regex_match (A28-H03)", {"safe_regex_match": {"regex": "("}}, "regex")
    yield header_row("bad safe_regex of string_match", {"string_match": {
        "safe_regex": {"regex": "("}}}, "regex")
    yield header_row("range that ends before it starts (A28-H04)", {
        "range_match": {"start": 2, "end": 1}}, "range_match")
    nul = {"prefix": "", "headers": [{"name": "x-h", "exact_match": "a\0"}]}
    yield match_row("exact_match with a NUL", ("headers[0]", "exact_match", "NUL"), nul,
                    core="ACK: it takes any text")
    present = [["x-h", "5"]]
    for label, matcher, matches in (
            ("empty range (A28-H04)", {"range_match": {"start": 5, "end": 5}}, False),
            ("exact_match of nothing (A28-H01)", {"exact_match": ""}, False),
            ("string_match exact of nothing", {"string_match": {"exact": ""}}, False),
            ("treat_missing_header_as_empty (A28-H06)", {"exact_match": "5",
                                                     "treat_missing_header_as_empty": True}, True),
            ("name in upper case (A28-H13)", {"name": "X-H", "present_match": True}, True),
            ("-bin is never there (A28-H10)", {"name": "x-h-bin", "present_match": False}, True)):
        match = {"prefix": "", "headers": [{"name": "x-h", **matcher}]}
        yield match_row(label, ACK, match, {"/x.T/M": ALPHA if matches else BETA}, headers=present)


def other_match_rows():
    def fraction(**percent):
        return {"prefix": "", "runtime_fraction": {"default_value": percent}}
    yield bad_match("unknown denominator (A28-O05)", fraction(numerator=1, denominator=7),
                    "denominator")
    yield bad_match("fraction without a default_value (A28-O05)", {
        "prefix": "", "runtime_fraction": {"runtime_key": "k"}}, "runtime_fraction",
        core="ACK: always (A28-O05)")
    yield taken("fraction above 100 % (A28-O02)", fraction(numerator=300, denominator="HUNDRED"))
    yield passed_by("fraction of nothing (A28-O03)", fraction(numerator=0))
    query = [{"name": "q", "present_match": True}]
    yield passed_by("query_parameters (A28-O06)", {"prefix": "", "query_parameters": query})
    yield passed_by("bad regex beside query_parameters (A28-O06, A28-V03)", {
        "safe_regex": {"regex": "("}, "query_parameters": query})
    yield passed_by("bad header beside query_parameters (A28-O06)", {
        "prefix": "", "headers": [{"name": ""}], "query_parameters": query})
    yield passed_by("query_parameters and no path at all (A28-O06)", {"query_parameters": query})
    yield passed_by("grpc matcher and a plain request (A28-O07)", {"prefix": "", "grpc": {}})
    yield taken("grpc matcher and a gRPC request (A28-O07)", {"prefix": "", "grpc": {}},
                headers=[["content-type", "application/grpc"]])
    yield taken("tls_context (A28-O08)", {"prefix": "", "tls_context": {"presented": True}})
    yield taken("dynamic_metadata (A28-O09)", {"prefix": "", "dynamic_metadata": [
        {"filter": "f", "path": [{"key": "k"}], "value": {"present_match": True}}]})
    yield taken("filter_state (A28-O09)", {"prefix": "", "filter_state": [
        {"key": "k", "string_match": {"exact": "v"}}]})
    yield taken("unknown field of the match (A28-O09)", {"prefix": ""},
                patch=[[ROUTE_FIELDS + ".match", UNKNOWN_FIELD]])


# -- what a route does

def action_row(label, action, outcome, match=None, **more):
    return routes_row(label, ACK, {"match": match or {"prefix": ""}, **action},
                      answers={"/x.T/M": outcome}, **more)


def bad_action(label, action, *texts, **more):
    return routes_row(label, ('virtual host "row"', "route 0", *texts),
                      route({"prefix": ""}, action), **more)


def ignored(label, action, **more):
    return action_row(label, {"route": action}, BETA, **more)


def action_rows():
    for name, action in (("no", {}), ("redirect", {"redirect": {"host_redirect": "h"}}),
                         ("direct_response", {"direct_response": {"status": 200}}),
                         ("filter_action", {"filter_action": {}}),
                         ("non_forwarding_action", {"non_forwarding_action": {}})):
        yield action_row(f"{name} action (A28-V04)", action, "503")
    yield action_row("unknown action (A28-V04)", {}, "503", patch=[[ROUTE_FIELDS, UNKNOWN_FIELD]])
    yield routes_row("bad match of a redirect (A28-V01)", ("route 0", "match"),
                     {"match": {}, "redirect": {"host_redirect": "h"}})
    yield ignored("no cluster_specifier (A28-V02)", {})
    yield ignored("unknown cluster_specifier (A28-V02)", {},
                  patch=[[ROUTE_FIELDS + ".route", UNKNOWN_FIELD]])
    yield ignored("cluster_header (A28-V02)", {"cluster_header": "x-c"})
    plugin = {"extension": {"name": "p", "typed_config": {"@type": ROUTER}}}
    yield ignored("inline_cluster_specifier_plugin (A28-V02)",
                  {"inline_cluster_specifier_plugin": plugin})
    yield routes_row("bad regex and cluster_header (A28-V03)", ("route 0", "match", "regex"), {
        "match": {"safe_regex": {"regex": "("}}, "route": {"cluster_header": "x-c"}})
    yield bad_action("undeclared cluster_specifier_plugin (A28-V06)", {"cluster_specifier_plugin": "p"},
                     "cluster_specifier_plugin")
    yield bad_action("cluster without a name (A28-W05)", {"cluster": ""}, "cluster")
    for field, value in (("cluster_not_found_response_code", "NOT_FOUND"), ("timeout", "1s"),
                         ("prefix_rewrite", "/y"), ("host_rewrite_literal", "h"),
                         ("auto_host_rewrite", True), ("host_rewrite_header", "x-h"),
                         ("idle_timeout", "1s"), ("priority", "HIGH"),
                         ("hedge_policy", {"initial_requests": 3})):
        yield action_row(f"{field}: accepted", {"route": {"cluster": ALPHA, field: value}}, ALPHA)


def weighted(*entries, **more):
    return {"weighted_clusters": {"clusters": [dict(zip(("name", "weight"), e)) for e in entries],
                                  **more}}


def weight_rows():
    where = "weighted_clusters"
    yield bad_action("missing weight (A28-W05)", weighted((ALPHA,)), where, "clusters[0]", "weight")
    yield bad_action("entry without a name (A28-W05)", weighted((ALPHA, 1), ("", 1)), where,
                     "clusters[1]")
    yield bad_action("all weights 0 (A28-W04)", weighted((ALPHA, 0), (BETA, 0)), where)
    yield bad_action("no entries (A28-W04)", weighted(), where)
    yield bad_action("weights above 2^32 (A28-W03)", weighted((ALPHA, 4294967295), (BETA, 1)), where)
    sums = [ALPHA, 1], [ALPHA, 1], {"total_weight": 3}
    yield action_row("a total_weight that is not the sum", {"route": weighted(*sums[:2], **sums[2])},
                     ALPHA)
    for label, entries, more in (("total_weight met (A28-W02)", ((ALPHA, 7), (BETA, 0)),
                                  {"total_weight": 7}),
                                 ("weight 0 (A28-W04)", ((BETA, 0), (ALPHA, 1)), {}),
                                 ("greatest sum (A28-W03)", ((ALPHA, 4294967295), (BETA, 0)), {}),
                                 ("a cluster twice (A28-W07)", ((ALPHA, 1), (ALPHA, 2)), {})):
        yield action_row(label, {"route": weighted(*entries, **more)}, ALPHA)


def policy_rows():
    def with_policy(**fields):
        return {"cluster": ALPHA, **fields}

    def backoff(**intervals):
        return with_policy(retry_policy={"retry_on": "unavailable", "retry_back_off": intervals})
    yield bad_action("num_retries 0 (RT-03)", with_policy(retry_policy={
        "retry_on": "unavailable", "num_retries": 0}), "retry_policy", "num_retries")
    yield bad_action("no base_interval (RT-04)", backoff(), "retry_back_off", "base_interval")
    lax = "ACK: it does not check (RT-04)"
    yield bad_action("base_interval 0 (RT-04)", backoff(base_interval="0s"), "base_interval",
                     core=lax)
    yield bad_action("max_interval 0 (RT-04)", backoff(base_interval="1s", max_interval="0s"),
                     "max_interval", core=lax)
    yield bad_action("max_interval below base_interval (RT-04)",
                     backoff(base_interval="2s", max_interval="1s"), "max_interval", core=lax)
    seconds = "route.max_stream_duration.max_stream_duration"
    for label, text, ok in (("negative seconds", "08ffffffffffffffffff01", False),
                            ("too many seconds", "0881bcaece9709", False),
                            ("most seconds", "0880bcaece9709", True),
                            ("negative nanos", "10ffffffffffffffffff01", False),
                            ("too many nanos", "108094ebdc03", False),
                            ("most nanos", "10ff93ebdc03", True)):
        patch = [[f"{ROUTE_FIELDS}.{seconds}", text]]
        limits = with_policy(max_stream_duration={"max_stream_duration": "0s"})
        if ok:
            yield action_row(f"duration with {label} (A28-V08)", {"route": limits}, ALPHA, patch=patch)
        else:
            yield bad_action(f"duration with {label} (A28-V08)", limits, "max_stream_duration",
                             patch=patch)
    yield bad_action("idle_timeout below 0 (TH-98)", with_policy(idle_timeout="-1s"), "idle_timeout",
                     core="ACK: it does not read it")
    yield bad_action("hash of a header without a name (HP-03)", with_policy(
        hash_policy=[{"header": {"header_name": ""}}]), "hash_policy[0]", "header_name")
    for label, pattern in (("bad", "("), ("empty", "")):
        rewrite = {"pattern": {"regex": pattern}, "substitution": "x"}
        yield bad_action(f"{label} regex_rewrite (HP-03)", with_policy(hash_policy=[
            {"header": {"header_name": "h", "regex_rewrite": rewrite}}]), "hash_policy[0]",
            "regex_rewrite")
    for label, policy in (("cookie", {"cookie": {"name": "c"}}),
                          ("query_parameter", {"query_parameter": {"name": "q"}}),
                          ("connection_properties", {"connection_properties": {"source_ip": True}}),
                          ("other filter_state", {"filter_state": {"key": "k"}}), ("unset", {})):
        yield action_row(f"hash_policy of {label} (HP-07)", {
            "route": with_policy(hash_policy=[policy])}, ALPHA)
    for label, policy in (("without statuses", {"retry_on": "5xx"}),
                          ("with per_try_timeout", {"retry_on": "internal",
                                                    "per_try_timeout": "1s"}),
                          ("with predicates", {"retry_on": "internal", "retry_host_predicate": [
                              {"name": "p"}], "retriable_status_codes": [503]})):
        yield action_row(f"retry_policy {label} (RT-01, RT-13)", {
            "route": with_policy(retry_policy=policy)}, ALPHA)


# -- virtual hosts

def host_rows():
    good = route("", ALPHA)
    for label, domains in (("no domains", []), ("empty domain", [""]), ("star inside", ["a*b"])):
        yield Row(f"{label} (VH-07)", ('virtual host "row"', "domain"),
                  [virtual_host("row", domains, good)])
    for label, domains in (("two stars", ["**"]), ("stars at both ends", ["*a*"]),
                           ("star inside, one at the end", ["a*b*"])):
        yield Row(f"{label} (VH-07)", ACK, [virtual_host("row", domains, good)], {"/x.T/M": "404"})
    yield Row("a domain in two hosts (VH-08)", ACK, [
        virtual_host("row", ["*"], good), virtual_host("late", ["*"], route("", BETA))],
        {"/x.T/M": ALPHA})
    yield Row("a domain twice in one host", ACK, [virtual_host("row", ["*", "*"], good)],
              {"/x.T/M": ALPHA})
    yield Row("two hosts of one name", ACK, [
        virtual_host("row", ["*"], good), virtual_host("row", ["b.test"], good)], {"/x.T/M": ALPHA})
    yield Row("no virtual hosts (A28-V05)", ACK, [], {"/x.T/M": "404"}, has_versions=False)
    yield Row("no routes (A28-V05)", ACK, [virtual_host("row", ["*"])], {"/x.T/M": "404"})
    yield Row("all routes ignored (A28-V05)", ACK, [virtual_host("row", ["*"], route(
        {"prefix": "", "query_parameters": [{"name": "q"}]}, ALPHA))], {"/x.T/M": "404"})
    where = ('virtual host "unused"', "route 1", "match")
    yield Row("fault in a host that nobody uses (A28-V07)", where, [
        virtual_host("row", ["*"], good),
        virtual_host("unused", ["unused.test"], good, {"route": {"cluster": ALPHA}})])
    bad = virtual_host("row", ["*"], good)
    bad["retry_policy"] = {"retry_on": "internal", "num_retries": 0}
    yield Row("bad retry_policy of a host (RT-03)", ('virtual host "row"', "retry_policy"), [bad])


# -- overrides of filters

def override(label, wanted, config, answers=None, name="fault", **more):
    made = route("", ALPHA)
    made["typed_per_filter_config"] = {name: config}
    return routes_row(label, wanted, made, answers=answers, **more)


def override_rows():
    where = ('virtual host "row"', "route 0", "typed_per_filter_config[fault]")
    fault = faults(http_abort(418))["fault"]
    yield override("override of an unknown type (FLT-08)", where, {"@type": BUFFER_PER_ROUTE,
                                                                   "disabled": True})
    for optional in (True, False):
        config = {"@type": FILTER_CONFIG, "is_optional": optional,
                  "config": {"@type": BUFFER_PER_ROUTE, "disabled": True}}
        label = f"unknown type in a FilterConfig, optional: {optional} (FLT-08)"
        yield override(label, ACK if optional else where, config,
                       {"/x.T/M": ALPHA} if optional else {})
    yield override("FilterConfig around a fault (FLT-08)", ACK, {
        "@type": FILTER_CONFIG, "config": fault}, {"/x.T/M": "418"})
    yield override("FilterConfig around nothing", where, {"@type": FILTER_CONFIG})
    lacks = "NACK: it wants a config (FLT-08)"
    for label, config in (("nothing", None), ("an empty config", {}), ("a fault", fault)):
        switched = {"@type": FILTER_CONFIG, "disabled": True}
        if config is not None:
            switched["config"] = config
        row = override(f"disabled FilterConfig around {label} (FLT-09)", ACK, switched,
                       {"/x.T/M": ALPHA}, core="" if config else lacks)
        row.hosts[0]["typed_per_filter_config"] = {"fault": fault}
        yield row
    yield override("the router as an override (FLT-08)", where, {"@type": ROUTER})
    yield override("the top-level type of a session (FLT-08)", where, {"@type": SESSION})
    yield override("a fault", ACK, fault, {"/x.T/M": "418"})
    yield override("an override of no filter (FLT-07)", ACK, fault, {"/x.T/M": ALPHA}, "nobody")
    for status in (199, 600):
        yield override(f"fault of HTTP status {status} (FI-09)", (*where, "http_status"),
                       faults(http_abort(status))["fault"], core="ACK: it does not check (FI-09)")
    yield override("fault of gRPC status 17 (FI-05)", ACK, faults(grpc_abort(17))["fault"],
                   {"/x.T/M": "grpc 2"}, headers=[["content-type", "application/grpc"]],
                   core="NACK: it checks what FI-05 maps to 2")
    for url in (XDS_STRUCT, UDPA_STRUCT):
        percentage = {"numerator": 100, "denominator": "HUNDRED"}
        value = {"abort": {"http_status": 418, "percentage": percentage}}
        yield override(f"a fault in a {url.split('/')[1]} (FLT-04)", ACK, {
            "@type": url, "type_url": FAULT, "value": value}, {"/x.T/M": "418"},
            core="NACK: its faults cannot be read from JSON (FLT-04)")
        yield override(f"a bad fault in a {url.split('/')[1]} (FLT-04)", where, {
            "@type": url, "type_url": FAULT, "value": {"abort": {"http_status": "many"}}})
    host = virtual_host("row", ["*"], route("", ALPHA))
    host["typed_per_filter_config"] = {"fault": {"@type": BUFFER_PER_ROUTE, "disabled": True}}
    yield Row("unknown override of a host (FLT-08)", (
        'virtual host "row"', "typed_per_filter_config[fault]"), [host])
    entry = {"name": ALPHA, "weight": 1, "typed_per_filter_config": {"fault": {"@type": ROUTER}}}
    yield bad_action("unknown override of a cluster's weight (FLT-08)", {
        "weighted_clusters": {"clusters": [entry]}}, "typed_per_filter_config[fault]")
    yield override("session switched off by a route (SA-19)", ACK, {
        "@type": SESSION_PER_ROUTE, "disabled": True}, {"/x.T/M": ALPHA}, "session")


def route_rows():
    yield from path_rows()
    yield from regex_rows()
    yield from header_rows()
    yield from other_match_rows()
    yield from action_rows()
    yield from weight_rows()
    yield from policy_rows()
    yield from host_rows()
    yield from override_rows()
