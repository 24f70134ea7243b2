# SPDX-License-Identifier: Apache-2.0
"""hang_up.py ADDRESS PORT: accepts connections and ends each behind its first bytes."""

import socket
import sys


def main():
    with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener:
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(5)
                try:
                    peer.recv(65536)
                except OSError:
                    pass


if __name__ == "__main__":
    main()
