# SPDX-License-Identifier: Apache-2.0
"""The world of test_differential: its resources, the calls whose outcome the specifications say,
and what is known to differ from gRPC's own xDS client.
"""

import json

import policy_cases
import resources
import routing_cases
from resources import cluster, endpoints, route, route_config, virtual_host
from routing_cases import ALPHA, BETA, DOMAINS, GAMMA, MAIN, Call, Case

ROUTES = "differential-routes"
BACKENDS = {ALPHA: "10.82.1.1", BETA: "10.82.1.2", GAMMA: "10.82.1.3"}
PORT = 9090
NOBODY = ("10.82.1.1", 9)  # nothing listens there
UNAVAILABLE = "UNAVAILABLE"


def at(name):
    return (BACKENDS[name], PORT)


def on(prefix, **more):
    return {"prefix": prefix, **more}


def main_routes():
    """Later routes never hide earlier ones: each case has a service of its own."""
    yield route({"path": "/exact.S/Method"}, ALPHA)
    yield route(on("/prefix.S/"), BETA)
    yield route(on("/order.S"), ALPHA)
    yield route({"path": "/order.S/Method"}, BETA)
    yield route({"path": "/fold.S/Method", "case_sensitive": False}, ALPHA)
    yield route(on("/foldprefix.S", case_sensitive=False), BETA)
    yield route({"path": "/strict.S/Method"}, ALPHA)
    yield route({"path": "/strict.S/Told", "case_sensitive": True}, ALPHA)
    yield route({"path": "/twice.S/Method"}, GAMMA)
    yield route({"path": "/twice.S/Method"}, BETA)
    yield route(on("/query.S/", query_parameters=[{"name": "q"}]), ALPHA)
    yield route(on("/query.S/"), BETA)
    yield route(on("/clusterheader.S/"), {"cluster_header": "x-cluster"})
    yield route(on("/clusterheader.S/"), BETA)
    yield from action_routes()


def action_routes():
    yield route(on("/hundred.W/"), {ALPHA: 100, BETA: 0})
    yield route(on("/zero.W/"), {ALPHA: 0, BETA: 7})
    yield route(on("/lost.W/"), {ALPHA: 0, "missing": 1})
    yield route(on("/spared.W/"), {ALPHA: 1, "missing": 0})
    yield route(on("/huge.W/"), {ALPHA: 4_000_000_000, BETA: 0})
    yield {"match": on("/redirect.A/"), "redirect": {"host_redirect": "elsewhere"}}
    yield {"match": on("/direct.A/"), "direct_response": {"status": 200}}
    yield {"match": on("/redirect.A/"), "route": {"cluster": ALPHA}}
    yield {"match": on("/filter.A/"), "filter_action": {}}
    yield {"match": on("/nonforwarding.A/"), "non_forwarding_action": {}}
    yield {"match": on("/noaction.A/")}
    for name in ("filter", "nonforwarding", "noaction"):
        yield route(on(f"/{name}.A/"), ALPHA)
    yield route(on("/grpc.M/", grpc={}), ALPHA)
    yield route(on("/tls.M/", tls_context={"presented": True}), ALPHA)
    yield route({"safe_regex": {"regex": "("}, "query_parameters": [{"name": "q"}]}, ALPHA)
    yield route(on("/badquery.M/"), BETA)
    plugin = {"extension": {"name": "p", "typed_config": {"@type": resources.ROUTER}}}
    yield route(on("/plugin.M/"), {"inline_cluster_specifier_plugin": plugin})
    yield route(on("/plugin.M/"), BETA)
    for name in ("missing", "empty", "refused", "sick", "draining", "partly", "renamed"):
        yield route(on(f"/{name}.C/"), name)
    yield route(on("/shunt.test.Echo/"), ALPHA)


def virtual_hosts(cases):
    routes = [route for case in cases for route in case.routes]
    yield virtual_host("main", [MAIN], *routes)
    for name, domains, target in DOMAINS:
        yield virtual_host(name, domains, route("", target))
    yield virtual_host("bare", ["bare.test"])
    yield from policy_cases.policy_hosts()


def with_health(name, *states):
    """Alpha, and beta when there is a second one, in these states of health."""
    made = endpoints(name, at(ALPHA), at(BETA))
    entries = made["endpoints"][0]["lb_endpoints"][:len(states)]
    for entry, state in zip(entries, states):
        entry["health_status"] = state
    made["endpoints"][0]["lb_endpoints"] = entries
    return made


def all_clusters():
    for name in BACKENDS:
        yield cluster(name)
        yield endpoints(name, at(name))
    for name in ("empty", "refused", "sick", "draining", "partly"):
        yield cluster(name)
    yield endpoints("empty")
    yield endpoints("refused", NOBODY)
    yield with_health("sick", "UNHEALTHY")
    yield with_health("draining", "DRAINING")
    yield with_health("partly", "UNHEALTHY", "UNKNOWN")
    yield cluster("renamed", "beta")


def faulty_listener(name):
    made = resources.listener(name, ROUTES)
    manager = made["api_listener"]["api_listener"]
    manager["http_filters"] = [policy_cases.FAULTS, *manager["http_filters"]]
    return made


def all_resources(cases):
    authorities = {call.authority for case in cases for call in case.calls}
    for name in sorted(authorities | {"web"}):
        yield faulty_listener(name)
    yield from all_clusters()
    yield route_config(ROUTES, *virtual_hosts(cases))


def paths():
    return [
        ("exact path", "/exact.S/Method", [], ALPHA),
        ("exact path is the whole path", "/exact.S/MethodX", [], UNAVAILABLE),
        ("prefix", "/prefix.S/Anything", [], BETA),
        ("prefix compares bytes", "/prefix.SX/Anything", [], UNAVAILABLE),
        ("first match wins", "/order.S/Method", [], ALPHA),
        ("path without case", "/FOLD.s/mEthod", [], ALPHA),
        ("prefix without case", "/FoldPrefix.s/Any", [], BETA),
        ("path with case", "/STRICT.S/Method", [], UNAVAILABLE),
        ("path with case as told", "/strict.S/told", [], UNAVAILABLE),
        ("path in its own case", "/strict.S/Told", [], ALPHA),
        ("two equal routes", "/twice.S/Method", [], GAMMA),
        ("no route", "/nothing.S/Here", [], UNAVAILABLE),
        ("query route ignored", "/query.S/M", [], BETA),
        ("cluster_header route ignored", "/clusterheader.S/M", [["x-cluster", ALPHA]], BETA),
    ]


def actions():
    return [
        ("weight 100 of 100", "/hundred.W/M", [], ALPHA),
        ("weight 0", "/zero.W/M", [], BETA),
        ("all weight on a missing cluster", "/lost.W/M", [], UNAVAILABLE),
        ("no weight on a missing cluster", "/spared.W/M", [], ALPHA),
        ("weights near 2^32", "/huge.W/M", [], ALPHA),
        ("redirect fails, no fall-through", "/redirect.A/M", [], UNAVAILABLE),
        ("direct response fails", "/direct.A/M", [], UNAVAILABLE),
        ("missing cluster", "/missing.C/M", [], UNAVAILABLE),
        ("no endpoints", "/empty.C/M", [], UNAVAILABLE),
        ("connection refused", "/refused.C/M", [], UNAVAILABLE),
        ("only unhealthy endpoints", "/sick.C/M", [], UNAVAILABLE),
        ("only draining endpoints", "/draining.C/M", [], UNAVAILABLE),
        ("unhealthy endpoint left out", "/partly.C/M", [], BETA),
        ("EDS service name", "/renamed.C/M", [], BETA),
        ("method the backend lacks", "/prefix.S/Missing", [], "UNIMPLEMENTED"),
        ("trailing metadata", "/prefix.S/M", [["x-echo-a", "1"], ["x-echo-b-bin", "00ff"]],
         BETA + " x-echo-a 1 x-echo-b-bin 00ff"),
        ("the backend's own status", "/shunt.test.Echo/Fail", [], "NOT_FOUND"),
        ("filter_action fails", "/filter.A/M", [], UNAVAILABLE),
        ("non_forwarding_action fails", "/nonforwarding.A/M", [], UNAVAILABLE),
        ("no action fails", "/noaction.A/M", [], UNAVAILABLE),
        ("grpc matcher", "/grpc.M/M", [], ALPHA),
        ("tls_context matcher", "/tls.M/M", [], ALPHA),
        ("bad regex beside a query", "/badquery.M/M", [], BETA),
        ("inline plugin route ignored", "/plugin.M/M", [], BETA),
    ]


def basic_case():
    fail = json.dumps({"code": 5, "details": "not here"})
    calls = [Call(label, path, metadata, body=fail if path.endswith("/Fail") else "",
                  expected=expected) for label, path, metadata, expected in paths() + actions()]
    return Case("basic", list(main_routes()), calls)


def case_lists():
    """(what is called at once, what has shares, what takes time)"""
    quick = [basic_case(), *routing_cases.shared_cases(), *policy_cases.retry_cases(),
             *policy_cases.fault_cases(),
             Case("host", [], [*routing_cases.host_calls(), *policy_cases.policy_host_calls()])]
    shares = [case for case in quick if case.repeat > 1]
    return ([case for case in quick if case.repeat == 1], shares,
            list(policy_cases.timed_cases()))


# case/label, or a case's name for all its calls: (what shuntd does, why it may differ).
KNOWN = {
    "upper-name/same": (ALPHA, "A28-H13: configured names are lower-cased"),
    "hidden-grpc-timeout": (BETA, "A28-H12, D2: transport headers count as absent"),
    "hidden-path-pseudo": (BETA, "A28-H12, D2: pseudo-headers count as absent"),
    "fraction-wraps": (ALPHA, "A28-O02: 64 bits, and above 100 % is always"),
    "retry-upper/14,0": (ALPHA + " attempt 1", "RT-01: case is ignored"),
    "retry-upper/13,0": (ALPHA + " attempt 1", "RT-01: case is ignored"),
    "retry-blanks/14,0": (ALPHA + " attempt 1", "RT-01: blanks are trimmed"),
    "retry-blanks/13,0": (ALPHA + " attempt 1", "RT-01: blanks are trimmed"),
    "abort-http-200": ("UNKNOWN", "FI-04: 200 maps to 2"),
    "abort-http-431": ("INTERNAL", "FI-04: 431 maps to 13"),
    "abort-by-header/http": ("PERMISSION_DENIED", "FI-06: the HTTP status header counts"),
    "abort-by-header/both": ("UNIMPLEMENTED", "FI-06: the HTTP status header beats the other"),
    "abort-by-header/http 200": ("UNKNOWN", "FI-06, FI-04"),
    "abort-by-header/share 0": (ALPHA, "FI-07: A33's name of the header"),
    "abort-by-header/junk": (ALPHA, "FI-06: what is no status is no wish"),
}


