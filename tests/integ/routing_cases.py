# SPDX-License-Identifier: Apache-2.0
"""Route configurations and requests for the differential tests, fit for gRPC and for plain HTTP.

A case has routes under a service of its own (/NAME.T/), so that hundreds live in one virtual host,
and calls. Most cases ask one question, does the first route match: then alpha answers, else beta.
Nothing here says what is right: the oracle does, when the test runs.
"""

import dataclasses

from resources import route

ALPHA, BETA, GAMMA = "alpha", "beta", "gamma"
MAIN = "routes.example"  # the virtual host of most cases


@dataclasses.dataclass
class Call:
    label: str
    path: str
    metadata: list = dataclasses.field(default_factory=list)  # [name, value]; bytes in hex
    authority: str = MAIN
    body: str = ""
    timeout: float = 25  # of the client; 0 = none
    expected: str = ""  # what the specifications say, where the table says it
    ends_s: float = 0  # when the call must end; 0 = whenever


@dataclasses.dataclass
class Case:
    name: str
    routes: list  # the first ones of the main virtual host
    calls: list
    repeat: int = 1  # more: a distribution is compared


def service(name):
    return f"/{name}.T/"


def yes_or_no(name, match, calls):
    """Alpha where the match holds (of this service, unless it says what path), else beta."""
    if not {"prefix", "path", "safe_regex"} & set(match):
        match = {"prefix": service(name), **match}
    return Case(name, [route(match, ALPHA), route(service(name), BETA)], calls)


def text(**kind):
    return {"string_match": kind}


# -- headers

PLAIN = {  # label: values of x-h, in order
    "absent": [], "empty": [""], "same": ["abc"], "longer": ["abcd"], "preceded": ["xabc"],
    "upper": ["ABC"], "part": ["ab"], "inside": ["xabcx"], "other": ["zzz"],
    "twice": ["abc", "abc"], "two": ["a", "b"], "comma": ["a,b"],
}
NUMBERS = {
    "absent": [], "empty": [""], "below": ["4"], "start": ["5"], "last": ["9"], "end": ["10"],
    "plus": ["+6"], "minus": ["-6"], "zeros": ["007"], "fraction": ["7.5"], "junk": ["7x"],
    "word": ["seven"], "twice": ["7", "7"], "int64": ["9223372036854775807"],
    "overflow": ["9223372036854775808"], "hex": ["0x7"], "minus zero": ["-0"],
}
TEXT_MATCHERS = {
    "exact": {"exact_match": "abc"},
    "exact-joined": {"exact_match": "a,b"},
    "not-exact": {"exact_match": "abc", "invert_match": True},
    "prefix": {"prefix_match": "abc"},
    "not-prefix": {"prefix_match": "abc", "invert_match": True},
    "suffix": {"suffix_match": "abc"},
    "contains": {"contains_match": "abc"},
    "contains-comma": {"contains_match": "c,a"},
    "regex": {"safe_regex_match": {"regex": "a.c"}},
    "regex-either": {"safe_regex_match": {"regex": "abc|ab"}},
    "regex-star": {"safe_regex_match": {"regex": ".*"}},
    "not-regex": {"safe_regex_match": {"regex": "a.*"}, "invert_match": True},
    "present": {"present_match": True},
    "missing": {"present_match": False},
    "not-present": {"present_match": True, "invert_match": True},
    "not-missing": {"present_match": False, "invert_match": True},
    "s-exact": text(exact="abc"),
    "s-exact-fold": text(exact="aBc", ignore_case=True),
    "s-prefix-fold": text(prefix="aBc", ignore_case=True),
    "s-suffix-fold": text(suffix="aBc", ignore_case=True),
    "s-contains-fold": text(contains="aBc", ignore_case=True),
    "s-prefix": text(prefix="abc"),
    "s-suffix": text(suffix="abc"),
    "s-contains": text(contains="abc"),
    "s-regex": text(safe_regex={"regex": "[a-c]+"}),
    "s-regex-fold": text(safe_regex={"regex": "(?i)abc"}),
    "not-s-prefix": {**text(prefix="abc"), "invert_match": True},
}
RANGES = {
    "range": (5, 10, False), "range-of-one": (7, 8, False), "range-empty": (7, 7, False),
    "range-signed": (-10, 6, False), "range-wide": (-2**63, 2**63 - 1, False),
    "not-range": (5, 10, True),
}


def with_values(name, values, header="x-h"):
    return [Call(label, service(name) + "M", [[header, v] for v in list_of])
            for label, list_of in values.items()]


def header_cases():
    for name, matcher in TEXT_MATCHERS.items():
        yield yes_or_no(name, {"headers": [{"name": "x-h", **matcher}]}, with_values(name, PLAIN))
    for name, (start, end, invert) in RANGES.items():
        matcher = {"name": "x-h", "range_match": {"start": start, "end": end},
                   "invert_match": invert}
        yield yes_or_no(name, {"headers": [matcher]}, with_values(name, NUMBERS))
    yield from several_header_cases()
    yield from special_header_cases()


def several_header_cases():
    both = {"headers": [{"name": "x-h", "exact_match": "abc"},
                        {"name": "x-other", "present_match": False}]}
    yield yes_or_no("and", both, with_values("and", PLAIN) + [
        Call("other too", service("and") + "M", [["x-h", "abc"], ["x-other", "1"]])])
    ends = {"headers": [{"name": "x-h", "prefix_match": "a"}, {"name": "x-h", "suffix_match": "c"},
                        {"name": "x-h", "contains_match": "b", "invert_match": True}]}
    yield yes_or_no("same-twice", ends, with_values("same-twice", {
        "all": ["axc"], "one": ["axx"], "third": ["abc"], "none": ["zzz"], "absent": []}))
    name = "order"
    targets = (({"prefix_match": "ab"}, BETA), ({"exact_match": "abc"}, ALPHA),
               ({"present_match": True}, GAMMA))
    routes = [route({"prefix": service(name), "headers": [{"name": "x-h", **matcher}]}, target)
              for matcher, target in targets]
    yield Case(name, [*routes, route(service(name), ALPHA)], with_values(name, PLAIN))


def special_header_cases():
    upper = {"headers": [{"name": "X-Upper", "exact_match": "abc"}]}
    yield yes_or_no("upper-name", upper, with_values("upper-name", {
        "same": ["abc"], "other": ["abcd"], "absent": []}, "x-upper"))
    kind = {"exact": {"exact_match": "application/grpc"},
            "prefix": {"prefix_match": "application/"}, "missing": {"present_match": False},
            "regex": {"safe_regex_match": {"regex": ".*grpc"}},
            "not": {"exact_match": "text/html", "invert_match": True}}
    for label, matcher in kind.items():
        name = "type-" + label
        yield yes_or_no(name, {"headers": [{"name": "content-type", **matcher}]},
                        [Call("as it is", service(name) + "M")])
    for label, matcher in (("present", {"present_match": True}),
                           ("missing", {"present_match": False}),
                           ("not", {"present_match": True, "invert_match": True}),
                           ("exact", {"exact_match": "AP8="}),
                           ("regex", TEXT_MATCHERS["regex-star"])):
        name = "binary-" + label
        yield yes_or_no(name, {"headers": [{"name": "x-h-bin", **matcher}]}, with_values(
            name, {"absent": [], "there": ["00ff"], "empty": [""]}, "x-h-bin"))
    missing = {"exact_match": "abc", "treat_missing_header_as_empty": True}
    for name, matcher in (("treat-missing", missing), ("exact-empty", {"exact_match": ""}),
                          ("treat-missing-not", {**missing, "invert_match": True}),
                          ("not-exact-empty", {"exact_match": "", "invert_match": True})):
        yield yes_or_no(name, {"headers": [{"name": "x-h", **matcher}]}, with_values(name, PLAIN))
    for header in ("user-agent", "te", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding",
                   "host", ":path", ":method", ":authority", ":scheme", "connection"):
        name = "hidden-" + header.strip(":")
        name += "-pseudo" if header.startswith(":") else ""
        yield yes_or_no(name, {"headers": [{"name": header, "present_match": True}]},
                        [Call("as it is", service(name) + "M")])


# -- paths

PATTERNS = {  # S stands for the service
    "rx-plain": "SMethod", "rx-star": "S.*", "rx-either": "SA|SB", "rx-bare-either": "SA|b",
    "rx-digits": "S[0-9]+", "rx-fold": "(?i)Sabc", "rx-count": "Sx{2,3}", "rx-anchors": "^SA$",
    "rx-quoted": r"S\Qa.b\E", "rx-lazy": "S(?:a|b)*?", "rx-words": r"S\w+\d",
    "rx-set": "S[^/]{1,5}", "rx-dotall": "(?s)S.*b", "rx-boundary": r"S\ba.*\b",
    "rx-letters": r"S\p{L}+", "rx-ungreedy": "(?U)Sa+", "rx-never": "Sa$b",
    "rx-greek": r"S\p{Greek}*", "rx-nested": "S((a|b){2}c){1,3}", "rx-dot": "S.",
    "rx-optional": "SA?B?", "rx-escape": r"Sa\.b",
    "rx-text-end": r"SA\z", "rx-class": "S[[:alpha:]]+", "rx-not-class": r"S[^\d]+",
    "rx-unclosed-quote": r"S\Qa.b",
}
METHODS = ("", "A", "AB", "b", "Method", "Methods", "abc", "ABC", "123", "12a", "xx", "xxxx", "a.b",
           "aXb", "aab", "ababc")


def path_cases():
    for name, pattern in PATTERNS.items():
        # A name and a service hold only letters, digits, '-' and '.': of these '.' is special.
        regex = pattern.replace("S", service(name).replace(".", r"\."))
        yield yes_or_no(name, {"safe_regex": {"regex": regex}},
                        [Call(m or "nothing", service(name) + m) for m in METHODS if m])
    for name, match, methods in (
            ("exact-path", {"path": "Method"}, ("Method", "Methods", "Metho", "method", "M")),
            ("folded-path", {"path": "Method", "case_sensitive": False},
             ("Method", "METHOD", "methods", "mEthod")),
            ("told-path", {"path": "Method", "case_sensitive": True}, ("Method", "METHOD")),
            ("prefix-path", {"prefix": "Me"}, ("Me", "Method", "me", "M", "xMe")),
            ("folded-prefix", {"prefix": "Me", "case_sensitive": False}, ("ME", "mEthod", "m")),
            ("folded-regex", {"regex": "Me", "case_sensitive": False}, ("Me", "ME", "me"))):
        yield yes_or_no(name, in_service(name, match),
                        [Call(m, service(name) + m) for m in methods])
    yield from mixed_path_cases()


def in_service(name, match):
    """The same match, below the service."""
    match = dict(match)
    for kind in ("path", "prefix"):
        if kind in match:
            match[kind] = service(name) + match[kind]
    if "regex" in match:
        pattern = service(name).replace(".", r"\.") + match.pop("regex")
        match["safe_regex"] = {"regex": pattern}
    return match


def mixed_path_cases():
    """First match wins, whatever its kind, among kinds that are found in different ways."""
    kinds = {"path": {"path": "Method"}, "folded": {"path": "METHOD", "case_sensitive": False},
             "prefix": {"prefix": "M"}, "short": {"prefix": ""}, "regex": {"regex": "Me.*"},
             "folded-prefix": {"prefix": "ME", "case_sensitive": False}}
    for first, match in kinds.items():
        for second, other in kinds.items():
            if first == second:
                continue
            name = f"mix-{first}-{second}"
            routes = [route(in_service(name, match), ALPHA), route(in_service(name, other), BETA),
                      route(service(name), GAMMA)]
            yield Case(name, routes,
                       [Call(m, service(name) + m) for m in ("Method", "METHOD", "x")])


# -- fractions and weights

def fraction(numerator, denominator="HUNDRED"):
    return {"runtime_fraction": {"default_value": {"numerator": numerator,
                                                   "denominator": denominator},
                                 "runtime_key": "nobody.reads.this"}}


SURE = {"fraction-none": fraction(0), "fraction-all": fraction(100),
        "fraction-10k": fraction(10_000, "TEN_THOUSAND"), "fraction-beyond": fraction(200),
        "fraction-million": fraction(1_000_000, "MILLION"), "fraction-wraps": fraction(429_497)}
SAMPLES = 400


def fraction_cases():
    for name, match in SURE.items():
        yield yes_or_no(name, match, [Call(str(n), service(name) + "M") for n in range(3)])
    for name, match in (("half", fraction(50)), ("quarter", fraction(2500, "TEN_THOUSAND")),
                        ("tenth", fraction(100_000, "MILLION"))):
        case = yes_or_no("share-" + name, match, [Call("all", service("share-" + name) + "M")])
        case.repeat = SAMPLES
        yield case
    name = "share-stacked"
    stacked = [route({"prefix": service(name), **fraction(50)}, target) for target in (ALPHA, BETA)]
    yield Case(name, [*stacked, route(service(name), GAMMA)], [Call("all", service(name) + "M")],
               SAMPLES)


def weight_cases():
    for name, weights in {"even": {ALPHA: 1, BETA: 1, GAMMA: 1}, "uneven": {ALPHA: 20, BETA: 80},
                          "ghost": {ALPHA: 0, BETA: 3, GAMMA: 1},
                          "many": {ALPHA: 1_000_000, BETA: 3_000_000}}.items():
        name = "weights-" + name
        yield Case(name, [route(service(name), weights)], [Call("all", service(name) + "M")],
                   SAMPLES)
    name = "weights-twice"
    entries = [{"name": n, "weight": w} for n, w in ((ALPHA, 1), (BETA, 2), (ALPHA, 1))]
    action = {"weighted_clusters": {"clusters": entries}}
    yield Case(name, [route(service(name), action)], [Call("all", service(name) + "M")], SAMPLES)


# -- virtual hosts

DOMAINS = (
    ("exact", ["foo.example"], ALPHA), ("suffix", ["*.foo.example"], BETA),
    ("longer", ["*.bar.foo.example"], GAMMA), ("prefix", ["foo.*"], GAMMA),
    ("wide", ["wide.*"], ALPHA), ("long-prefix", ["a.very.long.*"], BETA),
    ("short-suffix", ["*.org"], GAMMA), ("ported", ["port.test:8080"], BETA),
    ("upper", ["UPPER.Test"], ALPHA), ("dash-suffix", ["*-x.dash.test"], BETA),
    ("any-port", ["ports.test:*"], GAMMA), ("dot", ["dot.test."], BETA),
    ("both", ["one.test", "*.one.test", "one.*"], ALPHA), ("prefix-dash", ["dash-*"], GAMMA),
    ("upper-suffix", ["*.UP.Test"], GAMMA), ("bare-star", ["*star*"], ALPHA),
)
AUTHORITIES = (
    "foo.example", "FOO.Example", "x.foo.example", "a.b.foo.example", "x.bar.foo.example",
    "foo.test", "wide.org", "a.very.long.org", "a.very.long.name", "wide.name",
    "port.test:8080", "port.test", "port.test:8081", "upper.test", ".foo.example",
    "foo.", "bare.test", "nobody.test", "my-x.dash.test", "-x.dash.test", "ports.test:1",
    "ports.test:99", "ports.test", "dot.test.", "dot.test", "one.test", "two.one.test", "one.two",
    "dash-9", "dash-", "x.up.test", "X.UP.TEST",
    "foo.example:80", "mystar1", "xfoo.example",
)


def host_calls():
    return [Call("authority " + name, "/any.S/M", [], name) for name in AUTHORITIES]


def shared_cases():
    yield from path_cases()
    yield from header_cases()
    yield from fraction_cases()
    yield from weight_cases()
