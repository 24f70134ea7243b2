# SPDX-License-Identifier: Apache-2.0
"""TLS between shuntd and its management server, both with certificates (gRFC A65)."""

import json
import os

import pytest

from lab import wait_until
from pki import Pki, replace
from testbed import BUILD, EXAMPLE, XDS_ADDRESS
from test_xds import wait_for_split

SEEN_S = 45  # a change of files: a second for each side, and a connection's backoff


@pytest.fixture(name="made")
def fixture_made(tmp_path):
    made = Pki(tmp_path / "pki")
    for name in ("ca", "alien"):
        made.authority(name)
    made.leaf("server", "ca")
    made.leaf("client", "ca", sans="DNS:client")
    made.leaf("stranger", "alien", sans="DNS:stranger")
    return made


def server_argv(bed, made):
    files = {"certificate": "server.pem", "key": "server.key", "client-ca": "ca.pem"}
    options = [word for name, file in files.items() for word in (f"--{name}", made.folder / file)]
    return [BUILD / "tools" / "shunt-xds" / "shunt-xds", "serve", bed.xds_folder, "--listen", XDS_ADDRESS, *options]


def bootstrap(folder, made, ca="ca", name="client"):
    text = json.loads((EXAMPLE / "bootstrap.json").read_text())
    text["xds_servers"][0]["channel_creds"] = [{"type": "tls", "config": {
        "ca_certificate_file": str(made.folder / f"{ca}.pem"), "refresh_interval": "1s",
        "certificate_file": str(made.folder / f"{name}.pem"), "private_key_file": str(made.folder / f"{name}.key")}}]
    path = folder / "bootstrap.json"
    path.write_text(json.dumps(text))
    return {"GRPC_XDS_BOOTSTRAP": str(path)}


def test_the_server_is_reached_by_tls_and_another_authority_needs_no_restart(make_world, made, tmp_path):
    """BT-05, TH-63."""
    world = make_world()
    bed = world.bed
    bed.start_xds(server_argv(bed, made))
    bed.start_daemon(env=bootstrap(tmp_path, made))
    world.set_weights(0, 100)
    wait_for_split(bed, 0)

    bed.xds.kill()  # another authority for both, under the same names of files
    other = Pki(tmp_path / "other")
    other.authority("ca")
    other.leaf("server", "ca")
    other.leaf("client", "ca", sans="DNS:client")
    for name in ("ca", "server", "client"):
        replace(made.folder / f"{name}.key", other.key(name))
        replace(made.folder / f"{name}.pem", other.pem(name))
    bed.start_xds(server_argv(bed, made))
    world.set_weights(100, 0)
    wait_for_split(bed, 100, timeout=30)
    assert bed.show("xds")["server"]["error"] == ""


def test_a_bad_certificate_of_the_server_leaves_what_was_good(make_world, made, tmp_path):
    """TLS-223: clients connect with the one before."""
    world = make_world()
    bed = world.bed
    bed.start_xds(server_argv(bed, made))
    replace(made.folder / "server.pem", "garbage")
    bed.start_daemon(env=bootstrap(tmp_path, made))
    replace(made.folder / "server.pem", made.pem("ca"))  # which is another key's
    bed.daemon.stop(30)
    bed.start_daemon(env=bootstrap(tmp_path, made), name="again")
    assert bed.show("xds")["server"]["error"] == ""


def test_a_key_of_the_server_that_becomes_a_fifo_leaves_what_was_good(make_world, made, tmp_path):
    """TLS-223: nobody waits for who would write into it."""
    world = make_world()
    bed = world.bed
    bed.start_xds(server_argv(bed, made))
    (made.folder / "server.key").unlink()
    os.mkfifo(made.folder / "server.key")
    bed.start_daemon(env=bootstrap(tmp_path, made))
    assert bed.show("xds")["server"]["error"] == ""


@pytest.mark.parametrize("ca, name, texts", (
    ("alien", "client", ("UNAVAILABLE", "certificate verify failed")),
    ("ca", "stranger", ("UNAVAILABLE",)),
), ids=("a server of an unknown authority", "our certificate is of an unknown authority"))
def test_who_is_not_trusted_is_refused_and_show_xds_says_so(make_world, made, tmp_path, ca, name, texts):
    """BT-05, TH-63."""
    bed = make_world().bed
    bed.start_xds(server_argv(bed, made))
    bed.start_daemon(wait=False, env=bootstrap(tmp_path, made, ca, name))
    wait_until(bed._stats_answer, SEEN_S, "the stats socket")
    wait_until(lambda: all(text in bed.show("xds")["server"]["error"] for text in texts), SEEN_S, "the error")
    shown = bed.show("xds")
    assert shown["server"]["responses"] == 0 and bed.show("info")["state"] == "starting", shown["server"]
    replace(made.folder / f"{ca}.pem", made.pem("ca"))  # mended: the server is reached without a restart
    replace(made.folder / f"{name}.key", made.key("client"))
    replace(made.folder / f"{name}.pem", made.pem("client"))
    bed.wait_for_daemon()
