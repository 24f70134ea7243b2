# SPDX-License-Identifier: Apache-2.0
"""gRPC's own clients and servers on both sides, and long streams: a gigabyte of each in the long form."""

import os
import signal
import time

import pytest

from lab import wait_until
from testbed import SENDS_AGAIN

SCENARIOS = ("unary", "server_streaming", "client_streaming", "bidi", "deadline", "cancellation",
             "big_message", "metadata", "blanks", "statuses")
FLAT_KIB = 16 * 1024
# Calls in number, and MiB of a stream; more in the long form (tools/test long).
CALLS = int(os.environ.get("SHUNT_CALLS", "5000"))
MIB = int(os.environ.get("SHUNT_STREAM_MIB", "256"))
AGED_TIMEOUT_S = 60
STOOD_S = 10  # a peer's silence is told within nine; gRPC's servers end a connection after twenty


@pytest.mark.timeout(len(SCENARIOS) * 60 + 60)
def test_calls(world):
    for scenario in SCENARIOS:
        world.bed.run_calls(scenario)


def connections_of(bed):
    return bed.show_workers()[0]["proxy"]["connects"]


def test_metadata_that_is_too_large_fails_its_call_alone(world):
    bed = world.bed
    bed.run_calls("unary")
    connects = connections_of(bed)
    assert bed.run_calls("large_headers") == {"messages": 40}
    assert connections_of(bed) == connects


def test_a_stream_whose_backend_dies_ends_unavailable(world):
    calls = world.bed.start_calls("broken", "broken")
    wait_until(lambda: "one message" in calls.output(), 30, "the first message")
    world.backends["rpc-1"].kill()
    result = world.bed.calls_result(calls)
    assert result["code"] == "UNAVAILABLE", result
    assert "connection was lost" in result["details"], result


def test_many_calls_at_once_come_back_unaltered(make_world):
    make_world(n_rpc=2).start().bed.run_calls("many", timeout=120, count=CALLS)


def test_tcp_210_a_process_that_stood_still_loses_neither_call_nor_connection(make_world, tmp_path):
    """For longer than a silent peer has, as a virtual machine that moves does."""
    bed = make_world(n_rpc=2).start().bed
    stop = tmp_path / "stop"
    steady = bed.start_calls("steady", "steady", stop_file=str(stop))

    def calls():
        return bed.show_workers()[0]["ended"]["ok"]
    wait_until(lambda: calls() > 100, AGED_TIMEOUT_S, "calls")
    before = connections_of(bed)
    bed.daemon.signal(signal.SIGSTOP)
    time.sleep(STOOD_S)
    bed.daemon.signal(signal.SIGCONT)
    resumed = calls()
    wait_until(lambda: calls() > resumed + 500, AGED_TIMEOUT_S, "more calls")
    stop.touch()
    assert bed.calls_result(steady)["calls"] > 500
    assert connections_of(bed) == before
    assert bed.show_workers()[0]["proxy"]["upstreams_unanswered"] == 0


def test_ops_150_clients_that_reach_their_age_lose_nothing(make_world, tmp_path):
    """Their streams outlive several ages, their calls go on over new connections."""
    world = make_world(n_rpc=2)
    world.bed.settings += "limits: {max_connection_age_s: 1}\n"
    bed = world.start().bed
    stop = tmp_path / "stop"
    steady = bed.start_calls("steady", "steady", stop_file=str(stop), options=SENDS_AGAIN)
    held = bed.start_calls("held", "held_streams", streams=4, seconds=5.0)
    streams = bed.calls_result(held)
    wait_until(lambda: bed.show_workers()[0]["proxy"]["clients_aged"] >= 5, AGED_TIMEOUT_S, "clients of that age")
    stop.touch()
    assert bed.calls_result(steady)["calls"] > 100
    assert all(s["complete"] and s["code"] == 0 for s in streams), streams
    ended = bed.show_workers()[0]["ended"]
    assert {cause for cause, n in ended.items() if n} == {"ok"}, ended


@pytest.mark.parametrize("direction", ("upload", "download"))
@pytest.mark.timeout(280)
def test_a_long_stream_takes_no_memory(world, direction):
    bed = world.bed
    bed.run_calls(direction, mib=64)  # packet buffers are touched once before it is flat
    before = bed.daemon.status_kib("VmRSS")
    moving = bed.start_calls("moving", direction, mib=MIB)
    samples = []
    while moving.alive():
        samples.append(bed.daemon.status_kib("VmRSS"))
        time.sleep(0.1)
    print(bed.calls_result(moving))
    assert max(samples) - before < FLAT_KIB, (before, samples)
