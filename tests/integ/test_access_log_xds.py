# SPDX-License-Identifier: Apache-2.0
"""Access logs that a Listener asks for: who is told of what, what is not permitted, and changes under load."""

import json

import pytest

import resources
from lab import wait_until
from resources import TYPES
from test_access_log import lines_of, rotated, settings
from test_chains import SECOND, Chains
from testbed import URL
from validation_table import XDS_STRUCT
from world import ROUTES, SIZES

LOGGERS = TYPES + "extensions.access_loggers."
FILE, STDOUT = LOGGERS + "file.v3.FileAccessLog", LOGGERS + "stream.v3.StdoutAccessLog"
GRPC = LOGGERS + "grpc.v3.HttpGrpcAccessLogConfig"
TAKES_S = 20
LOADED_S = 60


def text(form):
    return {"log_format": {"text_format_source": {"inline_string": form}}}


def file_log(path, log_filter=None, **form):
    made = {"name": path.name, "typed_config": {"@type": FILE, "path": str(path), **form}}
    if log_filter:
        made["filter"] = log_filter
    return made


def grpc_log(cluster, log_filter=None, log_name="edge", **more):
    service = {"log_name": log_name, "transport_api_version": "V3", "buffer_flush_interval": "0.1s",
               "grpc_service": {"envoy_grpc": {"cluster_name": cluster}}}
    made = {"name": cluster, "typed_config": {"@type": GRPC, "common_config": service, **more}}
    return {**made, "filter": log_filter} if log_filter else made


def comparison(op, value):
    return {"comparison": {"op": op, "value": {"default_value": value, "runtime_key": "x"}}}


def either(*filters):
    return {"or_filter": {"filters": list(filters)}}


class Logged:
    """The standard world, whose Listener asks for the logs that are put there."""

    def __init__(self, world):
        self.world, self.bed = world, world.bed
        self.folder = self.bed.lab.dir / "logs"
        self.folder.mkdir()
        self.bed.settings = f"access_log: {{xds_directory: {self.folder}}}\n"

    def put(self, *logs):
        listener = resources.listener("web", ROUTES)
        listener["api_listener"]["api_listener"]["access_log"] = list(logs)
        self.world.folder.set(*self.world._clusters(), self.world.routes(100, 0), listener)

    def start(self, *logs):
        self.put(*logs)
        self.world.start()
        return self.bed

    def ask(self, path):
        argv = ["curl", "-s", "-m", "20", "--http2-prior-knowledge", f"{URL}{path}"]
        return self.bed.lab.exec("client", argv, check=False).stdout

    def wait_lines(self, path, number):
        wait_until(lambda: path.exists() and len(lines_of(path)) >= number, TAKES_S, f"{number} lines in {path.name}")
        found = lines_of(path)
        assert len(found) == number, found
        return found


@pytest.fixture(name="logged")
def fixture_logged(make_world):
    named = {**resources.route("/named", "green"), "name": "the-named"}
    return Logged(make_world(extra_routes=[named]))


def test_ops_40_two_logs_have_filters_and_forms_of_their_own(logged):
    """OPS-41, OPS-44."""
    everything, errors = logged.folder / "all.log", logged.folder / "errors.log"
    bad = either({"status_code_filter": comparison("GE", 400)}, {"grpc_status_filter": {"statuses": ["NOT_FOUND"]}})
    logged.start(
        file_log(everything, **text("%REQ(:PATH)% %RESPONSE_CODE% %ROUTE_NAME% %UPSTREAM_CLUSTER_RAW%\n")),
        file_log(errors, {"and_filter": {"filters": [bad, {"not_health_check_filter": {}}]}},
                 log_format={"json_format": {"code": "%RESPONSE_CODE%", "what": "%REQ(:METHOD)% %PATH(NQ)%",
                                             "route": "%ROUTE_NAME%"}}))
    for path in ("/mark", "/missing?x=1", "/named", "/mark", "/mark"):
        logged.ask(path)
    found = logged.wait_lines(everything, 5)
    assert sorted(found) == sorted(["/mark 200 - blue"] * 3 + ["/missing?x=1 404 - blue", "/named 404 the-named green"])
    found = sorted(map(json.loads, logged.wait_lines(errors, 2)), key=lambda line: line["what"])
    assert found == [{"code": 404, "what": "GET /missing", "route": None},
                     {"code": 404, "what": "GET /named", "route": "the-named"}]
    assert (everything.stat().st_mode & 0o777) in (0o640, 0o600)


def test_ops_45_changes_of_the_listener_lose_no_line(logged, lab):
    """Each version writes into another file, or in another form into the same, while calls go on."""
    def version(number):
        return file_log(logged.folder / f"{number % 3}.log", **text(f"%REQ(:PATH)% {number} %GRPC_STATUS_NUMBER%"))
    bed = logged.start(version(0))
    stop = lab.dir / "stop"
    load = bed.start_calls("steady", "steady", stop_file=str(stop))
    for number in range(10):
        logged.put(version(number))  # the first one again
        path = logged.folder / f"{number % 3}.log"
        wait_until(lambda: path.exists() and any(line.split()[1] == str(number) for line in lines_of(path)), TAKES_S,
                   f"lines of version {number}")
    stop.touch()
    calls = bed.calls_result(load)["calls"]
    paths = [logged.folder / f"{n}.log" for n in range(3)]
    wait_until(lambda: sum(len(lines_of(p)) for p in paths) >= calls, LOADED_S, "all lines")
    found = [line.split() for p in paths for line in lines_of(p)]
    assert len(found) == calls and all(len(f) == 3 and f[2] == "0" for f in found)
    assert {f[1] for f in found} == {str(n) for n in range(10)}


def test_ops_45_rotation_of_a_listeners_files_loses_no_line(logged):
    path = logged.folder / "access.log"
    bed = logged.start(file_log(path, **text("%REQ(:PATH)% %RESPONSE_CODE%")))
    assert set(rotated(bed, path, 3)) == {"/mark 200"}


def test_ops_42_what_is_not_permitted_or_supported_is_named_and_the_rest_serves(logged, lab):
    """OPS-43."""
    outside, good = lab.dir / "outside.log", logged.folder / "good.log"
    (logged.folder / "link").symlink_to(lab.dir)
    collector = {"name": "collector", "typed_config": {
        "@type": XDS_STRUCT, "type_url": LOGGERS + "grpc.v3.TcpGrpcAccessLogConfig", "value": {}}}
    bed = logged.start(
        file_log(outside), file_log(logged.folder / ".." / "up.log"), file_log(logged.folder / "link" / "linked.log"),
        {"name": "console", "typed_config": {"@type": STDOUT}}, collector, grpc_log("nowhere"),
        file_log(logged.folder / "secret.log", **text("%ENVIRONMENT(HOME)%")),
        file_log(logged.folder / "head.log", {"header_filter": {"header": {"name": "x", "present_match": True}}}),
        file_log(good, **text("%REQ(:PATH)%")))
    for said in ("is not below", "access_log.xds_stdout", "TcpGrpcAccessLogConfig", "is not supported", "ENVIRONMENT",
                 "header_filter", "nowhere: shunt.yaml names no address of this cluster"):
        assert said in bed.daemon.output(), said
    wait_until(lambda: "Too many levels of symbolic links" in bed.daemon.output(), TAKES_S, "the link named")
    assert logged.ask("/mark")
    states = {entry["name"]: entry["state"] for entry in bed.show("xds")["resources"] if entry["type"] == "listener"}
    assert states == {"web": "ACKED"}
    wait_until(lambda: good.exists() and lines_of(good), TAKES_S, "lines of the one that is good")
    assert not {p.name for p in lab.dir.iterdir()} & {"outside.log", "up.log", "linked.log"}
    assert sorted(p.name for p in logged.folder.iterdir()) == ["good.log", "link"]


def test_ops_42_without_a_word_in_shunt_yaml_nothing_is_written(logged, lab):
    path = logged.folder / "a.log"
    logged.bed.settings = settings(lab.dir / "own.log", "%REQ(:PATH)%")
    bed = logged.start(file_log(path))
    assert "access_log.xds_directory" in bed.daemon.output()
    logged.ask("/mark")
    assert logged.wait_lines(lab.dir / "own.log", 1) == ["/mark"]
    assert not path.exists()


def test_ops_40_each_filter_chain_has_its_own_log(make_world, lab):
    chains = Chains(make_world())
    folder = lab.dir / "logs"
    folder.mkdir()
    chains.bed.settings += f"access_log: {{xds_directory: {folder}, path: {lab.dir / 'own.log'}}}\n"
    chains.put(chains.own(), chains.chain(f"{SECOND}/32", "green", access_log=[
        file_log(folder / "second.log", **text("%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %UPSTREAM_CLUSTER%"))]))
    chains.world.start()
    chains.wait_for("the second's chain", lambda: chains.size(SECOND) == SIZES["green"])
    assert chains.size("10.81.0.1") == SIZES["blue"]
    wait_until(lambda: {json.loads(line)["cluster"] for line in lines_of(lab.dir / "own.log")} >= {"blue", "green"},
               TAKES_S, "both in the log of shunt.yaml")
    assert set(lines_of(folder / "second.log")) == {f"{SECOND} green"}
