# SPDX-License-Identifier: Apache-2.0
"""The tables of fields of TLS contexts beside Envoy's API, and beside the rows that are judged."""

import json

from tls_fields import API, TABLES, cluster_field_rows, listener_field_rows
from verdict_table import all_cluster_rows, all_listener_rows


def test_each_field_of_the_api_has_one_row():
    """TLS-239"""
    assert TABLES.keys() == API.keys()
    assert {message: sorted(row.field for row in rows) for message, rows in TABLES.items()} == {
        message: sorted(descriptor.fields_by_name) for message, descriptor in API.items()}


def test_each_row_is_judged():
    """What is read stands in rows by hand, all else in those that are made of the tables (TLS-239)."""
    judged = json.dumps([row.resource for row in (*all_cluster_rows(), *all_listener_rows())])
    read = [row.field for rows in TABLES.values() for row in rows if row.kind in ("READ", "INSIDE")]
    assert [field for field in read if f'"{field}"' not in judged] == []
    made = json.dumps([row.resource for row in (*cluster_field_rows(), *listener_field_rows())])
    others = [row.field for rows in TABLES.values() for row in rows if row.kind not in ("READ", "INSIDE")]
    assert len(others) > len(read) and [field for field in others if f'"{field}"' not in made] == []
