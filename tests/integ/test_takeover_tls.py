# SPDX-License-Identifier: Apache-2.0
"""Takeovers while files of certificates are bad, with which the process that serves goes on as they were."""

import os
import signal

import pytest

from lab import wait_until
from pki import replace
from takeover_world import WAIT_S, info
from test_tls import SIZE, TlsWorld


class BadFileWorld(TlsWorld):
    """Frontend, cluster and CRLs by files; SIGUSR2 starts newer processes."""

    def __init__(self, lab, folder):
        super().__init__(lab, folder, names=["web.example"])
        (self.pki.folder / "trusted.pem").write_text(self.pki.pem("ca"))  # by curl, while that one is bad
        self.crls = folder / "crls"
        self.crls.mkdir()
        (self.crls / "ca.pem").write_text(self.pki.crl("ca"))
        self.bed.settings = (f"takeover_socket: {lab.dir}/takeover.sock\n"
                             f"tls: {{crl_directory: {self.crls}, crl_refresh_s: 1}}\n")

    def serves(self):
        """Both sides of it."""
        code, said = self.curl("/mark", ca="trusted")
        return code == 0 and said.startswith("200 ") and self.curl("/tls/mark", ca="trusted") == (0, f"200 {SIZE}")

    def key_of_another(self):
        """(its path, what mends it)."""
        path = self.pki.folder / "front.key"
        good = path.read_text()
        replace(path, self.pki.key("client"))
        return path, lambda: replace(path, good)

    def cas_half_written(self):
        path = self.pki.folder / "ca.pem"
        good = path.read_text()
        replace(path, good[:len(good) // 2])
        return path, lambda: replace(path, good)

    def bad_crl(self):
        path = self.crls / "bad.pem"
        path.write_text("garbage")
        return path, path.unlink


@pytest.mark.timeout(150)
@pytest.mark.parametrize("spoil, source", (
    pytest.param(BadFileWorld.key_of_another, 'certificate provider \\"front\\": private_key_file ', id="key"),
    pytest.param(BadFileWorld.cas_half_written, 'certificate provider \\"ca\\": ca_certificate_file ', id="ca"),
    pytest.param(BadFileWorld.bad_crl, "crl_directory: ", id="crl"),
))
def test_fl_204_the_older_process_serves_until_the_newer_one_has_its_certificates(lab, tmp_path, spoil, source):
    """A key, CAs of a cluster, or a CRL."""
    w = BadFileWorld(lab, tmp_path).start()
    older = w.bed.daemon
    assert w.serves()
    path, mend = spoil(w)
    wait_until(lambda: 'msg="certificates refused"' in older.output(), WAIT_S, "the bad file to be told of")
    assert w.serves()
    older.signal(signal.SIGUSR2)
    wait_until(lambda: 'msg="newer process waits"' in older.output() or not older.alive() or
               info(w.bed)["pid"] != older.pid, WAIT_S, "the newer process")
    told = info(w.bed)
    assert told["pid"] == older.pid and told["takeover_lacks"] and w.serves()
    assert f'msg="takeover waits" reason="{source}{path}: ' in older.output()  # of the newer one, its child
    mend()
    wait_until(lambda: info(w.bed)["pid"] != older.pid and info(w.bed)["state"] == "ready", WAIT_S, "the takeover")
    assert w.serves()
    assert older.wait(WAIT_S) == 0 and w.serves()
    pid = info(w.bed)["pid"]
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), WAIT_S, "the end of the newer process")
