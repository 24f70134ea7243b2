# SPDX-License-Identifier: Apache-2.0
"""Who takes part in tools/compare on this machine."""

import shutil

from compare_direct import NAME, DirectOnMemif, DirectOnVeth
from compare_peers import ENVOY, Envoy, HAProxy, Nghttpx, Nginx
from compare_shunt import LargeFramesOnMemif, LargeFramesOnVeth, ShuntOnMemif, ShuntOnVeth

REFERENCE = NAME  # what latency is added to


def found():
    """(subjects that are here, names of the peers that are not)"""
    peers = [(HAProxy, shutil.which("haproxy")), (Nghttpx, shutil.which("nghttpx")),
             (Nginx, shutil.which("nginx")), (Envoy, ENVOY)]
    here = [ShuntOnMemif, ShuntOnVeth, LargeFramesOnMemif, LargeFramesOnVeth,
            *(peer for peer, there in peers if there), DirectOnMemif, DirectOnVeth]
    return here, [peer.name for peer, there in peers if not there]
