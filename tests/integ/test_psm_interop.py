# SPDX-License-Identifier: Apache-2.0
"""psm-interop's cases by gRPC's own test programs (grpc-go's interop client and server): first the client takes its
configuration by xDS, then shuntd does and the client calls shuntd; what is asserted is the same. Cases are named after
psm-interop's; docs/grfc.md says which of them apply. Run by tools/test mesh alone."""

import pytest

import resources
from go_build import go_build
from lab_fixtures import check_end
from psm_world import EMPTY, SERVICE, UNARY, Play, PsmWorld, fault_route
from testbed import ROOT

GO = ROOT / "build-go"
BUILD_S = 900
PACKAGE = "google.golang.org/grpc/interop/xds/"
KEY, NUMERIC = "xds_md", "xds_md_numeric"
METADATA = ((UNARY, KEY, "unary_yranu"), (EMPTY, KEY, "empty_ytpme"), (UNARY, NUMERIC, "159"))
EXACT_SHARE, SHARE = 0.01, 0.2  # how far a share may be from what is wanted, where nothing and where chance decides
SECONDS = 4
BEHAVIOR = "rpc-behavior"
STRUCT = "type.googleapis.com/xds.type.v3.TypedStruct"

CASES = []

pytestmark = pytest.mark.timeout(BUILD_S + 300)


def case(function):
    CASES.append(function)
    return function


@pytest.fixture(name="world", scope="module")
def fixture_world(module_lab):
    client, server = (go_build("interop", PACKAGE + name, GO / f"interop-{name}", timeout=BUILD_S)
                      for name in ("client", "server"))
    grpcurl = go_build("grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl", GO / "grpcurl", timeout=BUILD_S)
    world = PsmWorld(module_lab, client, server, grpcurl)
    yield world
    if world.bed.daemon:
        assert world.bed.show("xds")["server"]["nacks"] == 0
        check_end(world.bed)


# -- url_map: which route a call takes

def header(name, **match):
    return resources.route({"prefix": "/", "headers": [{"name": name, **match}]}, "alternative")


def path(**match):
    return resources.route(match, "alternative")


@case
def header_exact_match(p):
    p.begin(header(KEY, string_match={"exact": "empty_ytpme"}))
    p.configure(EMPTY, metadata=METADATA)
    p.all_answered_by(EmptyCall={2})


@case
def header_prefix_match(p):
    p.begin(header(KEY, string_match={"prefix": "un"}))
    p.configure(UNARY, metadata=METADATA)
    p.all_answered_by(UnaryCall={2})


@case
def header_suffix_match(p):
    p.begin(header(KEY, string_match={"suffix": "me"}))
    p.configure(EMPTY, metadata=METADATA)
    p.all_answered_by(EmptyCall={2})


@case
def header_present_match(p):
    p.begin(header(NUMERIC, present_match=True))
    p.configure(UNARY, metadata=METADATA)
    p.all_answered_by(UnaryCall={2})


@case
def header_invert_match(p):
    p.begin(header(KEY, string_match={"exact": "unary_yranu"}, invert_match=True))
    p.configure(UNARY, EMPTY, metadata=METADATA)
    p.all_answered_by(UnaryCall={1}, EmptyCall={2})


@case
def header_range_match(p):
    p.begin(header(NUMERIC, range_match={"start": 100, "end": 200}))
    p.configure(UNARY, EMPTY, metadata=METADATA)
    p.all_answered_by(UnaryCall={2}, EmptyCall={1})


@case
def header_regex_match(p):
    p.begin(header(KEY, string_match={"safe_regex": {"regex": "^em.*me$"}}))
    p.configure(UNARY, EMPTY, metadata=METADATA)
    p.all_answered_by(UnaryCall={1}, EmptyCall={2})


@case
def path_full_match_of_empty_call(p):
    p.begin(path(path=SERVICE + EMPTY), rpc=(EMPTY,))
    p.all_answered_by(EmptyCall={2})


@case
def path_full_match_of_unary_call(p):
    p.begin(path(path=SERVICE + UNARY))
    p.all_answered_by(UnaryCall={2})


@case
def path_two_routes_and_prefix_match(p):
    p.begin(resources.route(SERVICE + "Unary", "default"), path(path=SERVICE + EMPTY), rpc=(UNARY, EMPTY))
    p.all_answered_by(UnaryCall={1}, EmptyCall={2})


@case
def path_regex_match(p):
    p.begin(path(safe_regex={"regex": r"^\/.*\/UnaryCall$"}), rpc=(UNARY, EMPTY))
    p.all_answered_by(UnaryCall={2}, EmptyCall={1})


@case
def path_case_insensitive_match(p):
    p.begin(path(path="/gRpC.tEsTinG.tEstseRvice/empTycaLl", case_sensitive=False), rpc=(EMPTY,))
    p.all_answered_by(EmptyCall={2})


# -- url_map: faults, timeouts, retries

@case
def fault_zero_percent(p):
    p.begin(fault_route())
    p.statuses(SECONDS, EXACT_SHARE, UnaryCall={"OK": 1})


@case
def fault_not_matching(p):
    p.begin(fault_route(abort=100, delay=100), rpc=(EMPTY,))
    p.statuses(SECONDS, EXACT_SHARE, EmptyCall={"OK": 1})


@case
def fault_always_abort(p):
    p.begin(fault_route(abort=100))
    p.statuses(SECONDS, EXACT_SHARE, UnaryCall={"UNAUTHENTICATED": 1})


@case
def fault_half_aborted(p):
    p.begin(fault_route(abort=50))
    p.statuses(SECONDS, SHARE, UnaryCall={"UNAUTHENTICATED": 0.5, "OK": 0.5})


@case
def fault_always_delay(p):
    p.begin(fault_route(delay=100))
    p.configure(UNARY, timeout_s=1)
    p.eventually(lambda: p.statuses(SECONDS, EXACT_SHARE, UnaryCall={"DEADLINE_EXCEEDED": 1}))


@case
def fault_half_delayed(p):
    p.begin(fault_route(delay=50))
    p.configure(UNARY, timeout_s=1)
    p.eventually(lambda: p.statuses(SECONDS, SHARE, UnaryCall={"DEADLINE_EXCEEDED": 0.5, "OK": 0.5}))


def limited_route():
    made = resources.route({"path": SERVICE + UNARY}, "default")
    made["route"]["max_stream_duration"] = {"max_stream_duration": "1s", "grpc_timeout_header_max": "1s"}
    return made


@case
def timeout_in_route_rule(p):
    p.begin(limited_route(), rpc=(UNARY, EMPTY))
    p.configure(UNARY, EMPTY, metadata=((UNARY, BEHAVIOR, "sleep-2"),))
    p.eventually(lambda: p.statuses(SECONDS, 0.1, UnaryCall={"DEADLINE_EXCEEDED": 1}, EmptyCall={"OK": 1}))


@case
def timeout_in_application(p):
    p.begin()
    p.configure(UNARY, metadata=((UNARY, BEHAVIOR, "sleep-2"),), timeout_s=1)
    p.eventually(lambda: p.statuses(SECONDS, 0.1, UnaryCall={"DEADLINE_EXCEEDED": 1}))


@case
def timeout_not_exceeded(p):
    p.begin(limited_route())
    p.statuses(SECONDS, 0.1, UnaryCall={"OK": 1})


def retry(p, attempts, share):
    """A server of two fails its calls: those that are tried again come to the other, but for a few, between whose
    attempts the turn went round by other calls."""
    made = resources.route("/", "default")
    if attempts:
        made["route"]["retry_policy"] = {"retry_on": "unavailable", "num_retries": attempts}
    p.cluster("default", (1, 2))
    p.begin(made)
    p.configure(UNARY, metadata=((UNARY, BEHAVIOR, "hostname=1 error-code-14"),))
    p.eventually(lambda: p.statuses(SECONDS, SHARE, UnaryCall={"OK": share}))


@case
def retry_without(p):
    retry(p, 0, 0.5)


@case
def retry_and_succeed(p):
    retry(p, 3, 1)


@case
def retry_and_fail(p):
    made = resources.route("/", "default")
    made["route"]["retry_policy"] = {"retry_on": "unavailable", "num_retries": 3}
    p.begin(made)
    p.configure(UNARY, metadata=((UNARY, BEHAVIOR, "error-code-14"),))
    p.eventually(lambda: p.statuses(SECONDS, EXACT_SHARE, UnaryCall={"UNAVAILABLE": 1}))


# -- how calls are spread

@case
def ping_pong(p):
    p.begin(rpc=(UNARY, EMPTY))
    p.all_answered_by(UnaryCall={1}, EmptyCall={1})


@case
def round_robin(p):
    p.cluster("default", (1, 2))
    p.begin()
    p.goes_to(1, 2)
    by_method, failed = p.answers()
    assert failed == 0 and abs(by_method[UNARY]["1"] - 50) <= 1, by_method


@case
def failover(p):
    p.cluster("default", (1, 2, 3), (4, 5))
    p.begin()
    p.goes_to(1, 2, 3)
    p.unhealthy(1)
    p.goes_to(2, 3)
    p.unhealthy(1, 2, 3)
    p.goes_to(4, 5)
    p.unhealthy()
    p.goes_to(1, 2, 3)


@case
def remove_neg(p):
    """A group of servers is taken out, while calls go on to the other."""
    p.cluster("default", (1, 2, 3, 4))
    p.begin()
    p.goes_to(1, 2, 3, 4)
    p.cluster("default", (1, 2))
    p.put()
    p.goes_to(1, 2)


@case
def change_backend_service(p):
    p.begin()
    p.goes_to(1)
    p.routes(resources.route("/", "alternative"))
    p.put()
    p.goes_to(2)


@case
def outlier_detection(p):
    p.cluster("default", (1, 2, 3, 4, 5), outlier_detection={
        "interval": "2s", "base_ejection_time": "4s", "success_rate_request_volume": 20})
    p.begin()
    p.goes_to(1, 2, 3, 4, 5)
    p.configure(UNARY, metadata=((UNARY, BEHAVIOR, "hostname=1 error-code-2"),))
    p.goes_to(2, 3, 4, 5)
    p.configure(UNARY)
    p.goes_to(1, 2, 3, 4, 5)


@case
def circuit_breaking(p):
    def limit(n):
        p.cluster("default", (1,), circuit_breakers={"thresholds": [{"max_requests": n}]})

    def reaches(n):
        assert 0.95 * n <= p.in_flight() <= 1.01 * n, p.in_flight()

    limit(200)
    p.begin(channels=5)  # one would wait for streams of its connection to shuntd
    p.configure(UNARY, metadata=((UNARY, BEHAVIOR, "keep-open"),), timeout_s=20)
    p.eventually(lambda: reaches(200))
    limit(300)
    p.put()
    p.eventually(lambda: reaches(300))


@case
def custom_lb(p):
    """A policy that nobody knows is passed over for the next."""
    p.cluster("default", (1, 2), load_balancing_policy={"policies": [
        {"typed_extension_config": {"name": name, "typed_config": {
            "@type": STRUCT, "type_url": f"type.googleapis.com/{name}", "value": {}}}}
        for name in ("test.ThisLoadBalancerDoesNotExist", "round_robin")]})
    p.begin()
    p.goes_to(1, 2)


def affine(p):
    p.cluster("default", (1, 2, 3), lb_policy="RING_HASH")
    return resources.route("/", {"cluster": "default", "hash_policy": [{"header": {"header_name": KEY}}]})


def server_of(p, method):
    by_method, failed = p.answers()
    assert failed == 0 and len(by_method[method]) == 1, by_method
    return int(next(iter(by_method[method])))


@case
def affinity(p):
    p.begin(affine(p), rpc=(EMPTY,), metadata=f"EmptyCall:{KEY}:123")
    first = p.eventually(lambda: server_of(p, EMPTY))
    p.unhealthy(first)
    p.eventually(lambda: p.all_answered_by(EmptyCall={server_of(p, EMPTY)} - {first}))


@case
def affinity_header_based(p):
    p.begin(affine(p), rpc=(EMPTY,), metadata=f"EmptyCall:{KEY}:empty_ytpme")
    p.eventually(lambda: server_of(p, EMPTY))
    p.configure(EMPTY)
    p.goes_to(1, 2, 3, method=EMPTY)


@case
def affinity_multiple_headers(p):
    p.begin(affine(p), rpc=(EMPTY,), metadata=f"EmptyCall:{KEY}:empty_ytpme")
    first = p.eventually(lambda: server_of(p, EMPTY))
    for value in range(30):
        p.configure(EMPTY, UNARY, metadata=((EMPTY, KEY, "empty_ytpme"), (UNARY, KEY, str(value))))
        assert server_of(p, EMPTY) == first
        if server_of(p, UNARY) != first:
            return
    raise AssertionError("one server for all values")


@pytest.mark.parametrize("side", ["grpc-go", "shuntd"])
@pytest.mark.parametrize("play_case", CASES, ids=lambda one: one.__name__)
def test_psm_interop(world, side, play_case):
    play = Play(world, side, play_case.__name__.replace("_", "-"))
    try:
        play_case(play)
    finally:
        play.end()
