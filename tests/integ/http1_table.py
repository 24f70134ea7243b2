# SPDX-License-Identifier: Apache-2.0
"""Reads tests/unit/h1/smuggling.rows: requests and dataplane/h1's verdicts, which its unit test holds."""

import collections
import pathlib
import re

PATH = pathlib.Path(__file__).parents[1] / "unit" / "h1" / "smuggling.rows"
ROW = re.compile(r"(\S+) (\S+) (.*?) \| (.*)")
PIECE = re.compile(r"\\\{((?:\\.|[^,])*),(\d+)\}|\\x(..)|\\(.)|([^\\]+)")
ESCAPED = {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "\\": b"\\", ",": b","}

Row = collections.namedtuple("Row", "rule verdict name payload taken")


def decode(text):
    """The bytes that a row stands for."""
    out = b""
    for repeated, times, number, escaped, plain in PIECE.findall(text):
        if times:
            out += decode(repeated) * int(times)
        elif number:
            out += bytes([int(number, 16)])
        elif escaped:
            out += ESCAPED[escaped]
        else:
            out += plain.encode()
    return out


def n_taken(verdict):
    """How many requests were taken: "2" and "2+400" are two, "400" is none."""
    first = verdict.split("+", maxsplit=1)[0]
    return 0 if len(first) == 3 else int(first)


def rows():
    """All of them, in order."""
    found = [ROW.fullmatch(line) for line in PATH.read_text().splitlines() if line and line[0] != "#"]
    return [Row(m[1], m[2], m[3], decode(m[4]), n_taken(m[2])) for m in found]
