# SPDX-License-Identifier: Apache-2.0
"""What tools/demo prints: numbered steps, plain sentences, a bar for a split, and verdicts."""

import sys
import time

from world import WEB_BACKENDS


class Narrator:
    """Plain sentences and verdicts; on a terminal also colours, pauses and a bar that moves."""

    BAR = 32
    COLOURS = {"blue": "34", "green": "32", "bad": "1;31", "dim": "2", "bold": "1"}

    def __init__(self, check):
        self.live = sys.stdout.isatty() and not check
        self.steps = 0
        self.failed = []
        self._next_line = 0.0
        sys.stdout.reconfigure(line_buffering=True, errors="replace")

    def paint(self, colour, text):
        return f"\033[{self.COLOURS[colour]}m{text}\033[0m" if self.live else text

    def step(self, text):
        self.steps += 1
        print("\n" + self.paint("bold", f"{self.steps}. {text}"))
        if self.live:
            time.sleep(1)

    def say(self, text):
        print(f"   {text}")

    def verify(self, holds, statement):
        if not holds:
            self.failed.append(statement)
        mark = self.paint("green", "ok    ") if holds else self.paint("bad", "FAILED")
        print(f"   {mark} {statement}")

    def bar(self, count, note, last=False):
        """Draws a split over the one before on a terminal; elsewhere it draws one a second."""
        if self.live:
            print(f"\r\033[K   {self._split(count)}  {note}", end="\n" if last else "", flush=True)
        elif last or time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + 1
            self.say(f"{self._split(count)}  {note}")

    def _split(self, count):
        width = round(self.BAR * count.of("blue") / max(1, count.answered))
        drawn = self.paint("blue", "#" * width) + self.paint("green", "=" * (self.BAR - width))
        parts = "  ".join(f"{name} {count.percent(count.by[name]):4.1f}%" for name in WEB_BACKENDS)
        return f"[{drawn}] {parts}"
