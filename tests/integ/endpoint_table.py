# SPDX-License-Identifier: Apache-2.0
"""Bad and odd endpoints for test_validation, as cluster_table has clusters.

The good ones are alpha's; each row has beta's in their place, among odd ones, so that a request
tells which version serves.
"""

import resources
from http_cases import BACKENDS, PORT
from resources import ENDPOINTS
from routing_cases import ALPHA, BETA
from validation_table import ACK, UNKNOWN_FIELD, Row

NAME = "wire-endpoints"
PATH = "/endpoints.T/M"
UNREACHABLE, DROPPED = "503", "503"
U32_MAX = 2 ** 32 - 1
FIRST = "endpoints[0]: lb_endpoints[0]"
PORT_0 = "ACK: no port is port 0 to it"
UNSEEN = "192.0.2."  # TEST-NET-1: nobody there


def good_endpoints():
    return resources.endpoints(NAME, (BACKENDS[ALPHA], PORT))


def socket(ip=BACKENDS[BETA], port=PORT, **more):
    return {"address": {"socket_address": {"address": ip, "port_value": port, **more}}}


def endpoint(ip=BACKENDS[BETA], port=PORT, host=None, **more):
    return {"endpoint": {**socket(ip, port), **(host or {})}, **more}


def locality(*entries, zone="z", priority=0, weight=1, **more):
    return {"locality": {"zone": zone}, "load_balancing_weight": weight, "priority": priority,
            "lb_endpoints": list(entries), **more}


def assignment(*localities, **more):
    return {"@type": ENDPOINTS, "cluster_name": NAME, "endpoints": list(localities), **more}


def of(*entries):
    return assignment(locality(*entries))


def good(label, resource, answer=BETA, **more):
    return Row(label, ACK, resource=resource, answers={PATH: answer}, **more)


def bad(label, resource, *texts, **more):
    return Row(label, texts, resource=resource, **more)


def priority_rows():
    beta = endpoint()
    yield good("one endpoint", of(beta))
    yield good("no localities (A27-V09)", assignment(), UNREACHABLE)
    yield good("a locality without endpoints (CL-06)", of(), UNREACHABLE)
    yield good("two priorities in another order (A27-V01)", assignment(
        locality(endpoint(UNSEEN + "1"), priority=1), locality(beta)))
    yield bad("a gap (A27-V01)", assignment(locality(beta), locality(priority=2)),
              "priority 1 is missing")
    yield bad("no priority 0 (A27-V01)", assignment(locality(beta, priority=1)),
              "priority 0 is missing")
    yield bad("the last priority of all (A27-V01)", assignment(
        locality(beta), locality(priority=U32_MAX)), "priority 1 is missing")
    yield bad("priority 0 has only weight 0 (A27-V01)", assignment(
        locality(weight=0), locality(beta, priority=1)), "priority 0 is missing")
    yield good("a gap among those without weight (A27-V01)", assignment(
        locality(beta), locality(weight=0, priority=7)))
    yield good("an empty first priority (CL-06)", assignment(
        locality(), locality(beta, priority=1)))
    yield bad("a locality twice (A27-V02)", assignment(locality(beta), locality()),
              "endpoints[1]: locality /z/ is a duplicate")
    yield good("a locality in two priorities (A27-V02)", assignment(
        locality(beta), locality(endpoint(UNSEEN + "1"), priority=1)))
    yield bad("the nameless locality twice (A27-V02)", assignment(
        {"locality": {}, "load_balancing_weight": 1, "lb_endpoints": [beta]},
        {"locality": {"region": ""}, "load_balancing_weight": 1}), "endpoints[1]", "duplicate")
    yield good("localities without weight, twice (CL-05)", assignment(
        locality(beta), locality(weight=0), locality(weight=0)))
    yield good("weights that add up to 2^32-1 (A27-V03)", assignment(
        locality(beta, weight=U32_MAX - 1), locality(zone="y")))
    yield bad("weights that add up to 2^32 (A27-V03)", assignment(
        locality(beta, weight=U32_MAX), locality(zone="y")),
        "priority 0: locality weights add up to 4294967296")
    yield good("weights, each priority by itself (A27-V03)", assignment(
        locality(beta, weight=U32_MAX), locality(weight=U32_MAX, priority=1)))
    yield bad("no locality (A27-V05)", assignment(
        {"load_balancing_weight": 1, "lb_endpoints": [beta]}), "endpoints[0]: no locality")
    yield good("no locality, no weight (CL-05)", assignment(
        locality(beta), {"lb_endpoints": [endpoint("nonsense")]}))
    yield good("nonsense without weight (CL-05)", assignment(
        locality(beta), locality(endpoint("nonsense", 0), zone="y", weight=0, priority=3)))
    yield good("the same address without weight (CL-05)", assignment(
        locality(beta), locality(beta, zone="y", weight=0)))
    yield good("what is not read of a locality (CL-07)", assignment(locality(
        beta, proximity=7, metadata={"filter_metadata": {"istio": {"a": [1, None]}}})))


def twice_rows():
    beta, twice = endpoint(), f"{BACKENDS[BETA]}:{PORT} is a duplicate"
    yield bad("an address twice (A27-V04)", of(beta, beta), "endpoints[0]: lb_endpoints[1]", twice)
    yield bad("an address in two priorities (A27-V04)", assignment(
        locality(beta), locality(beta, priority=1)), "endpoints[1]: lb_endpoints[0]", twice)
    yield good("an address with two ports (A27-V04)", of(
        beta, endpoint(port=PORT + 1, health_status="UNHEALTHY")))
    yield bad("an address on an unhealthy endpoint (A55-V07)", of(
        beta, endpoint(health_status="UNHEALTHY")), twice, core="ACK: it skips those first")
    yield bad("an address on a draining endpoint (A55-V07)", of(
        beta, endpoint(health_status="DRAINING")), twice)
    additional = {"additional_addresses": [socket()]}
    yield bad("as its own additional address (A27-V04)", of(endpoint(host=additional)), twice)
    yield bad("as another's additional address (A27-V04)", of(
        beta, endpoint(UNSEEN + "1", host=additional)), twice)
    yield bad("IPv4 as IPv6 (A27-V04)", of(beta, endpoint("::ffff:" + BACKENDS[BETA])), twice,
              core="ACK: they are two to it")


def address_rows():
    where = FIRST + ": endpoint.address"
    yield bad("no endpoint (A27-V05)", of({}), FIRST, "no endpoint")
    yield bad("an endpoint by name (A27-V05)", of({"endpoint_name": "x"}), FIRST, "no endpoint")
    yield bad("no address (A27-V05)", of({"endpoint": {}}), where, "no socket_address")
    yield bad("an empty address (A27-V05)", of({"endpoint": {"address": {}}}), where)
    yield bad("a pipe (A27-V05)", of({"endpoint": {"address": {"pipe": {"path": "/x"}}}}), where)
    yield bad("an internal address (A27-V05)", of({"endpoint": {"address": {
        "envoy_internal_address": {"server_listener_name": "x"}}}}), where)
    for ip, core in (("localhost", ""), ("", ""), ("10.82.2.256", ""), ("10.82.2", ""),
                     ("10.82.02.2", ""), ("10.82.2.2:80", ""), (" 10.82.2.2", ""), ("1::2::3", ""),
                     ("fd00::1%lo", "ACK: it takes zones"),
                     ("[fd00::1]", "ACK: it takes brackets")):
        yield bad(f'"{ip}" (A27-V05)', of(endpoint(ip)), where, f'"{ip}" is not an IP address',
                  core=core)
    yield bad("link-local IPv6 (A27-V05)", of(endpoint("fe80::1")), where, 'fe80::1: link-local, without a zone',
              core="ACK: it asks the kernel")
    yield bad("port 65536 (A27-V05)", of(endpoint(port=65536)), where, "port 65536")
    yield bad("port 2^32-1 (A27-V05)", of(endpoint(port=U32_MAX)), where, "port 4294967295")
    yield bad("no port (A27-V05)", of({"endpoint": {"address": {"socket_address": {
        "address": BACKENDS[BETA]}}}}), where, "no port_value", core=PORT_0)
    yield bad("port 0 (A27-V05)", of(endpoint(port=0)), where, "port 0", core=PORT_0)
    yield bad("a named port (A27-V05)", of({"endpoint": {"address": {"socket_address": {
        "address": BACKENDS[BETA], "named_port": "http"}}}}), where, "no port_value",
        core=PORT_0)
    more = FIRST + ": endpoint.additional_addresses[0]"
    pipe = {"address": {"pipe": {"path": "/x"}}}
    portless = {"address": {"socket_address": {"address": UNSEEN + "1"}}}
    for label, entry, core in (
            ("without address", {}, ""), ("that is a pipe", pipe, ""),
            ("that is a name", socket("x.test"), ""), ("without port", portless, PORT_0)):
        yield bad(f"additional address {label} (A27-V05)", of(
            endpoint(host={"additional_addresses": [entry]})), more, core=core)
    yield bad("additional address with port 65536 (A27-V05)", of(
        endpoint(host={"additional_addresses": [socket(port=65536)]})), more, "port 65536")
    yield good("UDP (CL-07)", of(endpoint() | {"endpoint": socket(protocol="UDP")}))
    yield good("a resolver's name (CL-07)", of({"endpoint": socket(resolver_name="x")}))
    yield good("additional addresses (A61)", of(endpoint(host={
        "additional_addresses": [socket(UNSEEN + "1")]})))


def endpoint_rows():
    beta = endpoint()
    yield bad("weight 0 (A27-V06)", of(endpoint(load_balancing_weight=0)),
              FIRST, "load_balancing_weight: must not be 0")
    yield good("the largest weight (A27-V06)", of(endpoint(load_balancing_weight=U32_MAX)))
    yield bad("weights that add up to 2^32 (A27-V06)", of(
        endpoint(load_balancing_weight=U32_MAX),
        endpoint(UNSEEN + "1", health_status="DRAINING")),
        "endpoints[0]: endpoint weights add up to 4294967296", core="ACK: it adds nothing up")
    for health in ("UNHEALTHY", "TIMEOUT", "DEGRADED", "DRAINING"):
        yield good(f"{health} beside a healthy one (A55-V07)", of(
            endpoint(UNSEEN + "1", health_status=health), beta))
        yield good(f"{health} alone (A55-V07)", of(endpoint(health_status=health)), UNREACHABLE)
    yield good("a health that nobody knows (A55-V07)", of(beta, endpoint(UNSEEN + "1")),
               patch=[["endpoints[0].lb_endpoints[1]", "104d"]])
    yield good("UNKNOWN and HEALTHY (A55-V07)", assignment(
        locality(endpoint(health_status="HEALTHY"))))
    key = {"filter_metadata": {"envoy.lb": {"hash_key": "k"}}}
    yield good("a hash key (RH-01)", of(endpoint(metadata=key)))
    yield good("a hash key that is no string (RH-01)", of(endpoint(
        metadata={"filter_metadata": {"envoy.lb": {"hash_key": 7}}})))
    yield good("a host name (AR-01)", of(endpoint(host={"hostname": "b.test:80"})))
    yield bad("a host name that is none (AR-01)", of(endpoint(host={"hostname": "a b"})),
              FIRST, "endpoint.hostname", '"a b" is not an authority',
              core="ACK: it sends no request there by that name")
    yield good("a health check (CL-07)", of(endpoint(host={"health_check_config": {
        "port_value": 9, "hostname": "x"}})))
    yield good("an unknown field", of(beta), patch=[["endpoints[0].lb_endpoints[0]", UNKNOWN_FIELD]])


def policy_rows():
    beta = locality(endpoint())

    def drops(*list_of):
        return assignment(beta, policy={"drop_overloads": list(list_of)})

    def drop(numerator=0, denominator="HUNDRED", category="c"):
        return {"category": category, "drop_percentage": {
            "numerator": numerator, "denominator": denominator}}
    where = "policy.drop_overloads[0]"
    yield good("a drop (A27-V08)", drops(drop()))
    yield good("no drops (A27-V08)", drops())
    yield good("drops of 10^4 and 10^6 (A27-I02)", drops(
        drop(0, "TEN_THOUSAND"), drop(0, "MILLION")))
    yield good("drops of everything (A27-I02)", drops(drop(100)), DROPPED)
    yield good("drops of more than everything (WF-05)", drops(drop(10 ** 9, "MILLION")), DROPPED)
    yield good("one category twice (A27-V08)", drops(drop(), drop()))
    yield bad("a drop without category (A27-V08)", drops(drop(category="")), where, "no category")
    yield bad("a drop without percentage (A27-V08)", drops({"category": "c"}), where,
              "no drop_percentage")
    yield bad("an empty drop (A27-V08)", drops({}), where)
    yield bad("an unknown denominator (A27-V08)", drops(drop(denominator=3)), where,
              "drop_percentage: denominator 3")
    yield bad("the second drop (A27-V08)", drops(drop(), {"category": "d"}),
              "policy.drop_overloads[1]")
    yield good("overprovisioning (ENV-01)", assignment(beta, policy={
        "overprovisioning_factor": 200}))
    yield good("staleness (CL-07)", assignment(beta, policy={"endpoint_stale_after": "1s"}))


def eds_rows():
    yield from priority_rows()
    yield from twice_rows()
    yield from address_rows()
    yield from endpoint_rows()
    yield from policy_rows()
