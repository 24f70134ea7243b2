# SPDX-License-Identifier: Apache-2.0
"""Figures of several repeats, and the rows of tools/compare that they make."""

import statistics

MORE_IS_BETTER = ("1/s", "MB/s")

class Figures:
    """{what: {subject: {repeat: value}}}; a subject has name, transport and is_peer. Without a repeat nothing can be
    told, and the row says so."""

    def __init__(self):
        self._units = {}
        self._values = {}
        self._derived = set()  # what is the difference of two figures

    def add(self, repeat, subject, what, unit, value):
        """value: None = of too few to tell."""
        values = self._values_of(what, unit, subject)
        if value is not None:
            values[repeat] = value

    def add_differences(self, what, more, less):
        """what = more - less, of the same subject and repeat, where the subject has not measured it itself."""
        self._derived.add(what)
        measured, bases = set(self.subjects(what)), self._values.get(less, {})
        for subject, values in self._values.get(more, {}).items():
            if subject in bases and subject not in measured:
                base = bases[subject]
                self._values_of(what, self._units[more], subject).update(
                    {repeat: values[repeat] - base[repeat] for repeat in values.keys() & base.keys()})

    def add_beyond(self, what, of, reference):
        """what = of, less what the subject `reference` has on the same transport in the same repeat."""
        self._derived.add(what)
        by_subject = self._values.get(of, {})
        bases = {s.transport: values for s, values in by_subject.items() if s.name == reference}
        for subject, values in by_subject.items():
            base = bases.get(subject.transport, {}) if subject.name != reference else {}
            for repeat in values.keys() & base.keys():
                self.add(repeat, subject, what, self._units[of], values[repeat] - base[repeat])

    def _values_of(self, what, unit, subject):
        self._units[what] = unit
        return self._values.setdefault(what, {}).setdefault(subject, {})

    def subjects(self, what):
        return self._values.get(what, {}).keys()

    def rows(self):
        return [self._row(what, subject, values) for what, by_subject in self._values.items()
                for subject, values in by_subject.items()]

    def _row(self, what, subject, values):
        ratio = self._ratio_of_medians(what, values) if what in self._derived else self._median_ratio(what, values)
        return {"what": what, "transport": subject.transport, "subject": subject.name,
                "value": round(statistics.median(values.values()), 4) if values else None, "unit": self._units[what],
                "ratio_to_best_peer": None if ratio is None else round(ratio, 3),
                "samples": [round(values[repeat], 4) for repeat in sorted(values)]}

    def _median_ratio(self, what, values):
        """Each to the best peer of the same repeat, since minutes apart the machine is another one."""
        ratios = [value / best for repeat, value in values.items() if (best := self._best_peer(what, repeat)) > 0]
        return statistics.median(ratios) if ratios else None

    def _ratio_of_medians(self, what, values):
        """Of differences, which of a single repeat may be nothing or less than that."""
        peers = [statistics.median(of.values()) for s, of in self._values[what].items() if s.is_peer and of]
        best = min(peers, default=0)
        return statistics.median(values.values()) / best if values and best > 0 else None

    def _best_peer(self, what, repeat):
        """0: there is none."""
        peers = [values[repeat] for subject, values in self._values[what].items()
                 if subject.is_peer and repeat in values]
        return (max if self._units[what] in MORE_IS_BETTER else min)(peers, default=0)
