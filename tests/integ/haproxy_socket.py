# SPDX-License-Identifier: Apache-2.0
"""What one says to a stats socket of HAProxy's kind, and what comes back."""

import csv
import io
import socket

TIMEOUT_S = 20


def talk(path, lines):
    """Everything that is answered until the other side closes."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(TIMEOUT_S)
        one.connect(str(path))
        one.sendall(lines.encode())
        parts = []
        while part := one.recv(1 << 16):
            parts.append(part)
    return b"".join(parts).decode()


def columns(path):
    """The names of `show stat`, up to the last whose place is known."""
    head = talk(path, "show stat\n").splitlines()[0]
    assert head.startswith("# "), head
    return head[2:].split(",-,")[0].split(",")


def rows(path, words=""):
    """{(pxname, svname): {column: text}} of `show stat`."""
    text = talk(path, f"show stat {words}\n")
    assert text.endswith("\n\n"), text[-200:]
    lines = [line for line in csv.reader(io.StringIO(text)) if line]
    head = [name.lstrip("# ") for name in lines[0]]
    assert all(len(line) == len(head) for line in lines), text
    found = {(line[0], line[1]): dict(zip(head, line)) for line in lines[1:]}
    assert len(found) == len(lines) - 1, text
    return found


def info(path):
    return dict(line.split(": ", 1) for line in talk(path, "show info\n").splitlines() if line)


def typed(path, what):
    """{(object's letter, place, name): (tags, type)} of `show info` or `show stat`."""
    found = {}
    for line in talk(path, f"show {what} typed\n").splitlines():
        if not line:
            continue
        key, tags, kind, _ = line.split(":", 3)
        words = key.split(".")
        place, name, process = words[-3:]
        assert process == "1", line
        found[(words[0] if len(words) == 6 else "", int(place), name)] = (tags, kind)
    return found
