# SPDX-License-Identifier: Apache-2.0
"""shuntctl as people use it: conditions, a terminal with colours, units, completion and history, `top`."""

import json
import re
import subprocess

import pytest

from lab import LabError, wait_until
from terminal import CTRL_C, CTRL_D, TAB, UP, Terminal
from testbed import BUILD, ROOT

COMPLETION = ROOT / "tools" / "shuntctl" / "completion"
PROMPT = "shunt> "
RATE = 150  # requests a second, of all clients
TIMEOUT_S = 30

pytestmark = pytest.mark.timeout(240)


def told(world, *words):
    return json.loads(world.bed.shuntctl(*words, "json"))["data"]


@pytest.fixture(name="home")
def fixture_home(tmp_path):
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}


@pytest.fixture(name="shell")
def fixture_shell(world, home):
    """shuntctl without a command, at its first prompt."""
    with Terminal(world.bed.shuntctl_argv(), rows=60, columns=120, env=home) as terminal:
        terminal.wait_for(at_prompt, "the prompt")
        yield terminal


def at_prompt(text):
    return text.endswith(PROMPT.rstrip())


def run(terminal, command):
    """Types a command, and returns the screen with its answer."""
    terminal.screen.reset()
    terminal.type(command + "\n")
    terminal.wait_for(lambda text: command in text and at_prompt(text), f"the answer to {command}")
    return terminal.text


# Conditions.

def test_ops_120_conditions_choose_what_a_daemon_under_load_lists(world):
    world.bed.run_h2load(requests=2000)
    every = told(world, "show", "endpoints")
    busy = [row for row in every if row["cluster"] != "rpc" and row["requests"] > 0]
    busy.sort(key=lambda row: -row["requests"])
    rows = told(world, "show", "endpoints", "cluster!=rpc", "requests>0", "sort=-requests")
    assert rows == busy and len(rows) == 4
    assert told(world, "show", "endpoints", "requests>0", "sort=-requests", "limit=1") == busy[:1]
    text = world.bed.shuntctl("show", "endpoints", "state=READY", "cluster=green", "sort=endpoint")
    assert [line.split()[1] for line in text.splitlines()[1:]] == ["10.82.1.3:8080", "10.82.1.4:8080"]


# Each command that lists rows, with a column that it has.
LISTINGS = {"help": "level", "show listeners": "state", "show stat": "pxname", "show clusters": "cluster",
            "show endpoints": "cluster", "show load": "kind", "show overrides": "state", "show requests": "path",
            "show conns": "peer", "show failures": "text", "show errors": "text", "show events": "event",
            "show xds": "name", "show certs": "provider", "show pools": "pool", "show ports": "device",
            "show tcp": "peer", "show neighbors": "mac", "show neighbours": "mac", "show addresses": "kind"}
# What conditions choose for these is ended (test_hands.py).
ENDING = {"kill request", "kill conn"}


def test_ops_120_every_listing_has_conditions(world):
    has_rows = {row["command"] for row in told(world, "help") if row["conditions"]}
    assert has_rows == set(LISTINGS) | ENDING
    for command, column in LISTINGS.items():
        words = command.split()
        data = told(world, *words, f"{column}~nobody has this", f"sort=-{column}", "limit=3")
        tables = [data] if isinstance(data, list) else [v for v in data.values() if isinstance(v, list)]
        assert tables and not any(tables), (command, data)


def test_ops_120_an_unknown_column_is_refused_and_named(world):
    with pytest.raises(LabError, match="no column 'color', there are .*locality"):
        world.bed.shuntctl("show", "endpoints", "color=red")
    with pytest.raises(LabError, match="limit: '0' is not a number"):
        world.bed.shuntctl("show", "pools", "limit=0")


def test_ops_121_conns_take_conditions_of_their_own_and_any_other(world):
    world.bed.run_calls("unary", count=1)
    rows = told(world, "show", "conns", "cluster=rpc", "side=backend")["connections"]
    assert rows and {row["cluster"] for row in rows} == {"rpc"}
    both = told(world, "show", "conns", "side=backend", "sort=-peer", "limit=2")
    assert both["shown"] == len(both["connections"]) == 2
    assert both["connections"][0]["peer"] >= both["connections"][1]["peer"]
    with pytest.raises(LabError, match="no column 'color'"):
        world.bed.shuntctl("show", "conns", "color=red")


def test_events_are_followed_with_conditions(world):
    with Terminal(world.bed.shuntctl_argv("show", "events", "event=reconnect", "-w")) as terminal:
        terminal.look()
        world.bed.shuntctl("reconnect", "blue")
        terminal.wait_for("reconnect", "the event")
        assert "endpoint connected" not in terminal.text
    with pytest.raises(LabError, match="no sort"):
        world.bed.shuntctl("show", "events", "-w", "sort=time")


# Terminals.

def test_ops_127_colours_are_for_terminals_alone(world):
    argv = world.bed.shuntctl_argv("show", "clusters")
    assert "\x1b" not in world.bed.shuntctl("show", "clusters")

    def drawn(env, *more):
        with Terminal([*argv, *more], env=env) as terminal:
            assert terminal.wait_for_end() == 0
            return terminal.raw
    assert b"\x1b[32mREADY\x1b[0m" in drawn({})
    assert b"\x1b" not in drawn({"NO_COLOR": "1"})
    assert b"\x1b" not in drawn({"TERM": "dumb"})
    assert b"\x1b" not in drawn({}, "--json")


def test_ops_128_units_are_for_terminals_and_who_asks(world):
    def uptime(text):
        return re.search(r"uptime_s: (.*)", text)[1].strip()
    assert re.fullmatch(r"\d+\.\d\d", uptime(world.bed.shuntctl("show", "info")))
    human = re.compile(r"\d+(\.\d+)?s|\d+m\d\ds")
    assert human.fullmatch(uptime(world.bed.shuntctl("--human", "show", "info")))
    with Terminal(world.bed.shuntctl_argv("show", "info"), rows=60) as terminal:
        assert terminal.wait_for_end() == 0
        assert human.fullmatch(uptime(terminal.text))
    assert isinstance(told(world, "show", "info")["uptime_s"], float)
    assert world.bed.shuntctl("--human", "--json", "show", "ports").startswith('{"schema_version":1,"data":')


def test_a_question_without_a_terminal_is_a_mistake(world):
    done = subprocess.run(world.bed.shuntctl_argv(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 2 and "Usage:" in done.stderr


# Commands one after the other.

def test_ops_125_commands_and_names_are_completed(shell):
    shell.type("show endp" + TAB)
    shell.wait_for("shunt> show endpoints", "the command's word")
    shell.type("bl" + TAB)
    shell.wait_for("shunt> show endpoints blue", "the cluster's name")
    shell.type("\n")
    shell.wait_for(lambda text: "10.82.1.2:8080" in text and at_prompt(text), "the answer")
    assert "green" not in shell.text
    shell.type("show e" + TAB)
    shell.wait_for(lambda text: all(w in text for w in ("endpoints", "errors", "events")), "what it may be")
    shell.wait_for(lambda text: text.endswith("shunt> show e"), "the line again")


def test_ops_125_lines_are_remembered(shell, world, home, tmp_path):
    assert "pid:" in run(shell, "show info")
    shell.type(CTRL_D)
    assert shell.wait_for_end() == 0
    history = tmp_path / "state" / "shunt" / "history"
    assert history.stat().st_mode & 0o777 == 0o600
    with Terminal(world.bed.shuntctl_argv(), rows=60, columns=120, env=home) as again:
        again.wait_for(at_prompt, "the prompt")
        again.type(UP)
        again.wait_for("shunt> show info", "the line of the shell before")
        again.type("\n")
        again.wait_for("xds_server", "its answer")
        again.wait_for(at_prompt, "the prompt")
        again.type("quit\n")
        assert again.wait_for_end() == 0


def test_ops_125_ctrl_c_drops_a_line_and_breaks_an_answer_off(shell):
    shell.type("drain all" + CTRL_C)
    shell.wait_for(lambda text: text.endswith("shunt> drain all^C\nshunt>"), "another prompt, on a line of its own")
    shown = run(shell, "show info")
    assert "web" in shown and "lame_duck" not in shown and "draining" not in shown, shown
    shell.screen.reset()
    shell.type("show events -w\n")
    shell.wait_for("configuration", "events")
    shell.type(CTRL_C)
    shell.wait_for(at_prompt, "the prompt behind what goes on")
    assert "10.82.1.2" in run(shell, "show endpoints cluster=blue sort=-endpoint limit=1")
    assert "unknown command 'nothing'" in run(shell, "nothing")


@pytest.mark.ends_daemon
def test_ops_125_a_daemon_that_goes_is_said_and_asked_again(shell, world):
    run(shell, "show info")
    world.bed.daemon.kill()
    world.bed.stats_socket.unlink(missing_ok=True)
    shown = run(shell, "show info")
    assert "The daemon is gone" in shown and "No such file" in shown, shown
    world.bed.start_daemon()
    shown = run(shell, "show events")
    assert "Another daemon answers now, process" in shown, shown
    assert world.bed.daemon.stop(TIMEOUT_S) == 0


def on_path(world, tmp_path):
    """A folder with shuntctl for PATH, and the socket in the environment."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "shuntctl").symlink_to(BUILD / "tools" / "shuntctl")
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "SHUNT_SOCKET": str(world.bed.stats_socket),
            "HOME": str(tmp_path), "PS1": "$ ", "HISTFILE": "/dev/null"}


def complete_in(terminal):
    """What both shells can do."""
    for typed, whole in (("shuntctl show endp", "shuntctl show endpoints "), ("gre", "show endpoints green "),
                         ("so", "show endpoints green sort=")):
        terminal.type(typed + TAB)
        terminal.wait_for(lambda text, whole=whole: whole.rstrip() in text, f"{typed} completed")
    terminal.type("endpoint\n")
    terminal.wait_for("10.82.1.4:8080", "the answer")
    terminal.type("shuntctl show conns cluster=bl" + TAB)
    terminal.wait_for("shuntctl show conns cluster=blue", "a value behind =")
    terminal.type("\n")
    terminal.wait_for("in_flight:", "the answer")


def test_ops_123_bash_completes_what_the_daemon_knows(world, tmp_path):
    with Terminal(["bash", "--norc", "--noprofile"], env=on_path(world, tmp_path)) as bash:
        bash.type(f"source {COMPLETION / 'shuntctl.bash'}; clear\n")
        bash.wait_for(lambda text: text.endswith("$"), "bash's prompt")
        complete_in(bash)


def test_ops_123_zsh_completes_what_the_daemon_knows(world, tmp_path):
    with Terminal(["zsh", "-f"], env=on_path(world, tmp_path)) as zsh:
        zsh.type(f"fpath=({COMPLETION} $fpath); autoload -U compinit; compinit -u -d {tmp_path / 'dump'}; clear\n")
        zsh.wait_for(lambda text: text.endswith("$") and "compinit" not in text, "zsh's prompt")
        complete_in(zsh)


# top.

def number(pattern, text):
    """Of the screen, with its k or M; None = it is not there."""
    found = re.search(pattern + r"\s+([\d.]+)([kM]?)", text)
    return found and float(found[1]) * {"": 1, "k": 1e3, "M": 1e6}[found[2]]


def is_about(rate, is_that):
    return is_that is not None and 0.6 * rate < is_that < 1.6 * rate


def test_ops_126_top_tells_the_rate_that_clients_make(world):
    load = world.bed.start_h2load("load", seconds=60, clients=3, streams=4, rate=RATE // 3)
    with Terminal(world.bed.shuntctl_argv("top")) as top:
        top.wait_for(lambda text: is_about(RATE, number("requests/s", text)), "the rate on the screen", 40)
        top.wait_for(lambda text: re.search(r"p50 [\d.]+[mu]?s\s+p99 [\d.]+[mu]?s", text), "times", 40)
        top.wait_for(lambda text: is_about(0.75 * RATE, cluster_rate(text, "blue")), "blue's share", 40)
        assert re.search(r"^blue +READY +2/2 ", top.text, re.M), top.text
        assert re.search(r"^\d+ +[\d.]+%", top.text, re.M), top.text  # a worker
        assert all(len(line) <= 80 for line in top.lines)
        top.type("n")
        top.wait_for("n name*", "the sort by name")
        names = re.findall(r"^(blue|green|rpc) ", top.text, re.M)
        assert names == ["blue", "green", "rpc"]
        top.resize(30, 120)
        top.wait_for(lambda text: re.search(r"^CLUSTER.{80,} P99", text, re.M), "the wide screen")
        top.type("q")
        assert top.wait_for_end() == 0
    load.stop()


def cluster_rate(text, name):
    found = re.search(rf"^{name} +\S+ +\d+/\d+ +([\d.]+)", text, re.M)
    return found and float(found[1])


def test_ops_126_top_tells_errors_by_their_cause(world):
    for name in ("green-1", "green-2"):
        world.backends[name].kill()
    load = world.bed.start_h2load("load", seconds=60, clients=2, streams=4, rate=50)
    with Terminal(world.bed.shuntctl_argv("top")) as top:
        top.wait_for(lambda text: re.search(r"by cause: .*no_healthy [\d.]+", text), "the cause", 40)
        top.wait_for(lambda text: re.search(r"^green +(FAIL|CONN) +0/2", text, re.M), "the cluster that fails", 40)
        top.type(CTRL_C)
        assert top.wait_for_end() == 0
    load.stop()


@pytest.mark.ends_daemon
def test_ops_126_top_outlives_the_daemon(world):
    with Terminal(world.bed.shuntctl_argv("top")) as top:
        top.wait_for("ready", "the daemon's state")
        world.bed.daemon.kill()
        top.wait_for("shuntd does not answer", "that it is gone")
        world.bed.stats_socket.unlink(missing_ok=True)
        world.bed.start_daemon()
        top.wait_for(lambda text: "does not answer" not in text and "ready" in text, "the next one")
        top.type("q")
        assert top.wait_for_end() == 0
    assert world.bed.daemon.stop(TIMEOUT_S) == 0


def test_top_needs_a_terminal(world):
    done = subprocess.run(world.bed.shuntctl_argv("top"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 2 and "there is none" in done.stderr


def test_help_and_the_manual_have_the_same_commands(world):
    """OPS-124"""
    manual = subprocess.run([BUILD / "ctrl" / "shuntd", "--commands"], capture_output=True, text=True, timeout=60,
                            check=True).stdout
    commands = [row["command"] for row in told(world, "help")]
    assert re.findall(r"^\.TP\n\\fB(.*?)\\fR", manual, re.M) == commands and len(commands) > 30
    wait_until(lambda: told(world, "show", "info")["state"] == "ready", TIMEOUT_S, "the daemon")
