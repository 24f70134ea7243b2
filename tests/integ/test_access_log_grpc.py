# SPDX-License-Identifier: Apache-2.0
"""Access logs for a service (Envoy's ALS): the same entries as Envoy's, services that listeners ask for, and one that
goes under load."""


import pytest

import envoy_proxy
from agent import Agent
from envoy_table import all_resources, case_lists, clusters, routes_of
from lab import wait_until
from policy_cases import FAULTS
from test_access_log import tagged
from test_access_log_xds import Logged, comparison, grpc_log
from test_envoy import Pair, start_peers
from test_metrics import samples, value
from testbed import EXIT_TIMEOUT_S, Testbed

ADDRESS = "127.0.0.1:9001"
TAKES_S = 20
LOADED_S = 60
MIN_SAME = 50
NOWHERE = ("/nothing-like-it", "/healthz/")
# What entries of both have, by the path to it.
COMPARED = ("protocol_version", "request.request_method", "request.scheme", "request.authority", "request.path",
            "request.user_agent", "request.forwarded_for", "request.request_id", "request.request_body_bytes",
            "request.request_headers", "response.response_code", "response.response_code_details",
            "common_properties.upstream_cluster", "common_properties.route_name",
            "common_properties.upstream_remote_address", "common_properties.response_flags",
            "common_properties.upstream_request_attempt_count", "common_properties.access_log_type")


def part_of(entry, path):
    for key in path.split("."):
        entry = entry.get(key, {})
    return entry


def wait_count(agent, number):
    def look():
        found = agent.ask(op="count")
        return found if found["entries"] >= number else None
    return wait_until(look, LOADED_S, f"{number} entries")


def entries_of(agent, number=0):
    wait_count(agent, number)
    return agent.ask(op="entries")


def by_tag(entries):
    return {entry["request"]["user_agent"]: entry for entry in entries}


def with_service(config):
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    manager["access_log"] = [grpc_log("als", additional_request_headers_to_log=["traceparent"])]
    ip, port = ADDRESS.split(":")
    config["static_resources"]["clusters"].append(envoy_proxy.cluster("als", [(ip, int(port))]))
    return config


def start_pair(lab):
    """Envoy and shuntd with a service each."""
    cases, _, _ = case_lists()
    bed = Testbed(lab)
    start_peers(bed, all_resources(cases))
    theirs = Agent(bed.lab, "oracle", "their-service", "als_agent.py", ADDRESS)
    ours = Agent(bed.lab, "lb", "our-service", "als_agent.py", ADDRESS)
    config = envoy_proxy.configuration(routes_of(cases), clusters(), [FAULTS])
    envoy_proxy.start(bed, "oracle", with_service(config))
    bed.settings += f"access_log: {{collector: '{ADDRESS}', log_name: edge}}\n"
    bed.start_xds()
    bed.start_daemon()
    calls = [call for case in cases for call in case.calls if getattr(call, "fields", None) is None]
    return bed, tagged(calls[:200] + [call for call in calls if call.path in NOWHERE]), ours, theirs


@pytest.mark.timeout(120)
def test_ops_216_the_same_entries_as_envoy(lab):
    bed, calls, ours, theirs = start_pair(lab)
    answers = list(zip(*Pair(bed).ask(calls)))
    mine, envoy = by_tag(entries_of(ours, len(calls))), by_tag(entries_of(theirs, len(calls)))
    same = [f"r{i}" for i, (a, b) in enumerate(answers) if a.get("status") == b.get("status") == 200]
    wrong = [f"{tag} {path}: {part_of(envoy[tag], path)}, and here {part_of(mine[tag], path)}"
             for tag in same for path in COMPARED if part_of(envoy[tag], path) != part_of(mine[tag], path)]
    assert len(same) >= MIN_SAME and not wrong, "\n".join(wrong[:10])
    missing = [f"r{i}" for i, (a, b) in enumerate(answers) if a.get("status") == b.get("status") == 404]
    for tag in missing:
        for path in ("response.response_code", "response.response_code_details", "common_properties.response_flags"):
            assert part_of(envoy[tag], path) == part_of(mine[tag], path), (tag, path)
    assert missing and {entry["log"] for entry in mine.values()} == {"edge"}
    # What is in all of them here and there, if not the same.
    for entry in (mine[same[0]], envoy[same[0]]):
        common = entry["common_properties"]
        assert common["start_time"] and common["duration"].endswith("s") and common["time_to_last_rx_byte"]
        assert common["downstream_remote_address"] and common["downstream_local_address"]
        assert int(entry["request"]["request_headers_bytes"]) > 50
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0


@pytest.fixture(name="logged")
def fixture_logged(make_world):
    logged = Logged(make_world())
    logged.bed.settings = f"access_log: {{xds_collectors: [{{cluster: als, address: '{ADDRESS}'}}]}}\n"
    logged.service = Agent(logged.bed.lab, "lb", "service", "als_agent.py", ADDRESS)
    return logged


def test_ops_217_a_listener_has_the_services_that_shunt_yaml_knows(logged):
    """OPS-41, OPS-42."""
    bed = logged.start(
        grpc_log("als", log_name="all", additional_request_headers_to_log=["traceparent", "cookie"]),
        grpc_log("als", {"status_code_filter": comparison("GE", 400)}, log_name="errors"),
        grpc_log("elsewhere"))
    said = bed.daemon.output()
    assert "elsewhere: shunt.yaml names no address of this cluster" in said
    assert "additional_request_headers_to_log: 'cookie' is not kept" in said.replace("\\", "")
    for path in ("/mark", "/missing", "/mark"):
        logged.ask(path)
    found = entries_of(logged.service, 4)
    assert sorted((e["log"], e["request"]["path"]) for e in found) == [
        ("all", "/mark"), ("all", "/mark"), ("all", "/missing"), ("errors", "/missing")]
    assert len({e["node"] for e in found}) == 1 and all(e["node"] for e in found)
    assert logged.service.ask(op="count")["streams"] == 2
    # Another version has another name; the stream of the first ends with all that it was told.
    logged.put(grpc_log("als", log_name="next"))
    wait_until(lambda: logged.ask("/mark") and "next" in {e["log"] for e in entries_of(logged.service)}, TAKES_S,
               "entries of the next version")
    logs = [e["log"] for e in entries_of(logged.service)]
    assert "all" not in logs[logs.index("next"):]


def told_or_counted(logged, requests):
    """What is written and dropped, once that is all; then the service has what is written."""
    def counted():
        info = logged.bed.show("info")
        return info["access_log_written"] + info["access_log_dropped"] == requests and info
    info = wait_until(counted, LOADED_S, "all are told or counted")
    found = wait_count(logged.service, info["access_log_written"])
    assert found["entries"] == info["access_log_written"], (found, info)
    numbers = samples(logged.bed.shuntctl("show", "metrics"))
    by_reason = {reason: value(numbers, "shunt_access_log_dropped_total", reason=reason)
                 for reason in ("ring", "reader", "service")}
    assert sum(by_reason.values()) == info["access_log_dropped"], by_reason
    return info, by_reason, found


def test_ops_218_a_service_that_goes_under_load_loses_what_is_counted_alone(logged):
    """And no request waits for it."""
    bed = logged.start(grpc_log("als"))
    assert bed.run_h2load(requests=1000).perfect
    wait_count(logged.service, 1000)
    # What a stream that fails had in its last second counts as lost.
    wait_until(lambda: bed.show("info")["access_log_written"] == 1000, LOADED_S, "all of them are sure")
    logged.service.ask(op="stop")
    assert bed.run_h2load(requests=40_000).perfect
    wait_until(lambda: "UNAVAILABLE" in bed.daemon.output(), TAKES_S, "a word in the log")
    info = bed.show("info")
    assert info["access_log_error"] == "UNAVAILABLE" and info["access_log_dropped"] > 0, info
    logged.service.ask(op="start")
    wait_until(lambda: not bed.show("info")["access_log_error"], LOADED_S, "the service is back")
    assert bed.run_h2load(requests=1000).perfect
    info, by_reason, _ = told_or_counted(logged, 42_000)
    assert info["access_log_written"] >= 2000 and by_reason["ring"] + by_reason["reader"] > 0, by_reason


def test_ops_218_a_slow_service_loses_what_is_counted_alone(logged):
    """One that is there and reads nothing."""
    bed = logged.start(grpc_log("als"))
    assert bed.run_h2load(requests=1000).perfect
    wait_count(logged.service, 1000)
    logged.service.ask(op="pause")
    assert bed.run_h2load(requests=60_000).perfect
    assert bed.show("info")["access_log_dropped"] > 0
    logged.service.ask(op="resume")
    info, _, found = told_or_counted(logged, 61_000)
    assert found["streams"] == 1 and info["access_log_error"] == ""
    assert 1 < found["messages"] < info["access_log_written"] / 10, "batches"
