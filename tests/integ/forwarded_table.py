# SPDX-License-Identifier: Apache-2.0
"""The rows of tests/unit/proxy/forwarded_rows.txt: what becomes of the fields that say whom a request comes from."""

import collections
import pathlib

PATH = pathlib.Path(__file__).parent.parent / "unit" / "proxy" / "forwarded_rows.txt"

# settings: {word: value}; fields: [(name, value)], as sent and at the backend
Row = collections.namedtuple("Row", "line settings peer sent seen client")


def fields_of(text):
    return [tuple(f.split("=", 1)) for f in text.split(" ; ")] if text != "-" else []


def settings_of(text):
    return dict((w.split("=") + [True])[:2] for w in text.split()) if text != "-" else {}


def read_rows():
    rows = []
    for number, line in enumerate(PATH.read_text().splitlines(), 1):
        if not line.startswith("#"):
            settings, peer, sent, seen, client = (cell.strip(" ") for cell in line.split(" | "))
            rows.append(Row(number, settings_of(settings), peer, fields_of(sent), fields_of(seen), client))
    return rows


def manager_of(settings):
    """Fields of an HttpConnectionManager."""
    ret = {"use_remote_address": "edge" in settings, "skip_xff_append": "skip" in settings}
    if "hops" in settings:
        ret["xff_num_trusted_hops"] = int(settings["hops"])
    if "cert" in settings:
        ret["forward_client_cert_details"] = settings["cert"]
    return ret
