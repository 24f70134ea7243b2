# SPDX-License-Identifier: Apache-2.0
"""The world of test_envoy: its resources and cases, and what is known to differ from Envoy."""

import http_cases
import resources
import routing_cases
from http_cases import BACKENDS, PORT
from policy_cases import FAULTS
from resources import route, route_config, virtual_host
from routing_cases import ALPHA, BETA, DOMAINS, GAMMA, MAIN, Case

ROUTES = "envoy-routes"
MAX_REQUESTS = 100_000


def case_lists():
    """(what is called at once, what has shares, what takes time)"""
    cases = [*routing_cases.shared_cases(), *http_cases.http_cases(),
             Case("host", [], routing_cases.host_calls())]
    shares = [case for case in cases if case.repeat > 1]
    return ([case for case in cases if case.repeat == 1], shares, list(http_cases.timed_cases()))


def routes_of(cases):
    hosts = [virtual_host("main", [MAIN], *(route for case in cases for route in case.routes))]
    hosts += [virtual_host(name, domains, route("", target)) for name, domains, target in DOMAINS]
    return route_config(ROUTES, *hosts, virtual_host("bare", ["bare.test"]))


def clusters():
    return {**{name: [(ip, PORT)] for name, ip in BACKENDS.items()}, "no-endpoints": []}


def all_resources(cases):
    listener = resources.listener("web", ROUTES)
    manager = listener["api_listener"]["api_listener"]
    manager["http_filters"] = [FAULTS, *manager["http_filters"]]
    yield listener
    for name, addresses in clusters().items():
        made = resources.cluster(name)
        made["circuit_breakers"] = {"thresholds": [{"max_requests": MAX_REQUESTS}]}
        yield made
        yield resources.endpoints(name, *addresses)
    yield routes_of(cases)


def joined(ours, *labels):
    return {label: (ours, "D11, A28-H08: repeated headers are joined") for label in labels}


def hidden(*labels):
    return {label: (BETA, "D2, A28-H12: gRPC requests' matchers see no such header")
            for label in labels}


UNSEEN = ("user-agent", "te", "grpc-timeout", "grpc-encoding", "host", "path-pseudo",
          "method-pseudo", "authority-pseudo", "scheme-pseudo")
# case/label, or a case's name for all its calls: (what shuntd does, why it may differ).
KNOWN = {
    **joined(BETA, *(f"{name}/twice" for name in (
        "exact", "regex", "regex-either", "s-exact", "s-exact-fold", "s-regex", "s-regex-fold",
        "range", "range-of-one", "range-wide", "and", "treat-missing"))),
    **joined(ALPHA, *(f"{name}/twice" for name in (
        "not-exact", "contains-comma", "not-range", "treat-missing-not"))),
    **joined(ALPHA, "exact-joined/two"), **joined(BETA, "s-regex/two", "spread/last"),
    **hidden(*(f"visible-{name}/grpc there" for name in UNSEEN),
             *(f"pseudo-{name}/grpc get" for name in ("authority", "host", "scheme"))),
    **{f"exact-empty/{label}": (BETA, "A28-H01: nothing equals nothing alone")
       for label, values in routing_cases.PLAIN.items() if any(values)},
    **{f"not-exact-empty/{label}": (ALPHA, "A28-H01: nothing equals nothing alone")
       for label, values in routing_cases.PLAIN.items() if any(values)},
    **{f"binary-{name}/{label}": (ours, "A28-H10: a name with -bin counts as absent")
       for name, ours in (("present", BETA), ("missing", ALPHA), ("not", ALPHA), ("regex", BETA))
       for label in ("there", "empty")},
    "treat-missing-not/absent": (BETA, "A28-H06: an absent header fails, also inverted"),
    "visible-te/there": (BETA, "A28-H12: te stays absent"),
    **{f"fragment/{path}": (ALPHA, "A28-P06: cut before matching, forwarded unchanged")
       for path in ("M#x", "M?x#y", "M#?x")},
    "query-parameters/with": (BETA, "A28-O06: the route is ignored"),
    "cluster-header": (BETA, "A28-V02: the route is ignored"),
    "tls": (ALPHA, "D4, A28-O08: tls_context is ignored"),
    "redirect/plain": ("503", "D5, A28-V04"), "redirect/grpc plain": ("grpc 14", "D5, A28-V04"),
    "direct/plain": ("503", "D5, A28-V04"), "direct/grpc plain": ("grpc 14", "D5, A28-V04"),
    **{f"nothing/grpc {label}": ("grpc 14", "D1, A28-R03")
       for label in ("plain", "head", "no host")},
    "message/star": (ALPHA, "A28-P01: the empty prefix matches all"),
    "message/no authority": ("400", "RFC 9113 8.3.1; Envoy ends the connection"),
    "timeout-http-header-max": ("grpc 4", "D8, A31-T04: header_max without a client's deadline"),
    "share-stacked/all": ({ALPHA: 0.5, BETA: 0.25, GAMMA: 0.25}, "A28-O04: each draws its own"),
}
