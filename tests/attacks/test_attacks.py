# SPDX-License-Identifier: Apache-2.0
"""Every row of the attacks, beside a victim; docs/attacks.md says how a row is written and run."""

import judge


def test_the_victim_notices_nothing(a_row, ground, form, tell):
    outcome = judge.run(ground, a_row, form)
    assert ground.bed.daemon.alive() and ground.bed.daemon.pid == ground.pid, ground.bed.daemon.output()
    faults = list(judge.faults(outcome))
    tell(outcome, faults)
    if faults:
        raise judge.Fault("; ".join(faults))
