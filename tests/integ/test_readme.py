# SPDX-License-Identifier: Apache-2.0
"""README.md's tour: its commands are typed as they stand there, into the demo's world. Not those that go on until they
are ended, nor those that build or remove it."""

import re

from demo_world import DemoWorld
from testbed import BUILD, ROOT

GOES_ON = re.compile(r"tools/demo|ninja |export SHUNT_SOCKET|.*(shuntctl top|shunt-xds (serve|proxy))")
BOUND_S = 120


def tour():
    """Its commands, in order, without what is said of them behind."""
    text = (ROOT / "README.md").read_text().split("\n## A tour\n")[1].split("\n## ")[0]
    found = [re.sub(r"\s+# .*", "", line) for line in re.findall(r"^    ([^#\s].*)$", text, re.MULTILINE)]
    assert len(found) > 20, found
    return [line for line in found if not GOES_ON.match(line)]


def test_ops_264_each_command_of_the_tour_does_what_it_says(lab):
    world = DemoWorld(lab)
    world.bed.start_xds()
    world.start_daemon()
    lines = tour()
    exports = "; ".join(line for line in lines if line.startswith("export "))
    for line in lines:
        if line.startswith("export "):
            continue
        where = "lb"
        if line.startswith("ip netns exec "):
            where, line = "client", line.split("-client ")[1].replace("-n 100000", "-n 1000")
        if line.startswith("build/"):
            line = str(BUILD) + line.removeprefix("build")
        done = lab.exec(where, ["env", f"SHUNT_SOCKET={world.bed.stats_socket}", "sh", "-c",
                                f"cd {ROOT}; {exports}; {line}"], check=False, timeout=BOUND_S)
        # Of an examination the status says how bad what it found is.
        assert done.returncode == 0 or "doctor" in line, (line, done.stdout, done.stderr)
        assert done.stdout.strip(), line
        assert "h2load" not in line or "1000 succeeded" in done.stdout, done.stdout
