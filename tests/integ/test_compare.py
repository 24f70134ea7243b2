# SPDX-License-Identifier: Apache-2.0
"""What tools/compare measures: that each subject that is here is loaded and answers, not how fast."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import compare_subjects  # noqa: E402  # pylint: disable=wrong-import-position

SUBJECTS, _ = compare_subjects.found()


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: f"{s.name}-{s.transport}")
def test_a_subject_answers_and_its_cost_is_counted(subject):
    with subject(n_routes=100) as running:
        for sample in (running.measure(8, 32, 0.2), running.measure(64, 1, 0.2), running.churn(0.2),
                       running.latency(0.2)):
            assert sample.failed == 0
            assert sample.requests > 0 and sample.per_second > 0
            assert 0.0 < sample.subject_us() <= sample.whole_us()
