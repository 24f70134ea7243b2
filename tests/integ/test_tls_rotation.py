# SPDX-License-Identifier: Apache-2.0
"""Certificate, CAs, CRL and the secret of tickets, all of them new each second, under load: no request fails, and what
is new counts. SHUNT_ROTATIONS=60 is the long form."""

import os
import time

import pytest

from lab import wait_until
from pki import replace
from steady import steady_load
from test_tls import SIZE, URL, TlsWorld, serial
from testbed import VIP

ROTATIONS = int(os.environ.get("SHUNT_ROTATIONS", "10"))
SEEN_S = 20
RUN_S = 5  # how long clients stay that are there all the while
NEW_CLIENTS = 4  # of each second, beside those that stay


class RotatingWorld(TlsWorld):
    """Clients may have a certificate. What each second brings is made before: openssl needs its time."""

    def __init__(self, lab, folder):
        super().__init__(lab, folder, names=["web.example"])
        self.crls = folder / "crls"
        self.crls.mkdir()
        self.made = folder / "made"
        self.made.mkdir()
        self.secret = folder / "secret"
        self.secret.write_text("s" * 48)
        self.bed.frontend_settings = "tls: {certificate: front, ca: ca}"
        self.bed.settings = f"tls: {{crl_directory: {self.crls}, ticket_secret: {self.secret}, crl_refresh_s: 1}}\n"
        self.first_ca = self.pki.pem("ca")
        for n in range(ROTATIONS):
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
        replace(self.pki.folder / "ca.pem", self.first_ca + self.pki.pem(f"extra-{n}"))
        replace(self.secret, f"secret {n} ".ljust(48, "s"))
        (self.made / f"crl-{n}").rename(self.crls / "ca.pem")

    def accepts(self, name):
        code, said = self.curl("/mark", *self.own(name))
        return code == 0 and said.startswith("200 ")


def rotate_all(w):
    """Returns how late a new certificate was seen at most, and how many rotations took longer than a second."""
    slowest, late = 0, 0
    for n in range(ROTATIONS):
        wanted = w.pki.run("x509", "-in", f"front-{n}.pem", "-noout", "-serial")
        began = time.monotonic()
        w.rotate(n)
        wait_until(lambda: serial(w) == wanted, SEEN_S, "the new certificate")  # pylint: disable=cell-var-from-loop
        slowest = max(slowest, time.monotonic() - began)
        wait_until(lambda: w.accepts(f"guest-{n}"), SEEN_S, "the new authority")  # pylint: disable=cell-var-from-loop
        wait_until(lambda: not w.accepts(f"former-{n}"), SEEN_S, "the CRL")  # pylint: disable=cell-var-from-loop
        fresh = w.bed.run_h2load(url=URL, path="/tls/mark", requests=40, clients=NEW_CLIENTS, streams=2)
        assert fresh.perfect, fresh
        if n:
            assert not w.accepts(f"guest-{n - 1}"), n
        spent = time.monotonic() - began
        late += spent > 1
        time.sleep(max(0, 1 - spent))
    return slowest, late


@pytest.mark.timeout(150 + 6 * ROTATIONS)
def test_all_of_it_changes_each_second_under_load(lab, tmp_path):
    """TLS-163, TLS-195: a new handshake has the new certificate within the refresh and a second; a guest comes with its
    authority and goes with it, and a certificate is refused once its CRL is there."""
    w = RotatingWorld(lab, tmp_path)
    w.start()
    for n in range(ROTATIONS):
        assert w.accepts(f"former-{n}"), n
    amount = {"url": URL, "seconds": RUN_S, "clients": 4, "streams": 4, "rate": 100}
    with steady_load(w.bed, {"path": "/mark", **amount}, {"path": "/tls/mark", **amount}) as reports:
        slowest, late = rotate_all(w)
    assert w.curl("/tls/mark") == (0, f"200 {SIZE}")
    contexts = w.bed.show("certs")["contexts"]
    assert all(c["error"] == "" and c["version"] > ROTATIONS // 2 for c in contexts), contexts
    print(f"{ROTATIONS} rotations, {late} of them took more than a second; the new certificate came within "
          f"{slowest:.2f} s; {sum(run.total for runs in reports for run in runs)} requests meanwhile")
