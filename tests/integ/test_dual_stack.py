# SPDX-License-Identifier: Apache-2.0
"""Endpoints with an address of either family (gRFC A61), of which one family leads nowhere: Happy Eyeballs (RFC
8305)."""

import json
import sys

import pytest

import resources
from lab_fixtures import check_end
from testbed import HERE, PORT, VIP, Testbed

AGENT = [sys.executable, HERE / "transfer_agent.py"]
BACKENDS = ("fd82::1", "10.82.0.1")
FIRST_PORT = 9000
N = 100
PAUSE_S = 0.06
LIMIT_S = 60
DELAY_S = 0.25  # until the other family is tried beside (PF-02)
LATE_S = 2 * DELAY_S  # and what it takes then, where others take the machine's time
# On the ingress of both ports of the bridge.
DARK = """
table netdev dark {{
  chain far {{ type filter hook ingress device "far" priority 0; meta protocol {family} counter drop; }}
  chain near {{ type filter hook ingress device "near" priority 0; meta protocol {family} counter drop; }}
}}
"""


def resources_of(number):
    """A virtual host, a cluster that connects when it is asked for something, and its endpoint; each second one has its
    IPv4 address first."""
    name, addresses = f"e{number}", BACKENDS[::-1] if number % 2 else BACKENDS
    first, second = ({"socket_address": {"address": ip, "port_value": FIRST_PORT + number}} for ip in addresses)
    cluster = resources.cluster(name)
    cluster["lb_policy"] = "RING_HASH"
    endpoints = resources.endpoints(name, (addresses[0], FIRST_PORT + number))
    endpoints["endpoints"][0]["lb_endpoints"][0]["endpoint"] = {
        "address": first, "additional_addresses": [{"address": second}]}
    return resources.virtual_host(name, [name], resources.route("/", name)), cluster, endpoints


def start_backend(bed, name):
    process = bed.lab.start("backends", name, [*AGENT, "serve", "::", FIRST_PORT, N])
    bed.wait_connect("backends", "10.82.0.1", FIRST_PORT + N - 1, process)
    return process


def ask_each(bed, told):
    """Each endpoint for something; how long that took, in order."""
    words = ["ask", VIP, PORT, PAUSE_S, LIMIT_S, *(f"e{number}" for number in range(N))]
    answers = json.loads(bed.lab.exec("client", [*AGENT, *map(str, words)], timeout=LIMIT_S + 10).stdout)
    assert [status for _, _, status in answers] == ["200"] * N, answers
    took = sorted(took for _, took, _ in answers)
    print(f"{told}: p50 {took[N // 2 - 1] * 1000:.1f} ms, p99 {took[-2] * 1000:.1f} ms")
    return took


@pytest.mark.parametrize("dark", ["none", "ip", "ip6"])
def test_the_first_request_waits_for_the_delay_at_most_and_only_once(lab, dark):
    """PF-02, PF-09."""
    bed = Testbed(lab, bridges=True, ip6=True)
    backend = start_backend(bed, "backend")
    hosts, *others = zip(*map(resources_of, range(N)))
    resources.Folder(bed.xds_folder).set(resources.listener("web", "routes"), resources.route_config("routes", *hosts),
                                         *(resource for of in others for resource in of))
    bed.start_xds()
    bed.start_daemon()
    if dark != "none":
        lab.nft(bed.middle_of("backends"), DARK.format(family=dark))
    took = ask_each(bed, f"{dark} dark")
    assert took[3 * N // 4] <= LATE_S, took  # one of those that wait, and not the last
    assert (sum(t >= DELAY_S for t in took) >= N // 2) == (dark != "none"), took
    backend.kill()
    start_backend(bed, "backend-again")
    took = ask_each(bed, f"{dark} dark, again")
    assert sum(t >= DELAY_S for t in took) <= N // 4, took
    check_end(bed)
