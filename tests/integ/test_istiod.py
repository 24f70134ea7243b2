# SPDX-License-Identifier: Apache-2.0
"""An unmodified istiod drives shuntd as a proxyless gRPC client, and gRPC's own client (C-core) beside it: what the one
does by a configuration the other does, too. istiod is large to build, hence run by tools/test mesh alone."""

import os
import signal
import time

import pytest

from go_build import go_build
from istio_world import BACKEND_PORT, Ask, IstioWorld, Side, config, peer_authentication, routes, rule, service, to
from lab_fixtures import check_end
from testbed import ROOT

PROGRAM = ROOT / "build-go" / "istiod"
BUILD_S = 1500  # all of Kubernetes' client, once
pytestmark = pytest.mark.timeout(BUILD_S + 300)


@pytest.fixture(name="istiod", scope="module")
def fixture_istiod():
    return go_build("istiod", "istio.io/istio/pilot/cmd/pilot-discovery", PROGRAM, timeout=BUILD_S, min_go=(1, 26))


@pytest.fixture(name="world", scope="module")
def fixture_world(module_lab, istiod):
    world = IstioWorld(module_lab, istiod)
    world.configure(versions(world), rule())
    yield world.start()
    shown = world.bed.show("xds")
    assert shown["server"]["nacks"] == shown["server"]["undecodable"] == 0
    world.stop_clients()
    check_end(world.bed)


def versions(world, ones=(1, 2), twos=(3,)):
    """The service, its backends by the label `version`."""
    return service([*(world.endpoint(n, "v1") for n in ones), *(world.endpoint(n, "v2") for n in twos)])


def weighted(one, two):
    return routes({"route": [to("v1", one), to("v2", two)]})


def header(name, **match):
    return {"match": [{"headers": {name: match}}]}


def test_weights_of_subsets_follow_edits_under_load(world):
    subsets = rule(("v1", "v2"))
    world.configure(versions(world), subsets, weighted(90, 10))
    world.settle(Ask("90:10", {"1": 45, "2": 45, "3": 10}, count=400))
    with world.load():
        world.configure(versions(world), subsets, weighted(50, 50))
        world.settle(Ask("50:50", {"1": 1, "2": 1, "3": 2}, count=400))
        world.configure(versions(world), subsets, weighted(0, 100))
        world.settle(Ask("0:100", {"3": 1}))
        # Backend 2 changes its label, and 4 comes.
        world.configure(versions(world, (1,), (2, 3, 4)), subsets, weighted(0, 100))
        world.settle(Ask("relabelled", {"2": 1, "3": 1, "4": 1}, count=200))
        # A route to the service itself, without subsets, and then without a VirtualService and a rule.
        world.configure(versions(world), subsets, routes({"route": [to()]}))
        world.settle(Ask("no subset", {"1": 1, "2": 1, "3": 1}, count=200))
        world.configure(versions(world, (2,), ()))
        world.settle(Ask("one backend", {"2": 1}))


def test_twenty_edits_under_load_fail_nothing(world):
    subsets = rule(("v1", "v2"))
    world.configure(versions(world), subsets, weighted(50, 50))
    world.settle(Ask("at first", {"1": 1, "2": 1, "3": 2}, count=200))
    with world.load():
        for number in range(20):
            ones = ((1,), (1, 2), (2,), (1, 2, 4))[number % 4]
            world.configure(versions(world, ones), rule(("v1", "v2"), **POLICIES[number % len(POLICIES)]),
                            weighted(*((100, 0), (0, 100), (30, 70))[number % 3]))
            time.sleep(0.5)  # about what istiod waits for more
        world.configure(versions(world), subsets, weighted(100, 0))
        world.settle(Ask("at last", {"1": 1, "2": 1}))


POLICIES = ({}, {"loadBalancer": {"simple": "LEAST_REQUEST"}},
            {"loadBalancer": {"consistentHash": {"httpHeaderName": "x-user"}}},
            {"connectionPool": {"http": {"http2MaxRequests": 500}}})


def test_requests_go_by_headers_and_paths(world):
    world.configure(versions(world, (1,), (2,)), rule(("v1", "v2")), routes(
        {**header("x-exact", exact="yes"), "route": [to("v2")]},
        {**header("x-prefix", prefix="ab"), "route": [to("v2")]},
        {**header("x-regex", regex="a.*z"), "route": [to("v2")]},
        {"match": [{"headers": {"x-both": {"exact": "1"}}, "uri": {"prefix": "/shunt.test."}}], "route": [to("v2")]},
        {"match": [{"headers": {"x-both": {"exact": "2"}}, "uri": {"prefix": "/other."}}], "route": [to("v2")]},
        {"match": [{"headers": {"x-without": {"exact": "1"}}, "withoutHeaders": {"x-not": {"exact": "1"}}}],
         "route": [to("v2")]},
        {"match": [{"uri": {"exact": "/shunt.test.Some/Other"}}], "route": [to("v2")]},
        {"route": [to("v1")]}))
    two, one = {"2": 1}, {"1": 1}
    world.settle(*(Ask(str(metadata), wanted, metadata, count=10) for metadata, wanted in (
        ((("x-exact", "yes"),), two), ((("x-exact", "yes2"),), one),
        ((("x-prefix", "abc"),), two), ((("x-prefix", "a"),), one),
        ((("x-regex", "a--z"),), two), ((("x-regex", "a--z."),), one),
        ((("x-both", "1"),), two), ((("x-both", "2"),), one),
        ((("x-without", "1"), ("x-not", "2")), two), ((("x-without", "1"), ("x-not", "1")), one),
        ((), one))))


def test_faults_abort_and_delay(world):
    def fault(name, **what):
        return {**header(name, exact="1"), "fault": what, "route": [to("v2")]}

    every, half = {"percentage": {"value": 100}}, {"percentage": {"value": 50}}
    world.configure(versions(world, (1,), (2,)), rule(("v1", "v2")), routes(
        fault("x-http", abort={"httpStatus": 403, **every}),
        fault("x-grpc", abort={"grpcStatus": "ABORTED", **every}),
        fault("x-half", abort={"httpStatus": 403, **half}),
        fault("x-late", delay={"fixedDelay": "0.5s", **every}),
        fault("x-both", delay={"fixedDelay": "0.5s", **every}, abort={"grpcStatus": "ABORTED", **every}),
        {**header("x-timeout", exact="1"), "timeout": "0.4s", "fault": {"delay": {"fixedDelay": "5s", **every}},
         "route": [to("v2")]},
        {"route": [to("v1")]}))
    world.settle(
        Ask("HTTP", {"PERMISSION_DENIED": 1}, (("x-http", "1"),)),
        Ask("gRPC", {"ABORTED": 1}, (("x-grpc", "1"),)),
        Ask("half", {"PERMISSION_DENIED": 1, "2": 1}, (("x-half", "1"),), count=200),
        Ask("late", {"2": 1}, (("x-late", "1"),), count=16, at_least_s=0.49),
        Ask("late, then aborted", {"ABORTED": 1}, (("x-both", "1"),), count=16, at_least_s=0.49),
        Ask("too late", {"DEADLINE_EXCEEDED": 1}, (("x-timeout", "1"),), count=16),
        Ask("none", {"1": 1}))


def test_retries_and_timeouts_of_a_virtual_service(world):
    world.configure(versions(world, (1, 2), ()), rule(), routes(
        {**header("x-kind", exact="retried"), "retries": {"attempts": 3, "retryOn": "unavailable"}, "route": [to()]},
        {**header("x-kind", exact="once"), "retries": {"attempts": 0}, "route": [to()]},
        {"route": [to()], "timeout": "0.3s"}))
    failing = ("x-script-1", "14")
    world.settle(
        Ask("retried", {"2": 1}, (failing, ("x-kind", "retried")), parallel=1),
        Ask("once", {"2": 1, "1": 1}, (("x-script-1", "0"), ("x-kind", "once"))),
        Ask("once, failing", {"2": 1, "UNAVAILABLE": 1}, (failing, ("x-kind", "once")), count=100),
        Ask("timeout", {"DEADLINE_EXCEEDED": 1}, (("x-script", "0wait2000"),), count=10))


def test_istiod_does_not_send_outlier_detection_to_grpc_clients(world):
    """What a DestinationRule says of it reaches neither client, though it makes localities fail over (below). The day
    that a newer istiod sends it this fails, and ejections are to be shown here."""
    world.configure(versions(world, (1, 2), ()), rule(outlierDetection={
        "consecutive5xxErrors": 1, "interval": "0.5s", "baseEjectionTime": "60s", "maxEjectionPercent": 100}))
    asks = Ask("a failing backend", {"INTERNAL": 1, "2": 1}, (("x-script-1", "13"),), count=100)
    world.settle(asks)
    time.sleep(2)
    world.settle(asks, limit_s=0)
    assert "outlier_detection" not in world.cluster()


def localities(world, **balancing):
    endpoints = [world.endpoint(1, locality="region1/zone1"), world.endpoint(2, locality="region1/zone2"),
                 world.endpoint(3, locality="region2/zone1"), world.endpoint(4, locality="region3/zone1")]
    world.configure(service(endpoints), rule(outlierDetection={"consecutive5xxErrors": 5},
                                             loadBalancer={"simple": "ROUND_ROBIN", "localityLbSetting": balancing}))


def test_localities_fail_over_and_back(world):
    """The clients are in region1/zone1, whose requests go to region2 and not to region3 when region1 has failed."""
    localities(world, enabled=True, failover=[{"from": "region1", "to": "region2"}])
    everybody = {n: Ask(f"{n} serves", {str(n): 1}) for n in (1, 2, 3, 4)}
    world.settle(everybody[1])
    for number in (1, 2, 3):
        world.backends[number].kill()
        world.settle(everybody[number + 1])
    for number in (3, 2, 1):
        world.start_backend(number)
        world.settle(everybody[number])


def test_localities_have_their_shares(world):
    localities(world, enabled=True, distribute=[
        {"from": "region1/zone1/*", "to": {"region1/zone1/*": 70, "region1/zone2/*": 20, "region2/*": 10}}])
    world.settle(Ask("70:20:10", {"1": 70, "2": 20, "3": 10}, count=400))


def test_workload_entries_are_endpoints(world):
    """A service of workloads that its selector finds, in place of endpoints of its own."""
    def workload(number, version):
        return config("WorkloadEntry", {"address": world.address(number),
                                        "labels": {"app": "echo", "version": version}}, name=f"w{number}")

    selecting = service([], workloadSelector={"labels": {"app": "echo"}})
    world.configure(selecting, rule(("v1", "v2")), weighted(50, 50), workload(1, "v1"), workload(2, "v2"))
    world.settle(Ask("two", {"1": 1, "2": 1}, count=100))
    with world.load():
        world.configure(selecting, rule(("v1", "v2")), weighted(50, 50), workload(1, "v1"), workload(2, "v2"),
                        workload(3, "v2"))
        world.settle(Ask("three", {"1": 2, "2": 1, "3": 1}, count=200))


def test_istiod_killed_and_started_under_load(world):
    subsets = rule(("v1", "v2"))
    world.configure(versions(world), subsets, weighted(100, 0))
    world.settle(Ask("before", {"1": 1, "2": 1}))
    with world.load():
        for edit, wanted in ((weighted(0, 100), {"3": 1}), (weighted(100, 0), {"1": 1, "2": 1})):
            world.istiod.kill()
            time.sleep(2)  # of load with the last configuration
            world.configure(versions(world), subsets, edit)
            world.start_istiod()
            world.settle(Ask("what was edited meanwhile", wanted))
            world.configure(versions(world), subsets, weighted(50, 50))
            world.settle(Ask("what is edited then", {"1": 1, "2": 1, "3": 2}, count=200))


def test_istiod_stopped_in_order_under_load(world):
    world.configure(versions(world), rule(("v1", "v2")), weighted(100, 0))
    world.settle(Ask("before", {"1": 1, "2": 1}))
    with world.load():
        os.kill(world.istiod.pid, signal.SIGTERM)
        time.sleep(2)
        world.istiod.kill()
        world.configure(versions(world), rule(("v1", "v2")), weighted(0, 100))
        world.start_istiod()
        world.settle(Ask("after", {"3": 1}))


def test_a_service_that_goes_fails_its_requests_and_comes_back(world):
    world.configure(versions(world, (1,), ()), rule())
    world.settle(Ask("there", {"1": 1}))
    world.configure(rule())
    world.ours.settle(Ask("gone", {"UNAVAILABLE": 1}))
    world.configure(versions(world, (2,), ()), rule())
    world.settle(Ask("there again", {"2": 1}))


def test_mutual_tls_by_certificates_of_istiods_authority(lab, istiod):
    """ISTIO_MUTUAL: clusters and the backends' listeners have TLS by istiod, whose CA has signed all certificates."""
    world = IstioWorld(lab, istiod, n_backends=2, mutual=True)

    def configure(mode, account="echo"):
        endpoints = [world.endpoint(n, serviceAccount=account) for n in world.backends]
        world.configure(service(endpoints), rule(tls=mode), peer_authentication("STRICT"))

    served, failed = Ask("served", {"1": 1, "2": 1}), Ask("failed", {"UNAVAILABLE": 1}, count=10)
    configure("ISTIO_MUTUAL")
    world.start()
    world.settle(served)
    assert "transport_socket" in world.cluster()
    plain = Side("plain text", world.oracle.agent, f"{world.address(1)}:{BACKEND_PORT}")
    plain.settle(failed)
    configure("ISTIO_MUTUAL", account="other")  # whom the backends' certificates do not name
    world.settle(failed)
    configure("ISTIO_MUTUAL")
    world.settle(served)
    configure("DISABLE")
    world.settle(failed)
    configure("ISTIO_MUTUAL")
    world.settle(served)
    assert world.bed.show("xds")["server"]["nacks"] == 0
    world.stop_clients()
    check_end(world.bed)
