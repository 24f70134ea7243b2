#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How tools/test configures its builds, in a small project with a copy of the tool."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[3] / "tools" / "testing"
CONFIGURE = """import sys
from testing import builds
builds.BUILDS["build"] = (sys.argv[1:], {})
sys.exit(not builds.configure("build"))
"""


class Builds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(TOOL, self.root / "tools" / "testing")
        (self.root / "meson.build").write_text("project('shunt', 'c')\n")
        (self.root / "tools" / "configure.py").write_text(CONFIGURE)

    def configure(self, *options):
        subprocess.run([sys.executable, "tools/configure.py", *options], cwd=self.root, check=True, timeout=60,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def mark(self):
        """A file that goes with the folder."""
        mark = self.root / "build" / "mark"
        mark.touch()
        return mark

    def test_a_build_with_the_same_options_stays(self):
        self.configure("-Doptimization=1", "-Dc_args=-g1")
        mark = self.mark()
        self.configure("-Dc_args=-g1", "-Doptimization=1")
        self.assertTrue(mark.exists())

    def test_a_build_with_other_options_is_made_anew(self):
        self.configure("-Doptimization=1")
        for options in (["-Doptimization=2"], []):
            mark = self.mark()
            self.configure(*options)
            self.assertFalse(mark.exists())
        self.assertTrue((self.root / "build" / "build.ninja").exists())

    def test_a_folder_without_a_build_is_configured(self):
        (self.root / "build").mkdir()
        self.configure()
        self.assertTrue((self.root / "build" / "build.ninja").exists())


if __name__ == "__main__":
    unittest.main()
