# SPDX-License-Identifier: Apache-2.0
"""The world that the demo and most tests play in: two weighted clusters of nghttpd and one of gRPC
servers, behind one frontend.

    /shunt.test.Echo/...  -> rpc    10.82.1.5 and up, port 9090
    anything else         -> blue   10.82.1.1, 10.82.1.2   } by weight
                          -> green  10.82.1.3, 10.82.1.4   }

With ip6=True blue's are fd82::1:1 and fd82::1:2, and rpc's fd82::1:5 and up.
"""

import resources
from lab import wait_until
from resources import Folder
from testbed import START_TIMEOUT_S, Testbed

WEB_BACKENDS = {  # name: (cluster, address)
    "blue-1": ("blue", "10.82.1.1"),
    "blue-2": ("blue", "10.82.1.2"),
    "green-1": ("green", "10.82.1.3"),
    "green-2": ("green", "10.82.1.4"),
}
WEB_PORT = 8080
RPC_PORT = 9090
RPC_PATH = "/shunt.test.Echo/"
SIZES = {"blue": 600, "green": 900}  # of an answer, in bytes: how the client tells them apart
ROUTES = "web-routes"
MAX_REQUESTS = 100_000  # at once; the default of 1024 would refuse part of a full h2load


def in_ip6(ip):
    return "fd82::1:" + ip.rsplit(".", 1)[1]


def rpc_address(number, ip6=False):
    ip = f"10.82.1.{4 + number}"
    return in_ip6(ip) if ip6 else ip


class World:
    """A Testbed with the backends running and the resources written, but neither xDS server nor
    daemon: start() does that. In the resources, extra_routes come first and extra is added."""

    def __init__(self, lab, n_rpc=1, extra_routes=(), extra=(), **bed_arguments):
        self.bed = Testbed(lab, **bed_arguments)
        self.folder = Folder(self.bed.xds_folder)
        self.extra_routes = tuple(extra_routes)
        self.extra = tuple(extra)
        self.backends = {}
        self.web_backends = {name: (cluster, in_ip6(ip) if self.bed.ip6 and cluster == "blue" else ip)
                             for name, (cluster, ip) in WEB_BACKENDS.items()}
        for name, (cluster, ip) in self.web_backends.items():
            self.bed.add_backend_address(ip)
            self.backends[name] = self.bed.start_http_backend(name, ip, SIZES[cluster], WEB_PORT)
        self.rpc_names = [f"rpc-{n}" for n in range(1, n_rpc + 1)]
        for number, name in enumerate(self.rpc_names, 1):
            ip = self.rpc_address(number)
            self.bed.add_backend_address(ip)
            self.backends[name] = self.bed.start_grpc_backend(name, ip, RPC_PORT)
        self.set_weights(75, 25)
        self._wait_for_backends()

    def rpc_address(self, number):
        return rpc_address(number, self.bed.ip6)

    def _wait_for_backends(self):
        for name, (_, ip) in self.web_backends.items():
            self.bed.wait_connect("backends", ip, WEB_PORT, self.backends[name])
        for number, name in enumerate(self.rpc_names, 1):
            self.bed.wait_connect("backends", self.rpc_address(number), RPC_PORT, self.backends[name])

    def start(self, xds_argv=None, wait=True, connected=True):
        """connected: not before the daemon is connected to all of its backends, too."""
        self.bed.start_xds(xds_argv)
        self.bed.start_daemon(wait=wait)
        if wait and connected:
            wait_until(self._is_connected, START_TIMEOUT_S, "connections to all backends")
        return self

    def _is_connected(self):
        rows = [row for row in self.bed.show("endpoints") if row["cluster"] in ("blue", "green", "rpc")]
        return all(row["state"] == "READY" for row in rows)

    def set_weights(self, blue, green):
        """Writes the whole set of resources, with these weights."""
        self.set_routes(self.routes(blue, green))

    def set_routes(self, *routes):
        """Writes the whole set of resources, with these routes."""
        self.folder.set(*self.extra, *self._clusters(), *routes,
                        resources.listener("web", ROUTES))

    def routes(self, blue, green):
        everything = resources.virtual_host(
            "all", ["*"], *self.extra_routes, resources.route(RPC_PATH, "rpc"),
            resources.route("/", {"blue": blue, "green": green}))
        return resources.route_config(ROUTES, everything)

    def addresses(self, cluster):
        """(ip, port) of each web backend of "blue" or "green"."""
        return [(ip, WEB_PORT) for of, ip in self.web_backends.values() if of == cluster]

    def _clusters(self):
        members = {name: self.addresses(name) for name in ("blue", "green")}
        members["rpc"] = [(self.rpc_address(n), RPC_PORT) for n in range(1, len(self.rpc_names) + 1)]
        for name, addresses in members.items():
            cluster = resources.cluster(name)
            cluster["circuit_breakers"] = {"thresholds": [{"max_requests": MAX_REQUESTS}]}
            yield cluster
            yield resources.endpoints(name, *addresses)


def split_of(report):
    """(blue, green) answers of an h2load report."""
    return report.split(SIZES["blue"], SIZES["green"])
