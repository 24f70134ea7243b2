# SPDX-License-Identifier: Apache-2.0
"""Takeovers of memifs whose client shuntd is, under load: the device moves, what is the older process's is relayed
(docs/takeover.md). Cards are in test_pci_takeover.py."""

import time

import pytest

from lab import wait_until
from memif_world import Switch
from takeover_world import (N_CRASHES, N_TAKEOVERS, WAIT_S, Calls, Pings, Row, Streams, check_relay, count_resets,
                            crash_at_each, crashes, fail_by_config, has_all, info, resets)


@pytest.fixture(name="bed")
def fixture_bed(make_world, lab):
    world = make_world(device="memif_client")
    bed = world.bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 600\nlame_duck_s: 1\n"
    switch = Switch(bed)
    world.start()
    count_resets(lab, "client")
    bed.switch = switch
    return bed


def before_it_served(bed, number):
    """What that process logged until then."""
    return (bed.lab.dir / f"shuntd-{number}.log").read_text().partition('msg="took over"')[0]


@pytest.mark.timeout(150 + 12 * N_TAKEOVERS)
def test_fl_116_takeovers_of_memifs_in_a_row_lose_nothing(bed):
    """There are always streams that outlive three generations, whose frames go through each process before."""
    row, calls = Row(bed), Calls(bed)
    macs = [port["mac"] for port in bed.show("ports")]
    for told in row.each():
        assert [port["mac"] for port in bed.show("ports")] == macs
        if told["generation"] == 4:
            check_relay(bed.show_workers()[0])
    row.finish(calls)
    # What they need to serve came to them through the processes before.
    assert any("endpoint connected" in before_it_served(bed, number) for number in range(2, N_TAKEOVERS + 2))
    row.silences.tell()
    print(f"the switch: {bed.switch.stop()}")


@pytest.mark.timeout(150 + 60 * N_CRASHES)
def test_fl_119_a_process_that_comes_to_nothing_gives_the_memifs_back(bed):
    """A bad configuration, a crash with the memifs in its hands (at each stage, in the long form), and one that the
    memif's server does not let in."""
    streams, serving = Streams(bed), bed.daemon
    fail_by_config(bed)
    crash_at_each(bed, crashes("had them"))
    failed = info(bed)["takeovers_failed"]
    assert failed > 0 and 'msg="device back"' in serving.output()

    calls, pings = Calls(bed), Pings(bed.lab)
    bed.device = "memif_stranger"
    bed.start_daemon(wait=False, words=["--takeover"], name="shuntd-stranger")
    assert bed.daemon.wait(WAIT_S) == 1
    assert "the memif's server does not let it in" in bed.daemon.output()
    bed.device, bed.daemon = "memif_client", serving
    wait_until(lambda: has_all(bed), WAIT_S, "the memifs to be taken back")
    time.sleep(1)
    print(f"ms without an answer, when it was not let in: {pings.longest_gap_ms()}")
    assert streams.finish() and calls.finish()
    assert resets(bed.lab, "client") == 0
    told = info(bed)
    assert told["role"] == "front" and told["pid"] == serving.pid and told["takeovers_failed"] == failed + 1
    assert bed.run_h2load(requests=500).perfect


def test_fl_117_a_memif_whose_server_shuntd_is_is_refused_before_anybody_hears_of_it(bed):
    serving = bed.daemon
    bed.device = "memif"
    bed.start_daemon(wait=False, words=["--takeover"], name="shuntd-server")
    assert bed.daemon.wait(WAIT_S) == 1
    assert "ports[0].device" in bed.daemon.output() and "role=client can be" in bed.daemon.output()
    bed.device, bed.daemon = "memif_client", serving
    assert info(bed)["takeovers_failed"] == info(bed)["takeovers_refused"] == 0
    assert bed.run_h2load(requests=500).perfect


def links(bed):
    return [port["link"] for port in bed.show("ports")]


def test_fl_118_a_memif_is_opened_anew_when_its_server_is_there_again(bed):
    assert bed.run_h2load(requests=500).perfect
    for _ in range(2):
        bed.switch.stop()
        wait_until(lambda: links(bed) == ["gone", "gone"], WAIT_S, "the memifs to be missed")
        bed.switch.start()
        wait_until(lambda: links(bed) == ["up", "up"], WAIT_S, "the memifs to be back")
        assert bed.run_h2load(requests=500).perfect
