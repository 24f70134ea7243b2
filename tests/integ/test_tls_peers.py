# SPDX-License-Identifier: Apache-2.0
"""Both protocols over TLS with clients of others: curl, h2load, gnutls-cli and openssl's s_client. Bodies of megabytes
are compared byte for byte; the backend has TLS as well."""

import os
import random
import re

import pytest

from conftest import check_end
from lab import wait_until
from test_tls import SIZE, URL, TlsWorld
from testbed import PORT, VIP

MEGABYTES = int(os.environ.get("SHUNT_TLS_MEGABYTES", "30"))
VERSIONS = ("1.2", "1.3")
REQUESTS = 20_000
TAKES_S = 30  # a step of a client
RETURNS = 6
TRANSFER_S = 60 + 2 * MEGABYTES
MARK = b"#" * SIZE
GET = "GET /tls/mark HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture(name="secured")
def fixture_secured(lab, tmp_path):
    world = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example").start()
    yield world
    check_end(world.bed)


def big(folder):
    """A file that is the same in each run."""
    path = folder / "big"
    path.write_bytes(random.Random(30).randbytes(MEGABYTES << 20))
    return path


def curl(w, *words):
    """What curl says of the status and the protocol."""
    return w.bed.lab.exec("client", [
        "curl", "-sS", "--max-time", str(TRANSFER_S), "--cacert", str(w.pki.folder / "ca.pem"),
        "-w", "%{http_code} %{http_version}", *map(str, words)], timeout=TRANSFER_S + 10).stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("words, protocol", (
    (["--http2"], "2"), (["--http1.1"], "1.1"), (["--http1.1", "--no-alpn"], "1.1")))
def test_curl_gets_and_sends_megabytes(secured, tmp_path, version, words, protocol):
    """TLS-180."""
    w, got = secured, tmp_path / "got"
    sent = big(w.bed.lab.dir / "www-tls" / "tls")
    limits = [*words, f"--tlsv{version}", "--tls-max", version, "-o", got]
    assert curl(w, *limits, f"{URL}/tls/big") == f"200 {protocol}"
    assert got.read_bytes() == sent.read_bytes()
    got.unlink()
    assert curl(w, *limits, "--data-binary", f"@{sent}", f"{URL}/tls/mark") == f"200 {protocol}"
    assert got.read_bytes() == sent.read_bytes()


def ask(w, version, text, *words):
    """What s_client hears until the connection ends."""
    asked, heard = w.folder / "asked", w.folder / "heard"
    asked.write_text(text)
    argv = ["openssl", "s_client", "-connect", f"{VIP}:{PORT}", "-CAfile", w.pki.folder / "ca.pem", "-quiet",
            "-verify_return_error", f"-tls{version.replace('.', '_')}", *words]
    w.bed.lab.exec("client", ["timeout", "20", "sh", "-c", f"{' '.join(map(str, argv))} < {asked} > {heard}"])
    return heard.read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("words", (["-alpn", "http/1.1"], ["-alpn", "x,http/1.1"], []))
def test_s_client_pipelines_two_requests(secured, version, words):
    """TLS-180, TLS-181: whether it names a protocol or none; and FIN comes behind close_notify."""
    heard = ask(secured, version, GET + "\r\n" + GET + "Connection: close\r\n\r\n", *words)
    answers = heard.split(b"HTTP/1.1 ")
    assert len(answers) == 3 and answers[0] == b"", heard
    assert all(a.startswith(b"200 ") and a.endswith(b"\r\n\r\n" + MARK) for a in answers[1:]), heard


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("length", (512, 4096))
def test_clients_get_no_longer_fragments_than_they_asked_for(secured, version, length):
    """TLS-250: beyond 128 KiB, behind which records are long; s_client fails at one that is too long."""
    w, text = secured, GET.replace("mark", "some") + "Connection: close\r\n\r\n"
    sent = random.Random(length).randbytes(300_000)
    (w.bed.lab.dir / "www-tls" / "tls" / "some").write_bytes(sent)
    heard = ask(w, version, text, "-alpn", "http/1.1", "-maxfraglen", length)
    assert heard.startswith(b"HTTP/1.1 200 ") and heard.endswith(b"\r\n\r\n" + sent), len(heard)
    asked, got = w.folder / "asked", w.folder / "got"
    asked.write_text(text)
    argv = ["gnutls-cli", "--port", PORT, "--x509cafile", w.pki.folder / "ca.pem", "--priority",
            f"NORMAL:-VERS-ALL:+VERS-TLS{version}", "--alpn", "http/1.1", "--recordsize", length, "--logfile",
            w.folder / "said", VIP]
    got.touch()
    # It leaves as soon as there is nothing more to send.
    lines = f"cat {asked}; while [ $(wc -c < {got}) -lt {len(sent)} ]; do sleep 0.1; done"
    w.bed.lab.exec("client", ["timeout", "20", "sh", "-c", f"({lines}) | {' '.join(map(str, argv))} > {got}"])
    assert sent in got.read_bytes()


def test_gnutls_cli_changes_keys_between_two_requests(secured):
    """TLS-13, TLS-180: asks for ours as well."""
    w = secured
    asked, heard, said = (w.folder / name for name in ("asked", "heard", "said"))
    os.mkfifo(asked)
    argv = ["gnutls-cli", "--port", PORT, "--x509cafile", w.pki.folder / "ca.pem", "--priority",
            "NORMAL:-VERS-ALL:+VERS-TLS1.3", "--alpn", "http/1.1", "--inline-commands", "--logfile", said, VIP]
    client = w.bed.lab.start("client", "gnutls", ["sh", "-c", f"{' '.join(map(str, argv))} < {asked} > {heard}"])

    def updates():
        return sum(worker["tls"]["key_updates_in"] for worker in w.bed.show_workers())

    def requests():
        return w.bed.show("info")["requests"]
    before = requests()
    with open(asked, "w", encoding="ascii", newline="") as words:
        for text, is_taken in ((GET + "\r\n", lambda: requests() == before + 1),
                               ("^rekey^\n", lambda: updates() == 1)):  # of what it has at once it takes no command
            print(text, end="", file=words, flush=True)
            wait_until(is_taken, TAKES_S, text)
        print(GET, end="Connection: close\r\n\r\n", file=words, flush=True)
        assert client.wait(TAKES_S) == 0
    answers = heard.read_bytes().split(b"HTTP/1.1 ")
    assert len(answers) == 3 and all(a.startswith(b"200 ") and MARK in a for a in answers[1:]), said.read_text()
    for name in ("key_updates_in", "key_updates_out"):
        assert sum(worker["tls"][name] for worker in w.bed.show_workers()) == 1, name


@pytest.mark.parametrize("version", VERSIONS)
def test_s_client_and_gnutls_cli_resume_their_sessions(secured, version):
    """TLS-58, TLS-237: s_client each ticket of 1.3 once."""
    w = secured
    asked = w.folder / "asked"
    asked.write_text(GET + "Connection: close\r\n\r\n")
    common = ["openssl", "s_client", "-connect", f"{VIP}:{PORT}", "-CAfile", w.pki.folder / "ca.pem", "-ign_eof",
              "-alpn", "http/1.1", f"-tls{version.replace('.', '_')}"]

    def run(argv):
        line = f"{' '.join(map(str, argv))} < {asked}"
        return w.bed.lab.exec("client", ["timeout", "20", "sh", "-c", line], check=False).stdout
    tickets = [w.folder / f"session-{n}" for n in range(RETURNS)]
    first = run([*common, "-sess_out", tickets[0]])
    assert "New, TLSv" in first, first
    for used, left in zip(tickets, tickets[1:]):
        again = run([*common, "-sess_in", used, "-sess_out", left])
        assert f"Reused, TLSv{version}" in again, again
        if version == "1.2":  # it leaves none, and goes on with what it has
            assert not left.exists()
            used.rename(left)
    if version == "1.3":
        assert len({ticket.read_bytes() for ticket in tickets}) == RETURNS
    said = run(["gnutls-cli", "--port", PORT, "--x509cafile", w.pki.folder / "ca.pem", "--priority",
                f"NORMAL:-VERS-ALL:+VERS-TLS{version}", "--alpn", "http/1.1", "--resume", "--waitresumption", VIP])
    assert "*** This is a resumed session" in said, said
    assert sum(worker["tls_clients"]["resumed"] for worker in w.bed.show_workers()) == RETURNS


def test_servers_prefer_http2_and_know_no_other_protocol(secured):
    """TLS-180."""
    for offered, agreed in (("http/1.1,h2", "ALPN protocol: h2"), ("x", "no application protocol")):
        done = secured.bed.lab.exec("client", [
            "openssl", "s_client", "-connect", f"{VIP}:{PORT}", "-alpn", offered], check=False)
        assert agreed in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("words", ([], ["--h1"]))
def test_h2load_asks_by_either_protocol(secured, words):
    out = secured.bed.lab.exec("client", [
        "h2load", *words, "-n", str(REQUESTS), "-c", "16", *([] if words else ["-m", "16"]), f"{URL}/tls/mark"],
        timeout=TRANSFER_S).stdout
    assert re.search(rf"{REQUESTS} succeeded, 0 failed, 0 errored", out), out
    assert f"Application protocol: {'http/1.1' if words else 'h2'}" in out, out
