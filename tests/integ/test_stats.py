# SPDX-License-Identifier: Apache-2.0
"""The stats socket against counts made elsewhere."""

import json

import pytest

COMMANDS = ("show info", "show stat", "show clusters", "show xds", "show workers")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_show_command_has_both_forms(world, command):
    text = world.bed.shuntctl(*command.split())
    assert text.strip() and not text.lstrip().startswith("{")
    assert json.loads(world.bed.shuntctl(*command.split(), "json"))


def test_help_names_every_command(world):
    text = world.bed.shuntctl("help")
    assert all(command in text for command in COMMANDS)


def test_socket_has_the_mode_of_the_configuration(world):
    assert world.bed.stats_socket.stat().st_mode & 0o777 == 0o660
