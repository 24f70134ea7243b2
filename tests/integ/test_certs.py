# SPDX-License-Identifier: Apache-2.0
"""Certificates of files: what --check says of bad ones, and what the running daemon keeps and shows."""

import base64
import json
import os

import pytest

from lab import wait_until
from pki import Pki, replace
from test_daemon import check
from testbed import EXAMPLE

TAKES_S = 30
CERT, KEY, CA, MAP = ("certificate_file", "private_key_file", "ca_certificate_file", "spiffe_trust_bundle_map_file")


@pytest.fixture(name="made", scope="module")
def fixture_made(tmp_path_factory):
    """Good ones, once: ca, leaf, other, and a leaf with a small key."""
    made = Pki(tmp_path_factory.mktemp("pki"))
    made.authority("ca")
    made.leaf("leaf", "ca")
    made.leaf("other", "ca")
    made.leaf("small", "ca", key="rsa:1024")
    made.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp256k1", "-nodes", "-subj", "/CN=curve",
             "-keyout", "curve.key", "-out", "curve.pem")
    made.run("x509", "-req", "-sha1", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
             "-out", "sha1.pem")
    made.run("pkcs8", "-topk8", "-in", "leaf.key", "-out", "encrypted.key", "-passout", "pass:secret")
    made.run("x509", "-in", "leaf.pem", "-outform", "DER", "-out", "leaf.der")
    made.run("pkey", "-in", "leaf.key", "-pubout", "-out", "public.key")
    return made


def der_map(made, **changes):
    der = base64.b64encode((made.folder / "leaf.der").read_bytes()).decode()
    return json.dumps({"trust_domains": {"a.example": {"keys": [
        {"kty": "EC", "use": "x509-svid", "x5c": [der], **changes}]}}})


# (what is wrong, the field whose file it is, what the file has (None: nothing is there), the reason)
PLANTED = (
    ("certificate missing", CERT, None, "No such file or directory"),
    ("key missing", KEY, None, "No such file or directory"),
    ("CA missing", CA, None, "No such file or directory"),
    ("map missing", MAP, None, "No such file or directory"),
    ("certificate empty", CERT, lambda made: "", "is empty"),
    ("key empty", KEY, lambda made: "", "is empty"),
    ("CA empty", CA, lambda made: "", "is empty"),
    ("certificate garbage", CERT, lambda made: "garbage\n", "has no certificate in PEM"),
    ("key garbage", KEY, lambda made: "garbage\n", "has no private key in PEM"),
    ("certificate in DER", CERT, lambda made: (made.folder / "leaf.der").read_bytes(),
     "is binary (DER?), not a certificate in PEM"),
    ("certificate cut", CERT, lambda made: made.pem("leaf")[:-60], "certificate 1 cannot be decoded ("),
    ("certificate altered", CERT, lambda made: made.pem("leaf").replace("MII", "M!!", 1),
     "certificate 1 cannot be decoded ("),
    ("second CA cut", CA, lambda made: made.pem("ca") + made.pem("leaf")[:200], "certificate 2 cannot be decoded ("),
    ("key in place of the certificate", CERT, lambda made: made.key("leaf"), "has a private key, not a certificate"),
    ("certificate in place of the key", KEY, lambda made: made.pem("leaf"), "has a certificate, not a private key"),
    ("public key in place of the key", KEY, lambda made: made.key("public"), "has a public key, not a private key"),
    ("key of another", KEY, lambda made: made.key("other"), "the key is not that of the first certificate"),
    ("key with a password", KEY, lambda made: made.key("encrypted"), "the private key is encrypted"),
    ("key cut", KEY, lambda made: made.key("leaf")[:-60], "the private key cannot be decoded ("),
    ("key too small", KEY, lambda made: made.key("small"), "the RSA key has 1024 bits; 2048 or more are needed"),
    ("curve that TLS does not use", CERT, lambda made: made.pem("curve"),
     "certificate 1 (CN=curve): the key is on the curve secp256k1"),
    ("signature by SHA-1", CERT, lambda made: made.pem("sha1") + made.pem("ca"),
     "certificate 1 (CN=leaf): its signature by SHA1 is too weak for TLS"),
    ("certificate with blanks before", CERT, lambda made: "  " + made.pem("leaf").replace("\n", "\n  "),
     "has PEM that begins within a line (is it indented?)"),
    ("map that is no JSON", MAP, lambda made: "{", "line 1 column 1"),
    ("map without domains", MAP, lambda made: "{}", "trust_domains: is not an object"),
    ("map of another use", MAP, lambda made: der_map(made, use="jwt-svid"), 'use: is not "x509-svid"'),
    ("map with a bad certificate", MAP, lambda made: der_map(made, x5c=["AAAA"]), "x5c: is not a DER certificate"),
)


def bootstrap_of(folder, **files):
    """The example's bootstrap with a provider of these files, written beside them."""
    text = json.loads((EXAMPLE / "bootstrap.json").read_text())
    config = {field: str(path) for field, path in files.items()}
    text["certificate_providers"] = {"default": {"plugin_name": "file_watcher", "config": config}}
    path = folder / "bootstrap.json"
    path.write_text(json.dumps(text))
    return path


def good_files(made):
    return {CERT: made.folder / "leaf.pem", KEY: made.folder / "leaf.key", CA: made.folder / "ca.pem"}


def check_files(folder, config=EXAMPLE / "shunt.yaml", **files):
    return check(config, GRPC_XDS_BOOTSTRAP=str(bootstrap_of(folder, **files)))


def test_check_accepts_good_files(tmp_path, made):
    (tmp_path / "map").write_text(der_map(made))
    done = check_files(tmp_path, **good_files(made), **{MAP: tmp_path / "map"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("field, plant, why", [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED])
def test_check_names_the_provider_the_file_and_what_is_wrong(tmp_path, made, field, plant, why):
    """TLS-105 to TLS-108, TLS-252, TLS-253, TLS-256."""
    path = tmp_path / "planted"
    if plant:
        text = plant(made)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = check_files(tmp_path, **{**good_files(made), field: path})
    assert done.returncode == 1, done
    assert f'certificate provider "default": {field} {path}: ' in done.stderr, done.stderr
    assert why in done.stderr, done.stderr


def test_check_names_a_key_that_anybody_may_write(tmp_path, made):
    """TLS-105."""
    path = tmp_path / "open.key"
    path.write_text(made.key("leaf"))
    path.chmod(0o666)
    done = check_files(tmp_path, **{**good_files(made), KEY: path})
    assert done.returncode == 1 and f"{path}: is writable by everybody (mode 0666)" in done.stderr, done.stderr


def test_check_names_a_bad_file_for_an_xds_server(tmp_path, made):
    """BT-05."""
    text = json.loads((EXAMPLE / "bootstrap.json").read_text())
    text["xds_servers"][0]["channel_creds"] = [{"type": "tls", "config": {
        CERT: str(made.folder / "leaf.pem"), KEY: str(made.folder / "other.key")}}]
    path = tmp_path / "bootstrap.json"
    path.write_text(json.dumps(text))
    done = check(EXAMPLE / "shunt.yaml", GRPC_XDS_BOOTSTRAP=str(path))
    assert done.returncode == 1, done
    assert (f'xDS server "127.0.0.1:18000": {KEY} {made.folder}/other.key: '
            "the key is not that of the first certificate") in done.stderr, done.stderr


def test_check_names_a_bad_crl(tmp_path, made):
    """TLS-110."""
    crls = tmp_path / "crls"
    crls.mkdir()
    (crls / "ca.pem").write_text("garbage")
    config = tmp_path / "shunt.yaml"
    config.write_text((EXAMPLE / "shunt.yaml").read_text() + f"tls: {{crl_directory: {crls}}}\n")
    done = check_files(tmp_path, config, **good_files(made))
    assert done.returncode == 1, done
    assert f"crl_directory: {crls}/ca.pem: has no CRL in PEM" in done.stderr, done.stderr


def put_links(folder, target, made, name):
    """The files as Kubernetes mounts a secret: links to ..data/, which is a link to this folder."""
    (folder / target).mkdir()
    (folder / target / "tls.crt").write_text(made.pem(name))
    (folder / target / "tls.key").write_text(made.key(name))
    os.symlink(target, folder / "..tmp")
    (folder / "..tmp").rename(folder / "..data")


def own(bed):
    """What `show certs` has of ours, by its subject, and of the provider."""
    shown = bed.show("certs")
    return [c["subject"] for c in shown["certificates"] if c["kind"] == "own"], shown["providers"][0]


def test_certificates_change_without_a_restart_and_a_bad_one_changes_nothing(make_world, made, tmp_path):
    """TLS-109, TLS-111, TLS-252."""
    mount = tmp_path / "mount"
    mount.mkdir()
    put_links(mount, "..1", made, "leaf")
    for name in ("tls.crt", "tls.key"):
        os.symlink(f"..data/{name}", mount / name)
    ca = tmp_path / "ca.pem"
    ca.write_text(made.pem("ca"))
    bootstrap = bootstrap_of(tmp_path, **{CERT: mount / "tls.crt", KEY: mount / "tls.key", CA: ca})
    bed = make_world().bed
    bed.start_xds()
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(bootstrap)})
    subjects, provider = own(bed)
    assert subjects == ["CN=leaf"] and provider["version"] == 1 and provider["error"] == "", provider

    put_links(mount, "..2", made, "other")
    wait_until(lambda: own(bed)[0] == ["CN=other"], TAKES_S, "the other certificate")
    replace(ca, "garbage")
    wait_until(lambda: "has no certificate in PEM" in own(bed)[1]["error"], TAKES_S, "the error")
    subjects, provider = own(bed)
    assert subjects == ["CN=other"] and provider["version"] == 2 and provider["failed"] == 1, provider
    assert bed.daemon.output().count('msg="certificates refused" provider="default"') == 1
    assert 'shunt_certificate_failing{provider="default"} 1' in bed.shuntctl("show", "metrics")

    replace(ca, made.pem("ca"))
    wait_until(lambda: own(bed)[1]["error"] == "", TAKES_S, "a good state")
    text = bed.shuntctl("show", "metrics")
    left = next(line for line in text.splitlines() if line.startswith(
        'shunt_certificate_seconds_left{provider="default",kind="own"} '))
    assert 0 < int(left.split()[-1]) <= 2 * 86400
    life = text.split('shunt_certificate_lifetime_seconds{provider="default",kind="own"} ')[1].split()[0]
    assert float(life) == pytest.approx(2 * 86400, abs=2)
    assert 'shunt_certificate_failing{provider="default"} 0' in text
    assert 'shunt_certificate_version{provider="default"} 2' in text
    assert 'shunt_certificate_readings_total{provider="default",result="failed"} 1' in text

    put_links(mount, "..3", made, "curve")
    wait_until(lambda: "on the curve secp256k1" in own(bed)[1]["error"], 5, "the error of the curve")
    assert own(bed)[0] == ["CN=other"]
    assert 'shunt_certificate_failing{provider="default"} 1' in bed.shuntctl("show", "metrics")
    assert "CN=other" in bed.shuntctl("show", "certs")
