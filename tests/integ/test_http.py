# SPDX-License-Identifier: Apache-2.0
"""Plain HTTP/2 through the balancer."""

import sys

import pytest

from agent import Agent
from testbed import PORT, VIP, free_of_addresses
from world import split_of

# What a server says to bytes that don't ask for HTTP/2, until it hangs up.
SPEAK = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
s.settimeout(30)
s.sendall(bytes.fromhex(sys.argv[3]))
while data := s.recv(4096):
    sys.stdout.write(data.decode())
"""


@pytest.mark.timeout(300)
def test_a_million_requests_split_by_weight_from_the_first_on(make_world):
    world = make_world().start(connected=False)
    report = world.bed.run_h2load(requests=1_000_000, clients=64, streams=32, timeout=280)
    assert report.perfect, report
    blue, green = split_of(report)
    assert blue + green == 1_000_000
    assert abs(blue / 1_000_000 - 0.75) < 0.01, (blue, green)


def test_it_is_shuntd_that_answers(world, lab):
    assert free_of_addresses(lab, "lb-c") and free_of_addresses(lab, "lb-b")
    assert world.bed.run_h2load(requests=1000).perfect


def test_weight_zero_gets_nothing(make_world):
    world = make_world()
    world.set_weights(100, 0)
    report = world.start().bed.run_h2load(requests=20_000)
    assert report.perfect, report
    assert split_of(report) == (20_000, 0)


def test_many_short_connections(world):
    """One request per connection: connections come and go without a loss."""
    for _ in range(5):
        report = world.bed.run_h2load(requests=400, clients=400, streams=1)
        assert report.perfect, report


def test_other_protocols_are_hung_up_on(world, lab):
    def speak(first):
        argv = [sys.executable, "-c", SPEAK, VIP, str(PORT), first.hex()]
        return lab.exec("client", argv).stdout
    assert speak(b"\x16\x03\x01\x00\xc4\x01\x00") == ""
    assert speak(b"EHLO a\r\n\r\n").startswith("HTTP/1.1 400 ")
    counters = world.bed.show_workers()[0]["h2"]
    for kind in ("http1", "tls"):
        assert counters[f"prefaces_{kind}"] == 1, counters


def test_a_request_header_that_is_too_large_is_431_and_the_next_one_is_served(world, lab):
    with_path = [[":method", "GET"], [":scheme", "http"], [":authority", "a.test"],
                 [":path", "/mark"]]
    client = Agent(lab, "client", "large", "h2_agent.py")
    requests = [{"fields": [*with_path, *[["x-large", "l" * 10_000]] * n]}
                for n in (1, 7, 20, 90, 1)]
    requests.append({"fields": [f for f in with_path if f[0] != ":authority"]})
    answers = client.ask(ip=VIP, port=PORT, requests=requests)
    client.process.stop()
    assert [a["status"] for a in answers] == [200, 431, 431, 431, 200, 400], answers
    assert world.bed.show_workers()[0]["h2"]["conn_errors"] == 0
