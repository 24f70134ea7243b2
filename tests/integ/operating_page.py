# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/operating.md, which tests type as they stand there, with a value for each word in capitals:
those that need a card in test_pci.py, those that need a package and systemd in test_service.py, all others in
test_operating.py. What systemd-run runs as the service's user is typed without it."""

import re

from testbed import ROOT

PAGE = ROOT / "docs/operating.md"
INSTALL = "Install it"  # a section
CARD = "Bind a network card"
UPGRADE = "Upgrade"
CONFIG = "/etc/shunt/shunt.yaml"
OF_PACKAGES = ("apt ", "systemctl ")


def commands():
    """{section: its commands, in order}."""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        found[title] = re.findall(r"^    (\S(?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert sum(map(len, found.values())) > 40, found
    return found


def typed(command, words):
    """The command, with what words has in place of each of them."""
    command = re.sub(r"^systemd-run .*\\\n *", "", command, flags=re.DOTALL)
    return re.sub("|".join(rf"(?<![\w.-]){re.escape(w)}(?![\w-])" for w in words), lambda m: words[m[0]], command)
