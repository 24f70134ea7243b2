# SPDX-License-Identifier: Apache-2.0
"""Filters of access logs: the same requests pass as with Envoy, each filter with a file of its own, and those of
shunt.yaml."""

import pytest

import envoy_proxy
from envoy_table import all_resources, clusters, routes_of
from http_cases import GRPC, Http
from lab import wait_until
from policy_cases import FAULTS, faults, fixed_delay, grpc_abort, http_abort, percent
from resources import route
from routing_cases import ALPHA, Case
from test_access_log import lines_of, settings
from test_access_log_xds import comparison, either, file_log, text
from test_envoy import Pair, start_peers
from testbed import EXIT_TIMEOUT_S, Testbed

LONG_MS, DELAY_S = 1000, 2
TIMES, DRAWN = 4, 400  # of each kind of request; of those that chance chooses from
TAKES_S = 30
TAG = "%REQ(USER-AGENT)%\n"
TAGGED = text(TAG)
GRPC_CALL = [("content-type", GRPC), ("te", "trailers")]


def faulty(prefix, fault):
    made = route(prefix, ALPHA)
    made["typed_per_filter_config"] = faults(fault)
    return made


ROUTES = [route("/fine/", ALPHA), route("/nobody/", "no-endpoints"), faulty("/late/", fixed_delay(f"{DELAY_S}s")),
          faulty("/teapot/", http_abort(418)), faulty("/denied/", grpc_abort(7))]
KINDS = {"fine": [], "absent": [], "nobody": [], "late": [], "teapot": [], "denied": GRPC_CALL}


def runtime(share):
    return {"runtime_filter": {"runtime_key": "nobody.sets.this", "percent_sampled": percent(share),
                               "use_independent_randomness": True}}


def flags(*names):
    return {"response_flag_filter": {"flags": list(names)}}


def every(*filters):
    return {"and_filter": {"filters": list(filters)}}


LATE, QUICK = ({"duration_filter": comparison(op, LONG_MS)} for op in ("GE", "LE"))
FAILED = {"status_code_filter": comparison("GE", 500)}
# What is logged by it.
FILTERS = {
    "late": (LATE, {"late"}),
    "quick": (QUICK, set(KINDS) - {"late"}),
    "any-flag": (flags(), {"absent", "nobody", "teapot", "denied", "late"}),
    "delayed": (flags("DI"), {"late"}),
    "no-route": (flags("NR"), {"absent"}),
    "flags": (flags("FI", "UH"), {"teapot", "denied", "nobody"}),
    "status": (FAILED, {"nobody"}),
    "equal": ({"status_code_filter": comparison("EQ", 418)}, {"teapot"}),
    "grpc": ({"grpc_status_filter": {"statuses": ["PERMISSION_DENIED"]}}, {"denied"}),
    "always": (runtime(100), set(KINDS)),
    "never": (runtime(0), set()),
    "either": (either(FAILED, LATE, flags("NR")), {"nobody", "late", "absent"}),
    "both": (every(QUICK, flags("FI"), runtime(100)), {"teapot", "denied"}),
    "neither": (every(LATE, FAILED), set()),
}
# Of shunt.yaml: (a filter, what is logged by it)
OWN = (f"causes: [no_route], min_status: 600, min_duration_ms: {LONG_MS}, sample_per_million: 0", {"absent", "late"})


def logs_in(folder):
    folder.mkdir()
    half = file_log(folder / "half", runtime(50), **TAGGED)
    return [*(file_log(folder / name, chosen, **TAGGED) for name, (chosen, _) in FILTERS.items()), half,
            file_log(folder / "all", **TAGGED)]


def listener_with(resources, logs):
    for resource in resources:
        if "api_listener" in resource:
            resource["api_listener"]["api_listener"]["access_log"] = logs
        yield resource


def start_pair(lab):
    """Envoy and shuntd, with logs in folders theirs and ours; and shuntd's own one."""
    bed, cases = Testbed(lab), [Case("filters", ROUTES, [])]
    ours, theirs = lab.dir / "ours", lab.dir / "theirs"
    start_peers(bed, listener_with(all_resources(cases), logs_in(ours)))
    config = envoy_proxy.configuration(routes_of(cases), clusters(), [FAULTS])
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["access_log"] = logs_in(theirs)
    envoy_proxy.start(bed, "oracle", config)
    bed.settings += settings(lab.dir / "own.log", TAG).replace("filter: {}", f"filter: {{{OWN[0]}}}").replace(
        "{path", f"{{xds_directory: {ours}, path")
    bed.start_xds()
    bed.start_daemon()
    return bed, ours, theirs


def calls():
    """(kinds, those that chance chooses from)"""
    kinds = [Http(kind, f"/{kind}/", [("user-agent", f"{kind}-{n}"), *more], method="POST" if more else "GET")
             for kind, more in KINDS.items() for n in range(TIMES)]
    return kinds, [Http("drawn", "/fine/", [("user-agent", f"drawn-{n}")]) for n in range(DRAWN)]


def kinds_in(path):
    """Of requests of which all or none are there, but for those that chance chooses from."""
    found = [line.rsplit("-", 1)[0] for line in lines_of(path) if not line.startswith("drawn-")]
    assert all(found.count(kind) == TIMES for kind in found), (path.name, found)
    return set(found)


@pytest.mark.timeout(120)
def test_ops_41_each_filter_passes_the_requests_that_it_passes_with_envoy(lab):
    """By status, duration, chance, flags, gRPC's status, and what is made of these; and OPS-35's of shunt.yaml."""
    bed, ours, theirs = start_pair(lab)
    of_kinds, drawn = calls()
    pair, number = Pair(bed), len(of_kinds) + len(drawn)
    for some in (of_kinds, drawn):  # what is judged by its time is not to wait for the many
        by_envoy, by_us = ([a["status"] for a in answers] for answers in pair.ask(some))
        assert by_us == by_envoy
    wait_until(lambda: len(lines_of(ours / "all")) >= number, TAKES_S, "all lines of ours")
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
    wait_until(lambda: len(lines_of(theirs / "all")) >= number, TAKES_S, "all lines of Envoy's")
    for name, (_, wanted) in FILTERS.items():
        # Each of Envoy's files is written when its time has come.
        wait_until(lambda p=theirs / name, n=TIMES * len(wanted): len(lines_of(p)) >= n, TAKES_S, name)
        assert kinds_in(theirs / name) == wanted, name
        assert kinds_in(ours / name) == wanted, name
    assert kinds_in(lab.dir / "own.log") == OWN[1]
    for folder in (ours, theirs):
        assert abs(len(lines_of(folder / "half")) / number - 0.5) < 0.15  # six times what chance strays
