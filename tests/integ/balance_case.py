# SPDX-License-Identifier: Apache-2.0
"""What a balancing case is made of: resources, backends that listen or do not, expectations.

A case is a generator function over a Case: it sets up, yields an expectation, changes something,
yields the next. Its backends are numbers: 1 and up listen at first, what dead() or silent() gives
never does. All of them have the case's own port, so that cases do not meet.
"""

import collections
import dataclasses
import math

import resources
from resources import TYPES

LIVE_NET, SILENT_NET = "10.82.2", "10.82.3"
FIRST_DEAD = 100
FIRST_PORT = 10000
CALL_TIMEOUT_S = 5.0
HOLD_MS = 2000
LATE_S = 3  # more than PF-02's 250 ms
CALLS, QUICK_CALLS = 40, 16  # at least; fewer do while waiting for an outcome
SURE = 14  # a share of this mean is never absent by chance (e^-14)
CHI_Z = 5  # of the normal law: one run in three million fails by chance
POLICIES = TYPES + "extensions.load_balancing_policies."
AGGREGATE = TYPES + "extensions.clusters.aggregate.v3.ClusterConfig"
SESSION_PER_ROUTE = TYPES + "extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute"
COOKIE_STATE = TYPES + "extensions.http.stateful_session.cookie.v3.CookieBasedSessionState"
SESSION_FILTER = {"name": "session", "typed_config": {
    "@type": TYPES + "extensions.filters.http.stateful_session.v3.StatefulSession"}}
COOKIE = "sid"
ALL_STATUSES = ("UNKNOWN", "HEALTHY", "DRAINING")
UNAVAILABLE, DEADLINE = "UNAVAILABLE", "DEADLINE_EXCEEDED"


def dead(n):
    """A backend that refuses connections."""
    return FIRST_DEAD + n


def silent(n):
    """A backend that never answers a SYN."""
    return -n


def policy(name, **config):
    return {"typed_extension_config": {
        "name": name, "typed_config": {"@type": f"{POLICIES}{name}.v3.{camel(name)}", **config}}}


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def policies(*list_of):
    return {"load_balancing_policy": {"policies": list(list_of)}}


def by_locality(*children):
    """wrr_locality over the first of these that is supported."""
    return policy("wrr_locality", endpoint_picking_policy={"policies": list(children)})


def drop(category, numerator, denominator="HUNDRED"):
    return {"category": category,
            "drop_percentage": {"numerator": numerator, "denominator": denominator}}


def limited(max_requests, priority="DEFAULT"):
    return {"priority": priority, "max_requests": max_requests}


def limits(*thresholds):
    return {"circuit_breakers": {"thresholds": list(thresholds)}}


class Case:
    """`state` is what the world serves for this case; the generator's changes go there."""

    def __init__(self, name, number):
        self.name = name
        self.authority = f"{name}.test"
        self.port = FIRST_PORT + number
        self.resources = {}
        self.routes = [resources.route("", name)]
        self.up = set()
        self.known = set()  # numbers whose listener somebody decided on
        self.behaviour = {}

    # -- backends

    def address(self, number):
        if number < 0:
            return (f"{SILENT_NET}.{-number}", self.port)
        return (f"{LIVE_NET}.{number}", self.port)

    def down(self, *numbers):
        self.up -= set(numbers)
        self.known |= set(numbers)

    def back(self, *numbers):
        self.up |= set(numbers)

    def behave(self, number, status=0, load=None):
        self.behaviour[number] = {"status": status, "load": load}

    def late(self, *numbers):
        """What is asked beside these comes first, though the machine be busy."""
        for number in numbers:
            self.behaviour[number] = {"late_s": LATE_S}

    # -- endpoints

    def _socket_address(self, number):
        if 0 < number < FIRST_DEAD and number not in self.known:
            self.known.add(number)
            self.up.add(number)
        ip, port = self.address(number)
        return {"socket_address": {"address": ip, "port_value": port}}

    def host(self, number, *others, weight=None, health=None, hash_key=None):
        """An endpoint with this address, and others as additional ones."""
        made = {"endpoint": {"address": self._socket_address(number)}}
        if others:
            made["endpoint"]["additional_addresses"] = [
                {"address": self._socket_address(n)} for n in others]
        if weight is not None:
            made["load_balancing_weight"] = weight
        if health:
            made["health_status"] = health
        if hash_key:
            made["metadata"] = {"filter_metadata": {"envoy.lb": {"hash_key": hash_key}}}
        return made

    def locality(self, zone, *members, weight=1, priority=0):
        """weight None: unset. Members are numbers or host()s."""
        entries = [m if isinstance(m, dict) else self.host(m) for m in members]
        made = {"locality": {"region": "lab", "zone": zone}, "priority": priority,
                "lb_endpoints": entries}
        if weight is not None:
            made["load_balancing_weight"] = weight
        return made

    def eds(self, *localities, name=None, drops=()):
        made = {"@type": resources.ENDPOINTS, "cluster_name": name or self.name,
                "endpoints": list(localities)}
        if drops:
            made["policy"] = {"drop_overloads": list(drops)}
        self.put(made)

    def priorities(self, *groups, name=None, drops=()):
        """One locality a priority, of these members each."""
        self.eds(*(self.locality(f"p{n}", *group, priority=n) for n, group in enumerate(groups)),
                 name=name, drops=drops)

    # -- clusters and routes

    def put(self, resource):
        self.resources[resource["@type"], resources.name_of(resource)] = resource

    def remove_cluster(self, name=None):
        del self.resources[resources.CLUSTER, name or self.name]

    def cluster(self, name=None, service_name=None, **more):
        self.put({**resources.cluster(name or self.name, service_name), **more})

    def leaf(self, suffix, *members, **more):
        """An EDS cluster of one locality; its name."""
        name = f"{self.name}.{suffix}"
        self.cluster(name, **more)
        self.priorities(members, name=name)
        return name

    def aggregate(self, *names, name=None, **more):
        self.put({"@type": resources.CLUSTER, "name": name or self.name,
                  "lb_policy": "ROUND_ROBIN", "cluster_type": {
                      "name": "envoy.clusters.aggregate",
                      "typed_config": {"@type": AGGREGATE, "clusters": list(names)}}, **more})

    def dns(self, host, name=None, **more):
        address = {"socket_address": {"address": host, "port_value": self.port}}
        locality = {"lb_endpoints": [{"endpoint": {"address": address}}]}
        self.put({"@type": resources.CLUSTER, "name": name or self.name, "type": "LOGICAL_DNS",
                  "lb_policy": "ROUND_ROBIN", "load_assignment": {
                      "cluster_name": name or self.name, "endpoints": [locality]}, **more})

    def simple(self, *members, drops=(), **more):
        """The case's own cluster with one locality."""
        self.cluster(**more)
        self.priorities(members, drops=drops)

    def hash_by(self, *hash_policies, target=None):
        self.routes = [resources.route("", {"cluster": target or self.name,
                                            "hash_policy": list(hash_policies)})]

    def sessions(self, target=None):
        """The case's route keeps sessions."""
        made = resources.route("", target or self.name)
        state = {"@type": COOKIE_STATE, "cookie": {"name": COOKIE, "ttl": "60s"}}
        made["typed_per_filter_config"] = {"session": {
            "@type": SESSION_PER_ROUTE,
            "stateful_session": {"session_state": {"name": "cookie", "typed_config": state}}}}
        self.routes = [made]

    def call(self, *metadata, timeout=CALL_TIMEOUT_S):
        return {"authority": self.authority, "path": f"/{self.name}.T/M",
                "metadata": [list(pair) for pair in metadata], "timeout": timeout}

    def virtual_host(self):
        return resources.virtual_host(self.name, [self.authority], *self.routes)


def header(name, terminal=False, **more):
    return {"header": {"header_name": name, **more}, "terminal": terminal}


# -- expectations

LATER = object()  # nothing to ask in this step: what needs a calm world begins in the next one


def shown(answer):
    return answer["backend"] if answer["code"] == "OK" else answer["code"]


def cookie_of(answer):
    """The value of the session cookie that an answer sets, or None."""
    for name, value in answer["initial"]:
        if name == "set-cookie" and value.startswith(COOKIE + "="):
            return value.split("; ")[0].split("=", 1)[1]
    return None


def unlike(counts, shares, total):
    """Why these counts can't well be draws by these shares; "" when they can."""
    if strangers := set(counts) - set(shares):
        return f"not expected at all: {sorted(strangers)}"
    expected = {key: share * total for key, share in shares.items()}
    if absent := [key for key, mean in expected.items() if mean >= SURE and key not in counts]:
        return f"absent: {absent}"
    degrees = len(expected) - 1
    if degrees == 0:
        return ""
    chi = sum((counts.get(key, 0) - mean) ** 2 / mean for key, mean in expected.items())
    part = 2 / (9 * degrees)
    limit = degrees * (1 - part + CHI_Z * math.sqrt(part)) ** 3  # Wilson and Hilferty
    return f"chi-square {chi:.1f} > {limit:.1f}" if chi > limit else ""


@dataclasses.dataclass
class Shares:
    """Who answers, in which proportion; a status counts as somebody. With `spread`, no count is
    farther than that from its mean."""

    shares: dict
    calls: int = 0  # 0: as many as make every share sure to show
    parallel: int = 16
    spread: float = math.inf
    metadata: tuple = ()
    timeout: float = CALL_TIMEOUT_S
    same = False  # need both sides say the very same?

    def run(self, case, ask, quick):
        least = math.ceil(SURE / min(self._shares().values()))
        count = max(least, QUICK_CALLS) if quick else max(least, self.calls or CALLS)
        calls = [case.call(*self.metadata, timeout=self.timeout)] * count
        return collections.Counter(map(shown, ask(calls, parallel=self.parallel)))

    def _shares(self):
        total = sum(self.shares.values())
        return {str(key): share / total for key, share in self.shares.items()}

    def wrong(self, counts):
        shares = self._shares()
        total = counts.total()
        far = [key for key, share in shares.items()
               if abs(counts.get(key, 0) - share * total) > self.spread]
        return unlike(counts, shares, total) or (f"off by more than {self.spread}: {far}"
                                                 if far else "")


def even(*keys, **more):
    return Shares(dict.fromkeys(keys, 1), **more)


def only(key, **more):
    return Shares({key: 1}, 20, **more)


@dataclasses.dataclass
class Told:
    """What do(case, ask) returns: `expected`, or what valid(it) complains of with a text."""

    do: object
    expected: object = None
    valid: object = None
    same: bool = False  # both sides must say the very same

    def run(self, case, ask, quick):
        return self.do(case, ask)

    def wrong(self, outcome):
        if self.valid:
            return self.valid(outcome)
        return "" if outcome == self.expected else f"wanted {self.expected}"


def one_of(*numbers):
    """One of these serves, and it alone."""
    def do(case, ask):
        return sorted({shown(answer) for answer in ask([case.call()] * 20)})

    def valid(found):
        return "" if len(found) == 1 and found[0] in map(str, numbers) else f"not one of {numbers}"
    return Told(do, valid=valid)


@dataclasses.dataclass
class Differ:
    """The oracle does one thing (None: it is not asked) and we do another, and here is why."""

    core: object
    ours: object
    why: str


def keys(*lists_of_metadata, distinct=2):
    """The same key goes to the same backend, which both sides agree on."""
    def do(case, ask):
        calls = [case.call(*metadata) for metadata in lists_of_metadata]
        return [shown(answer) for answer in ask(calls)]

    def valid(outcome):
        found = set(outcome)
        if not all(key.isdigit() for key in found):
            return "not all served"
        return "" if len(found) >= distinct else f"fewer than {distinct} backends"
    return Told(do, valid=valid, same=True)


def held(calls, expected):
    """So many calls at once, each taking its time: how they end."""
    def do(case, ask):
        call = case.call(("x-hold-ms", str(HOLD_MS)), timeout=HOLD_MS / 1000 + CALL_TIMEOUT_S)
        answers = ask([call] * calls, parallel=calls)
        return dict(collections.Counter(answer["code"] for answer in answers))
    return Told(do, expected)
