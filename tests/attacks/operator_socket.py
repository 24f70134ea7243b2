# SPDX-License-Identifier: Apache-2.0
"""Whoever may open the stats socket, and means harm or has lost his wits."""

import contextlib
import itertools
import socket

from row import row


def speak(a, messages, n=40, reads=True):
    """Each message on a connection of its own, n open at a time."""
    held = []
    for message in itertools.cycle(messages):
        a.left()
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(0.2)
        with contextlib.suppress(OSError):
            sock.connect(a.arguments["stats_socket"])
            sock.sendall(message)
            a.units += 1
            if reads:
                sock.recv(1 << 16)
        held.append(sock)
        if len(held) >= n:
            held.pop(0).close()


@row()
def garbage_on_the_stats_socket_disturbs_nobody(a):
    """TH-61."""
    speak(a, [a.random.randbytes(300) + b"\n" for _ in range(50)] + [b"x" * 5000, b'show "', b"\n" * 4000,
                                                                    b"explain --path \\xff\n"], n=20)


@row()
def answers_of_the_stats_socket_that_nobody_reads_are_bounded(a):
    """TH-61: 20 of its 32 places."""
    speak(a, [b"show workers json\nshow pools json\n" * 40], n=20, reads=False)
