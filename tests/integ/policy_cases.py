# SPDX-License-Identifier: Apache-2.0
"""Cases of retries, timeouts and faults for the differential test against gRPC.

The backends play the x-script of grpc_server.py. Timed cases come apart, since they take seconds
and are all run at once.
"""

from resources import TYPES, route, virtual_host
from routing_cases import ALPHA, BETA, GAMMA, SAMPLES, Call, Case, service

FAULT = TYPES + "extensions.filters.http.fault.v3.HTTPFault"
FILTER_CONFIG = TYPES + "config.route.v3.FilterConfig"
FAULTS = {"name": "fault", "typed_config": {"@type": FAULT}}  # of the listener: does nothing yet
RETRIED = "retried.example"  # a virtual host with a retry policy of its own
FAULTED = "faulted.example"  # … and one with a fault
LONGER_MS = 5000  # than every limit below


def action(cluster=ALPHA, **more):
    return {"cluster": cluster, **more}


# -- retries

def retry(retry_on, num_retries=None, base="0.01s"):
    policy = {"retry_on": retry_on, "retry_back_off": {"base_interval": base}}
    if num_retries is not None:
        policy["num_retries"] = num_retries
    return policy


ALL_STATUSES = "cancelled,deadline-exceeded,internal,resource-exhausted,unavailable"
RETRIES = {  # name: (policy, scripts)
    "once": (retry("unavailable"), ("0", "14,0", "14,14,0", "13,0", "14,13,0")),
    "thrice": (retry("unavailable", 3), ("14,14,14,0", "14,14,14,14,0")),
    "capped": (retry("unavailable", 9), ("14,14,14,14,0", "14,14,14,14,14,0")),
    "all": (retry(ALL_STATUSES, 2), ("1,0", "4,0", "8,0", "13,0", "14,0", "2,0", "5,0", "1,4,0")),
    "mixed": (retry("5xx,unavailable,reset", 1), ("14,0", "13,0")),
    "foreign": (retry("5xx,gateway-error", 1), ("14,0",)),
    "upper": (retry("Unavailable,INTERNAL", 1), ("14,0", "13,0")),
    "blanks": (retry(" unavailable ,  internal", 1), ("14,0", "13,0")),
    "committed": (retry("unavailable", 2), ("14head,0", "14,14head,0")),
    "pushback": (retry("unavailable", 2), ("14push20,0", "14push-1,0", "14push5,14push5,0",
                                           "14push30,14push-1,0")),
    "none": (None, ("14,0", "1,0")),
    "no-backoff-field": ({"retry_on": "unavailable"}, ("14,0", "14,14,0")),
}


def scripted(name, script, **more):
    return Call(script, service(name) + "M", [["x-script", script]], **more)


def retry_cases():
    for name, (policy, scripts) in RETRIES.items():
        name = "retry-" + name
        target = action(retry_policy=policy) if policy else ALPHA
        yield Case(name, [route(service(name), target)], [scripted(name, s) for s in scripts])
    name = "retry-weighted"
    entries = [{"name": n, "weight": 1} for n in (ALPHA, BETA, GAMMA)]
    target = {"weighted_clusters": {"clusters": entries}, "retry_policy": retry("unavailable", 4)}
    yield Case(name, [route(service(name), target)],
               [Call("tail", service(name) + "Missing", [], expected="UNIMPLEMENTED")])


def policy_hosts():
    """Virtual hosts whose own policies count where the route has none (RT-02, FLT-06)."""
    own = action(retry_policy=retry("internal"))
    emptied = action(retry_policy=retry("5xx"))
    retried = virtual_host("retried", [RETRIED], route("/own.T/", own), route("/empty.T/", emptied),
                           route("/", ALPHA))
    retried["retry_policy"] = retry("unavailable")
    entry = {"name": BETA, "weight": 1, "typed_per_filter_config": faults(grpc_abort(8))}
    weighted = route("/weight.T/", {"weighted_clusters": {"clusters": [entry]}})
    weighted["typed_per_filter_config"] = faults(grpc_abort(7))
    routed = route("/route.T/", ALPHA)
    routed["typed_per_filter_config"] = faults(grpc_abort(6))
    calm = route("/calm.T/", ALPHA)
    calm["typed_per_filter_config"] = faults({})
    faulted = virtual_host("faulted", [FAULTED], weighted, routed, calm, route("/", ALPHA))
    faulted["typed_per_filter_config"] = faults(grpc_abort(5))
    return [retried, faulted]


def policy_host_calls():
    for name in ("any", "own", "empty"):
        for script in ("14,0", "13,0"):
            yield Call(f"{RETRIED} {name} {script}", f"/{name}.T/M", [["x-script", script]],
                       RETRIED)
    for name in ("any", "route", "weight", "calm"):
        yield Call(f"{FAULTED} {name}", f"/{name}.T/M", [], FAULTED)


# -- faults

def faults(fault, name="fault"):
    return {name: {"@type": FAULT, **fault}}


def percent(numerator):
    return {"numerator": numerator, "denominator": "HUNDRED"}


def grpc_abort(status, share=100):
    return {"abort": {"grpc_status": status, "percentage": percent(share)}}


def http_abort(status, share=100):
    return {"abort": {"http_status": status, "percentage": percent(share)}}


def fixed_delay(seconds, share=100):
    return {"delay": {"fixed_delay": seconds, "percentage": percent(share)}}


BY_HEADER = {"header_abort": {}, "percentage": percent(100)}
ABORT, GRPC_ABORT = "x-envoy-fault-abort-request", "x-envoy-fault-abort-grpc-request"
SHARE, DELAY = "x-envoy-fault-abort-request-percentage", "x-envoy-fault-delay-request"
DELAY_SHARE = "x-envoy-fault-delay-request-percentage"
FAULT_HEADERS = {
    "none": [], "http": [[ABORT, "403"]], "grpc": [[GRPC_ABORT, "7"]],
    "both": [[ABORT, "404"], [GRPC_ABORT, "7"]], "share 0": [[GRPC_ABORT, "7"], [SHARE, "0"]],
    "share 100": [[GRPC_ABORT, "7"], [SHARE, "100"]],
    "junk share": [[GRPC_ABORT, "7"], [SHARE, "x"]],
    "junk": [[GRPC_ABORT, "x"]], "beyond": [[GRPC_ABORT, "99"]], "http 200": [[ABORT, "200"]],
}


def faulty(name, fault, labels=None, **more):
    made = route(service(name), ALPHA)
    made["typed_per_filter_config"] = faults(fault)
    labels = labels or {"call": []}
    return Case(name, [made], [Call(label, service(name) + "M", metadata)
                               for label, metadata in labels.items()], **more)


def fault_cases():
    for status in (200, 400, 401, 403, 404, 418, 429, 431, 500, 502, 503, 504):
        yield faulty(f"abort-http-{status}", http_abort(status))
    for status in (1, 5, 14, 16):  # C-core refuses more than 16
        yield faulty(f"abort-grpc-{status}", grpc_abort(status))
    yield faulty("abort-never", grpc_abort(5, 0))
    yield faulty("abort-by-header", {"abort": BY_HEADER}, FAULT_HEADERS)
    yield faulty("abort-unasked", grpc_abort(5, 0), FAULT_HEADERS)
    half = {"abort": {"header_abort": {}, "percentage": percent(0)}}
    yield faulty("abort-header-capped", half, FAULT_HEADERS)
    yield faulty("max-active-0", {**grpc_abort(5), "max_active_faults": 0})
    yield faulty("share-abort", grpc_abort(5, 30), repeat=SAMPLES)
    other = route(service("abort-other-name"), ALPHA)
    other["typed_per_filter_config"] = faults(grpc_abort(5), "nobody")
    yield Case("abort-other-name", [other], [Call("call", service("abort-other-name") + "M")])
    wrapped = route(service("abort-wrapped"), ALPHA)
    wrapped["typed_per_filter_config"] = {"fault": {
        "@type": FILTER_CONFIG, "config": {"@type": FAULT, **grpc_abort(5)}}}
    yield Case("abort-wrapped", [wrapped], [Call("call", service("abort-wrapped") + "M")])
    plain = route(service("abort-first-match"), {"cluster": ALPHA})
    plain["match"]["headers"] = [{"name": "x-h", "present_match": True}]
    rest = route(service("abort-first-match"), ALPHA)
    rest["typed_per_filter_config"] = faults(grpc_abort(5))
    yield Case("abort-first-match", [plain, rest], [
        Call("plain", service("abort-first-match") + "M", [["x-h", "1"]]),
        Call("faulty", service("abort-first-match") + "M")])


# -- what takes its time

def limits(**durations):
    return {"max_stream_duration": durations}


TIMEOUTS = {  # name: (of the action, client's deadline, end, outcome)
    "route": (limits(max_stream_duration="3s"), 0, 3, "DEADLINE_EXCEEDED"),
    "route-client": (limits(max_stream_duration="3s"), 0.7, 0.7, "DEADLINE_EXCEEDED"),
    "route-long-client": (limits(max_stream_duration="3s"), 20, 3, "DEADLINE_EXCEEDED"),
    "route-0": (limits(max_stream_duration="0s"), 0, 0, ALPHA),
    "header-max": (limits(grpc_timeout_header_max="3s"), 20, 3, "DEADLINE_EXCEEDED"),
    "header-max-no-client": (limits(grpc_timeout_header_max="3s"), 0, 3, "DEADLINE_EXCEEDED"),
    "header-max-short-client": (limits(grpc_timeout_header_max="3s"), 0.7, 0.7,
                                "DEADLINE_EXCEEDED"),
    "header-max-0": (limits(grpc_timeout_header_max="0s", max_stream_duration="1s"), 0, 0, ALPHA),
    "header-max-beats": (limits(grpc_timeout_header_max="10s", max_stream_duration="1s"), 0, 0,
                         ALPHA),
    "old-timeout": ({"timeout": "1s"}, 0, 0, ALPHA),
    "old-timeout-0": ({"timeout": "0s"}, 0, 0, ALPHA),
    "offset": (limits(grpc_timeout_header_offset="9s", max_stream_duration="3s"), 0, 3,
               "DEADLINE_EXCEEDED"),
    "none": ({}, 0, 0, ALPHA),
}


def timed_cases():
    for name, (more, client_s, ends_s, expected) in TIMEOUTS.items():
        name = "timeout-" + name
        call = scripted(name, f"0wait{LONGER_MS}", timeout=client_s, ends_s=ends_s)
        call.expected = expected if expected != ALPHA else ALPHA + " attempt 0"
        yield Case(name, [route(service(name), action(**more))], [call])
    name = "timeout-over-retries"
    policy = retry("unavailable", 4, base="0.3s")
    more = {"retry_policy": policy, **limits(max_stream_duration="3s")}
    yield Case(name, [route(service(name), action(**more))],
               [scripted(name, "14wait1000", timeout=0, ends_s=3, expected="DEADLINE_EXCEEDED")])
    for name, fault, metadata in (
            ("delay-fixed", fixed_delay("0.8s"), []), ("delay-never", fixed_delay("0.8s", 0), []),
            ("delay-header", {"delay": {"header_delay": {}, "percentage": percent(100)}},
             [[DELAY, "800"]]),
            ("delay-header-share", {"delay": {"header_delay": {}, "percentage": percent(100)}},
             [[DELAY, "800"], [DELAY_SHARE, "0"]]),
            ("delay-abort", {**fixed_delay("0.8s"), **grpc_abort(9)}, [])):
        case = faulty(name, fault, {"call": metadata})
        case.calls[0].ends_s = 0 if name in ("delay-never", "delay-header-share") else 0.8
        yield case
