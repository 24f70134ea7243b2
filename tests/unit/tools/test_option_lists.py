#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shunt.yaml(5) from docs/config.md."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/config.md").read_text(encoding="utf-8")


def made_of(page):
    return subprocess.run([sys.executable, ROOT / "debian/option-lists"], input=page, text=True, encoding="utf-8",
                          check=True, timeout=60, stdout=subprocess.PIPE).stdout


class OptionLists(unittest.TestCase):
    # OPS-262
    def test_each_option_stands_whole_on_a_line_of_its_own(self):
        options = re.findall(r"^\| (`[^`]+`) \|", PAGE, re.MULTILINE)
        self.assertGreater(len(options), 100)
        lines = made_of(PAGE).splitlines()
        for option in options:
            self.assertEqual(lines.count(option), 1, option)

    def test_nothing_is_left_of_tables_and_links(self):
        text = made_of(PAGE)
        self.assertNotRegex(text, r"(?m)^\|")
        self.assertNotIn("](", text)

    def test_a_row_is_an_item_with_what_its_columns_say(self):
        head = "| option | type | default | range | reload | meaning |\n|---|---|---|---|---|---|\n"
        text = made_of(f"# x\n\n{head}"
                       "| `a.b` | word | `x` | `x`, `y` | yes | [here](#c), [all](README.md#limits), "
                       "[README](README.md) |\n"
                       "| `c` | boolean | `false` | `true`, `false` | no | an `a \\| b` |\n\n"
                       "| signal | effect |\n|---|---|\n| SIGHUP | [reload](#r) |\n")
        self.assertIn("`a.b`\n\n: word; default: `x`; one of `x`, `y`; reload: yes. Here, all (README.md), README.\n",
                      text)
        self.assertIn("`c`\n\n: boolean; default: `false`. An `a \\| b`.\n", text)
        self.assertIn("SIGHUP\n\n: reload\n", text)


if __name__ == "__main__":
    unittest.main()
