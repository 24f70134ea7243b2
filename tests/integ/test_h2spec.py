# SPDX-License-Identifier: Apache-2.0
"""h2spec's strict cases against the frontend. Where it expects what RFC 7540 said and we follow RFC
9113, or take another choice that the RFC leaves, the case is named here with the reason."""

import xml.etree.ElementTree

import pytest

from go_build import go_build
from h2load import MARK
from testbed import PORT, VIP

# RFC 9113 8.1.1 lets a server answer a malformed request before it ends the stream: we answer 400.
# Bytes that are not HTTP/2's preface are HTTP/1.1's, and this line of it is answered with 400 in its own words.
OURS = {'Sends a HEADERS frame with empty ":path" pseudo-header field', "Sends invalid connection preface"}
MIN_CASES = 140


pytestmark = pytest.mark.timeout(500)  # the program is built once


@pytest.fixture(name="h2spec", scope="module")
def fixture_h2spec(tmp_path_factory):
    return go_build("h2spec", "github.com/summerwind/h2spec/cmd/h2spec",
                    tmp_path_factory.mktemp("h2spec") / "h2spec")


def test_h2spec_strict(world, lab, h2spec, tmp_path):
    report = tmp_path / "report.xml"
    argv = [h2spec, "--strict", "-h", VIP, "-p", str(PORT), "-P", MARK, "-o", "10", "-j", report]
    done = lab.exec("client", argv, timeout=300, check=False)
    cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    assert len(cases) >= MIN_CASES, done.stdout
    failed = {case.get("classname") for case in cases
              if case.find("failure") is not None or case.find("error") is not None}
    assert failed <= OURS, (failed, done.stdout[-3000:])
    assert world.bed.run_h2load(requests=1000).perfect
