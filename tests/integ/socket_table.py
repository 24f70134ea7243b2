# SPDX-License-Identifier: Apache-2.0
"""Bad and odd socket listeners (gRFC A36) for test_validation: which are accepted, and by C-core too."""

import resources
from listener_table import ROUTER_FILTER, session_filter
from policy_cases import FAULT, FAULTS, FILTER_CONFIG
from resources import route, route_config, virtual_host
from routing_cases import ALPHA
from tls_table import DOWNSTREAM, SOCKETS, STRANGE
from validation_table import ACK, BUFFER, ROUTES, XDS_STRUCT, Row

RAW = {"transport_protocol": "raw_buffer"}
RULES = "filter_chains[1] matches the same as filter_chains[0]"
INLINE = {k: v for k, v in route_config("inline", virtual_host("all", ["*"], route("", ALPHA))).items() if k != "@type"}
NO_ONE = "HttpConnectionManager"


def manager(**fields):
    made = dict(resources.listener("web", ROUTES)["api_listener"]["api_listener"])
    made["http_filters"] = [ROUTER_FILTER]
    made.update(fields)
    return {k: v for k, v in made.items() if v is not None}


def chain(match=None, **fields):
    made = {"filters": [{"name": "hcm", "typed_config": manager()}], **fields}
    if match is not None:
        made["filter_chain_match"] = match
    return made


def listener(*chains, **fields):
    made = {"@type": resources.LISTENER, "name": "web",
            "address": {"socket_address": {"address": "0.0.0.0", "port_value": 1}}, **fields}
    if chains:
        made["filter_chains"] = list(chains)
    return {k: v for k, v in made.items() if v is not None}


def at(**address):
    return listener(chain(), address=address)


def of_manager(**fields):
    return listener(chain(filters=[{"name": "hcm", "typed_config": manager(**fields)}]))


def cidr(text):
    prefix, _, bits = text.partition("/")
    return {"address_prefix": prefix, **({"prefix_len": int(bits)} if bits else {})}


def to(*ranges):
    return {"prefix_ranges": [cidr(text) for text in ranges]}


def source(*ranges):
    return {"source_prefix_ranges": [cidr(text) for text in ranges]}


def ports(*numbers):
    return {"source_ports": list(numbers)}


def good(label, resource, core=""):
    return Row(label, ACK, resource=resource, core=core)


def bad(label, resource, *texts, core=""):
    return Row(label, texts, resource=resource, core=core)


def same(label, *matches):
    return bad(label, listener(*map(chain, matches)), RULES)


def apart(label, *matches):
    return good(label, listener(*map(chain, matches)))


def address_rows():
    yield good("one chain (A36-01)", listener(chain()))
    yield bad("a pipe (A36-02)", at(pipe={"path": "/x"}), "socket_address")
    yield bad("no kind of address (A36-02)", at(), "socket_address")
    yield bad("UDP (A36-02)", at(socket_address={"address": "0.0.0.0", "port_value": 1, "protocol": "UDP"}), "protocol")
    yield bad("a port above 65535 (A36-02)", at(socket_address={"address": "0.0.0.0", "port_value": 65536}),
              "port_value")
    for label, fields in (("no port", {"address": "0.0.0.0"}), ("a name", {"address": "x.test", "port_value": 1}),
                          ("a named port", {"address": "0.0.0.0", "named_port": "http"}),
                          ("IPv6", {"address": "::", "port_value": 1})):
        yield good(f"{label} (A36-02)", at(socket_address=fields))
    yield bad("use_original_dst (A36-03)", listener(chain(), use_original_dst=True), "use_original_dst")
    yield good("use_original_dst false (A36-03)", listener(chain(), use_original_dst=False))
    yield good("listener_filters (A36-04)", listener(chain(), listener_filters=[{"name": "x"}]))
    yield bad("no chains (A36-05)", listener(), "filter_chains")
    yield good("the default chain alone (A36-05)", listener(default_filter_chain=chain()))
    yield good("one that never matches alone (A36-05)", listener(chain({"destination_port": 1})))


def filter_rows():
    hcm = {"name": "hcm", "typed_config": manager()}
    where = "filter_chains[0]"
    yield bad("no filters (A36-06)", listener(chain(filters=[])), where, NO_ONE)
    yield bad("no filters in the default chain (A36-06)", listener(default_filter_chain=chain(filters=[])),
              "default_filter_chain", NO_ONE)
    yield bad("two managers (A36-06)", listener(chain(filters=[hcm, {**hcm, "name": "b"}])), where, NO_ONE)
    yield bad("another filter (A36-06)", listener(chain(filters=[
        {"name": "x", "typed_config": {"@type": BUFFER, "max_request_bytes": 1}}])), where, "filters[0]", "Buffer")
    yield bad("a manager in a struct (A36-06)", listener(chain(filters=[{"name": "x", "typed_config": {
        "@type": XDS_STRUCT, "type_url": manager()["@type"], "value": {}}}])), where, "filters[0]")
    yield bad("no config (A36-06)", listener(chain(filters=[{"name": "x"}])), where, "typed_config")
    yield good("no name (A36-06)", listener(chain(filters=[{"typed_config": manager()}])))
    yield bad("a bad chain that never matches (A36-07)",
              listener(chain(), chain({"destination_port": 1}, filters=[])), "filter_chains[1]")
    yield bad("a bad default chain (A36-07)", listener(chain(), default_filter_chain=chain(filters=[])),
              "default_filter_chain")
    yield bad("no HTTP filters (A36-08)", of_manager(http_filters=[]), where, "router")
    yield bad("no router (A36-08)", of_manager(http_filters=[FAULTS]), where, "router")
    yield bad("two routers (A36-08)", of_manager(http_filters=[ROUTER_FILTER, {**ROUTER_FILTER, "name": "b"}]), where)
    yield bad("an unknown HTTP filter (A36-08)", of_manager(http_filters=[
        {"name": "x", "typed_config": {"@type": BUFFER, "max_request_bytes": 1}}, ROUTER_FILTER]), where, "Buffer")
    yield good("an optional one (A36-08)", of_manager(http_filters=[
        {"name": "x", "typed_config": {"@type": BUFFER, "max_request_bytes": 1}, "is_optional": True}, ROUTER_FILTER]))
    yield bad("no routes (A36-08)", of_manager(rds=None), where, "rds")
    yield bad("rds from a file (A36-08)", of_manager(rds={"route_config_name": ROUTES, "config_source": {
        "path_config_source": {"path": "/nowhere"}}}), where, "config_source")
    yield good("rds from self (A36-08)", of_manager(rds={"route_config_name": ROUTES, "config_source": {"self": {}}}))
    yield good("inline routes (A36-08)", of_manager(rds=None, route_config=INLINE))
    yield bad("bad inline routes (A36-08)", of_manager(rds=None, route_config={"virtual_hosts": [{"name": "v"}]}),
              where, "route_config", "domains")
    yield bad("a bad duration (A36-08)", of_manager(common_http_protocol_options={"max_stream_duration": "-1s"}),
              where, "max_stream_duration")
    yield good("xff_num_trusted_hops (HX-50)", of_manager(xff_num_trusted_hops=1), "NACK: it must be 0 (A41)")
    clients = "NACK: its servers do not know the filter"
    yield good("faults (A36-09)", of_manager(http_filters=[FAULTS, ROUTER_FILTER]), clients)
    yield good("sessions (A36-09)", of_manager(http_filters=[session_filter(), ROUTER_FILTER]), clients)
    yield good("optional faults (A36-09)", of_manager(http_filters=[{**FAULTS, "is_optional": True}, ROUTER_FILTER]))
    yield bad("a type for overrides (A36-08)", of_manager(http_filters=[
        {"name": "x", "typed_config": {"@type": FILTER_CONFIG}}, ROUTER_FILTER]), where, "FilterConfig")
    yield bad("bad faults (A36-09)", of_manager(http_filters=[{"name": "f", "typed_config": {
        "@type": FAULT, "abort": {"http_status": 700}}}, ROUTER_FILTER]), where, "http_status")
    raw = {"name": "r", "typed_config": {"@type": "type.googleapis.com/" + "envoy.extensions.transport_sockets."
                                         "raw_buffer.v3.RawBuffer"}}
    yield good("plain text by name (A36-10)", listener(chain(transport_socket=raw)),
               "NACK: it takes TLS alone; plain text is no transport_socket")
    yield bad("a transport_socket of a cluster (A36-10)", listener(chain(transport_socket={
        "name": "t", "typed_config": {"@type": SOCKETS + "tls.v3.UpstreamTlsContext"}})), where, "transport_socket")
    yield bad("a provider that there is not (A36-10)", listener(chain(transport_socket={
        "name": "t", "typed_config": {"@type": DOWNSTREAM, "common_tls_context": {
            "tls_certificate_provider_instance": STRANGE}}})), where, "transport_socket")


def range_rows():
    where = "filter_chains[0]", "filter_chain_match"
    yield bad("a name (A36-11)", listener(chain(to("x.test/8"))), *where, "prefix_ranges[0]", "x.test")
    yield bad("nothing (A36-11)", listener(chain({"prefix_ranges": [{}]})), *where, "prefix_ranges[0]")
    yield bad("a name as a source (A36-11)", listener(chain(source("10.0.0.0/8", "y/8"))), *where,
              "source_prefix_ranges[1]")
    yield bad("a bad prefix of a chain that never matches (A36-11)",
              listener(chain({"destination_port": 1, **to("x/8")})), *where)
    yield bad("a bad prefix of the default chain (A36-11)", listener(default_filter_chain=chain(to("x/8"))),
              "default_filter_chain", "filter_chain_match")
    yield same("33 bits are 32 (A36-11)", to("10.0.0.1/33"), to("10.0.0.1/32"))
    yield same("200 bits are 128 (A36-11)", to("fd00::1/200"), to("fd00::1/128"))
    yield same("no length is 0 (A36-11)", to("10.0.0.1"), to("0.0.0.0/0"))
    yield apart("0 bits of each family (A36-11)", to("0.0.0.0/0"), to("::/0"))
    yield apart("0 bits and no prefix (A36-11)", to("0.0.0.0/0"), {})


def match_rows():
    yield same("no matches (A36-12)", None, None)
    yield same("an empty match and none (A36-12)", {}, None)
    yield same("low bits (A36-12)", to("10.1.2.3/8"), to("10.0.0.0/8"))
    yield apart("other lengths (A36-12)", to("10.0.0.0/8"), to("10.0.0.0/9"))
    yield same("one of several prefixes (A36-12)", to("10.0.0.0/8", "11.0.0.0/8"), to("12.0.0.0/8", "11.0.0.0/8"))
    yield bad("a prefix twice (A36-12)", listener(chain(to("10.0.0.0/8", "10.1.0.0/8"))), "filter_chains[0] matches")
    yield same("the same source (A36-12)", source("10.0.0.0/8"), source("10.0.0.0/8"))
    yield apart("the same source elsewhere (A36-12)", source("10.0.0.0/8"), {**source("10.0.0.0/8"), **to("1.0.0.0/8")})
    for kind in ("ANY", "SAME_IP_OR_LOOPBACK", "EXTERNAL"):
        yield same(f"{kind} twice (A36-12)", {"source_type": kind}, {"source_type": kind})
    yield apart("EXTERNAL beside ANY (A36-12)", {"source_type": "EXTERNAL"}, {})
    product = {**to("192.168.0.0/24", "10.1.0.0/16"), **source("192.168.1.0/24", "10.2.0.0/16")}
    yield same("one of a product (A36-12)", product, {**to("10.1.0.0/16"), **source("10.2.0.0/16")})
    yield apart("another source type than a product's (A36-12)", product,
                {**to("10.1.0.0/16"), **source("10.2.0.0/16"), "source_type": "EXTERNAL"})
    yield same("the same port (A36-12)", ports(1, 2), ports(2, 3))
    yield apart("other ports (A36-12)", ports(1, 2), ports(3, 4))
    yield bad("a port twice (A36-12)", listener(chain(ports(7, 7))), "filter_chains[0] matches")
    yield same("port 0 (A36-12)", ports(0), {})
    yield apart("a port and none (A36-12)", ports(1), {})
    direct = {"direct_source_prefix_ranges": [cidr("10.0.0.0/8")]}
    yield good("direct peers (A36-41)", listener(chain(direct)))
    yield same("direct peers and all (A36-41)", direct, {})
    yield good("a port above 65535 (A36-14)", listener(chain(ports(65536))))
    yield good("the default chain's match (A36-12)", listener(chain({}), default_filter_chain=chain({})))
    for label, match in (("destination_port (A36-24)", {"destination_port": 1}),
                         ("server_names (A36-25)", {"server_names": ["a"]}),
                         ("another transport (A36-25)", {"transport_protocol": "tls"}),
                         ("application_protocols (A36-25)", {"application_protocols": ["h2"]})):
        yield apart(f"twice {label}", match, match)
    yield same("destination_port 0 (A36-24)", {"destination_port": 0}, {})
    yield same("raw_buffer twice (A36-25)", RAW, RAW)
    yield apart("raw_buffer and none (A36-25)", RAW, {})
    yield apart("two behind raw_buffer (A36-25)", RAW, {}, {})
    yield same("two before raw_buffer (A36-25)", {}, {}, RAW)
    yield apart("raw_buffer with application_protocols first (A36-25)",
                {**RAW, "application_protocols": ["h2"]}, {}, {})


def socket_rows():
    yield from address_rows()
    yield from filter_rows()
    yield from range_rows()
    yield from match_rows()
