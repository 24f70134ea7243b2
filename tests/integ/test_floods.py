# SPDX-License-Identifier: Apache-2.0
"""What tools/bench floods measures: that floods reach the daemon and that their price is told, not how high it is."""

import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "bench"), str(TESTS / "attacks")]

# pylint: disable=wrong-import-position
import attacker  # noqa: E402
import floods  # noqa: E402
from floods_world import FloodsWorld  # noqa: E402
from row import all_rows  # noqa: E402

RATE, SECONDS = 200, 0.5
FLOOD = "key-updates"  # the others are made of the same


class SmallWorld(FloodsWorld):
    """In which nobody goes before others, as other tests may want the machine too; and who is patient with it."""
    least = 500  # however busy the machine is
    connections = 8
    timeout_s = 30
    patience_s = 60
    nice_first = nice_victim = nice_attacker = 0


@pytest.fixture(name="world", scope="module")
def fixture_world(module_lab):
    return SmallWorld(module_lab)


def test_a_flood_is_told_beside_a_load_without_and_one_elsewhere(world):
    before = world.counters()
    highest, flood = floods.rows(world, SECONDS, 1, [FLOOD], RATE)
    after = world.counters()
    assert highest["highest"] >= highest["asked"] > 0 and 0 < highest["busy"] <= 1 and highest["half"] == RATE
    assert flood["flood"] == FLOOD and highest["failed"] == flood["failed"] == 0, (highest, flood)
    assert all(flood[f"{what}_{way}"] > 0 for what in ("p50_us", "p99_us", "busy", "pools")
               for way in ("quiet", "flood", "elsewhere")), flood
    assert flood["attack_rate"] > 0 and flood["times"] > 0 and flood["times_elsewhere"] > 0, flood
    assert after["tls.message_floods"] > before["tls.message_floods"]


def test_an_attack_begins_anew_when_its_connections_are_cut_until_its_time_is_up():
    begun = []

    def row(attack):
        begun.append(attack)
        raise attacker.Over if len(begun) == 3 else attacker.Cut

    with pytest.raises(attacker.Over):
        attacker.run(row, attacker.Attack(60, {"net": 1, "again": True}))
    assert len(begun) == 3
    attacker.run(lambda attack: begun.append(attack), attacker.Attack(60, {"net": 1}))
    assert len(begun) == 4


def test_all_floods_are_rows_of_the_attacks():
    known = {(r.topic, r.name) for r in all_rows() if r.world == "tls"}
    assert set(floods.FLOODS.values()) <= known
