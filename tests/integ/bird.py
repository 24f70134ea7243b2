# SPDX-License-Identifier: Apache-2.0
"""BIRD 2 in a namespace of a lab: a router, or the routing daemon of a host."""

from lab import LabError, command, wait_until

ESTABLISHED_TIMEOUT_S = 20


class Bird:
    """config_text: all of bird.conf. name: told apart where a namespace has several."""

    def __init__(self, lab, netns, config_text, name=None):
        self.lab, self.netns = lab, netns
        self.name = name or f"bird-{netns}"
        self.config = lab.dir / f"{self.name}.conf"
        self.socket = lab.dir / f"{self.name}.ctl"
        self.config.write_text(config_text)
        self.process = None

    def start(self):
        argv = ["bird", "-f", "-c", self.config, "-s", self.socket, "-P", self.config.with_suffix(".pid")]
        self.process = self.lab.start(self.netns, self.name, argv)
        return self

    def ask(self, *words):
        """What birdc says; "" while nobody answers."""
        return command(["birdc", "-r", "-s", self.socket, *words], check=False).stdout

    def protocol(self, name):
        """(state, info, since) of a protocol, e.g. ("up", "Established", "10:38:25.441")."""
        for line in self.ask("show", "protocols", name).splitlines():
            words = line.split()
            if words and words[0] == name:
                return words[3], " ".join(words[5:]), words[4]
        return None, "", None

    def is_established(self, name):
        if not self.process.alive():
            raise LabError(f"{self.name} ended: {self.process.output()}")
        return self.protocol(name)[:2] == ("up", "Established")

    def wait_established(self, *names, timeout=ESTABLISHED_TIMEOUT_S):
        """Until each of these BGP sessions is."""
        for name in names:
            wait_until(lambda name=name: self.is_established(name), timeout, f"{self.name}: {name} established")

    def bfd_state(self, ip):
        """"Up", "Down", "Init", or None without a session."""
        for line in self.ask("show", "bfd", "sessions").splitlines():
            words = line.split()
            if words and words[0] == ip:
                return words[2]
        return None
