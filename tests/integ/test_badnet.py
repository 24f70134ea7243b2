# SPDX-License-Identifier: Apache-2.0
"""The short form of tools/badnet: in bad networks requests may be slow, but none fails, and no body is altered; and
what its long form makes of results."""

import contextlib
import functools
import pathlib
import sys

import pytest

from badnet_table import CALLS, CELLS, SHORT, SHORT6, SHORT_CALLS, SHORT_SILENT
from badnet_world import Bed, Result, quantile_ms
from lab_fixtures import check_end, module_lab_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import badnet  # noqa: E402  # pylint: disable=wrong-import-position

SEED = 1


@contextlib.contextmanager
def beds(request):
    """bed_of(family), made at first use."""
    with contextlib.ExitStack() as labs:
        @functools.cache
        def bed_of(family):
            bed = Bed(labs.enter_context(module_lab_of(request)), "shunt", family)
            labs.callback(check_end, bed.bed)
            return bed
        yield bed_of


@pytest.fixture(name="bed_of", scope="module")
def fixture_bed_of(request):
    with beds(request) as bed_of:
        yield bed_of


@pytest.fixture(name="new_bed_of", scope="module")
def fixture_new_bed_of(request):
    """Where no kernel has heard of a path's MTU, which it keeps for minutes."""
    with beds(request) as bed_of:
        yield bed_of


@pytest.mark.parametrize("cell", SHORT + SHORT6 + SHORT_CALLS, ids=str)
def test_no_request_fails_and_no_body_is_altered(bed_of, cell):
    result = bed_of(cell.family).run(cell, SEED)
    assert result.good, result


@pytest.mark.parametrize("cell", SHORT_SILENT, ids=str)
def test_a_kernel_gets_all_that_is_sent_by_a_path_that_drops_long_packets(new_bed_of, cell):
    """TCP-168, TCP-169."""
    result = new_bed_of(cell.family).run(cell, SEED)
    assert result.good and sum(way["too_big"] for way in result.counters.values()) > 0, result


def result(goodput, failed=0, altered=0):
    return Result(goodput, ["reset 2"] * failed, altered, {})


def test_a_ratio_is_the_median_of_those_of_each_seed():
    assert badnet.ratio_of([result(10), result(30), result(4)], [result(10), result(10), result(8)]) == 1
    assert badnet.ratio_of([result(10), result(5)], [result(0), result(10)]) == 0.5
    assert badnet.ratio_of([result(10)], [result(0)]) is None


def test_a_cell_is_bad_if_shunt_alters_or_fails_where_haproxy_does_not():
    good, failed, altered = [result(1)], [result(0, failed=1)], [result(0, altered=1)]
    assert not badnet.is_bad({"shunt": good, "haproxy": failed})
    assert not badnet.is_bad({"shunt": failed, "haproxy": failed})
    assert badnet.is_bad({"shunt": failed, "haproxy": good})
    assert badnet.is_bad({"shunt": failed})
    assert badnet.is_bad({"shunt": altered, "haproxy": altered})
    assert "failed 1" in badnet.line_of(CELLS[0], {"shunt": failed, "haproxy": good})
    assert not badnet.is_bad({"again": failed, "haproxy": good})  # HAProxy beside itself
    assert "again: failed 1" in badnet.line_of(CELLS[0], {"again": failed, "haproxy": good})


def test_calls_are_told_by_their_quantiles():
    took = [n / 1000 for n in range(100, 0, -1)]
    assert (quantile_ms(took, 0.5), quantile_ms(took, 0.99), quantile_ms([0.007], 0.99)) == (50, 99, 7)
    assert quantile_ms([], 0.99) == 0
    ours, theirs = Result(1, [], 0, {}, p50_ms=21, p99_ms=60), Result(1, [], 0, {}, p50_ms=22, p99_ms=240)
    assert badnet.p99_ratio_of([ours], [theirs]) == 0.25
    assert badnet.p99_ratio_of([ours], []) is None
    assert badnet.calls_line_of(CALLS[0], {"shunt": [ours], "haproxy": [theirs]}).split()[-5:] == [
        "21.0", "60.0", "22.0", "240.0", "0.25"]
    assert [c.condition.length // c.condition.requests // c.connections for c in CALLS] == [200] * 6
    assert all(c.condition.requests * c.connections == 10_000 for c in CALLS)
    lossy = {c.side: [way for way, words in c.faults().items() if "loss" in words] for c in CALLS if c.condition.data}
    assert lossy == {"client": ["back"], "backend": ["back"]}  # forth leads to the balancer


def test_cells_have_names_of_their_own_and_both_forms_are_large_enough():
    assert len({str(cell) for cell in CELLS}) == len(CELLS) >= 200
    assert len({str(cell) for cell in SHORT + SHORT6}) == len(SHORT) + len(SHORT6) >= 20


def test_faults_of_the_data_are_where_the_bodies_go():
    """Forth leads to the balancer."""
    seen = {(c.side, c.way): [way for way, words in c.faults().items() if "blackout" in words]
            for c in CELLS if c.condition.name.startswith("data dark")}
    assert seen == {("client", "down"): ["back"], ("client", "up"): ["forth"],
                    ("backend", "down"): ["forth"], ("backend", "up"): ["back"]}
