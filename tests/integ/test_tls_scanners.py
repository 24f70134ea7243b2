# SPDX-License-Identifier: Apache-2.0
"""What scanners find on a frontend with TLS: sslyze, and in the long form (SHUNT_TESTSSL=1) testssl.sh as well, which
takes minutes."""

import json
import os
import shutil
import sys

import pytest

from conftest import check_end
from test_tls import TlsWorld
from testbed import PORT, VIP

SCAN_S = 120
LONG = os.environ.get("SHUNT_TESTSSL") == "1"
LONG_S = 900
KEYS = {"ECDSA": None, "RSA": "rsa:2048"}  # of the certificates, by what suites of 1.2 call them
SUITES = {
    "tls_1_3": {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"},
    **{version: set() for version in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1")},
}
SCANS = ("sslv2", "sslv3", "tlsv1", "tlsv1_1", "tlsv1_2", "tlsv1_3", "reneg", "elliptic_curves", "robot", "ems",
         "early_data", "fallback", "openssl_ccs", "resum", "heartbleed", "compression")
CURVES = {"X25519", "secp256r1", "secp384r1"}
FINDINGS = {  # what else sslyze has to say
    "tls_compression": {"supports_compression": False},
    "tls_1_3_early_data": {"supports_early_data": False},
    "session_renegotiation": {"supports_secure_renegotiation": True, "client_renegotiations_success_count": 0,
                              "is_vulnerable_to_client_renegotiation_dos": False},
    "session_resumption": {"session_id_resumption_result": "NOT_SUPPORTED",
                           "tls_ticket_resumption_result": "FULLY_SUPPORTED"},
    "tls_extended_master_secret": {"supports_ems_extension": True},
    "tls_fallback_scsv": {"supports_fallback_scsv": True},
    "heartbleed": {"is_vulnerable_to_heartbleed": False},
    "openssl_ccs_injection": {"is_vulnerable_to_ccs_injection": False},
    "robot": {"robot_result": "NOT_VULNERABLE_RSA_NOT_SUPPORTED"},
}

HARMLESS = {"OK", "INFO", "DEBUG"}  # testssl.sh's severities
# Of a certificate of two days by an authority that it does not know, and of the openssl that it uses: with nothing to
# say that one goes before a ticket of 1.3 is there, if the machine is slow (sslyze says that tickets are taken).
OUR_TEST = {"cert_chain_of_trust", "cert_expirationStatus", "cert_notAfter", "cert_revocation", "engine_problem",
            "sessionresumption_ticket"}
TESTSSL = {  # what it must have looked at
    "SSLv2", "SSLv3", "TLS1", "TLS1_1", "TLS1_2", "TLS1_3", "cipherlist_NULL", "cipherlist_aNULL", "cipherlist_EXPORT",
    "cipherlist_LOW", "cipherlist_3DES_IDEA", "cipherlist_STRONG", "PFS", "heartbleed", "CCS", "ticketbleed", "ROBOT",
    "secure_renego", "secure_client_renego", "CRIME_TLS", "POODLE_SSL", "SWEET32", "FREAK", "DROWN", "LOGJAM", "BEAST",
    "LUCKY13", "RC4"}


def suites_of(key):
    """{version: the suites that there must be}"""
    return {**SUITES, "tls_1_2": {f"TLS_ECDHE_{key}_WITH_{cipher}" for cipher in (
        "AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256")}}


@pytest.fixture(name="key", params=KEYS)
def fixture_key(request):
    return request.param


@pytest.fixture(name="secured")
def fixture_secured(lab, tmp_path, key):
    world = TlsWorld(lab, tmp_path, key=KEYS[key]).start()
    yield world
    check_end(world.bed)


def scan(world):
    """{what was scanned: sslyze's result}."""
    path = world.folder / "sslyze.json"
    world.bed.lab.exec("client", [sys.executable, "-m", "sslyze", "--mozilla_config", "disable", "--quiet",
                                  "--json_out", path, *(f"--{name}" for name in SCANS), f"{VIP}:{PORT}"],
                       timeout=SCAN_S)
    server, = json.loads(path.read_text())["server_scan_results"]
    assert server["scan_status"] == "COMPLETED", server
    results = {}
    for name, one in server["scan_result"].items():
        if one["status"] == "NOT_SCHEDULED":
            continue
        assert one["status"] == "COMPLETED", (name, one["error_reason"], one["error_trace"])
        results[name] = one["result"]
    return results


@pytest.mark.timeout(SCAN_S + 60)
def test_sslyze_finds_two_versions_and_nothing_weak(secured, key):
    """TLS-62."""
    found = scan(secured)
    for version, wanted in suites_of(key).items():
        suites = found[f"{version}_cipher_suites"]["accepted_cipher_suites"]
        assert {suite["cipher_suite"]["name"] for suite in suites} == wanted, version
    assert {curve["name"] for curve in found["elliptic_curves"]["supported_curves"]} == CURVES
    for name, wanted in FINDINGS.items():
        assert found[name] == {**found[name], **wanted}, name


@pytest.mark.skipif(not LONG, reason="the long form, SHUNT_TESTSSL=1: some minutes")
@pytest.mark.timeout(LONG_S + 60)
def test_testssl_finds_nothing_weak(secured):
    """TLS-62."""
    path = secured.folder / "testssl.json"
    secured.bed.lab.exec("client", [
        "testssl", "--quiet", "--warnings", "off", "--color", "0", "--nodns", "none", "--jsonfile", str(path),
        "--protocols", "--std", "--fs", "--server-defaults", "--vulnerable", f"{VIP}:{PORT}"],
        timeout=LONG_S, check=False)
    found = json.loads(path.read_text())
    weak = {one["id"]: one["finding"] for one in found if one["severity"] not in HARMLESS}
    assert set(weak) <= OUR_TEST, weak
    assert TESTSSL <= {one["id"] for one in found}
