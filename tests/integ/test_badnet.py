# SPDX-License-Identifier: Apache-2.0
"""The short form of tools/badnet: in bad networks requests may be slow, but none fails, and no body is altered; and
what its long form makes of results."""

import contextlib
import functools
import pathlib
import sys

import pytest

from badnet_bed import Bed, Result
from badnet_cells import CELLS, SHORT, SHORT6
from lab_fixtures import check_end, module_lab_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import badnet  # noqa: E402  # pylint: disable=wrong-import-position

SEED = 1


@pytest.fixture(name="bed_of", scope="module")
def fixture_bed_of(request):
    """bed_of(family), made at first use."""
    with contextlib.ExitStack() as labs:
        @functools.cache
        def bed_of(family):
            bed = Bed(labs.enter_context(module_lab_of(request)), "shunt", family)
            labs.callback(check_end, bed.bed)
            return bed
        yield bed_of


@pytest.mark.parametrize("cell", SHORT + SHORT6, ids=str)
def test_no_request_fails_and_no_body_is_altered(bed_of, cell):
    result = bed_of(cell.family).run(cell, SEED)
    assert result.good, result


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


def test_cells_have_names_of_their_own_and_both_forms_are_large_enough():
    assert len({str(cell) for cell in CELLS}) == len(CELLS) >= 200
    assert len({str(cell) for cell in SHORT + SHORT6}) == len(SHORT) + len(SHORT6) >= 20


def test_faults_of_the_data_are_where_the_bodies_go():
    """Forth leads to the balancer."""
    seen = {(c.side, c.way): [way for way, words in c.faults().items() if "blackout" in words]
            for c in CELLS if c.condition.name.startswith("data dark")}
    assert seen == {("client", "down"): ["back"], ("client", "up"): ["forth"],
                    ("backend", "down"): ["forth"], ("backend", "up"): ["back"]}
