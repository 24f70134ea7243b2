# SPDX-License-Identifier: Apache-2.0
"""Resources and calls for test_differential: routing, cluster and status cases.

A row is (case, authority, path, metadata, outcome): the backend that answers, or the status. The
outcome is what the specifications say; the test asks gRPC's own xDS client and shuntd.
"""

import resources
from resources import cluster, endpoints, route, route_config, virtual_host

ROUTES = "differential-routes"
ALPHA, BETA, GAMMA = "alpha", "beta", "gamma"
BACKENDS = {ALPHA: "10.82.1.1", BETA: "10.82.1.2", GAMMA: "10.82.1.3"}
PORT = 9090
NOBODY = ("10.82.1.1", 9)  # nothing listens there
UNAVAILABLE = "UNAVAILABLE"
MAIN = "routes.example"  # the virtual host of most rows


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
    for name in ("missing", "empty", "refused", "sick", "draining", "partly", "renamed"):
        yield route(on(f"/{name}.C/"), name)
    yield route(on("/shunt.test.Echo/"), ALPHA)


def virtual_hosts():
    yield virtual_host("main", [MAIN], *main_routes())
    for name, domains, target in (
            ("exact", ["foo.example"], ALPHA), ("suffix", ["*.foo.example"], BETA),
            ("longer", ["*.bar.foo.example"], GAMMA), ("prefix", ["foo.*"], GAMMA),
            ("wide", ["wide.*"], ALPHA), ("long-prefix", ["a.very.long.*"], BETA),
            ("short-suffix", ["*.org"], GAMMA), ("ported", ["port.test:8080"], BETA),
            ("upper", ["UPPER.Test"], ALPHA)):
        yield virtual_host(name, domains, route("", target))
    yield virtual_host("bare", ["bare.test"])


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


def all_resources():
    authorities = {row[1] for row in ROWS}
    for name in sorted(authorities | {"web"}):
        yield resources.listener(name, ROUTES)
    yield from all_clusters()
    yield route_config(ROUTES, *virtual_hosts())


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
        ("trailing metadata", "/prefix.S/M", [["x-echo-a", "1"], ["x-echo-b-bin", "00ff"]], BETA),
        ("the backend's own status", "/shunt.test.Echo/Fail", [], "NOT_FOUND"),
    ]


def hosts():
    return [(f"authority {name}", name, "/any.S/M", [], outcome) for name, outcome in (
        ("foo.example", ALPHA), ("FOO.Example", ALPHA), ("x.foo.example", BETA),
        ("a.b.foo.example", BETA), ("x.bar.foo.example", GAMMA), ("foo.test", GAMMA),
        ("wide.org", GAMMA), ("a.very.long.org", GAMMA), ("a.very.long.name", BETA),
        ("wide.name", ALPHA), ("port.test:8080", BETA), ("port.test", UNAVAILABLE),
        ("upper.test", ALPHA), (".foo.example", UNAVAILABLE), ("foo.", UNAVAILABLE),
        ("bare.test", UNAVAILABLE), ("nobody.test", UNAVAILABLE))]


ROWS = [(case, MAIN, *rest) for case, *rest in paths() + actions()] + hosts()
