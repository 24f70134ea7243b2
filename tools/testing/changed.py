# SPDX-License-Identifier: Apache-2.0
"""tools/test --changed: what a diff can affect. When in doubt, everything; tools/test says what the rule is."""

import os
import pathlib
import re
import subprocess

from testing import integ, suites
from testing.builds import build, introspect, suite_of
from testing.graph import Graph
from testing.report import ROOT, Counts, add

# Files of these that no program is made of, and no test is given, are for readers, or lint's own.
READ_BY_LINT_ALONE = re.compile(r"docs/|tests/lint/|[^/]+\.md$|LICENSE$")
INTEG = "tests/integ/"
ATTACKS = "tests/attacks/"
FOR_ALL = {INTEG + "conftest.py", "tests/requirements.txt"}  # pytest's own way to share, and what Python tests import


def changed_files(base):
    """Paths that differ from where this branch left base, committed or not."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip("\0\n")
    fork = git("merge-base", base, "HEAD")
    differing = git("diff", "--name-only", "--no-renames", "-z", fork)
    return {path for path in [*differing.split("\0"),
                              *git("ls-files", "--others", "--exclude-standard", "-z").split("\0")] if path}


class Affected:
    """By files that have changed, in one build that is up to date."""

    def __init__(self, name, files):
        self._name = name
        self._files = files
        self._tests, self._targets = introspect(name)
        self._graph = Graph(name, [path for target in self._targets.values() for path in target["paths"]])
        told = [path for target in self._targets.values() if any(is_told(target, file) for file in files)
                for path in target["paths"]]
        self.made = {*told, *self._graph.made_of(files)}

    def knows(self, file):
        """That something is made of it, or a program is told its name."""
        return (self._graph.knows(file) or any(is_given(test, file) for test in self._tests) or
                any(is_told(target, file) for target in self._targets.values()))

    def programs(self):
        """What is no test's own and would be made anew."""
        return [path for path in self.made if not path.startswith("tests/")]

    def helpers(self):
        """Programs of the tests that no test of Meson's is, and would be made anew: other tests may start them."""
        own = {os.path.relpath(test["cmd"][0], ROOT / self._name) for test in self._tests}
        return {path for target in self._targets.values() if target["type"] == "executable" for path in target["paths"]
                if path in self.made and path.startswith("tests/") and path not in own}

    def tests(self, suite):
        """Names of a suite's tests that changed files can affect."""
        return [test["name"] for test in self._tests if suite in suite_of(test) and
                (any(path in self.made for i in test["depends"] for path in self._targets[i]["paths"]) or
                 any(is_given(test, file) for file in self._files))]


def is_told(target, file):
    """That a program is compiled with the name of a file of the source tree, which it will read."""
    return any(f'"{ROOT / file}"' in word for group in target["target_sources"] for word in group.get("parameters", ()))


def is_given(test, file):
    """That a test is called with a file of the source tree, or with a folder above it."""
    given = {pathlib.Path(os.path.normpath(ROOT / "build" / word)) for word in test["cmd"][1:]}  # any build will do
    return not given.isdisjoint([ROOT / file, *(ROOT / file).parents][:-len(ROOT.parents) - 1])


def integ_tests(files, affected):
    """The test files that are among these, or name one of them or a program made of one, or name a file that does so:
    an import and a program that a test starts both name the file's stem."""
    text = {path: path.read_text() for path in integ.TESTS.glob("*.py")}
    reached = set()
    waiting = [ROOT / file for file in {*affected.helpers(), *(file for file in files if file.startswith(INTEG))}]
    while waiting:
        path = waiting.pop()
        reached.add(path)
        name = re.compile(rf"\b{re.escape(path.stem)}\b")
        waiting += [other for other in text if other not in reached and name.search(text[other])]
    return [path for path in integ.files() if path in reached or integ.TESTS / "conftest.py" in reached]


def unknown(files, affected):
    """Those that may affect anything."""
    return {file for file in files
            if (not affected.knows(file) or file in FOR_ALL) and not READ_BY_LINT_ALONE.match(file) and
            not (file.startswith((INTEG, ATTACKS)) and file.endswith(".py") and file not in FOR_ALL and
                 (ROOT / file).exists())}


def some(name, suites_of_it, files, target_suite=None):
    """Runs what changed files can affect in one build."""
    if not build(name, target_suite):
        return Counts(failed=1)
    affected = Affected(name, files)
    chosen = {suite: affected.tests(suite) for suite in suites_of_it}
    return add(Counts(), *(suites.meson_test(name, suite, names) for suite, names in chosen.items() if names))


def everything(parts, why):
    print(f"everything runs because of {', '.join(sorted(why))}", flush=True)
    return add(*(part([]) for part in parts.values()))


def affected_parts(parts, base="main"):
    """Runs it all, and counts."""
    try:
        files = changed_files(base)
    except subprocess.CalledProcessError:  # git has said why
        return Counts(failed=1)
    if not files:
        print(f"nothing has changed since {base}")
        return parts["lint"]([])
    if not build("build"):
        return Counts(failed=1)
    affected = Affected("build", files)
    reasons = unknown(files, affected)
    if reasons:
        return everything(parts, reasons)
    total = add(parts["lint"]([]), some("build", ["unit", "sim"], files))
    if affected.tests("unit") or affected.tests("sim"):
        total = add(total, some("build-asan", ["unit", "sim"], files),
                    some("build-tsan", ["threads"], files, "threads"))
    if affected.made:
        total = add(total, parts["clang"]([]))
    if affected.programs():
        return add(total, parts["integ"]([]), parts["attacks-short"]([]))
    chosen = integ_tests(files, affected)
    if chosen:
        total = add(total, integ.integ_files(chosen))
    return add(total, parts["attacks-short"]([])) if any(file.startswith(ATTACKS) for file in files) else total
