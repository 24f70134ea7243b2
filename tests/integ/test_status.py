# SPDX-License-Identifier: Apache-2.0
"""The daemon's gRPC status port: CSDS (gRFC A40), health and reflection, asked by gRPC's own client
and by grpcurl."""

import json
import os
import pathlib
import sys

import pytest

import resources
from agent import Agent
from go_build import go_build
from lab import wait_until
from resources import Folder
from testbed import EXIT_TIMEOUT_S, WORKERS, Testbed

pytestmark = pytest.mark.timeout(400)  # grpcurl is built once, of many packages

ADDRESS = "127.0.0.1:50052"
CSDS = "envoy.service.status.v3.ClientStatusDiscoveryService"
HEALTH = "grpc.health.v1.Health"
SERVICES = {CSDS, HEALTH, "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection"}
WAIT_S = 15
NODE_ID = "shunt-demo"
WORKER_CPU = 1


class Bed(Testbed):
    def config_text(self):
        return super().config_text() + f"csds: {{listen: {ADDRESS}}}\n"


@pytest.fixture(name="grpcurl", scope="module")
def fixture_grpcurl(tmp_path_factory):
    return go_build("grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl",
                    tmp_path_factory.mktemp("grpcurl") / "grpcurl", timeout=380)


class World:
    """One good route to `good`; `bad` was refused; `absent` does not exist."""

    def __init__(self, lab):
        self.lab = lab
        self.bed = Bed(lab)
        self.folder = Folder(self.bed.xds_folder)
        self.set_all()
        self.bed.start_xds()
        self.bed.start_daemon()
        self.agent = Agent(lab, "lb", "status", "status_agent.py", ADDRESS)

    def set_all(self, **more):
        bad = {**resources.cluster("bad"), "lb_policy": "MAGLEV"}
        good = {**resources.cluster("good"), **more}
        routes = [resources.route(f"/{name}", name) for name in ("good", "bad", "absent")]
        self.folder.set(
            good, bad, resources.endpoints("good", ("10.82.0.1", 8080)),
            resources.route_config("routes", resources.virtual_host("all", ["*"], *routes)),
            resources.listener("web", "routes"))

    def entries(self, **request):
        answer = self.agent.ask(op="fetch", **request)
        assert len(answer["config"]) == 1, answer  # CS-03
        return {(kind_of(e), e["name"]): e for e in answer["config"][0]["generic_xds_configs"]}

    def wait_for(self, name, status):
        """The cluster's entry when it has this status."""
        def check():
            entry = self.entries()[("Cluster", name)]
            return entry if entry["client_status"] == status else None
        return wait_until(check, WAIT_S, f"{name} {status}")

    def grpcurl(self, program, *words, check=True):
        return self.lab.exec("lb", [program, "-plaintext", "-max-time", "20", *words], timeout=60,
                             check=check)


def kind_of(entry):
    return entry["type_url"].rsplit(".", 1)[1]


@pytest.fixture(name="world", scope="module")
def fixture_world(module_lab):
    world = World(module_lab)
    yield world
    assert world.bed.daemon.alive()
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def fetch_with_grpcurl(world, grpcurl, *words):
    """The entries of FetchClientStatus, by (kind, name)."""
    done = world.grpcurl(grpcurl, *words, ADDRESS, CSDS + "/FetchClientStatus")
    (config,) = json.loads(done.stdout)["config"]
    assert config["node"]["id"] == NODE_ID
    return {(e["typeUrl"].rsplit(".", 1)[1], e["name"]): e for e in config["genericXdsConfigs"]}


STATES = {("Listener", "web"): "ACKED", ("RouteConfiguration", "routes"): "ACKED",
          ("Cluster", "good"): "ACKED", ("Cluster", "bad"): "NACKED",
          ("Cluster", "absent"): "DOES_NOT_EXIST", ("ClusterLoadAssignment", "good"): "ACKED"}
LABELS = {"Listener": "listener", "RouteConfiguration": "route configuration",
          "Cluster": "cluster", "ClusterLoadAssignment": "endpoints"}


def test_every_resource_by_python_grpcurl_and_shuntctl(world, grpcurl):
    """CS-01 to CS-07."""
    entries = world.entries()
    assert {key: e["client_status"] for key, e in entries.items()} == STATES
    others = fetch_with_grpcurl(world, grpcurl)
    assert {key: e["clientStatus"] for key, e in others.items()} == STATES
    rows = {(r["type"], r["name"]): r for r in world.bed.show("xds")["resources"]}
    assert {key: r["state"] for key, r in rows.items()} == {
        (LABELS[kind], name): state for (kind, name), state in STATES.items()}
    for (kind, name), entry in entries.items():
        row, other = rows[(LABELS[kind], name)], others[(kind, name)]
        assert entry.get("version_info", "") == row["version"] == other.get("versionInfo", "")
        assert ("xds_config" in entry) == ("xdsConfig" in other) == (row["version"] != "")
        error = entry.get("error_state", {})
        assert error.get("details", "") == row["error"]
        assert error.get("version_info", "") == row["rejected"]
        assert entry.get("last_updated") == other.get("lastUpdated")  # it is no clock's reading


def test_contents_are_what_the_server_sent(world, grpcurl):
    """CS-04: by Envoy's own messages, and by the descriptors that reflection gives."""
    entry = world.entries()[("ClusterLoadAssignment", "good")]
    (locality,) = entry["xds_config"]["endpoints"]
    assert locality["locality"] == {"region": "lab", "zone": "good"}
    entry = fetch_with_grpcurl(world, grpcurl)[("Listener", "web")]
    manager = entry["xdsConfig"]["apiListener"]["apiListener"]
    assert manager["@type"] == resources.HTTP_MANAGER
    assert manager["httpFilters"][0]["typedConfig"] == {"@type": resources.ROUTER}


def test_errors_name_what_was_wrong(world):
    """CS-06."""
    entries = world.entries()
    refused = entries[("Cluster", "bad")]["error_state"]
    assert "lb_policy" in refused["details"] and refused["version_info"]
    assert refused["last_update_attempt"]
    assert "within 15 s" in entries[("Cluster", "absent")]["error_state"]["details"]
    assert "error_state" not in entries[("Cluster", "good")]


def test_refused_update_leaves_the_value_and_a_mended_one_clears_the_error(world):
    before = world.entries()[("Cluster", "good")]
    try:
        world.set_all(lb_policy="MAGLEV")
        refused = world.wait_for("good", "NACKED")
        for field in ("version_info", "last_updated", "xds_config"):
            assert refused[field] == before[field]
        assert refused["error_state"]["version_info"] != before["version_info"]
        world.set_all(lb_policy="LEAST_REQUEST")
        mended = world.wait_for("good", "ACKED")
        assert "error_state" not in mended
        assert mended["version_info"] not in ("", before["version_info"])
    finally:
        world.set_all()
        wait_until(lambda: world.entries()[("Cluster", "good")]["xds_config"] ==
                   before["xds_config"], WAIT_S, "the first value again")


def test_contents_can_be_left_out(world, grpcurl):
    """CS-08."""
    for entry in world.entries(exclude_resource_contents=True).values():
        assert "xds_config" not in entry
    request = json.dumps({"excludeResourceContents": True})
    for entry in fetch_with_grpcurl(world, grpcurl, "-d", request).values():
        assert "xdsConfig" not in entry


def test_stream_answers_request_by_request(world, grpcurl):
    """CS-01."""
    answers = world.agent.ask(op="stream", n=3)
    assert len(answers) == 3 and answers[0] == answers[1] == answers[2]
    done = world.grpcurl(grpcurl, "-d", "{} {}", ADDRESS, CSDS + "/StreamClientStatus")
    assert done.stdout.count('"genericXdsConfigs"') == 2


def test_node_matchers_are_refused(world, grpcurl):
    """CS-01."""
    matchers = [{"node_id": {"exact": NODE_ID}}]
    answer = world.agent.ask(op="fetch", node_matchers=matchers)
    assert answer["code"] == "INVALID_ARGUMENT" and "node_matchers" in answer["details"]
    done = world.grpcurl(grpcurl, "-d", json.dumps({"nodeMatchers": [{}]}), ADDRESS,
                         CSDS + "/FetchClientStatus", check=False)
    assert done.returncode != 0 and "InvalidArgument" in done.stderr


def test_grpcurl_lists_and_describes_all(world, grpcurl):
    assert set(world.grpcurl(grpcurl, ADDRESS, "list").stdout.split()) == SERVICES
    assert world.grpcurl(grpcurl, ADDRESS, "list", HEALTH).stdout.split() == [
        HEALTH + ".Check", HEALTH + ".Watch"]
    for symbol in (*SERVICES, "envoy.service.status.v3.ClientConfig", CSDS + ".FetchClientStatus",
                   "envoy.config.route.v3.RouteConfiguration", "envoy.admin.v3.TIMEOUT"):
        done = world.grpcurl(grpcurl, ADDRESS, "describe", symbol)
        assert symbol.rsplit(".", 1)[1] in done.stdout
    done = world.grpcurl(grpcurl, ADDRESS, "describe", "no.such.Symbol", check=False)
    assert done.returncode != 0 and "not found" in done.stderr.lower(), done.stderr


def test_health_of_the_daemon_and_of_nothing_else(world, grpcurl):
    assert world.agent.ask(op="check", service="") == "SERVING"
    assert world.agent.ask(op="check", service="web")["code"] == "NOT_FOUND"
    done = world.grpcurl(grpcurl, ADDRESS, HEALTH + "/Check")
    assert json.loads(done.stdout) == {"status": "SERVING"}


def test_no_thread_of_it_runs_on_a_workers_core(world):
    """libgrpc's threads inherit what EAL leaves to the control thread."""
    if len(WORKERS) >= (os.cpu_count() or 1):
        pytest.skip("every core is a worker's")
    tasks = pathlib.Path(f"/proc/{world.bed.daemon.pid}/task")
    names = [(task / "comm").read_text().strip() for task in tasks.iterdir()
             if WORKER_CPU in os.sched_getaffinity(int(task.name))]
    assert len(names) == 1, names


def start_bare(lab):
    """A daemon that has no xDS server yet."""
    bed = Bed(lab)
    bed.start_daemon(wait=False)
    bed.wait_connect("lb", *ADDRESS.split(":"), bed.daemon)
    return bed


@pytest.mark.ends_daemon
def test_health_watch_sees_the_start_and_the_drain(lab):
    bed = start_bare(lab)
    agent = Agent(lab, "lb", "status", "status_agent.py", ADDRESS)
    assert agent.ask(op="check", service="") == "NOT_SERVING"
    agent.ask(op="watch")
    assert agent.ask(op="watched", n=1)["statuses"] == ["NOT_SERVING"]
    folder = Folder(bed.xds_folder)
    routes = resources.virtual_host("all", ["*"], resources.route("/", "good"))
    folder.set(resources.cluster("good"), resources.endpoints("good", ("10.82.0.1", 8080)),
               resources.route_config("routes", routes), resources.listener("web", "routes"))
    bed.start_xds()
    assert agent.ask(op="watched", n=2)["statuses"] == ["NOT_SERVING", "SERVING"]
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
    end = agent.ask(op="watched", n=4)
    assert end == {"statuses": ["NOT_SERVING", "SERVING", "NOT_SERVING"], "code": "UNAVAILABLE"}


@pytest.mark.ends_daemon
def test_calls_of_all_kinds_do_not_hold_up_the_end(lab):
    bed = start_bare(lab)
    agent = Agent(lab, "lb", "status", "status_agent.py", ADDRESS)
    agent.ask(op="watch")
    agent.ask(op="hold", n=20)
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0, bed.daemon.output()


@pytest.mark.ends_daemon
def test_a_taken_port_is_an_error_at_start(lab):
    bed = Bed(lab)
    lab.start("lb", "other", [sys.executable, "-m", "http.server", "--bind", *ADDRESS.split(":")])
    bed.wait_connect("lb", *ADDRESS.split(":"))
    bed.start_daemon(wait=False)
    assert bed.daemon.wait(EXIT_TIMEOUT_S) == 1
    said = bed.daemon.output().splitlines()[-1]
    for word in ("shunt.yaml", "csds.listen", ADDRESS):
        assert word in said, said
