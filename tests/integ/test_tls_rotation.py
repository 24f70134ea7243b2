# SPDX-License-Identifier: Apache-2.0
"""Certificate, CAs, CRL and the secret of tickets, all of them new each second, under load: no request fails, and what
is new counts. A prober makes a handshake ten times a second and says whose certificate it saw. SHUNT_ROTATIONS=60 is
the long form."""

import hashlib
import os
import ssl
import statistics
import sys
import time

import pytest

from lab import wait_until
from pki import replace
from steady import steady_load
from test_tls import REFRESH_S, SIZE, URL, TlsWorld
from test_tls_resumption import Clients
from testbed import PORT, VIP

ROTATIONS = int(os.environ.get("SHUNT_ROTATIONS", "10"))
SEEN_S = 20
RUN_S = 5  # how long clients stay that are there all the while
NEW_CLIENTS = 4  # of each second, beside those that stay
SLACK_S = 1  # beside the refresh: no handshake has an older certificate later than both
MIN_PROBES = 3  # a second

# usage: HOST PORT. Ten handshakes a second: when each began and ended, by the clock of all processes, and the hash of
# the certificate, or why there is none.
PROBE = """
import hashlib, socket, ssl, sys, time
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["h2"])
while True:
    began = time.monotonic()
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as raw, context.wrap_socket(raw) as client:
            said = hashlib.sha256(client.getpeercert(True)).hexdigest()
    except OSError as error:
        said = repr(error)
    print(began, time.monotonic(), said, flush=True)
    time.sleep(max(0, began + 0.1 - time.monotonic()))
"""


class RotatingWorld(TlsWorld):
    """Clients may have a certificate. What each of so many seconds brings is made before: openssl needs its time."""

    def __init__(self, lab, folder, seconds=ROTATIONS):
        super().__init__(lab, folder, names=["web.example"], sni="web.example")
        self.crls = folder / "crls"
        self.crls.mkdir()
        self.made = folder / "made"
        self.made.mkdir()
        self.secret = folder / "secret"
        self.secret.write_text("s" * 48)
        self.bed.frontend_settings = "tls: {certificate: front, ca: ca}"
        self.bed.settings = f"tls: {{crl_directory: {self.crls}, ticket_secret: {self.secret}, crl_refresh_s: 1}}\n"
        (self.pki.folder / "first-ca.pem").write_text(self.pki.pem("ca"))
        self.put_at = []  # when the n-th certificate was there
        for n in range(seconds):
            self.prepare(n)

    def prepare(self, n):
        """front-n, client-n; guest-n of the authority extra-n; former-n, and the CRL that revokes it."""
        self.pki.leaf(f"front-{n}", "ca", f"DNS:front.example,IP:{VIP}")
        self.pki.leaf(f"client-{n}", "ca", "URI:spiffe://a/client")
        self.pki.authority(f"extra-{n}")
        self.pki.leaf(f"guest-{n}", f"extra-{n}", "DNS:guest")
        self.pki.leaf(f"former-{n}", "ca", "DNS:former")
        (self.made / f"crl-{n}").write_text(self.pki.crl("ca", f"former-{n}"))

    def rotate(self, n):
        for name in ("front", "client"):
            replace(self.pki.folder / f"{name}.key", self.pki.key(f"{name}-{n}"))
            replace(self.pki.folder / f"{name}.pem", self.pki.pem(f"{name}-{n}"))
            if name == "front":
                self.put_at.append(time.monotonic())
        replace(self.pki.folder / "ca.pem", self.pki.pem("first-ca") + self.pki.pem(f"extra-{n}"))
        replace(self.secret, f"secret {n} ".ljust(48, "s"))
        replace(self.crls / "ca.pem", (self.made / f"crl-{n}").read_text())

    def accepts(self, name):
        code, said = self.curl("/mark", *self.own(name), ca="first-ca")
        return code == 0 and said.startswith("200 ")


class Prober:
    """Handshakes all the while: (began, ended, number of the certificate, -1 for the first one)."""

    def __init__(self, w):
        self.w = w
        self.process = w.bed.lab.start("client", "prober", [sys.executable, "-c", PROBE, VIP, PORT])
        wait_until(lambda: len(self.process.output().splitlines()) > MIN_PROBES, SEEN_S, "the first handshakes")

    def end(self):
        self.process.kill()
        numbers = {self.hash_of("first"): -1, **{self.hash_of(f"front-{n}"): n for n in range(ROTATIONS)}}
        found = []
        for line in self.process.output().splitlines():
            began, ended, said = line.split(" ", 2)
            assert said in numbers, f"a handshake failed: {said}"
            found.append((float(began), float(ended), numbers[said]))
        return found

    def hash_of(self, name):
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.w.pki.pem(name))).hexdigest()


def check_probes(probes, put_at):
    """Seconds after which each new certificate, or a later one, was first seen."""
    assert len(probes) >= MIN_PROBES * (put_at[-1] - put_at[0]), len(probes)
    for began, _, number in probes:
        due = max((n for n, at in enumerate(put_at) if at + REFRESH_S + SLACK_S <= began), default=-1)
        assert number >= due, f"certificate {number}, {began - put_at[due]:.2f} s after {due} was there"
    return [min(ended - at for began, ended, number in probes if number >= n) for n, at in enumerate(put_at)]


def rotate_all(w):
    """Returns how many rotations took longer than a second."""
    late = 0
    for n in range(ROTATIONS):
        began = time.monotonic()
        w.rotate(n)
        wait_until(lambda: w.accepts(f"guest-{n}"), SEEN_S, "the new authority")  # pylint: disable=cell-var-from-loop
        wait_until(lambda: not w.accepts(f"former-{n}"), SEEN_S, "the CRL")  # pylint: disable=cell-var-from-loop
        fresh = w.bed.run_h2load(url=URL, path="/tls/mark", requests=40, clients=NEW_CLIENTS, streams=2)
        assert fresh.perfect, fresh
        if n:
            assert not w.accepts(f"guest-{n - 1}"), n
        spent = time.monotonic() - began
        late += spent > 1
        time.sleep(max(0, 1 - spent))
    time.sleep(REFRESH_S + SLACK_S + 0.5)  # for a probe behind the last one's time
    return late


def check_secret(w):
    """Sessions are resumed by the secret that they are of, and by no other: nothing else changes here."""
    clients, own = Clients(w.pki, ssl.TLSVersion.TLSv1_3), w.secret.read_text()
    clients.visit(w.bed.lab)
    for secret, resumed in (("another", 0), (own, 1)):
        replace(w.secret, secret.ljust(48, "s"))
        wait_until(lambda: clients.resumed(w.bed.lab, 1) == resumed, SEEN_S, secret)  # pylint: disable=W0640


def check_first_authority(w):
    """It goes as well, and nobody of it is accepted."""
    last = ROTATIONS - 1
    assert w.accepts("client") and w.accepts(f"guest-{last}")
    replace(w.pki.folder / "ca.pem", w.pki.pem(f"extra-{last}"))
    wait_until(lambda: not w.accepts("client"), SEEN_S, "the end of the first authority")
    assert w.accepts(f"guest-{last}")


@pytest.mark.timeout(150 + 6 * ROTATIONS)
def test_all_of_it_changes_each_second_under_load(lab, tmp_path):
    """TLS-58, TLS-163, TLS-195: a new handshake has the new certificate within the refresh and a second; a guest comes
    with its authority and goes with it, and a certificate is refused once its CRL is there."""
    w = RotatingWorld(lab, tmp_path)
    (w.pki.folder / "first.pem").write_text(w.pki.pem("front"))
    w.start()
    for n in range(ROTATIONS):
        assert w.accepts(f"former-{n}"), n
    amount = {"url": URL, "seconds": RUN_S, "clients": 4, "streams": 4, "rate": 100}
    with steady_load(w.bed, {"path": "/mark", **amount}, {"path": "/tls/mark", **amount}) as reports:
        prober = Prober(w)
        late = rotate_all(w)
        probes = prober.end()
    seen_s = check_probes(probes, w.put_at)
    assert w.curl("/tls/mark") == (0, f"200 {SIZE}")
    check_secret(w)
    check_first_authority(w)
    contexts = w.bed.show("certs")["contexts"]
    assert all(c["error"] == "" and c["version"] > ROTATIONS // 2 for c in contexts), contexts
    print(f"{ROTATIONS} rotations, {late} of them took more than a second; {len(probes)} handshakes saw the new "
          f"certificate after {statistics.median(seen_s):.2f} s, after {max(seen_s):.2f} s at the latest; "
          f"{sum(run.total for runs in reports for run in runs)} requests meanwhile")
