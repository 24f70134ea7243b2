# SPDX-License-Identifier: Apache-2.0
"""Requests all the while that a test does something else, however long that takes."""

import contextlib
import threading

END_S = 150  # for the runs under way


def _ask(bed, stop, reports, amount):
    try:
        while not stop.is_set():
            reports.append(bed.run_h2load(**amount))
    except Exception as error:  # whatever it was, the test is to see it
        reports.append(error)


@contextlib.contextmanager
def steady_load(bed, *amounts):
    """For each of these arguments of run_h2load() one run after the other, as long as the body does something; none of
    their requests may fail. Gives a list of lists of reports."""
    stop, reports = threading.Event(), [[] for _ in amounts]
    threads = [threading.Thread(target=_ask, args=(bed, stop, *pair), daemon=True) for pair in zip(reports, amounts)]
    for thread in threads:
        thread.start()
    try:
        yield reports
    finally:
        stop.set()
        for thread in threads:
            thread.join(END_S)
    for runs in reports:
        bad = [run for run in runs if isinstance(run, Exception) or not run.perfect or run.total == 0]
        assert runs and not bad, bad
