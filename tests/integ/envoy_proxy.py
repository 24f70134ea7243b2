# SPDX-License-Identifier: Apache-2.0
"""Envoy, from PyPI, as an oracle: its static configuration, out of the same RouteConfiguration that
shuntd is given, and the process. And as a proxy for CONNECT."""

import json
import pathlib
import sysconfig

from resources import HTTP_MANAGER, ROUTER, TYPES

BINARY = pathlib.Path(sysconfig.get_path("purelib")) / "envoy" / "_bin" / "envoy"
ADDRESS, PORT = "127.0.0.1", 10000
HTTP2 = TYPES + "extensions.upstreams.http.v3.HttpProtocolOptions"


def address_of(ip, port):
    return {"socket_address": {"address": ip, "port_value": port}}


def cluster(name, endpoints):
    """A static cluster of HTTP/2 backends."""
    members = [{"endpoint": {"address": address_of(ip, port)}} for ip, port in endpoints]
    return {
        "name": name, "type": "STATIC", "connect_timeout": "10s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": members}]},
        "typed_extension_protocol_options": {TYPES.split("/")[1] + HTTP2.split("envoy.")[1]: {
            "@type": HTTP2, "explicit_http_config": {"http2_protocol_options": {}}}},
    }


def configuration(routes, clusters, http_filters):
    """clusters: {name: [(ip, port)]}."""
    manager = {
        "@type": HTTP_MANAGER, "stat_prefix": "oracle", "codec_type": "HTTP2",
        "generate_request_id": False,
        "route_config": {k: v for k, v in routes.items() if k != "@type"},
        "http_filters": [*http_filters, {"name": "router", "typed_config": {
            "@type": ROUTER, "suppress_envoy_headers": True}}],
    }
    listener = {"name": "oracle", "address": address_of(ADDRESS, PORT), "filter_chains": [
        {"filters": [{"name": "http", "typed_config": manager}]}]}
    return {"node": {"id": "oracle", "cluster": "oracle"}, "static_resources": {
        "listeners": [listener], "clusters": [cluster(*item) for item in clusters.items()]}}


def connect_proxy(ip, port):
    """The configuration of a proxy that opens ways to any address, and logs to its output what it is asked."""
    names = {"name": "names", "dns_lookup_family": "ALL"}
    log = {"name": "log", "filter": {"log_type_filter": {"types": ["DownstreamStart"]}}, "typed_config": {
        "@type": TYPES + "extensions.access_loggers.stream.v3.StdoutAccessLog",
        "log_format": {"text_format_source": {"inline_string": "CONNECT %REQ(:AUTHORITY)% %PROTOCOL%\n"}}}}
    action = {"cluster": "any", "timeout": "0s",
              "upgrade_configs": [{"upgrade_type": "CONNECT", "connect_config": {}}]}
    manager = {
        "@type": HTTP_MANAGER, "stat_prefix": "connect", "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        "access_log": [log], "access_log_options": {"flush_access_log_on_new_request": True},
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"connect_matcher": {}}, "route": action}]}]},
        "http_filters": [
            {"name": "names", "typed_config": {
                "@type": TYPES + "extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig",
                "dns_cache_config": names}},
            {"name": "router", "typed_config": {"@type": ROUTER}}]}
    anywhere = {"name": "any", "lb_policy": "CLUSTER_PROVIDED", "connect_timeout": "5s", "cluster_type": {
        "name": "any", "typed_config": {
            "@type": TYPES + "extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig",
            "dns_cache_config": names}}}
    listener = {"name": "connect", "address": address_of(ip, port), "filter_chains": [
        {"filters": [{"name": "http", "typed_config": manager}]}]}
    return {"node": {"id": "proxy", "cluster": "proxy"},
            "static_resources": {"listeners": [listener], "clusters": [anywhere]}}


def start(bed, ns, config):
    """Envoy in a namespace, listening."""
    path = bed.lab.dir / "envoy.json"
    path.write_text(json.dumps(config, indent=1))
    process = bed.lab.start(ns, "envoy", [BINARY, "-c", path, "-l", "error", "--concurrency", "1",
                                          "--disable-hot-restart"], cpu=None)
    bed.wait_connect(ns, ADDRESS, PORT, process)
    return process
