# SPDX-License-Identifier: Apache-2.0
"""Cases for the differential test against Envoy: what plain HTTP can ask beyond routing_cases, and
gRPC requests as a proxy sees them; and what an answer amounts to.
"""

import dataclasses

from policy_cases import ABORT, FAULT_HEADERS, faulty, fixed_delay, http_abort, percent
from resources import route
from routing_cases import ALPHA, BETA, GAMMA, Call, Case, in_service, service, yes_or_no

GRPC = "application/grpc"
BACKENDS = {ALPHA: "10.82.2.1", BETA: "10.82.2.2", GAMMA: "10.82.2.3"}  # of h2_peer.py
PORT = 8081


@dataclasses.dataclass
class Http(Call):
    method: str = "GET"
    fields: list = None  # all of them, in place of the usual ones
    open: bool = False  # the request has no end
    alone: bool = False  # on a connection of its own: whoever takes it amiss may end that


def fields_of(call):
    """What is sent, in order."""
    if getattr(call, "fields", None) is not None:
        return call.fields
    method = getattr(call, "method", "GET")
    return [[":method", method], [":scheme", "http"], [":path", call.path],
            [":authority", call.authority], *call.metadata]


def outcome(answer):
    """Who answered and, where it differs from what was sent, what it saw; or which status."""
    fields, sent = dict(answer["fields"]), dict(fields_of(answer["call"]))
    if answer["status"] is None:
        return f"reset {answer['reset']}"
    if "x-address" in fields:
        words = [{ip: name for name, ip in BACKENDS.items()}[fields["x-address"]]]
        words += [f"{key} {fields['x-' + key]}" for key in ("path", "authority")
                  if fields["x-" + key] != sent.get(":" + key, "")]
    elif "grpc-status" in fields:
        words = [f"grpc {fields['grpc-status']}"]
    else:
        words = [str(answer["status"])]
    return " ".join(words) + (f" reset {answer['reset']}" if answer["reset"] else "")


def as_grpc(call, kind=GRPC):
    """The same call as a gRPC client's."""
    return Http("grpc " + call.label, call.path,
                [["content-type", kind], ["te", "trailers"], *call.metadata], call.authority,
                method="POST")


def path_cases():
    for name, match, paths in (
            ("query-exact", {"path": "M"}, ("M", "M?", "M?x=1", "M?x/y?z", "M%3Fx", "MM?x", "M;x")),
            ("query-prefix", {"prefix": "Me?"}, ("Me", "Me?", "Me?x", "Me%3F")),
            ("query-short", {"prefix": "Met"}, ("Me?t", "Met?x", "Method?t", "Me")),
            ("query-regex", {"regex": "[a-z]+"}, ("abc", "abc?x=1", "abc?", "abc?ABC", "ABC?abc")),
            ("query-folded", {"path": "m", "case_sensitive": False}, ("M?x", "m?X", "mm?M")),
            ("fragment", {"path": "M"}, ("M#x", "M?x#y", "M#?x")),
            ("literal", {"prefix": "a/../b"}, ("a/../b", "a/../bc", "b", "../literal.T/a/../b")),
            ("encoded", {"path": "a%2Fb"}, ("a%2Fb", "a%2fb", "a/b", "a%252Fb")),
            ("slashes", {"prefix": "/x"}, ("/x", "x", "//x", "/x/")),
            ("deep", {"path": "a/b/c/d"}, ("a/b/c/d", "a/b/c/d/", "a/b/c")),
            ("bytes", {"regex": ".."}, ("ab", "a", "abc", "%C3%A9"))):
        yield yes_or_no(name, in_service(name, match),
                        [Call(path, service(name) + path) for path in paths])
    yield Case("flat", [route({"path": "/healthz"}, ALPHA), route({"path": "/"}, BETA)],
               [Call(path, path) for path in ("/healthz", "/healthz/", "/healthz?x", "/", "/?x",
                                              "/nothing-like-it")])


HIDDEN = ("user-agent", "te", "grpc-timeout", "grpc-encoding", "host", ":path", ":method",
          ":authority", ":scheme")
SEEN = {"user-agent": "me", "te": "trailers", "grpc-timeout": "9S", "grpc-encoding": "identity"}


def visible_cases():
    """Plain requests show all their headers to matchers."""
    for header in HIDDEN:
        name = "visible-" + header.strip(":") + ("-pseudo" if header.startswith(":") else "")
        there = [[header, SEEN[header]]] if header in SEEN else []
        case = yes_or_no(name, {"headers": [{"name": header, "present_match": True}]},
                         [Call("there", service(name) + "M", there)])
        case.calls += [Call("not there", service(name) + "M")] if there else []
        case.calls.append(as_grpc(case.calls[0]))
        yield case
    for name, header, matcher in (
            ("pseudo-method", ":method", {"exact_match": "DELETE"}),
            ("pseudo-path", ":path", {"suffix_match": "?tail"}),
            ("pseudo-authority", ":authority", {"prefix_match": "routes"}),
            ("pseudo-host", "host", {"exact_match": "routes.example"}),
            ("pseudo-scheme", ":scheme", {"exact_match": "http"})):
        path = service(name)
        yield yes_or_no(name, {"headers": [{"name": header, **matcher}]}, [
            Http("get", path + "M"), Http("delete", path + "M", method="DELETE"),
            Http("tail", path + "M?tail"), as_grpc(Call("get", path + "M"))])


def header_cases():
    values = {"one": ["a=1; b=2"], "split": ["a=1", "b=2"], "turned": ["b=2", "a=1"], "none": []}
    for label, matcher in (("exact", {"exact_match": "a=1; b=2"}),
                           ("suffix", {"suffix_match": "b=2"}),
                           ("contains", {"contains_match": "; b"})):
        name = "cookie-" + label
        yield yes_or_no(name, {"headers": [{"name": "cookie", **matcher}]}, [
            Call(k, service(name) + "M", [["cookie", v] for v in list_of])
            for k, list_of in values.items()])
    name = "content-type"
    kinds = (GRPC, GRPC + "+proto", GRPC + "-web", GRPC + ";x=1", "application/grpcx", "text/html",
             "Application/grpc", "")
    matcher = {"name": "content-type", "exact_match": GRPC}
    yield yes_or_no(name, {"headers": [matcher]}, [
        Http(kind, service(name) + "M", [["content-type", kind]], method="POST") for kind in kinds])
    name = "grpc-only"
    yield yes_or_no(name, {"grpc": {}}, [
        Call("none", service(name) + "M"),
        *(Http(kind, service(name) + "M", [["content-type", kind]], method="POST")
          for kind in kinds)])
    name = "spread"  # the same name in several places of the list
    yield yes_or_no(name, {"headers": [{"name": "x-h", "exact_match": "b"}]}, [
        Call("last", service(name) + "M", [["x-h", "a"], ["x-other", "1"], ["x-h", "b"]]),
        Call("only", service(name) + "M", [["x-other", "1"], ["x-h", "b"]])])


def odd_cases():
    """What gRPC ignores or lacks and Envoy runs."""
    name = "query-parameters"
    match = {"query_parameters": [{"name": "q", "present_match": True}]}
    yield yes_or_no(name, match, [Call("with", service(name) + "M?q=1"),
                                  Call("without", service(name) + "M")])
    name = "cluster-header"
    yield Case(name, [route(service(name), {"cluster_header": "x-cluster"}),
                      route(service(name), BETA)],
               [Call("with", service(name) + "M", [["x-cluster", ALPHA]])])
    name = "tls"
    yield yes_or_no(name, {"tls_context": {"presented": True}},
                    [Call("plain", service(name) + "M")])
    for name, action in (("redirect", {"redirect": {"host_redirect": "elsewhere"}}),
                         ("direct", {"direct_response": {"status": 418}})):
        calls = [Call("plain", service(name) + "M")]
        calls.append(as_grpc(calls[0]))
        yield Case(name, [{"match": {"prefix": service(name)}, **action}], calls)
    name = "ghost"
    calls = [Call("plain", service(name) + "M")]
    yield Case(name, [route(service(name), "no-endpoints")], [*calls, as_grpc(calls[0])])
    calls = [Call("plain", "/no-such.T/M"), Http("head", "/no-such.T/M", method="HEAD"),
             Call("no host", "/no-such.T/M", [], "nobody.test")]
    yield Case("nothing", [], [*calls, *map(as_grpc, calls)])


def message_cases():
    """Authority and host, methods, the forms of :path."""
    name = "message"
    path = service(name) + "M"
    base = [[":method", "GET"], [":scheme", "http"], [":path", path]]

    def raw(label, *more):
        return Http(label, path, fields=[*base, *more], alone=True)
    calls = [raw("host alone", ["host", "foo.example"]), raw("no authority"),
             raw("host too", [":authority", "foo.example"], ["host", "x.foo.example"]),
             raw("same host", [":authority", "foo.example"], ["host", "foo.example"]),
             Http("options", path, [], "foo.example", method="OPTIONS"),
             Http("star", "*", [], "foo.example", method="OPTIONS", alone=True),
             Http("other method", path, [], "foo.example", method="PROPFIND"),
             Http("head", path, [], "foo.example", method="HEAD"),
             Http("connect", path, alone=True,
                  fields=[[":method", "CONNECT"], [":authority", "foo.example"]])]
    yield Case(name, [], calls)


def fault_cases():
    for status in (200, 404, 418, 503):
        case = faulty(f"http-abort-{status}", http_abort(status))
        case.calls.append(as_grpc(case.calls[0]))
        yield case
    by_header = {"abort": {"header_abort": {}, "percentage": percent(100)}}
    chosen = {k: FAULT_HEADERS[k] for k in ("none", "http", "both", "share 100", "junk share")}
    yield faulty("http-abort-by-header", by_header, {**chosen, "junk": [[ABORT, "x"]]})


def timed_cases():
    def case_of(name, limits, *calls):
        name = "timeout-" + name
        action = {"cluster": ALPHA, "max_stream_duration": limits}
        for call in calls:
            call.path, call.ends_s = service(name) + "M", 0.7
            call.metadata = [["x-never", "1"], *call.metadata]
        return Case(name, [route(service(name), action)], list(calls))
    yield case_of("http-route", {"max_stream_duration": "0.7s"}, Http("complete", ""),
                  Http("incomplete", "", method="POST", open=True), as_grpc(Call("complete", "")))
    yield case_of("http-header-max", {"grpc_timeout_header_max": "0.7s"},
                  as_grpc(Call("complete", "")))
    yield case_of("http-both", {"max_stream_duration": "0.7s", "grpc_timeout_header_max": "9s"},
                  Http("complete", ""))
    yield case_of("http-grpc-client", {"grpc_timeout_header_max": "9s"},
                  as_grpc(Call("complete", "", [["grpc-timeout", "700m"]])))
    idle = Case("timeout-http-idle", [route(service("timeout-http-idle"), {
        "cluster": ALPHA, "idle_timeout": "0.7s", "max_stream_duration": {"max_stream_duration": "0s"}})],
        [Http("complete", ""), Http("incomplete", "", method="POST", open=True),
         as_grpc(Call("complete", ""))])
    for call in idle.calls:  # TH-98
        call.path, call.ends_s = service(idle.name) + "M", 0.7
        call.metadata = [["x-never", "1"], *call.metadata]
    yield idle
    case = faulty("http-delay", fixed_delay("0.6s"))
    case.calls[0].ends_s = 0.6
    yield case


def http_cases():
    yield from path_cases()
    yield from visible_cases()
    yield from header_cases()
    yield from odd_cases()
    yield from message_cases()
    yield from fault_cases()
