# SPDX-License-Identifier: Apache-2.0
"""What psm-interop's cases play in: grpc-go's interop servers as backends, and its interop client, either with an xds:
target and a direct way to the backends, or with shuntd as its target. The resources are the same for both.

A case is a function over a Play. The client's services tell who answered (LoadBalancerStatsService), and say what is
to be called (XdsUpdateClientConfigureService); grpcurl speaks to them.
"""

import collections
import json
import time

import resources
from differential import add_oracle
from lab import wait_until
from resources import TYPES, Folder
from testbed import EXAMPLE, PORT, VIP, Testbed

BACKENDS = "10.82.0.1"
FIRST_PORT = 9100
N_SERVERS = 5
STATS_PORT = 8081
QPS = 100
RPCS = 100
SETTLE_S, PAUSE_S = 30, 0.3
CONFIGURED_S = 0.3  # calls that had begun before end
LATE_S = 20
UNARY, EMPTY = "UnaryCall", "EmptyCall"
SERVICE = "/grpc.testing.TestService/"
ENUM = {UNARY: "UNARY_CALL", EMPTY: "EMPTY_CALL"}
CODES = {0: "OK", 2: "UNKNOWN", 4: "DEADLINE_EXCEEDED", 12: "UNIMPLEMENTED", 14: "UNAVAILABLE", 15: "DATA_LOSS",
         16: "UNAUTHENTICATED"}
FAULT = "envoy.filters.http.fault"
FAULT_TYPE = TYPES + "extensions.filters.http.fault.v3.HTTPFault"
MILLION = 1_000_000


class PsmWorld:
    """Servers "1" to "5", and, from the first case on, shuntd and two management servers with the same resources."""

    def __init__(self, lab, client, server, grpcurl):
        self.lab = lab
        self.client = client
        self.grpcurl = grpcurl
        self.bed = Testbed(lab)
        add_oracle(self.bed)
        self.folder = Folder(self.bed.xds_folder)
        for number in range(1, N_SERVERS + 1):
            port = FIRST_PORT + number
            process = lab.start("backends", f"server-{number}", [
                server, "--port", port, "--host_name_override", str(number)])
            self.bed.wait_connect("backends", BACKENDS, port, process)

    def serve(self, name, *wanted):
        """These resources, when shuntd goes by the routes of this name."""
        self.folder.set(*wanted)
        if not self.bed.daemon:
            self.bed.start_xds(ns="oracle")
            self.bed.start_xds()
            self.bed.start_daemon()
        wait_until(lambda: name in self.bed.shuntctl("show", "http", "routes"), SETTLE_S, f"routes of {name}")
        states = {r["name"]: (r["state"], r["version"]) for r in self.bed.show("xds")["resources"]}
        assert {state for state, _ in states.values()} == {"ACKED"}, states
        self.bed.shuntctl("wait", "config", states[name][1])


class Client:
    """An interop client that makes calls all the time."""

    def __init__(self, world, name, ns, target, arguments, env):
        self.lab, self.ns, self.grpcurl = world.lab, ns, world.grpcurl
        self.process = self.lab.start(ns, name, [world.client, "--server", target, "--stats_port", STATS_PORT,
                                                 *arguments], env=env)
        world.bed.wait_connect(ns, "127.0.0.1", STATS_PORT, self.process)

    def ask(self, method, **request):
        done = self.lab.exec(self.ns, [self.grpcurl, "-plaintext", "-max-time", "60", "-d", json.dumps(request),
                                       f"127.0.0.1:{STATS_PORT}", f"grpc.testing.{method}"], timeout=70)
        return json.loads(done.stdout)

    def stop(self):
        self.process.kill()


class Play:
    """A case on one side: "grpc-go" or "shuntd". Clusters are `default`, server 1, and `alternative`, server 2, unless
    the case says otherwise."""

    def __init__(self, world, side, name):
        self.world = world
        self.side = side
        self.name = f"{name}-{side}"
        self.sick = set()
        self.client = None
        self._clusters = {}
        self._routes = []
        self.cluster("default", (1,))
        self.cluster("alternative", (2,))

    # -- resources

    def cluster(self, name, *groups, **more):
        """groups: the servers of each priority; more of the cluster's resource."""
        self._clusters[name] = (groups, more)

    def routes(self, *routes):
        self._routes = [*routes, resources.route("/", "default")]

    def put(self):
        """After a change while calls are made."""
        self.world.folder.set(*self._resources())

    def unhealthy(self, *numbers):
        """Their health is what a control plane tells that has checked it; all others are healthy."""
        self.sick = set(numbers)
        self.put()

    def _resources(self):
        named = {cluster for route in self._routes for cluster in clusters_of(route)}
        for name in named:
            groups, more = self._clusters[name]
            yield {**resources.cluster(name), **more}
            yield {"@type": resources.ENDPOINTS, "cluster_name": name, "endpoints": [
                {"locality": {"region": "lab", "zone": f"p{priority}"}, "priority": priority,
                 "load_balancing_weight": 1, "lb_endpoints": [self._endpoint(n) for n in group]}
                for priority, group in enumerate(groups)]}
        yield resources.route_config(self.name, resources.virtual_host(self.name, ["*"], *self._routes))
        listener = resources.listener("web", self.name)
        filters = listener["api_listener"]["api_listener"]["http_filters"]
        filters.insert(0, {"name": FAULT, "typed_config": {"@type": FAULT_TYPE}})
        yield listener

    def _endpoint(self, number):
        address = {"socket_address": {"address": BACKENDS, "port_value": FIRST_PORT + number}}
        return {"endpoint": {"address": address},
                "health_status": "UNHEALTHY" if number in self.sick else "HEALTHY"}

    # -- calls

    def begin(self, *routes, rpc=(UNARY,), metadata="", channels=1):
        """Serves these routes, and makes such calls from now on."""
        self.routes(*routes)
        self.world.serve(self.name, *self._resources())
        direct = self.side == "grpc-go"
        self.client = Client(
            self.world, f"client-{self.name}", "oracle" if direct else "client",
            "xds:///web" if direct else f"{VIP}:{PORT}",
            ["--qps", QPS // channels, "--num_channels", channels, "--rpc", ",".join(rpc),
             *(["--metadata", metadata] if metadata else [])],
            {"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")})

    def end(self):
        if self.client:
            self.client.stop()

    def configure(self, *types, metadata=(), timeout_s=0):
        """What is called from now on; metadata are (type, key, value)."""
        self.client.ask("XdsUpdateClientConfigureService/Configure", types=[ENUM[t] for t in types],
                        metadata=[{"type": ENUM[t], "key": k, "value": v} for t, k, v in metadata],
                        timeoutSec=timeout_s)
        time.sleep(CONFIGURED_S)

    def answers(self, n=RPCS):
        """Of the next n calls: ({method: Counter of servers}, how many failed)."""
        told = self.client.ask("LoadBalancerStatsService/GetClientStats", numRpcs=n, timeoutSec=LATE_S)
        by_method = {method: collections.Counter(peers.get("rpcsByPeer", {}))
                     for method, peers in told.get("rpcsByMethod", {}).items()}
        return by_method, told.get("numFailures", 0)

    def all_answered_by(self, **servers):
        """Each method's calls by these servers, all of them and nobody else; none fails."""
        by_method, failed = self.answers()
        assert failed == 0, by_method
        assert {m: {int(s) for s in found} for m, found in by_method.items()} == servers, by_method

    def eventually(self, check, limit_s=SETTLE_S):
        deadline = time.monotonic() + limit_s
        while True:
            try:
                return check()
            except AssertionError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(PAUSE_S)

    def goes_to(self, *servers, method=UNARY):
        self.eventually(lambda: self.all_answered_by(**{method: set(servers)}))

    def totals(self):
        return self.client.ask("LoadBalancerStatsService/GetClientAccumulatedStats")

    def ends(self):
        """{method: Counter of statuses} since the client began."""
        told = self.totals().get("statsPerMethod", {})
        return {method: collections.Counter({CODES.get(int(code), code): n
                                             for code, n in told.get(ENUM[method], {}).get("result", {}).items()})
                for method in ENUM}

    def statuses(self, seconds, tolerance, **wanted):
        """Shares of statuses within so many seconds: UnaryCall={"OK": 0.5}."""
        before = self.ends()
        time.sleep(seconds)
        after = self.ends()
        for method, shares in wanted.items():
            counts = after[method] - before[method]
            assert counts.total() >= seconds * QPS / 4, counts
            for status, share in shares.items():
                assert abs(counts[status] / counts.total() - share) <= tolerance, (method, counts)

    def in_flight(self, method=UNARY):
        told = self.totals()
        started, *ended = (told.get(f"numRpcs{what}ByMethod", {}).get(ENUM[method], 0)
                           for what in ("Started", "Succeeded", "Failed"))
        return started - sum(ended)


def clusters_of(route):
    action = route["route"]
    if "cluster" in action:
        return [action["cluster"]]
    return [entry["name"] for entry in action["weighted_clusters"]["clusters"]]


def percent(share):
    return {"numerator": share * MILLION // 100, "denominator": "MILLION"}


def fault_route(abort=0, delay=0, late_s=LATE_S):
    """Faults in so many percent of UnaryCall."""
    made = resources.route({"path": SERVICE + UNARY}, "default")
    made["typed_per_filter_config"] = {FAULT: {
        "@type": FAULT_TYPE, "abort": {"http_status": 401, "percentage": percent(abort)},
        "delay": {"fixed_delay": f"{late_s}s", "percentage": percent(delay)}}}
    return made
