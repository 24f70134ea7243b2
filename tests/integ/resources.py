# SPDX-License-Identifier: Apache-2.0
"""xDS resources as plain dictionaries (proto3 JSON), and the folder that an xDS server serves.

The builders give the smallest resource that does the job; what a test wants beyond it, it adds to
the dictionary. Folder writes one file per resource, each replaced atomically.
"""

import contextlib
import json
import os
import pathlib
import re
import zlib

TYPES = "type.googleapis.com/envoy."
LISTENER = TYPES + "config.listener.v3.Listener"
ROUTE_CONFIG = TYPES + "config.route.v3.RouteConfiguration"
CLUSTER = TYPES + "config.cluster.v3.Cluster"
ENDPOINTS = TYPES + "config.endpoint.v3.ClusterLoadAssignment"
HTTP_MANAGER = TYPES + ("extensions.filters.network.http_connection_manager.v3"
                        ".HttpConnectionManager")
SECRET = TYPES + "extensions.transport_sockets.tls.v3.Secret"
ROUTER = TYPES + "extensions.filters.http.router.v3.Router"
RESOURCE = TYPES + "service.discovery.v3.Resource"
ADS = {"resource_api_version": "V3", "ads": {}}


def listener(name, route_config_name):
    """An API listener whose routes come by RDS."""
    manager = {
        "@type": HTTP_MANAGER,
        "stat_prefix": name,
        "rds": {"config_source": ADS, "route_config_name": route_config_name},
        "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}],
    }
    return {"@type": LISTENER, "name": name, "api_listener": {"api_listener": manager}}


def route_config(name, *virtual_hosts):
    return {"@type": ROUTE_CONFIG, "name": name, "virtual_hosts": list(virtual_hosts)}


def virtual_host(name, domains, *routes):
    return {"name": name, "domains": list(domains), "routes": list(routes)}


def route(match, target):
    """match: a prefix, or the whole match; target: a cluster name, {name: weight}, or the route
    action."""
    if isinstance(match, str):
        match = {"prefix": match}
    if isinstance(target, str):
        target = {"cluster": target}
    elif "cluster" not in target and all(isinstance(w, int) for w in target.values()):
        entries = [{"name": name, "weight": weight} for name, weight in target.items()]
        target = {"weighted_clusters": {"clusters": entries}}
    return {"match": match, "route": target}


def cluster(name, service_name=None):
    eds = {"eds_config": ADS}
    if service_name:
        eds["service_name"] = service_name
    return {"@type": CLUSTER, "name": name, "type": "EDS", "lb_policy": "ROUND_ROBIN",
            "eds_cluster_config": eds}


def endpoints(name, *addresses):
    """One locality with these (ip, port) endpoints."""
    entries = [{"endpoint": {"address": {"socket_address": {"address": ip, "port_value": port}}}}
               for ip, port in addresses]
    locality = {"locality": {"region": "lab", "zone": name}, "load_balancing_weight": 1,
                "lb_endpoints": entries}
    return {"@type": ENDPOINTS, "cluster_name": name, "endpoints": [locality] if entries else []}


def variant(resource, constraints):
    """The resource for subscribers whose dynamic parameters match (xRFC TP2)."""
    return {"@type": RESOURCE, "resource": resource, "resource_name": {
        "name": name_of(resource), "dynamic_parameter_constraints": constraints}}


def has(key, value):
    return {"constraint": {"key": key, "value": value}}


def lacks(key, value):
    return {"not_constraints": has(key, value)}


def both(*constraints):
    return {"and_constraints": {"constraints": list(constraints)}}


def name_of(resource):
    return resource.get("cluster_name") or resource["name"]


class Folder:
    """The served folder. set() makes it hold exactly these resources; put() replaces some."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._texts = {}

    def set(self, *resources):
        wanted = {self._file_of(r) for r in resources}
        self.put(*resources)
        for name in sorted(set(self._texts) - wanted):
            with contextlib.suppress(FileNotFoundError):
                (self.path / name).unlink()
            del self._texts[name]

    def put(self, *resources):
        for resource in resources:
            self._write(self._file_of(resource), json.dumps(resource, indent=2) + "\n")

    def remove(self, *resources):
        for resource in resources:
            name = self._file_of(resource)
            (self.path / name).unlink()
            del self._texts[name]

    @staticmethod
    def _file_of(resource):
        inner = resource.get("resource", resource)
        name = inner["@type"].rsplit(".", 1)[1] + "-" + name_of(inner)
        if inner is not resource:
            constraints = json.dumps(resource["resource_name"]["dynamic_parameter_constraints"])
            name += f"-{zlib.crc32(constraints.encode()):08x}"
        return re.sub(r"[^A-Za-z0-9_.-]", "_", name) + ".json"

    def _write(self, name, text):
        if self._texts.get(name) == text:
            return
        temporary = self.path / f".{name}.new"
        temporary.write_text(text)
        os.replace(temporary, self.path / name)
        self._texts[name] = text
