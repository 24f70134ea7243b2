# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the attacks: one daemon for all rows of a world, and a table at the end."""

import pytest

pytest.register_assert_rewrite("lab_fixtures")
import row
from attack_world import WORLDS, Ground
from judge import Fault, quantile
from lab import Lab, wait_until
from lab_fixtures import LABEL, check_end, is_at_rest, log_tails

pytest_plugins = ["lab_fixtures"]
OUTCOMES = []  # (outcome, faults), in the order of the rows
REST_S = 70  # TCP asks after 60 whether a silent peer is there
MAX_VERDICT = 160  # columns; what pytest says of a failure is whole
OUTCOMES_TOLD = []
SANITIZED = ("ERROR: AddressSanitizer", "runtime error:", "ERROR: LeakSanitizer")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="each attack in its long form")
    parser.addoption("--tell", action="store_true", help="every counter that grew, and the attacker's own report")


def pytest_generate_tests(metafunc):
    if "a_row" not in metafunc.fixturenames:
        return
    form = form_of(metafunc.config)
    metafunc.parametrize("a_row", [pytest.param(r, id=f"{r.topic}-{r.name}", marks=list(marks(r, form)))
                                   for r in row.all_rows() if form == "long" or not r.long])


def marks(a_row, form):
    if a_row.is_open(form):
        yield pytest.mark.xfail(strict=True, reason=a_row.open, raises=Fault)
    if a_row.ci and not a_row.long:
        yield pytest.mark.ci


def form_of(config):
    return "long" if config.getoption("--long") else "short"


@pytest.fixture(name="form")
def fixture_form(request):
    return form_of(request.config)


@pytest.fixture(name="grounds", scope="session")
def fixture_grounds(request):
    """ground(kind): the world that runs, another one in its place if that is of another kind."""
    running = {}

    def leave():
        for kind, (ground, lab) in list(running.items()):
            try:
                ground.victim.process.stop()
                wait_until(lambda: all(map(is_at_rest, ground.bed.show_workers())), REST_S, "the last client's end")
                check_end(ground.bed)
                findings = [text for text in SANITIZED if text in ground.bed.daemon.output()]
                assert not findings, ground.bed.daemon.output()
            finally:
                request.config.stash.setdefault(_TAILS, []).extend(log_tails(lab))
                del running[kind]
                lab.close()

    def of(kind):
        if kind not in running:
            leave()
            lab = Lab(LABEL)
            try:
                running[kind] = Ground(lab, kind, form_of(request.config)), lab
            except BaseException:
                print(log_tails(lab))
                lab.close()
                raise
        return running[kind][0]
    yield of
    leave()


_TAILS = pytest.StashKey()


@pytest.fixture(name="ground")
def fixture_ground(grounds, a_row):
    assert set(WORLDS) >= {a_row.world}
    return grounds(a_row.world)


@pytest.fixture(name="tell")
def fixture_tell(request):
    def tell(outcome, faults):
        OUTCOMES.append((outcome, faults))
        if request.config.getoption("--tell"):
            grown = {name: n for name, n in outcome.counters.items() if n}
            OUTCOMES_TOLD.append(f"{outcome.row.name}\n  {outcome.report}\n  {grown}\n  {outcome.by_pool}")
    return tell


@pytest.fixture(name="say")
def fixture_say():
    """say(text): at the end."""
    return OUTCOMES_TOLD.append


COLUMNS = ("row", "attack/s", "conns", "victim %", "p50 quiet", "p50", "p99 quiet", "p99 (ms)", "held KiB", "each KiB",
           "RSS +KiB", "cut s", "counter", "back s", "verdict")


def each(outcome):
    n = max(1, outcome.report["most"])
    later = f", then {(outcome.settled >> 10) // n}" if outcome.row.settles else ""
    return f"{(outcome.held >> 10) // n}{later}"


def cells(outcome, faults):
    r, report = outcome.row, outcome.report
    ms = [f"{1000 * quantile(samples, share):.1f}" for share in (0.5, 0.99)
          for samples in (outcome.quiet, outcome.ended)]
    cuts = report["cuts"]
    return (r.sentence, f"{outcome.rate:.0f}", str(report["connections"]), f"{outcome.success:.1f}", *ms,
            str(outcome.held >> 10), each(outcome), str(outcome.resident >> 10),
            f"{len(cuts)} by {max(cuts):.1f}" if cuts else "-",
            ", ".join(f"{name} {outcome.grown(name)}" for name in r.counters) or "-",
            "-" if outcome.back_s is None else f"{outcome.back_s:.1f}",
            (("open: " if r.open else "FAILED: ") + "; ".join(faults))[:MAX_VERDICT] if faults else "ok")


def pytest_terminal_summary(terminalreporter):
    if OUTCOMES:
        terminalreporter.section("attacks")
        terminalreporter.write_line(" | ".join(COLUMNS))
    for outcome, faults in OUTCOMES:
        terminalreporter.write_line(" | ".join(cells(outcome, faults)))
    for text in OUTCOMES_TOLD:
        terminalreporter.write_line(text)
