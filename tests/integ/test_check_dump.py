# SPDX-License-Identifier: Apache-2.0
"""`shuntd --check --resources`: saved resources, judged as if they had come by xDS."""

import json
import subprocess

import pytest

from cluster_table import cluster_rows, good_cluster
from endpoint_table import eds_rows, good_endpoints
from listener_table import good_listener, listener_rows
from rbac_table import rbac_rows
from resources import route, route_config, virtual_host
from routing_cases import ALPHA
from socket_table import socket_rows
from testbed import BUILD, EXAMPLE
from validation_table import ROUTES, route_rows

SHUNTD = BUILD / "ctrl" / "shuntd"
TABLES = (cluster_rows, eds_rows, listener_rows, rbac_rows, route_rows, socket_rows)
MIN_FAULTS = 100
TAKES_S = 30
SECRET = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
HOSTILE = "<script>\x1b[2J\nfault: "


def check(path):
    return subprocess.run([SHUNTD, "-c", EXAMPLE / "shunt.yaml", "--check", "--resources", path], timeout=TAKES_S,
                          capture_output=True, text=True, check=False,
                          env={"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")})


def write(path, value):
    path.write_text(json.dumps(value))
    return path


def faults(done):
    return [line for line in done.stdout.splitlines() if line.startswith("fault: ")]


def good_routes(name=ROUTES):
    return route_config(name, virtual_host("row", ["*"], route("", ALPHA)))


def good_resources():
    return [good_cluster("wire-cluster"), good_endpoints(), good_listener(), good_routes()]


def rows():
    """(row, resource) of all tables that JSON can say: not what is patched on the wire, and no NUL."""
    for table in TABLES:
        for row in table():
            resource = row.resource or route_config(ROUTES, *row.hosts)
            if not row.patch and "\\u0000" not in json.dumps(resource):
                yield row, resource


def name_of(resource):
    return resource.get("name", resource.get("cluster_name", ""))


def renamed(resource, name):
    return {**resource, "cluster_name" if "cluster_name" in resource else "name": name}


def test_each_planted_fault_is_told_with_file_resource_and_field(tmp_path):
    """OPS-138"""
    planted = [pair for pair in rows() if pair[0].wanted]
    assert len(planted) >= MIN_FAULTS
    for i, (_, resource) in enumerate(planted):
        write(tmp_path / f"{i:04}.json", resource)
    done = check(tmp_path)
    told = {}
    for line in faults(done):
        told.setdefault(line.split(": ")[1], []).append(line)
    wrong = []
    for i, (row, resource) in enumerate(planted):
        lines = told.get(str(tmp_path / f"{i:04}.json"), [])
        texts = (f'"{name_of(resource)}"', *row.wanted)
        if len(lines) != 1 or any(text not in lines[0] for text in texts):
            wrong.append(f"{row.label}: wanted {texts}, got {lines}")
    assert not wrong, f"{len(wrong)} of {len(planted)} wrong\n" + "\n".join(wrong)
    assert done.returncode == 1 and f"{len(planted)} faults" in done.stderr, done.stderr


def test_what_a_server_may_send_is_no_fault(tmp_path):
    """OPS-139"""
    fine = [(row.label, renamed(resource, f"row-{i}"))
            for i, (row, resource) in enumerate(rows()) if not row.wanted]
    done = check(write(tmp_path / "all.json", [resource for _, resource in fine]))
    labels = {f": [{i}]: ": label for i, (label, _) in enumerate(fine)}
    wrong = [(label, line) for line in faults(done) for at, label in labels.items() if at in line]
    assert not wrong and done.returncode == 0, (wrong, done.stderr)
    assert f"resources={len(fine)} faults=0" in done.stdout


def test_a_resource_may_be_wrapped_and_other_types_are_left_aside(tmp_path):
    """OPS-139"""
    wrapped = [{"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "resource": resource}
               for resource in good_resources()]
    done = check(write(tmp_path / "all.json", [*wrapped, {"@type": SECRET, "name": "s"}]))
    assert done.returncode == 0 and "resources=4 faults=0 of_other_types=1" in done.stdout, done


@pytest.mark.parametrize("entries, config, failure, failed", [
    ("generic_xds_configs", "xds_config", "error_state", "failed_configuration"),
    ("genericXdsConfigs", "xdsConfig", "errorState", "failedConfiguration")])
def test_what_csds_tells_is_judged_with_what_was_refused(tmp_path, entries, config, failure, failed):
    """OPS-140"""
    bad = {**good_routes("bad"), "virtual_hosts": [{"name": "v", "domains": []}]}
    told = [{config: resource} for resource in good_resources()]
    told += [{config: good_routes("bad"), failure: {failed: bad}}, {"name": "asked for"}]
    done = check(write(tmp_path / "csds.json", {"config": [{entries: told}]}))
    assert done.returncode == 1 and "resources=5 faults=1" in done.stdout, done
    line, = faults(done)
    assert "config[0].generic_xds_configs[4]: " in line and '"bad": virtual host "v": no domains' in line, line


def test_a_resource_that_is_listed_twice_is_a_fault(tmp_path):
    """OPS-138"""
    done = check(write(tmp_path / "all.json", [good_routes(), good_listener(), good_routes()]))
    line, = faults(done)
    assert f': [2]: route configuration "{ROUTES}": is listed more than once' in line, line


@pytest.mark.parametrize("text, words", [
    ("[", ("line 1", "JSON")), ("7", ()), ("{}", ("@type",)), ('{"config": 7}', ()), ("[[]]", ("[0]",)),
    ('[{"@type": 7}]', ("[0]",)), ('[{"@type": "", "name": "x"}]', ('[0]: resource "x": @type: missing',)),
    ('{"@type": "", "@type": ""}', ("duplicate",)), ("[" * 5000, ("depth",))])
def test_what_is_no_resource_is_told_and_fails(tmp_path, text, words):
    """OPS-141"""
    path = tmp_path / "broken.json"
    path.write_text(text)
    done = check(path)
    assert done.returncode == 1 and "broken.json" in done.stderr, done
    assert all(word in done.stdout for word in words), done.stdout


def test_a_state_file_that_is_damaged_is_a_fault(tmp_path):
    """OPS-141"""
    (tmp_path / "xds-state").write_bytes(b"SHUNTXDS" + bytes(24))
    done = check(tmp_path)
    assert done.returncode == 1 and "xds-state" in faults(done)[0], done


def test_a_name_cannot_forge_a_line(tmp_path):
    """OPS-141"""
    done = check(write(tmp_path / "all.json", {**good_routes(HOSTILE), "virtual_hosts": 7}))
    assert len(faults(done)) == 1 and "\x1b" not in done.stdout, done.stdout


def test_an_empty_folder_and_a_missing_one_fail(tmp_path):
    """OPS-141"""
    for path, words in ((tmp_path, "no resource"), (tmp_path / "none", "No such file")):
        done = check(path)
        assert done.returncode == 1 and words in done.stderr, done
