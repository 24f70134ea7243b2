# SPDX-License-Identifier: Apache-2.0
"""What tools/compare measures: that each subject that is here is loaded, answers and is told of, not how fast;
and how figures become rows."""

import json
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

# pylint: disable=wrong-import-position
import compare_bed  # noqa: E402
import compare_closing  # noqa: E402
import compare_print  # noqa: E402
import compare_rows  # noqa: E402
import compare_sample  # noqa: E402
import compare_shunt  # noqa: E402
import compare_subjects  # noqa: E402
import compare_ways  # noqa: E402
from lab import wait_until  # noqa: E402

SUBJECTS, _ = compare_subjects.found()
OF_ALL = {"memory per idle connection, of the process", "CPU per connection with one request", "CPU per request 8x32",
          "CPU per request 64x1", "latency p99 at 200 a second"}
OF_ALL |= {f"{what}, {way} 1 MiB {shape}" for what in ("bytes per second", "CPU per GB") for way in ("GET", "POST")
           for shape in ("1x1", "8x8")}


def figures_of(subject, n_routes):
    with subject(n_routes) as running:
        figures = {what: (unit, value) for what, unit, value in running.figures(0.2, 200)}
        assert running.failed == 0
    return figures


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.routes], ids=lambda s: f"{s.name}-{s.transport}")
def test_a_subject_answers_and_its_cost_is_counted(subject):
    figures = figures_of(subject, 1)
    assert OF_ALL <= figures.keys()
    assert all(value > 0 for unit, value in figures.values() if unit != "B"), figures
    assert 100 < figures["memory per idle connection, of the process"][1] < 1 << 20
    if subject.transport == "veth":
        assert figures["CPU per request 64x1"][1] < figures["whole-machine CPU per request 64x1"][1]
        assert 0 < figures["start to first request answered"][1] < 60_000


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.routes], ids=lambda s: f"{s.name}-{s.transport}")
def test_a_subject_finds_the_last_of_many_routes(subject):
    figures = figures_of(subject, 100)
    costs = [figures[f"CPU per request {shape}, 100 routes"][1] for shape in ("8x32", "64x1")]
    assert min(costs) > 0


OF_WAYS = [one for s in SUBJECTS if s.routes for one in s.of_ways() if one.way != compare_ways.CLEAR]


@pytest.mark.parametrize("one", OF_WAYS, ids=lambda x: f"{type(x).__name__}-{x.way.name.replace(' ', '-')}")
def test_a_subject_speaks_tls_and_http1(one, monkeypatch):
    way = one.way
    for name, short in (("IDLE_S", 0.5), ("IDLE_TLS_S", 1)):  # what idle connections take in these ways nobody judges
        monkeypatch.setattr(compare_bed, name, short)
    monkeypatch.setattr(compare_shunt, "TURN_S", 0.2)
    with one as running:
        figures = {what: (unit, value) for what, unit, value in running.way_figures(0.2)}
        assert running.failed == 0
    assert wanted_of(one, way) <= figures.keys()
    # On a machine at work a worker may do too little in so short a time; h2load sends as much as is needed.
    assert all(one.transport == "memif" if value is None else value > 0 for what, (unit, value) in figures.items()
               if unit != "B" and "added" not in what), figures


def wanted_of(one, way):
    """Figures that are told: on memif one has all requests, and another one connections."""
    ways = compare_ways.WAYS if isinstance(one, compare_shunt.ShuntInTurns) else [way]
    requests = {compare_ways.named("CPU per request 64x1", w) for w in ways}
    if len(ways) > 1:
        return requests | {compare_ways.named(compare_bed.PART_FIGURE, w) for w in ways[:2]}
    connections = set() if way.back or way.http1 else {compare_ways.named(compare_bed.CHURN_FIGURE, way)}
    return connections if one.transport == "memif" else requests | connections


def test_what_a_way_adds_is_above_clear_text_of_the_same_turn():
    took = {compare_ways.CLEAR: [1.0, 2.0, 1.0, None, 4.0, 9.0], compare_ways.TLS: [1.3, 2.2, 1.4, 1.0, None, 9.1],
            compare_ways.HTTP1: [None] * 6}
    figures = {what: value for what, _, value in compare_shunt.turns_figures("cost", took)}
    assert figures.pop(compare_ways.added("cost", compare_ways.TLS)) == pytest.approx(0.25)
    assert figures == {"cost, in clear text": 2.0, "cost, TLS at the front": 1.4,
                       "cost, HTTP/1.1": None, "cost: added by HTTP/1.1": None}


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if "MTU" in s.transport], ids=lambda s: s.transport)
def test_large_frames_are_measured_with_large_bodies(subject):
    figures = figures_of(subject, 1)
    assert len(figures) >= 8 and all(value > 0 for _, value in figures.values()), figures


def test_a_backend_that_went_without_a_word_before_costs_no_request():
    with compare_subjects.ShuntOnMemif() as running:
        before = running.start_shunt_load("-c", "1", "-r", "1", "-D", "60")
        wait_until(lambda: running.requests() > 1, 30, "a request, and then none for a second")
        time.sleep(1.2)  # for a second nobody else is believed to have the address of the one before
        before.kill()
        assert list(running.idle_figures()) and running.failed == 0


@pytest.mark.skipif(not compare_closing.is_here(), reason="needs nginx (tools/setup compare)")
def test_backends_that_close_their_connections_are_told_of():
    subjects = [s for s in SUBJECTS if (s.name, s.transport) == ("shunt", "veth")]
    figures = {what: value for _, what, _, value, _ in compare_closing.figures(subjects, 0.2)}
    assert {f"longest wait, backend closes after {case}" for case in compare_closing.CASES} <= figures.keys()
    assert all(value > 0 for what, value in figures.items() if not what.startswith("failed")), figures


@pytest.mark.parametrize("direct", [s for s in SUBJECTS if s.name == compare_subjects.REFERENCE],
                         ids=lambda s: s.transport)
def test_latency_without_anybody_in_between_is_measured_too(direct):
    figures = figures_of(direct, 1)
    assert 0 < figures["latency p50 at 200 a second"][1] <= figures["latency p99.9 at 200 a second"][1]


class Of:
    """A subject that says only who it is."""

    def __init__(self, name, transport="veth", is_peer=True):
        self.name, self.transport, self.is_peer = name, transport, is_peer


@pytest.fixture(name="figures")
def fixture_figures():
    figures = compare_rows.Figures()
    shunt, slow, fast, direct = Of("shunt", "memif", False), Of("slow"), Of("fast"), Of("direct", is_peer=False)
    for repeat, values in enumerate([(1, 8, 4, 1), (3, 6, 12, 2), (2, 40, 20, 3)]):
        for subject, value in zip((shunt, slow, fast, direct), values):
            figures.add(repeat, subject, "cost", "us", value)
            figures.add(repeat, subject, "rate", "1/s", value)
    return figures


def rows_by(figures, what):
    return {r["subject"]: r for r in figures.rows() if r["what"] == what}


def test_a_ratio_is_to_the_best_peer_of_the_same_repeat(figures):
    cost, rate = rows_by(figures, "cost"), rows_by(figures, "rate")
    assert cost["shunt"]["value"] == 2 and cost["shunt"]["samples"] == [1, 3, 2]
    assert cost["shunt"]["ratio_to_best_peer"] == 0.25  # of 1/4, 3/6 and 2/20; direct is no peer
    assert cost["slow"]["ratio_to_best_peer"] == 2
    assert rate["shunt"]["ratio_to_best_peer"] == 0.125  # of 1/8, 3/12 and 2/40: the most is best
    assert cost["shunt"] == {"what": "cost", "transport": "memif", "subject": "shunt", "value": 2, "unit": "us",
                             "ratio_to_best_peer": 0.25, "samples": [1, 3, 2]}


def test_what_is_added_is_above_the_same_repeat_without(figures):
    for repeat, value in enumerate([5, 8, 4]):
        figures.add(repeat, next(iter(figures.subjects("cost"))), "cost with routes", "us", value)
    figures.add_differences("added", "cost with routes", "cost")
    figures.add_beyond("beyond", "cost", "direct")
    assert rows_by(figures, "added")["shunt"]["samples"] == [4, 5, 2]
    figures.add_differences("cost with routes", "cost", "rate")
    assert rows_by(figures, "cost with routes")["shunt"]["samples"] == [5, 8, 4]  # measured: nothing is reckoned
    beyond = rows_by(figures, "beyond")
    assert beyond.keys() == {"slow", "fast"}  # the others have no such reference on their transport
    assert beyond["slow"]["samples"] == [7, 4, 37]


def test_a_ratio_of_what_is_added_is_that_of_the_medians(figures):
    figures.add_beyond("beyond", "cost", "direct")  # slow: 7, 4, 37; fast: 3, 10, 17
    beyond = rows_by(figures, "beyond")
    assert beyond["slow"]["ratio_to_best_peer"] == 1 and beyond["fast"]["ratio_to_best_peer"] == round(10 / 7, 3)
    nothing = compare_rows.Figures()
    for subject, value in ((Of("shunt", "veth", False), 3), (Of("peer"), 1), (Of("direct", is_peer=False), 2)):
        nothing.add(0, subject, "cost", "us", value)
    nothing.add_beyond("beyond", "cost", "direct")
    assert rows_by(nothing, "beyond")["shunt"]["ratio_to_best_peer"] is None  # the peer added nothing


def test_what_too_few_tell_is_a_row_without_a_figure(figures):
    shunt, _, fast, _ = figures.subjects("cost")
    for subject, value in ((shunt, None), (fast, 5)):
        figures.add(0, subject, "cost with TLS", "us", value)
    figures.add_differences("added", "cost with TLS", "cost")
    for what in ("cost with TLS", "added"):
        row = rows_by(figures, what)["shunt"]
        assert (row["value"], row["ratio_to_best_peer"], row["samples"]) == (None, None, [])
    assert rows_by(figures, "added")["fast"]["value"] == 1
    rows = figures.rows()
    assert json.loads(json.dumps(rows)) == rows
    told = next(line.split() for line in compare_print.table(rows) if line.startswith("added") and "shunt" in line)
    assert told == ["added", "memif", "shunt", "-", "us", "-", "-", "-"]
    assert compare_print.svg(rows).count("<rect") == len(rows)
    figures.add(1, shunt, "cost with TLS", "us", 7)  # another repeat may tell
    assert rows_by(figures, "cost with TLS")["shunt"]["samples"] == [7]


class Handshakes(compare_bed.Subject):
    """One of whom no more requests are counted than connections came."""

    def measure_steady(self, clients, streams, seconds):
        n = compare_bed.ENOUGH + clients
        return compare_sample.Sample(n - 1, 1.0, 1.0, n, 0).without(compare_sample.Sample(clients, 0.9, 1.0, n, 0))


def test_a_ways_request_has_no_figure_below_so_many():
    figures = list(Handshakes(way=compare_ways.HTTP1).way_figures(0.5))
    assert figures == [(compare_ways.named("CPU per request 64x1", compare_ways.HTTP1), "us", None)]
    assert compare_sample.Sample(compare_bed.ENOUGH, 0.02, 0, 0, 0).subject_us(compare_bed.ENOUGH) == 2
    assert compare_sample.Sample(compare_bed.ENOUGH, 0.02, 0, 0, 0, counted=0).subject_us() is None


def test_a_workers_time_and_requests_are_those_between_the_same_looks():
    looks = [compare_sample.Look(0.0, 5, 7)]

    def passes(busy_s, n, long_turns=0):
        before = looks[-1]
        looks.append(compare_sample.Look(before.busy_s + busy_s, before.long_turns + long_turns, before.requests + n))

    assert compare_sample.spent(looks) == (0, 0) and compare_sample.steady(looks) == []
    passes(0.05, 0, 1)  # the load starts
    passes(0.008, 0)  # handshakes
    assert compare_sample.steady(looks) == []
    passes(0.009, 1001)  # the last of them, and the first requests
    for long_turns in (0, 0, 1, 0):
        passes(0.03 + 0.05 * long_turns, 30_000 - 15_000 * long_turns, long_turns)
    passes(0.0, 0)
    passes(0.03, 30_000)
    passes(0.02, 500)  # the last requests, and connections go
    passes(0.01, 0)
    passes(0.05, 0, 1)
    busy_s, n = compare_sample.spent(compare_sample.steady(looks))
    assert n == 4 * 30_000 and round(busy_s, 9) == 0.12
    busy_s, n = compare_sample.spent(looks)  # connections, too
    assert n == 4 * 30_000 + 1501 and round(busy_s, 9) == 0.167


def test_rows_are_json_a_table_and_a_chart(figures):
    rows = figures.rows()
    assert json.loads(json.dumps(rows)) == rows
    table = list(compare_print.table(rows))
    assert len(table) == 1 + len(rows) + 2 and table[0].startswith("what")
    chart = compare_print.svg(rows)
    assert chart.count("<rect") == len(rows) and chart.endswith("</svg>\n")
