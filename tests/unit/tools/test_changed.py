#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/test --changed finds affected, in a small project with a copy of the tool."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[3] / "tools" / "testing"
FILES = {
    ".gitignore": "/build*/\n/tools/testing/__pycache__/\n",
    "README.md": "what it is\n",
    "docs/config.md": "| a row |\n",
    "examples/one.yaml": "one: 1\n",
    "meson.build": """project('shunt', 'c')
one = static_library('one', 'lb/one.c')
two = static_library('two', 'lb/two.c')
made = custom_target(input: 'lb/made.in', output: 'made.h', command: ['cp', '@INPUT@', '@OUTPUT@'])
executable('daemon', 'ctrl/main.c', made, link_with: one)
subdir('tests')
""",
    "lb/one.h": "int one(void);\n",
    "lb/one.c": '#include "one.h"\nint one(void) { return 1; }\n',
    "lb/two.c": "int two(void) { return 2; }\n",
    "lb/made.in": "#define MADE 0\n",
    "ctrl/main.c": '#include "../lb/one.h"\n#include "made.h"\nint main(void) { return one() + MADE; }\n',
    "tests/meson.build": """test('a', executable('a', 'a.c', link_with: one), args: files('server.py'),
  suite: ['unit', 'threads'])
test('b', executable('b', 'b.c', link_with: two), args: meson.current_source_dir() / 'corpus', suite: 'unit')
test('c', executable('c', 'c.c', c_args: '-DTABLE="@0@"'.format(meson.project_source_root() / 'docs/config.md')),
  suite: 'sim')
executable('wire', 'wire.c', link_with: static_library('fate', 'fate.c'))
test('style', find_program('style'), args: meson.project_source_root(), suite: 'lint')
""",
    "tests/style": "#!/bin/sh\n",
    "tests/a.c": '#include "../lb/one.h"\nint main(void) { return one(); }\n',
    "tests/b.c": "int two(void);\nint main(void) { return two(); }\n",
    "tests/c.c": "int main(void) { return 0; }\n",
    "tests/fate.c": "int fate(void) { return 0; }\n",
    "tests/wire.c": "int fate(void);\nint main(void) { return fate(); }\n",
    "tests/server.py": "pass\n",
    "tests/corpus/empty": "",
    "tests/integ/conftest.py": "import lab\n",
    "tests/integ/lab.py": "pass\n",
    "tests/integ/echo_agent.py": "pass\n",
    "tests/integ/bed.py": 'AGENT = "echo_agent.py"\n',
    "tests/integ/faults.py": 'PROGRAM = BUILD / "tests" / "wire"\n',
    "tests/integ/test_http.py": "import bed\n",
    "tests/integ/test_loss.py": "import faults\n",
    "tests/integ/test_xds.py": "pass\n",
}
# What changes: (tests of unit and sim, whether a program of ours is made anew, integ's test files)
ROWS = {
    "lb/one.c": ({"a"}, True, set()),
    "lb/one.h": ({"a"}, True, set()),
    "lb/two.c": ({"b"}, True, set()),  # a library may be of any program
    "lb/made.in": (set(), True, set()),
    "ctrl/main.c": (set(), True, set()),
    "tests/a.c": ({"a"}, False, set()),
    "tests/server.py": ({"a"}, False, set()),
    "tests/fate.c": (set(), False, {"test_loss"}),  # a test starts a program that is made of it
    "tests/corpus/another": ({"b"}, False, set()),
    "docs/config.md": ({"c"}, False, set()),
    "README.md": (set(), False, set()),
    "tests/integ/echo_agent.py": (set(), False, {"test_http"}),
    "tests/integ/lab.py": (set(), False, {"test_http", "test_loss", "test_xds"}),
    "tests/integ/test_xds.py": (set(), False, {"test_xds"}),
}
ANYTHING = ["meson.build", "examples/one.yaml", "tests/integ/conftest.py", "tests/integ/new.go",
            "tests/requirements.txt"]


def command(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


class Changed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        root = pathlib.Path(cls.folder.name).resolve()
        os.chdir(root)
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (root / "tests" / "style").chmod(0o755)
        shutil.copytree(TOOL, root / "tools" / "testing", ignore=shutil.ignore_patterns("__pycache__"))
        command("git", "init", "-q", "-b", "main")
        command("git", "add", ".")
        command("git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "all")
        command("meson", "setup", "build")
        command("ninja", "-C", "build")
        sys.path.insert(0, str(root / "tools"))
        from testing import changed, integ
        cls.changed = changed
        integ.BESIDE_COMPARE = integ.LONGEST_FIRST = []  # there are none here

    def test_what_a_file_affects_is_made_of_it_given_it_or_names_it(self):
        for file, (tests, programs, integ) in ROWS.items():
            with self.subTest(file):
                affected = self.changed.Affected("build", {file})
                self.assertEqual(self.changed.unknown({file}, affected), set())
                self.assertEqual({*affected.tests("unit"), *affected.tests("sim")}, tests)
                self.assertEqual(bool(affected.programs()), programs)
                self.assertEqual({path.stem for path in self.changed.integ_tests({file}, affected)}, integ)

    def test_a_file_that_nothing_is_known_of_affects_anything(self):
        for file in ANYTHING:
            with self.subTest(file):
                self.assertEqual(self.changed.unknown({file}, self.changed.Affected("build", {file})), {file})

    def test_a_diff_is_what_is_committed_what_is_not_and_what_is_new(self):
        self.assertEqual(self.changed.changed_files("main"), set())
        command("git", "checkout", "-q", "-b", "topic")
        pathlib.Path("lb/two.c").write_text("int two(void) { return 3; }\n")
        command("git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-a", "-m", "two")
        pathlib.Path("lb/one.c").unlink()
        pathlib.Path("new one").write_text("")
        self.assertEqual(self.changed.changed_files("main"), {"lb/two.c", "lb/one.c", "new one"})
        command("git", "checkout", "-q", "-f", "main")
        pathlib.Path("new one").unlink()


if __name__ == "__main__":
    unittest.main()
