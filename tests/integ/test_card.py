# SPDX-License-Identifier: Apache-2.0
"""One network card of the PCI bus, which QEMU emulates. `tools/test pci` has others, and all that befalls a card."""

import pytest

import vm
from card_world import CardWorld

pytestmark = [pytest.mark.timeout(600),
              pytest.mark.skipif(bool(vm.missing()), reason=vm.missing() or "-")]


def test_a_card_carries_requests_and_full_frames(lab):
    card = CardWorld(lab, "virtio")
    card.serve()
    card.carry_full_frames()
    assert card.port()["checksums"] == "device"
