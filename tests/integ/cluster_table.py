# SPDX-License-Identifier: Apache-2.0
"""Bad and odd clusters for test_validation, as validation_table has route configurations.

Each is the good one with some fields changed, and with beta's endpoints in place of alpha's, so
that a request tells which version serves. Aggregates are changes of another one: C-core 1.85 aborts
when a cluster that it uses becomes an aggregate, or ceases to be one.
"""

import resources
from http_cases import BACKENDS, PORT
from resources import ROUTER, TYPES
from routing_cases import ALPHA, BETA, GAMMA
from validation_table import ACK, UDPA_STRUCT, UNKNOWN_FIELD, XDS_STRUCT, Row

CLUSTER, UNION = "wire-cluster", "wire-union"
PATHS = {CLUSTER: "/row.T/M", UNION: "/union.T/M"}
AGGREGATE = TYPES + "extensions.clusters.aggregate.v3.ClusterConfig"
OPTIONS = TYPES + "extensions.upstreams.http.v3.HttpProtocolOptions"
POLICIES = TYPES + "extensions.load_balancing_policies."
ROUND_ROBIN = POLICIES + "round_robin.v3.RoundRobin"
WEIGHTED = POLICIES + "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"
LEAST_REQUEST = POLICIES + "least_request.v3.LeastRequest"
RING_HASH = POLICIES + "ring_hash.v3.RingHash"
PICK_FIRST = POLICIES + "pick_first.v3.PickFirst"
LOCALITY = POLICIES + "wrr_locality.v3.WrrLocality"
PROVIDED = POLICIES + "cluster_provided.v3.ClusterProvided"
MAGLEV = POLICIES + "maglev.v3.Maglev"
SOCKETS = TYPES + "extensions.transport_sockets."
NO_LEAST_REQUEST = "NACK: it knows no least_request (A48)"
TOO_LARGE = 2 ** 23 + 1


def good_cluster(name=CLUSTER):
    return aggregate(ALPHA) if name == UNION else resources.cluster(name, ALPHA)


def changed(*without, **fields):
    made = resources.cluster(CLUSTER, BETA)
    made.update(fields)
    return {name: value for name, value in made.items() if name not in without}


def bad(label, resource, *texts, **more):
    return Row(label, texts, resource=resource, **more)


def good(label, resource, **more):
    return Row(label, ACK, resource=resource, answers={PATHS[resource["name"]]: BETA}, **more)


def from_eds(**config):
    return changed(eds_cluster_config=config)


def source_rows():
    where = "eds_cluster_config"
    yield good("EDS over ads (CL-03)", changed())
    yield good("EDS over self (CL-03)", from_eds(eds_config={"self": {}}, service_name=BETA))
    yield bad("EDS from a file (CL-03)", from_eds(
        eds_config={"path_config_source": {"path": "/nowhere"}}, service_name=BETA), where)
    yield bad("EDS without eds_config (CL-03)", from_eds(service_name=BETA), where, "eds_config")
    yield bad("EDS without its config (CL-03)", changed("eds_cluster_config"), where)
    yield bad("no type (CL-03)", changed("type"), "type", "STATIC")
    for kind in ("STATIC", "STRICT_DNS", "ORIGINAL_DST"):
        yield bad(f"type {kind} (CL-03)", changed(type=kind), "type", kind)
    yield bad("type 77 (CL-03)", changed("type"), "type", "unknown", patch=[["", "104d"]])
    yield good("fields that nobody reads (CL-07)", changed(
        per_connection_buffer_limit_bytes=1, alt_stat_name="x", dns_lookup_family="V4_ONLY",
        respect_dns_ttl=True, cleanup_interval="1s"))
    yield good("an unknown field (CL-07)", changed(), patch=[["", UNKNOWN_FIELD]])
    yield bad("lrs_server from ads (CL-03)", changed(lrs_server={"ads": {}}), "lrs_server")
    yield bad("lrs_server from nowhere (CL-03)", changed(lrs_server={}), "lrs_server")
    yield good("lrs_server self (CL-03)", changed(lrs_server={"self": {}}))
    yield good("metrics to report (A85)", changed(
        lrs_report_endpoint_metrics=["cpu_utilization", "named_metrics.*", "nonsense"]))


def dns(*endpoints, localities=1, **address):
    """A LOGICAL_DNS cluster; without endpoints, one at this socket_address."""
    if not endpoints:
        endpoints = [{"endpoint": {"address": {"socket_address": address}}}]
    places = [{"lb_endpoints": list(endpoints)}] * localities
    return changed("eds_cluster_config", type="LOGICAL_DNS", load_assignment={
        "cluster_name": CLUSTER, "endpoints": places})


def dns_rows():
    where = "load_assignment"
    at = {"address": BACKENDS[BETA], "port_value": PORT}
    entry = {"endpoint": {"address": {"socket_address": at}}}
    yield good("name in DNS (A37-D01)", dns(**at))
    yield good("its weight, health and priority are ignored (A61-D02)", changed(
        "eds_cluster_config", type="LOGICAL_DNS", load_assignment={
            "cluster_name": CLUSTER, "endpoints": [{
                "priority": 7, "lb_endpoints": [{**entry, "health_status": "UNHEALTHY",
                                                 "load_balancing_weight": 0}]}]}))
    yield bad("no load_assignment (A37-D01)", changed("eds_cluster_config", type="LOGICAL_DNS"),
              where)
    yield bad("no locality (A37-D01)", dns(localities=0, **at), where, "locality")
    yield bad("two localities (A37-D01)", dns(localities=2, **at), where, "locality")
    yield bad("two endpoints (A37-D01)", dns(entry, entry), where, "lb_endpoints")
    yield bad("empty locality (A37-D01)", changed(
        "eds_cluster_config", type="LOGICAL_DNS", load_assignment={"endpoints": [{}]}), where,
        "lb_endpoints")
    yield bad("empty endpoint (A37-D01)", dns({}), where, "endpoint")
    yield bad("endpoint without an address (A37-D01)", dns({"endpoint": {}}), where, "address")
    yield bad("pipe (A37-D01)", dns({"endpoint": {"address": {"pipe": {"path": "/x"}}}}), where,
              "socket_address")
    yield bad("empty name (A37-D01)", dns(address="", port_value=PORT), where, "address")
    yield bad("no port (A37-D01)", dns(address="x"), where, "port_value")
    yield bad("named port (A37-D01)", dns(address="x", named_port="http"), where, "port_value")
    yield bad("port 0 (A37-D01)", dns(address="x", port_value=0), where, "port_value",
              core="ACK: it does not check")
    yield bad("port beyond 65535 (A37-D01)", dns(address="x", port_value=65536), where,
              "port_value", core="ACK: it does not check")
    yield bad("resolver of its own (A37-D01)", dns(resolver_name="x", **at), where,
              "resolver_name")
    named = {"endpoint": {**entry["endpoint"], "hostname": "u@h"}}
    yield bad("hostname that is not an authority (AR-01)", dns(named), where, "hostname",
              core="ACK: it does not check")


def union(**fields):
    made = changed("type", "eds_cluster_config", **fields)
    return {**made, "name": UNION}


def of_type(config):
    return union(cluster_type={"name": "envoy.clusters.aggregate", "typed_config": config})


def aggregate(*names, **fields):
    return {**of_type({"@type": AGGREGATE, "clusters": list(names)}), **fields}


def policies(*entries):
    return {"policies": [{"typed_extension_config": {"name": "p", "typed_config": entry}}
                         for entry in entries]}


def aggregate_rows():
    where = "cluster_type"
    yield good("aggregate (A37)", aggregate(BETA, GAMMA))
    yield good("the same child twice (A75-G01)", aggregate(BETA, GAMMA, BETA))
    yield bad("no children (A37-G04)", aggregate(), where, "clusters")
    yield bad("a child without a name", aggregate(BETA, ""), where, "clusters[1]",
              core="ACK: it asks for the resource of that name")
    yield bad("another type of cluster (CL-03)", of_type({"@type": ROUTER}), where, "Router")
    yield bad("TypedStruct of an aggregate (CL-03)", of_type({
        "@type": XDS_STRUCT, "type_url": AGGREGATE, "value": {"clusters": [BETA]}}), where,
        "TypedStruct")
    yield bad("no typed_config (CL-03)", union(cluster_type={"name": "x"}), where, "typed_config")
    yield bad("bytes that are no ClusterConfig", aggregate(BETA), where,
              patch=[["cluster_type.typed_config", "1201ff"]])
    yield good("RING_HASH on an aggregate (A75-G06)", aggregate(BETA, lb_policy="RING_HASH"))
    yield good("CLUSTER_PROVIDED on an aggregate (A75-G07)",
               aggregate(BETA, lb_policy="CLUSTER_PROVIDED"),
               core="NACK: it does not know CLUSTER_PROVIDED (A75-G07)")
    yield good("ClusterProvided on an aggregate (A75-G07)", aggregate(
        BETA, load_balancing_policy=policies({"@type": PROVIDED})),
        core="NACK: it does not know ClusterProvided (A75-G07)")
    yield bad("MAGLEV on an aggregate (A52-T10)", aggregate(BETA, lb_policy="MAGLEV"), "lb_policy",
              "MAGLEV")


def by(*entries, **fields):
    return changed(load_balancing_policy=policies(*entries), **fields)


def within(*entries):
    return {"@type": LOCALITY, "endpoint_picking_policy": policies(*entries)}


def nested(depth):
    """Lists of policies in each other, as many."""
    made = {"@type": ROUND_ROBIN}
    for _ in range(depth - 1):
        made = within(made)
    return made


def struct(type_url, wrapper=XDS_STRUCT, **value):
    return {"@type": wrapper, "type_url": type_url, "value": value}


def list_rows():
    where = "load_balancing_policy"
    plain, maglev = {"@type": ROUND_ROBIN}, {"@type": MAGLEV}
    yield good("the first known one (A52-T10)", by(maglev, within(plain)))
    yield good("an unknown one in it (A52-T10)", by(within(maglev, plain)))
    yield good("what follows the first is not read (A52-T10)", by(
        plain, {"@type": RING_HASH, "minimum_ring_size": 0}))
    yield good("it beats lb_policy (A52-T10)", by(plain, lb_policy="MAGLEV"))
    yield bad("none known (A52-T10)", by(maglev), where, "no supported policy")
    yield bad("none (A52-T10)", by(), where, "no supported policy")
    yield bad("a wrong one before a right one (A52-T10)", by(
        {"@type": RING_HASH, "minimum_ring_size": 0}, plain), where, "policies[0]",
        "minimum_ring_size")
    yield bad("none known in wrr_locality (A52-T10)", by(within(maglev), plain), where,
              "wrr_locality", "no supported policy")
    yield bad("wrr_locality without a child (A52-T10)", by({"@type": LOCALITY}), where,
              "endpoint_picking_policy")
    empty = changed(load_balancing_policy={"policies": [{}, *policies(plain)["policies"]]})
    yield bad("an empty entry (A52-T10)", empty, where, "policies[0]", "typed_config")
    entry = {"typed_extension_config": {"name": "p"}}
    empty = changed(load_balancing_policy={"policies": [entry, *policies(plain)["policies"]]})
    yield bad("an entry without config (A52-T10)", empty, where, "policies[0]", "typed_config")
    config = "load_balancing_policy.policies[0].typed_extension_config.typed_config"
    yield bad("an entry whose type has no slash (A52-T10)", by(maglev, plain), where,
              "policies[0]", "type_url", patch=[[config, "0a0178"]])
    yield bad("an entry whose type ends at the slash (A52-T10)", by(maglev, plain), where,
              "policies[0]", "type_url", patch=[[config, "0a02782f"]])
    yield bad("bytes that are no RingHash (A52-T10)", by({"@type": RING_HASH}), where,
              "ring_hash", patch=[[config, "1201ff"]])
    yield bad("bytes that are no RoundRobin (A52-T10)", by(plain), where, "round_robin",
              patch=[[config, "1201ff"]], core="ACK: it does not look into a RoundRobin")
    yield good("depth 16 (A52-T10)", by(nested(16)))
    yield bad("depth 17 (A52-T10)", by(nested(17)), where, "nested deeper than 16")
    yield bad("TypedStruct of a type of the API (A52)", by(struct(ROUND_ROBIN)), where,
              "no supported policy")
    yield good("TypedStruct of an unknown name (A52)", by(
        struct("type.googleapis.com/nobodys", UDPA_STRUCT, a=1), plain))
    yield bad("TypedStruct without a type (A52)", by(struct(""), plain), where, "policies[0]")
    grpc = "type.googleapis.com/"
    yield good("TypedStruct of one of gRPC's names (A52)", by(struct(grpc + "round_robin")))
    yield good("the same with a field that is not known (A52)", by(
        struct(grpc + "round_robin", a=1)))
    locality = grpc + "xds_wrr_locality_experimental"
    yield good("children by name (A52)", by(
        struct(locality, childPolicy=[{"nobodys": {}}, {"pick_first": {}}])))
    yield bad("no known child by name (A52)", by(struct(locality, childPolicy=[{"nobodys": {}}])),
              where, "childPolicy", "no supported policy")
    yield bad("a child of two names (A52)", by(
        struct(locality, childPolicy=[{"round_robin": {}, "pick_first": {}}])), where,
        "childPolicy[0]")
    yield bad("a ring of 0 by name (RH-03)", by(
        struct(grpc + "ring_hash_experimental", minRingSize=0)), where, "minimum_ring_size")
    yield bad("a penalty below 0 by name (A58-02)", by(
        struct(grpc + "weighted_round_robin", errorUtilizationPenalty=-1)), where,
        "error_utilization_penalty")
    yield bad("text in place of a switch (PF-01)", by(
        struct(grpc + "pick_first", shuffleAddressList="x")), where, "shuffleAddressList")
    yield good("hash by header (RH-10)", by(
        struct(grpc + "ring_hash_experimental", requestHashHeader="x-key")))
    yield bad("hash by binary header (RH-10)", by(
        struct(grpc + "ring_hash_experimental", requestHashHeader="x-bin")), where,
        "requestHashHeader", core="ACK: it reads the field with an experiment switched on")


def enum_rows():
    for name in ("RANDOM", "MAGLEV", "CLUSTER_PROVIDED", "LOAD_BALANCING_POLICY_CONFIG"):
        yield bad(f"lb_policy {name} (A52-T10)", changed(lb_policy=name), "lb_policy", name)
    yield bad("lb_policy 4 (A52-T10)", changed("lb_policy"), "lb_policy", "unknown",
              patch=[["", "3004"]])
    yield good("lb_policy LEAST_REQUEST (A48-01)", changed(lb_policy="LEAST_REQUEST"),
               core=NO_LEAST_REQUEST)
    yield bad("one choice (A48-01)", changed(
        lb_policy="LEAST_REQUEST", least_request_lb_config={"choice_count": 1}),
        "least_request_lb_config", "choice_count")
    where = "ring_hash_lb_config"

    def ring(**config):
        return changed(lb_policy="RING_HASH", ring_hash_lb_config=config)
    yield good("lb_policy RING_HASH (RH-03)", changed(lb_policy="RING_HASH"))
    yield good("sizes (RH-03)", ring(minimum_ring_size=1, maximum_ring_size=2 ** 23))
    yield bad("minimum 0 (RH-03)", ring(minimum_ring_size=0), where, "minimum_ring_size")
    yield bad("minimum above 8M (RH-03)", ring(minimum_ring_size=TOO_LARGE), where,
              "minimum_ring_size")
    yield bad("maximum 0 (RH-03)", ring(maximum_ring_size=0), where, "maximum_ring_size")
    yield bad("maximum above 8M (RH-03)", ring(maximum_ring_size=TOO_LARGE), where,
              "maximum_ring_size")
    yield bad("minimum above maximum (RH-03)", ring(minimum_ring_size=8, maximum_ring_size=7),
              where, "minimum_ring_size")
    yield bad("minimum by default above maximum (RH-03)", ring(maximum_ring_size=7), where,
              "minimum_ring_size", core="ACK: it compares what is set")
    yield bad("MURMUR_HASH_2 (RH-01)", ring(hash_function="MURMUR_HASH_2"), where, "hash_function")
    yield good("sizes of another policy (RH-03)", changed(
        ring_hash_lb_config={"minimum_ring_size": 0}))


def policy_rows():
    where = "load_balancing_policy"

    def ring(**config):
        return by({"@type": RING_HASH, **config})
    yield good("RingHash (RH-03)", ring())
    yield good("RingHash with its sizes (RH-03)", ring(
        hash_function="XX_HASH", minimum_ring_size=7, maximum_ring_size=7))
    for field in ("minimum_ring_size", "maximum_ring_size"):
        for size in (0, TOO_LARGE):
            yield bad(f"RingHash, {field} {size} (RH-03)", ring(**{field: size}), where,
                      "ring_hash", field)
    yield bad("RingHash, minimum above maximum (RH-03)", ring(
        minimum_ring_size=8, maximum_ring_size=7), where, "minimum_ring_size")
    yield bad("RingHash, minimum by default above maximum (RH-03)", ring(maximum_ring_size=7),
              where, "minimum_ring_size")
    yield bad("RingHash, MURMUR_HASH_2 (RH-01)", ring(hash_function="MURMUR_HASH_2"), where,
              "hash_function")
    yield good("RingHash, bounded loads (A42)", ring(
        consistent_hashing_lb_config={"hash_balance_factor": 150}))

    def weighted(**config):
        return by(within({"@type": WEIGHTED, **config}))
    yield good("weighted round robin (A58-02)", weighted())
    yield good("weighted round robin, all set (A58-02)", weighted(
        enable_oob_load_report=False, oob_reporting_period="1s", blackout_period="0s",
        weight_expiration_period="0s", weight_update_period="0s", error_utilization_penalty=0))
    for field in ("oob_reporting_period", "blackout_period", "weight_expiration_period",
                  "weight_update_period"):
        yield bad(f"negative {field} (A58-02)", weighted(**{field: "-1s"}), where, field)
    yield bad("negative penalty (A58-02)", weighted(error_utilization_penalty=-0.5), where,
              "error_utilization_penalty")
    for value in ("NaN", "Infinity"):
        yield bad(f"penalty of {value} (A58-02)", weighted(error_utilization_penalty=value), where,
                  "error_utilization_penalty", core="ACK: it is not below 0")
    yield good("least_request (A48-01)", by({"@type": LEAST_REQUEST}), core=NO_LEAST_REQUEST)
    yield good("least_request with many choices (A48-01)", by(
        {"@type": LEAST_REQUEST, "choice_count": 99}), core=NO_LEAST_REQUEST)
    yield bad("least_request with one choice (A48-01)", by(
        {"@type": LEAST_REQUEST, "choice_count": 1}), where, "choice_count")
    yield good("pick_first (PF-01)", by({"@type": PICK_FIRST, "shuffle_address_list": True}))
    yield good("round_robin, slow start (A42)", by({"@type": ROUND_ROBIN, "slow_start_config": {}}))


def outlier_rows():
    where = "outlier_detection"

    def outlier(**fields):
        return changed(outlier_detection=fields)
    yield good("outlier detection, nothing set (A50-E03)", outlier())
    for field in ("interval", "base_ejection_time", "max_ejection_time"):
        yield bad(f"negative {field} (A50-E03)", outlier(**{field: "-1s"}), where, field)
        yield bad(f"{field} with nanos beyond a second (A50-E03)", outlier(**{field: "1s"}), where,
                  field, patch=[[f"{where}.{field}", "108094ebdc03"]])
    for field in ("max_ejection_percent", "enforcing_success_rate",
                  "enforcing_failure_percentage"):
        yield bad(f"{field} above 100 (A50-E03)", outlier(**{field: 101}), where, field)
        yield good(f"{field} of 100 (A50-E03)", outlier(**{field: 100}))
    yield bad("failure_percentage_threshold above 100 (A50-E03)", outlier(
        enforcing_failure_percentage=1, failure_percentage_threshold=101), where,
        "failure_percentage_threshold", core="ACK: it checks another field in its place")
    yield bad("failure_percentage_threshold above 100, off (A50-E03)", outlier(
        failure_percentage_threshold=101), where, "failure_percentage_threshold",
        core="ACK: it reads it when it is needed")
    yield good("fields that gRPC ignores (ENV-04)", outlier(
        consecutive_5xx=1, enforcing_consecutive_5xx=101, max_ejection_time_jitter="-1s",
        split_external_local_origin_errors=True, enforcing_local_origin_success_rate=101))


def breaker_rows():
    def limits(*thresholds):
        return changed(circuit_breakers={"thresholds": list(thresholds)})
    yield good("limits (A32-I05)", limits({"max_requests": 9}))
    yield good("no limits", limits())
    yield good("limits of HIGH alone (A32-I05)", limits({"priority": "HIGH", "max_requests": 0}))
    yield good("other limits (ENV-04)", limits(
        {"max_pending_requests": 0, "max_connections": 0, "max_retries": 0,
         "max_connection_pools": 0, "retry_budget": {}}))
    yield bad("a budget of more than all (CB-07)", limits(
        {"retry_budget": {"budget_percent": {"value": 101}}}), "circuit_breakers",
        "budget_percent", core="ACK: it does not read it")
    yield good("the first of two (A32-I05)", limits({"max_requests": 9}, {"max_requests": 0}))


def timer_rows():
    unread = "ACK: it does not read it"

    def keepalive(**settings):
        config = {"http2_protocol_options": {"connection_keepalive": settings}}
        return changed(typed_extension_protocol_options={
            OPTIONS.split("/")[1]: {"@type": OPTIONS, "explicit_http_config": config}})
    yield good("keepalive (CL-09)", keepalive(interval="30s", timeout="5s"))
    yield good("TCP's keepalive (CL-09)", changed(
        upstream_connection_options={"tcp_keepalive": {"keepalive_time": 10}}))
    yield bad("connect_timeout of 0 (CL-09)", changed(connect_timeout="0s"), "connect_timeout", core=unread)
    yield bad("keepalive without timeout (CL-09)", keepalive(interval="30s"), "connection_keepalive", "timeout",
              core=unread)
    yield bad("keepalive's interval of 0 (CL-09)", keepalive(interval="0s", timeout="5s"), "interval", core=unread)


def upstream_rows():
    where = "upstream_config"

    def upstream(config):
        return changed(upstream_config={"name": "u", "typed_config": config})

    def idle(timeout):
        return {"@type": OPTIONS, "common_http_protocol_options": {"idle_timeout": timeout}}
    yield good("idle_timeout (A75-O17)", upstream(idle("30s")))
    yield good("the longest idle_timeout (A75-O17)", upstream(idle("315576000000s")))
    yield good("HttpProtocolOptions without one (A75-O17)", upstream({"@type": OPTIONS}))
    yield bad("negative idle_timeout (A75-O17)", upstream(idle("-1s")), where, "idle_timeout")
    config = "typed_extension_protocol_options"
    yield bad("negative idle_timeout in the other field (A75-O17)", changed(**{
        config: {OPTIONS: idle("-1s")}}), config, "idle_timeout",
        core="ACK: it reads upstream_config alone")
    yield bad("another type (A75-O17)", upstream({"@type": ROUTER}), where, "HttpProtocolOptions")
    yield bad("TypedStruct of it (A75-O17)", upstream(struct(OPTIONS)), where)
    yield bad("nothing in it (A75-O17)", changed(upstream_config={"name": "u"}), where)
    yield bad("bytes that are no HttpProtocolOptions", upstream({"@type": OPTIONS}), where,
              patch=[["upstream_config.typed_config", "1201ff"]])
    statuses = {"override_host_status": {"statuses": ["DRAINING", "TIMEOUT", "DEGRADED"]}}
    yield good("statuses for sessions (A55-O02)", changed(common_lb_config=statuses))
    yield good("no status for sessions (A55-O02)", changed(
        common_lb_config={"override_host_status": {}}))
    yield good("a status that is none (A55-O02)", changed(
        common_lb_config={"override_host_status": {}}),
        patch=[["common_lb_config.override_host_status", "0a014d"]])


def transport_rows():
    where = "transport_socket"

    def transport(config):
        return changed(transport_socket={"name": "t", "typed_config": config})
    context = {"@type": SOCKETS + "tls.v3.UpstreamTlsContext",
               "common_tls_context": {"validation_context": {"system_root_certs": {}}}}
    yield bad("TLS without roots", transport({"@type": SOCKETS + "tls.v3.UpstreamTlsContext"}),
              where, "common_tls_context")
    yield bad("a transport for servers", transport(
        {"@type": SOCKETS + "tls.v3.DownstreamTlsContext"}), where, "DownstreamTlsContext")
    yield bad("a transport without config", changed(transport_socket={"name": "t"}), where)
    yield good("plain text", transport({"@type": SOCKETS + "raw_buffer.v3.RawBuffer"}),
               core="NACK: it has no name for it")

    def matches(*configs):
        return changed(transport_socket_matches=[
            {"name": f"m{i}", "match": {}, "transport_socket": {"name": "t", **config}}
            for i, config in enumerate(configs)])
    plain = {"typed_config": {"@type": SOCKETS + "raw_buffer.v3.RawBuffer"}}
    yield good("plain text by match", matches(plain, plain))
    yield bad("TLS by match", matches(plain, {"typed_config": context}),
              where + "_matches[1]", "TLS", core="ACK: it does not read them (CL-07)")
    beside = matches(plain)
    beside["transport_socket"] = {"name": "t", "typed_config": context}
    yield bad("matches beside TLS", beside, where + "_matches", "TLS", core="ACK: it does not read them (CL-07)")
    yield bad("a match without config", matches({}), where + "_matches[0]",
              core="ACK: it does not read them (CL-07)")
    yield good("health checks (CL-07)", changed(health_checks=[{
        "timeout": "1s", "interval": "1s", "unhealthy_threshold": 1, "healthy_threshold": 1,
        "tcp_health_check": {}}]))
    yield good("panic (ENV-02)", changed(common_lb_config={"healthy_panic_threshold": {
        "value": 50}}))


def cluster_rows():
    yield from source_rows()
    yield from dns_rows()
    yield from aggregate_rows()
    yield from list_rows()
    yield from enum_rows()
    yield from policy_rows()
    yield from outlier_rows()
    yield from breaker_rows()
    yield from upstream_rows()
    yield from timer_rows()
    yield from transport_rows()
