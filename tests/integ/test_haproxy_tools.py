# SPDX-License-Identifier: Apache-2.0
"""Tools that were made for HAProxy, for gRPC's health service and for BGP, as Debian and Go's registry have them."""

import json
import re

import pytest

import resources
from agent import Agent
from go_build import go_build
from haproxy_socket import columns, info, rows, talk, typed
from lab import LabError, wait_until
from testbed import VIP
from test_metrics import FETCH, samples, value
from world import WEB_PORT

pytestmark = pytest.mark.timeout(400)  # the probe is built once, of many packages

TIMEOUT_S = 20
METRICS = "127.0.0.1:9464"
STATUS_PORT = "127.0.0.1:50052"
EXPORTER = "127.0.0.1:9101"
FIRST = f"10.82.1.1:{WEB_PORT}"
# Keys as xterm sends them.
DOWN, F7, F9, F10 = "\x1bOB", "\x1b[18~", "\x1b[20~", "\x1b[21~"


def with_socket(bed):
    """Started with a socket for HAProxy's tools, and the ports for probes."""
    bed.haproxy_socket = bed.lab.dir / "haproxy.sock"
    config = bed.config_text
    bed.config_text = lambda: config().replace('mode: "0660"', f'mode: "0660", haproxy_socket: {bed.haproxy_socket}')
    bed.settings += f"metrics: {{listen: '{METRICS}'}}\ncsds: {{listen: {STATUS_PORT}}}\n"
    bed.start_xds()
    bed.start_daemon()
    return bed


@pytest.fixture(name="bed")
def fixture_bed(make_world):
    return with_socket(make_world().bed)


AGGREGATE = {
    "@type": resources.CLUSTER, "name": "all", "lb_policy": "ROUND_ROBIN", "cluster_type": {
        "name": "envoy.clusters.aggregate", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig",
            "clusters": ["blue", "green"]}}}


@pytest.fixture(name="haproxy")
def fixture_haproxy(lab):
    """The socket of a HAProxy with a frontend, a backend and a server."""
    path, config = lab.dir / "its.sock", lab.dir / "haproxy.cfg"
    config.write_text(f"""\
global
  stats socket {path} level admin
  maxconn 100
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend front
  bind 127.0.0.1:18999
  default_backend back
backend back
  server one 127.0.0.1:18998
""")
    process = lab.start("lb", "haproxy", ["haproxy", "-db", "-f", config])
    wait_until(path.exists, TIMEOUT_S, "HAProxy's socket")
    yield path
    process.stop()


def test_ops_111_columns_keys_and_their_kinds_are_haproxys(bed, haproxy):
    ours = bed.haproxy_socket
    assert columns(ours) == columns(haproxy)
    assert set(info(ours)) <= set(info(haproxy))
    for what in ("stat", "info"):
        theirs = typed(haproxy, what)
        shared = {key: kind for key, kind in typed(ours, what).items() if key in theirs}
        assert len(shared) > 15, shared
        assert {key: tags for key, (tags, _) in shared.items()} == {key: theirs[key][0] for key in shared}


def test_ops_113_json_is_built_as_haproxys(bed, haproxy):
    def shape(value):
        if isinstance(value, dict):
            return {key: shape(inner) for key, inner in value.items()}
        return type(value).__name__

    def shapes(path, command):
        parts = json.loads(talk(path, command + "\n"))
        values = [value for row in parts for value in (row if isinstance(row, list) else [row])]
        return {value["field"]["name"]: shape(value) for value in values}
    for command in ("show stat json", "show info json"):
        ours, theirs = shapes(bed.haproxy_socket, command), shapes(haproxy, command)
        shared = ours.keys() & theirs.keys()
        assert len(shared) > 15
        assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


TALKS = ("set weight no/such 5\n", "disable server no/such:1\n", "disable server x\n", "set timeout cli 60\n",
         "prompt\nquit\n", "prompt;prompt\n", "quit\n", "prompt\nset timeout cli 60;set weight no/such 5\nquit\n",
         "set timeout cli 9;set timeout cli 8\n")


def test_ops_110_talks_go_as_with_haproxy(bed, haproxy):
    for lines in TALKS:
        ours = lines.replace("no/such 5", "no/10.0.0.1:1 5").replace("such:1", "10.0.0.1:1")
        assert talk(bed.haproxy_socket, ours) == talk(haproxy, lines), lines


def test_ops_111_counts_are_those_of_the_client(bed):
    path = bed.haproxy_socket
    wait_until(lambda: rows(path)[("web", "FRONTEND")]["status"] == "OPEN", TIMEOUT_S, "the kernel to tell of its link")
    first = rows(path)
    assert bed.run_h2load(requests=3000).perfect
    bed.run_calls("unary", count=40)
    bed.run_calls("statuses")
    found = rows(path)
    web = found[("web", "FRONTEND")]
    assert web["status"] == "OPEN" and web["hrsp_2xx"] == web["req_tot"]
    assert int(web["req_tot"]) >= 3040 and int(web["stot"]) > int(first[("web", "FRONTEND")]["stot"])
    parts = [int(found[(cluster, "BACKEND")]["stot"]) for cluster in ("blue", "green", "rpc")]
    assert sum(parts) == int(web["req_tot"])
    servers = [row for (cluster, _), row in found.items() if cluster == "blue" and row["type"] == "2"]
    assert len(servers) == 2 and sum(int(row["stot"]) for row in servers) == parts[0]
    assert all(row["status"] == "UP" and row["check_status"] == "L4OK" for row in servers), servers
    for key, row in first.items():  # what grows does not shrink, and numbers stay
        for name in ("stot", "req_tot", "hrsp_2xx", "eresp", "cli_abrt"):
            assert int(found[key][name] or 0) >= int(row[name] or 0), (key, name)
        assert (row["iid"], row["sid"]) == (found[key]["iid"], found[key]["sid"])
    wait_until(lambda: rows(path)[("rpc", "BACKEND")]["ttime"] != "", TIMEOUT_S, "times of a second later")
    assert len({(row["iid"], row["sid"]) for row in found.values()}) == len(found)


def exported(bed):
    words = ["/usr/bin/python3", "-c", FETCH, EXPORTER, "/metrics", "text/plain", "body"]
    return samples(bed.lab.exec("lb", words, timeout=60).stdout)


def test_ops_118_the_exporter_of_prometheus_reads_all(bed):
    process = bed.lab.start("lb", "exporter", [
        "prometheus-haproxy-exporter", f"--haproxy.scrape-uri=unix:{bed.haproxy_socket}",
        f"--web.listen-address={EXPORTER}"])
    bed.wait_connect("lb", *EXPORTER.split(":"), process)
    before = exported(bed)
    assert bed.run_h2load(requests=2000).perfect
    found = exported(bed)
    assert value(found, "haproxy_up") == 1
    assert value(found, "haproxy_exporter_csv_parse_failures_total") == 0
    assert value(found, "haproxy_frontend_http_requests_total", frontend="web") == 2000
    assert value(found, "haproxy_frontend_http_responses_total", frontend="web", code="2xx") == 2000
    clusters = ("blue", "green")
    assert sum(value(found, "haproxy_backend_sessions_total", backend=name) for name in clusters) == 2000
    assert all(value(found, "haproxy_backend_up", backend=name) == 1 for name in clusters)
    assert value(found, "haproxy_server_up", backend="blue", server=FIRST) == 1
    assert 0 < value(found, "haproxy_server_sessions_total", backend="blue", server=FIRST) < 2000
    assert any(name == "haproxy_version_info" for name, _ in found)
    assert all(found[key] >= before[key] for key in before if key[0].endswith("_total"))
    talk(bed.haproxy_socket, f"disable server blue/{FIRST}\n")
    wait_until(lambda: value(exported(bed), "haproxy_server_up", backend="blue", server=FIRST) == 0, TIMEOUT_S,
               "the server to be down")


def test_ops_115_servers_of_an_aggregate_are_its_leaves(make_world):
    bed = with_socket(make_world(extra=(AGGREGATE,), extra_routes=(resources.route("/all", "all"),)).bed)
    path = bed.haproxy_socket
    mine = [f"blue/{FIRST}", f"blue/10.82.1.2:{WEB_PORT}"]

    def statuses():
        return {server: row["status"] for (proxy, server), row in rows(path).items() if proxy == "all"}
    assert statuses() == {**dict.fromkeys(mine, "UP"), "BACKEND": "UP"}
    for server in mine:
        assert talk(path, f"disable server all/{server}\n") == "\n"
    wait_until(lambda: statuses().get(f"green/10.82.1.3:{WEB_PORT}") == "UP", TIMEOUT_S, "the other leaf")
    assert {statuses()[server] for server in mine} == {"MAINT"}
    assert rows(path)[("blue", FIRST)]["status"] == "MAINT"
    assert {row["cluster"] for row in bed.show("overrides")} == {"blue"}
    assert talk(path, f"enable server blue/{FIRST}\n") == "\n"
    wait_until(lambda: statuses()[mine[0]] == "UP", TIMEOUT_S, "the end of it")
    assert talk(path, f"disable server all/green/{FIRST}\n") == "No such server.\n\n"


class Hatop:
    """hatop on a terminal, looking every second."""

    def __init__(self, bed):
        self.agent = Agent(bed.lab, "lb", "hatop", "screen_agent.py", "hatop", "-i", "1", "-s", str(bed.haproxy_socket))

    def lines(self):
        return self.agent.ask(op="look")["lines"]

    def group(self, proxy):
        """{the first word of a line below a proxy's name: all its words}; the screen may be half painted."""
        text = "\n".join(line.rstrip() for line in self.lines())
        found = re.search(rf"^>>> {proxy}\n(.*?)(?:^$|^>>>|\Z)", text, re.S | re.M)
        return {line.split()[0]: line.split() for line in found[1].splitlines() if line.strip()} if found else {}

    def wait_for(self, proxy, server, weight, status):
        wait_until(lambda: self.group(proxy).get(server, [])[1:3] == [weight, status], TIMEOUT_S,
                   f"{proxy}/{server} with weight {weight}, {status}")

    def choose(self, text):
        """Moves the mark to the line that begins with this."""
        for _ in range(40):
            look = self.agent.ask(op="look")
            if any(look["lines"][y].startswith(text) for y in look["marked"]):
                return
            self.press(DOWN)
            wait_until(lambda: self.agent.ask(op="look")["marked"] != look["marked"], TIMEOUT_S, "the mark to move")
        raise LabError(f"no line {text}: {self.lines()}")

    def press(self, keys):
        self.agent.ask(op="press", keys=keys)


def state_of(bed, endpoint):
    rows_ = json.loads(bed.shuntctl("show", "endpoints", "blue", "json"))["data"]
    return next((row["override"], row["weight"]) for row in rows_ if row["endpoint"] == endpoint)


def test_ops_118_hatop_shows_all_and_its_keys_work(bed):
    hatop = Hatop(bed)
    hatop.wait_for("blue", FIRST, "1", "UP")
    hatop.wait_for("blue", f"10.82.1.2:{WEB_PORT}", "1", "UP")
    hatop.wait_for("blue", "BACKEND", "2", "UP")
    hatop.wait_for("web", "FRONTEND", "0", "OPEN")
    assert any("Shunt Version: " in line for line in hatop.lines()), hatop.lines()
    hatop.choose(FIRST)
    hatop.press(F10)
    hatop.wait_for("blue", FIRST, "1", "MAINT")
    assert state_of(bed, FIRST) == ("down", 1)
    hatop.press(F9)
    hatop.wait_for("blue", FIRST, "1", "UP")
    hatop.press(F7)
    hatop.wait_for("blue", FIRST, "2", "UP")
    assert state_of(bed, FIRST) == ("weight 2", 2)
    assert bed.run_h2load(requests=200).perfect
    hatop.press("q")
    wait_until(lambda: hatop.agent.ask(op="status") == 0, TIMEOUT_S, "the end of hatop")


def test_ops_119_grpc_health_probe_says_whether_it_serves(bed, tmp_path):
    probe = go_build("healthprobe", "github.com/grpc-ecosystem/grpc-health-probe", tmp_path / "probe", timeout=380,
                     min_go=(1, 26))

    def ask(*words):
        return bed.lab.exec("lb", [probe, f"-addr={STATUS_PORT}", "-connect-timeout=20s", "-rpc-timeout=20s", *words],
                            check=False)
    done = ask()
    assert done.returncode == 0 and "SERVING" in done.stderr + done.stdout, done
    bed.shuntctl("drain")
    done = ask()
    assert done.returncode == 4 and "NOT_SERVING" in done.stderr + done.stdout, done
    bed.shuntctl("undrain")
    assert ask().returncode == 0


def test_ops_119_exabgps_healthcheck_announces_what_is_ready(bed):
    check = bed.lab.start("lb", "healthcheck", [
        "/usr/bin/python3", "-u", "-m", "exabgp", "healthcheck", "--no-syslog", "--no-ack", "--no-ip-setup",
        "--ip", f"{VIP}/32", "--next-hop", "10.81.0.10", "--withdraw-on-down", "--interval", "0.3", "--fast-interval",
        "0.2", "--rise", "2", "--fall", "2", "--cmd", f"curl -sf http://{METRICS}/ready"])

    def last():
        said = [line for line in check.output().splitlines() if "route" in line]
        return said[-1] if said else ""
    announced, withdrawn = f"announce route {VIP}/32", f"withdraw route {VIP}/32"
    wait_until(lambda: last().startswith(announced), TIMEOUT_S, "the route")
    bed.shuntctl("drain")
    wait_until(lambda: last().startswith(withdrawn), TIMEOUT_S, "the route to be withdrawn")
    bed.shuntctl("undrain")
    wait_until(lambda: last().startswith(announced), TIMEOUT_S, "the route again")
