# SPDX-License-Identifier: Apache-2.0
"""shunt-load around shuntd over memif and veth, and before peers that are not ours."""

import h2load
import load_agent
import pytest
from lab import wait_until
from lab_fixtures import check_end
from load_agent import BACKEND, BACKEND_PORT
from test_tls import TlsWorld
from testbed import WORKERS, Testbed

N = 5000


@pytest.fixture(name="memif_bed")
def fixture_memif_bed(lab):
    # shunt-load has one queue, and a memif no more than its peer.
    bed = Testbed(lab, device="memif", workers=WORKERS[-1:])
    load_agent.serve_echo(bed)
    yield bed
    check_end(bed)


def ended_ok(bed):
    return sum(worker["ended"]["ok"] for worker in bed.show_workers())


# Of connections and streams, what is given last counts.
WAYS = {
    "plain": [],
    "grpc": ["--grpc", "-b", "100"],
    "large": ["--grpc", "-b", "60000", "-A", "20000"],
    "upload": ["-b", "30000", "-A", "10"],
    "one_by_one": ["--requests-per-connection", "1"],
    "open_loop": ["--rate", "2000"],
    "http1": ["--http1", "-c", "16", "-m", "1"],
    "http1_large": ["--http1", "-b", "60000", "-A", "20000", "-m", "1"],
    "http1_one_by_one": ["--http1", "--requests-per-connection", "1", "-m", "1"],
}
FEW = ("large", "upload", "one_by_one", "http1_large", "http1_one_by_one")


@pytest.mark.parametrize("way", WAYS)
def test_every_byte_is_right_through_the_balancer_over_memif(memif_bed, way):
    n = 500 if way in FEW else N
    done = load_agent.run(memif_bed.lab, "lb", *load_agent.memif_words(memif_bed.lab), "-n", str(n), "-c", "4",
                          "-m", "16", *WAYS[way])
    assert done.status == 0, done.report
    assert done.outcomes() == {"ok": n}
    # The probe that was answered, and no other, came as far as the backend, too.
    assert done.report["echo"]["requests"] == n + 1 and done.report["echo"]["doubled"] == 0
    assert ended_ok(memif_bed) == n + 1


def test_large_frames_carry_large_bodies_over_memif(lab):
    bed = Testbed(lab, device="memif", workers=WORKERS[-1:], mtu=9000)
    load_agent.serve_echo(bed)
    done = load_agent.run(lab, "lb", *load_agent.memif_words(lab), "--mtu", "9000", "-b", "300000",
                          "-A", "300000", "-n", "100", "-c", "2", "-m", "4")
    assert done.outcomes() == {"ok": 100}, done.report
    assert all(bed.mean_sent(port) > 3000 for port in ("port0", "port1")), bed.show("workers")
    check_end(bed)


def test_both_ends_of_a_memif_in_one_process_end_well_each_time(lab):
    near = f"net_memif0,role=server,socket={lab.dir}/near.sock,socket-abstract=no"
    words = ["-d", near, "-a", "10.82.0.1/16", "-t", f"{BACKEND}:{BACKEND_PORT}", "--echo-device",
             near.replace("memif0,role=server", "memif1,role=client"), "--echo-address", f"{BACKEND}/16",
             "--listen", str(BACKEND_PORT), "-n", "10"]
    for _ in range(15):
        done = lab.exec("lb", load_agent.argv("run", *words), check=False)
        assert done.returncode == 0, done


def test_idle_connections_are_held_beside_the_load(memif_bed):
    done = load_agent.run(memif_bed.lab, "lb", *load_agent.memif_words(memif_bed.lab), "-n", "2000",
                          "-c", "2", "-m", "8", "--idle", "1000")
    assert done.status == 0, done.report
    assert done.report["connections"]["idle_held"] == 1000


# What the balancer makes of each: a stream that its backend reset before an answer is UNAVAILABLE, or 502.
LIES = {"alter": "altered", "cut": "altered", "swap": "doubled", "status": "status", "reset": "status",
        "silent": "timed_out"}


@pytest.mark.parametrize("way", (["--grpc", "-c", "2", "-m", "4"], ["--http1", "-c", "8"]), ids=("grpc", "http1"))
@pytest.mark.parametrize("fault", LIES)
def test_a_backend_that_lies_makes_the_run_fail(memif_bed, fault, way):
    done = load_agent.run(memif_bed.lab, "lb", *load_agent.memif_words(memif_bed.lab), *way, "-n",
                          "1000", "--echo-fault", f"{fault}:100", "-T", "3")
    assert done.status == 1
    assert done.outcomes() == {"ok": 990, LIES[fault]: 10}


def test_nobody_at_the_other_end_of_the_memif_is_an_end_too(lab):
    words = load_agent.memif_words(lab)[:6]
    words[1] = words[1].replace("role=client", "role=server")
    done = load_agent.run(lab, "lb", *words, "-n", "10", "--timeout", "1")
    assert done.status == 1 and done.report["gave_up"]


def test_both_ends_on_veth_around_the_balancer(lab):
    bed = Testbed(lab)
    load_agent.start_echo(lab, "backends", *load_agent.echo_words())
    load_agent.serve_echo(bed)
    done = load_agent.run(lab, "client", *load_agent.client_words(), "--grpc", "-b", "200", "-n", str(N),
                          "-c", "4", "-m", "8")
    assert done.status == 0, done.report
    assert done.outcomes() == {"ok": N}
    check_end(bed)


@pytest.mark.parametrize("way, n_opened", (
    (["-m", "4"], 2), (["--http1"], 2), (["--http1", "--requests-per-connection", "1"], 300)))
def test_both_protocols_are_agreed_upon_and_spoken_over_tls(lab, tmp_path, way, n_opened):
    world = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example").start()
    done = load_agent.run(lab, "client", *load_agent.client_words(), "--tls", "--check", "same", "-p", "/tls/mark",
                          "-n", "300", "-c", "2", *way)
    assert done.status == 0, done.report
    assert done.outcomes() == {"ok": 300}
    # Of those that go, some are replaced before the last answer is there.
    assert n_opened <= done.report["connections"]["opened"] <= n_opened + (n_opened > 2) * 2
    check_end(world.bed)


def test_h2load_is_answered_by_the_echo_backend(lab):
    Testbed(lab)
    lab.address("lb", "lb-b", "10.82.0.9/16")
    load_agent.start_echo(lab, "backends", *load_agent.echo_words(), "--echo-answer", "100")
    url = f"http://{BACKEND}:{BACKEND_PORT}/"
    wait_until(lambda: lab.exec("lb", ["ping", "-c", "1", "-W", "1", BACKEND], check=False).returncode == 0,
               20, "the echo backend's address")
    report = h2load.parse(lab.exec("lb", h2load.arguments(url, requests=N), timeout=60).stdout)
    assert report.perfect and report.payload == 100 * N


def start_nghttpd(lab, ip):
    """Behind lb-c, with two files."""
    root = lab.dir / "www"
    root.mkdir()
    for name, size in (("small", 300), ("large", 70000)):
        (root / name).write_bytes(b"#" * size)
    lab.address("lb", "lb-c", f"{ip}/24")
    return lab.start("lb", "nghttpd", ["nghttpd", "--no-tls", "-a", ip, "-d", root, "8080"])


@pytest.mark.parametrize("check", ("same", "status"))
def test_nghttpd_is_loaded_and_checked(lab, check):
    bed = Testbed(lab)
    bed.wait_connect("lb", "10.81.0.9", 8080, start_nghttpd(lab, "10.81.0.9"))
    done = load_agent.run(lab, "client", *load_agent.client_words(target="10.81.0.9:8080"), "--check", check,
                          "-n", "2000", "-c", "3", "-m", "10", "-p", "9:/small", "-p", "/large")
    assert done.status == 0, done.report
    assert done.outcomes() == {"ok": 2000}


NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.err crit;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type text/html; keepalive_requests 10;
  server {{ listen {ip}:8080; root {dir}/www-nginx; location /chunked {{ ssi on; }} }}
}}
"""


def start_nginx(lab, ip):
    """Behind lb-c, with two files, one of which it sends in chunks; it closes each connection after ten requests."""
    root = lab.dir / "www-nginx"
    root.mkdir()
    root.chmod(0o755)
    (root / "whole").write_bytes(b"#" * 3000)
    (root / "chunked").write_text('<!--# echo var="none" default="a" -->' + "#" * 30000)
    (lab.dir / "nginx.conf").write_text(NGINX.format(dir=lab.dir, ip=ip))
    lab.address("lb", "lb-c", f"{ip}/24")
    return lab.start("lb", "nginx", ["nginx", "-c", lab.dir / "nginx.conf"])


def test_nginx_is_loaded_in_http1_and_ends_connections_as_it_likes(lab):
    bed = Testbed(lab)
    bed.wait_connect("lb", "10.81.0.9", 8080, start_nginx(lab, "10.81.0.9"))
    done = load_agent.run(lab, "client", *load_agent.client_words(target="10.81.0.9:8080"), "--http1", "--check",
                          "same", "-n", "1000", "-c", "4", "-p", "3:/whole", "-p", "/chunked")
    assert done.status == 0, done.report
    assert done.outcomes() == {"ok": 1000}
    connections = done.report["connections"]
    assert 96 <= connections["goaways"] <= 100 and connections["lost"] == connections["unasked"] == 0, done.report
    assert done.report["body_bytes_in"] > 1000 * 3000


def test_a_missing_file_is_a_wrong_status(lab):
    bed = Testbed(lab)
    bed.wait_connect("lb", "10.81.0.9", 8080, start_nghttpd(lab, "10.81.0.9"))
    done = load_agent.run(lab, "client", *load_agent.client_words(target="10.81.0.9:8080"), "--check", "same",
                          "-n", "100", "-p", "/missing")
    assert done.status == 1
    assert done.outcomes() == {"status": 100}
