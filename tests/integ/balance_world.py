# SPDX-License-Identifier: Apache-2.0
"""The world of the balancing tests: hundreds of small backends in one program, one frontend, a DNS
server on each side, and, when a test compares, gRPC's own xDS client with a direct way to the
backends and its own copy of the management server.

C-core takes the virtual host from its target's name, and keeps a tree for each target: a case has
an authority, hence a listener and a route configuration of its own there. Here all cases share one
listener and one route configuration. Clusters and endpoints are the same resources.
"""

import concurrent.futures
import time

import resources
from agent import Agent
from balance_case import LATER, LIVE_NET, SESSION_FILTER, SILENT_NET, Case
from differential import add_oracle
from resources import Folder, route_config
from testbed import EXAMPLE, PORT, VIP, Testbed

WEB_ROUTES = "balance"
PAUSE_S, STAGGER_S = 0.4, 0.008
AT_ONCE = 12
SYN_DROP = f"""
table inet silent {{
  chain input {{
    type filter hook input priority 0;
    ip daddr {SILENT_NET}.0/24 counter drop
  }}
}}
"""
ORACLE_ENV = {
    "GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json"),
    "GRPC_XDS_ENDPOINT_HASH_KEY_BACKWARD_COMPAT": "false",
    "GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS": "true",
    "GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING": "true",  # gRFC A113: products of normalised weights
    "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING": "true",  # gRFC A88
    "GRPC_DNS_RESOLVER": "ares",
}


class Side:
    """One of the two that are asked."""

    def __init__(self, name, agent, target, channels=1):
        self.name = name
        self.agent = agent
        self.target = target
        self.channels = channels

    def line(self):
        """An ask(calls) with a connection to the agent of its own, for one thread."""
        agent = self.agent.second_line()

        def ask(calls, parallel=16):
            return agent.ask(target=self.target, calls=calls, parallel=parallel,
                             channels=self.channels)
        ask.close = agent.close
        return ask


class BalanceWorld:
    """Testbed, backends and resources of these (name, generator function) cases, begun: the first
    expectation of each is in `wanted`. start() starts servers and daemon."""

    def __init__(self, lab, functions, hosts=(), **bed_arguments):
        self.bed = Testbed(lab, **bed_arguments)
        self.lab = lab
        self.folder = Folder(self.bed.xds_folder)
        self.cases = {}
        self.oracle = self.ours = None
        self._at_backends = {}
        self._listening = set()
        lab.ip("backends", "route", "add", "local", f"{LIVE_NET}.0/24", "dev", "lo")
        lab.ip("backends", "route", "add", "local", f"{SILENT_NET}.0/24", "dev", "lo")
        lab.nft("backends", SYN_DROP)
        self.backends = Agent(lab, "backends", "backends", "balance_backends.py", cpu=None)
        self.dns = NameServers(lab, hosts)
        self.wanted = {}
        self._steps = {}
        for number, function in enumerate(functions):
            name = function.__name__.replace("_", "-")
            case = self.cases[name] = Case(name, number)
            self._steps[name] = function(case)
        self.advance()

    def case(self, name):
        """Another case, without steps; apply() what is done to it."""
        case = self.cases[name] = Case(name, len(self.cases))
        return case

    # -- what the cases ask for

    def advance(self):
        """Lets every case take its next step, and applies what they changed."""
        self.wanted = {}
        for name, steps in self._steps.items():
            expectation = next(steps, None)
            if expectation not in (None, LATER):
                self.wanted[name] = expectation
        self.apply()
        return self.wanted

    def apply(self):
        self._apply_backends()
        self.folder.set(*self._resources())

    def _apply_backends(self):
        wanted = {case.address(n) for case in self.cases.values() for n in case.up}
        for op, addresses in (("close", self._listening - wanted),
                              ("listen", wanted - self._listening)):
            if addresses:
                self.backends.ask(op=op, addresses=sorted(addresses))
        self._listening = wanted
        for case in self.cases.values():
            for number, behaviour in case.behaviour.items():
                address = case.address(number)
                if self._at_backends.get(address) != behaviour:
                    self.backends.ask(op="behave", addresses=[address], **behaviour)
                    self._at_backends[address] = dict(behaviour)

    def _resources(self):
        cases = self.cases.values()
        for case in cases:
            yield from case.resources.values()
            if self.oracle:
                yield route_config(f"only-{case.name}", case.virtual_host())
                yield self._listener(case.authority, f"only-{case.name}")
        yield route_config(WEB_ROUTES, *(case.virtual_host() for case in cases))
        yield self._listener("web", WEB_ROUTES)

    @staticmethod
    def _listener(name, routes):
        made = resources.listener(name, routes)
        manager = made["api_listener"]["api_listener"]
        manager["http_filters"] = [SESSION_FILTER, *manager["http_filters"]]
        return made

    def counts(self, case, number):
        """{connections, live, requests} of a case's backend."""
        (found,) = self.backends.ask(op="counts", addresses=[case.address(number)]).values()
        return found

    def is_each_workers_own(self, count):
        """Of connections: there are some, and no worker has more than one."""
        return 1 <= count <= len(self.bed.workers)

    def settle(self, case, expectation, limit_s=30):
        """Applies, and asks shuntd until it holds; the outcome."""
        self.apply()
        outcome, wrong = settle(self.ours, case, expectation, limit_s)
        if wrong:
            raise AssertionError(f"{case.name}: {wrong}: {outcome}")
        return outcome

    def let_go(self):
        self.backends.ask(op="let_go")

    # -- the two sides

    def add_oracle(self, env=()):
        add_oracle(self.bed)
        self.lab.resolver("oracle", "127.0.0.1")
        self.oracle = "soon"
        self.apply()
        self.bed.start_xds(ns="oracle")
        agent = Agent(self.lab, "oracle", "oracle", "grpc_agent.py",
                      env={**ORACLE_ENV, **dict(env)}, cpu=None)
        self.oracle = Side("C-core", agent, "xds:///{}")

    def start(self, env=()):
        self.lab.resolver("lb", "127.0.0.1")
        self.bed.start_xds()
        self.bed.start_daemon(env=dict(env))
        agent = Agent(self.lab, "client", "ours", "grpc_agent.py")
        # So many connections miss one of two workers once in two thousand million times.
        channels = 1 if len(self.bed.workers) == 1 else 32
        self.ours = Side("shuntd", agent, f"{VIP}:{PORT}", channels)
        return self


class NameServers:
    """dnsmasq on the loopback of both sides, with the same {name: addresses}."""

    def __init__(self, lab, hosts):
        self._path = lab.dir / "hosts"
        self._processes = []
        if not hosts:
            return
        self.write(dict(hosts))
        for ns in ("lb", "oracle"):
            self._processes.append(lab.start(ns, f"dns-{ns}", [
                "dnsmasq", "--keep-in-foreground", "--user=root", "--conf-file=/dev/null",
                "--no-resolv", "--no-hosts", f"--addn-hosts={self._path}", "--local-ttl=1",
                "--listen-address=127.0.0.1", "--bind-interfaces", "--pid-file=", "--log-queries",
                "--log-facility=-"]))

    def write(self, hosts):
        self._path.write_text("".join(f"{ip} {name}\n" for name, ips in hosts.items()
                                      for ip in ips))

    def change(self, hosts, signal_number):
        self.write(dict(hosts))
        for process in self._processes:
            process.signal(signal_number)

    def asked(self, name):
        """How often the balancer's side has been asked for a name."""
        return self._processes[0].output().count(f"query[A] {name} ")


def settle(side, case, expectation, limit_s, quick=False):
    """Asks until the expectation holds: (outcome, "" or what was wrong last)."""
    ask = side.line()
    deadline = time.monotonic() + limit_s
    try:
        while True:
            outcome = expectation.run(case, ask, quick)
            wrong = expectation.wrong(outcome)
            if not wrong or time.monotonic() >= deadline:
                return outcome, wrong
            time.sleep(PAUSE_S)
    finally:
        ask.close()


def settle_all(jobs, limit_s):
    """[(side, case, expectation)]: each until it holds, all together, though not begun at once."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        waiting = []
        for job in jobs:
            waiting.append(pool.submit(settle, *job, limit_s, quick=True))
            time.sleep(STAGGER_S)
        return [one.result() for one in waiting]


def measure_all(jobs, limit_s):
    """The same with all the calls, a few at a time."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return list(pool.map(lambda job: settle(*job, limit_s), jobs))
