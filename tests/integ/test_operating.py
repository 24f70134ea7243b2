# SPDX-License-Identifier: Apache-2.0
"""docs/operating.md: each command of it that needs neither a card nor systemd is typed, one after the other, into a
daemon at which something fails (operating_page.py says who types the others)."""

import os
import re
import signal

from agent import Agent
from operating_page import CARD, CONFIG, INSTALL, OF_PACKAGES, PAGE, commands, typed
from test_one_request import ask, slow
from testbed import BUILD, EXAMPLE, PORT, ROOT
from world import WEB_PORT, split_of

BOUND_S = 150  # the longest that a command of the page waits, and a little


def section_of(page, title):
    return page.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_what_the_page_says_of_an_examination_is_so():
    """That what it says the host is looked at for are checks of the host, not of a daemon; and that each page has the
    service's user, limits and capabilities."""
    told = section_of(PAGE, INSTALL).split("[host]")[1].split("It does so")[0]
    checks = set(re.findall(r"^\| `([a-z-]+)`", section_of(ROOT / "docs/doctor.md", "The host"), re.MULTILINE))
    named = set(re.findall(r"`([a-z-]+)`", told))
    assert named and named <= checks, (named, checks)
    examine = commands()[INSTALL][-1]
    assert examine.startswith("systemd-run ") and examine.count("\n") == 2, examine
    for page in ("docs/doctor.md", "docs/package.md"):
        assert examine in (ROOT / page).read_text(), page
    unit = (ROOT / "debian/shunt.service").read_text().splitlines()
    for setting in re.findall(r'-p (?:"([^"]+)"|(\S+))', examine):
        setting = "".join(setting).replace("EnvironmentFile=", "EnvironmentFile=-")
        assert setting in unit, (setting, unit)


def version_of(bed):
    return next(r["version"] for r in bed.show("xds")["resources"] if r["name"] == "web-routes")


def id_of_a_failure(bed):
    answer = ask(Agent(bed.lab, "client", "client", "h2_agent.py"), "/slow")
    assert answer["status"] == 504, answer
    return dict(answer["fields"])["x-request-id"]


def test_each_command_of_the_page_does_what_it_says(make_world, lab):
    captures = lab.dir / "captures"
    captures.mkdir()
    world = make_world(extra_routes=[slow()])
    bed = world.bed
    bed.settings += f"capture: {{directory: {captures}}}\n"
    world.start()
    bed.run_calls("unary", count=1)
    world.backends["rpc-1"].signal(signal.SIGSTOP)
    words = {"ID": id_of_a_failure(bed), "CLUSTER": "blue", "ENDPOINT": f"10.82.1.1:{WEB_PORT}", "FILE": "slow.pcapng",
             "FRONTEND": "web", "AUTHORITY": "web.example", "PATH": "/", "PORT": str(PORT), "VERSION": version_of(bed),
             CONFIG: str(lab.dir / "shunt.yaml")}
    shell = ["env", f"GRPC_XDS_BOOTSTRAP={EXAMPLE / 'bootstrap.json'}", f"SHUNT_SOCKET={bed.stats_socket}",
             f"PATH={BUILD / 'tools'}:{BUILD / 'ctrl'}:{os.environ['PATH']}", "sh", "-c"]
    ours = [c for section, all_ in commands().items() if section != CARD for c in all_ if not c.startswith(OF_PACKAGES)]
    for command in ours:
        line = typed(command, words)
        done = lab.exec("lb", [*shell, line], check=False, timeout=BOUND_S)
        examines = "doctor" in line or "--device" in line
        # Of an examination the status says how bad what it found is.
        assert done.returncode == 0 or (examines and done.returncode <= 2), (line, done.stdout, done.stderr)
        assert "!=ACKED" not in line or "web-routes" not in done.stdout, done.stdout
        assert done.stdout.strip() or (line.startswith("shuntd") and not examines), line
    assert bed.show("overrides") == []
    assert (captures / "slow.pcapng").stat().st_size > 0
    world.backends["rpc-1"].signal(signal.SIGCONT)
    report = bed.run_h2load(requests=100, clients=1, streams=4)
    assert report.perfect and min(split_of(report)) > 0, report
