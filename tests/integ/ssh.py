# SPDX-License-Identifier: Apache-2.0
"""OpenSSH's server in a namespace of a lab, with keys of its own, and its client in another one."""

import pathlib

from lab import command, wait_until

SSHD = "/usr/sbin/sshd"  # which wants to be started by its whole path
SEPARATION = pathlib.Path("/run/sshd")  # where it locks up what talks to strangers; systemd makes it otherwise
PORT = 2222
START_S = 10
TRANSFER_S = 60
CONFIG = """Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
"""


def make_key(path):
    command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])
    return path.with_suffix(".pub").read_text()


class Ssh:
    """sshd on all addresses of ns, and whoever may log in there."""

    def __init__(self, lab, ns):
        self.lab, self.folder = lab, lab.dir / f"ssh-{ns}"
        self.folder.mkdir()
        host_key = make_key(self.folder / "host")
        make_key(self.folder / "user")
        (self.folder / "known").write_text(f"* {host_key}")
        config = self.folder / "config"
        config.write_text(CONFIG.format(port=PORT, folder=self.folder))
        SEPARATION.mkdir(mode=0o755, exist_ok=True)
        self.server = lab.start(ns, f"sshd-{ns}", [SSHD, "-D", "-e", "-f", config])
        wait_until(lambda: "listening" in self.server.output(), START_S, f"sshd of {ns}")

    def line(self, ip, remote):
        """A line of sh that runs a command there."""
        options = {"UserKnownHostsFile": self.folder / "known", "StrictHostKeyChecking": "yes", "BatchMode": "yes",
                   "IdentitiesOnly": "yes", "ConnectTimeout": START_S}
        words = " ".join(f"-o {name}={value}" for name, value in options.items())
        return f"ssh -F none -i {self.folder}/user -p {PORT} {words} root@{ip} '{remote}'"

    def carry(self, ns, ip, body):
        """From ns, there and back; whether it is the same then."""
        there, back = self.folder / "there", self.folder / "back"
        there.write_bytes(body)
        self.lab.exec(ns, ["sh", "-c", f"{self.line(ip, 'cat')} <{there} >{back}"], TRANSFER_S)
        return back.read_bytes() == body
