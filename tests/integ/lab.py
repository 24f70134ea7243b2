# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, veth pairs and processes that never outlive their owner.

A Lab owns a prefix (so that several can run at once), a run directory under RUN_ROOT, and all that
was made through it. Leaving the context, a signal, or the interpreter's end removes everything;
what a killed owner left behind is removed by the next Lab (sweep), which knows a dead owner by the
lock on its run directory. Nothing is ever created in the caller's own namespace.
"""

import atexit
import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

RUN_ROOT = pathlib.Path("/run/shunt-lab")
NS_ROOT = pathlib.Path("/run/netns")
ETC_ROOT = pathlib.Path("/etc/netns")  # what stands there, ip-netns-exec lays over /etc
NS_SYSCTLS = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
OFFLOADS = ("tx", "gso", "tso", "gro")
SUPPORT_CPU = 0  # the balancer's worker has the other core to itself
COMMAND_TIMEOUT_S = 30
STOP_TIMEOUT_S = 3
STOP_LOOK_S = 0.5
SELDOM_S = 0.1  # between two looks at what is waited for, at most
LIBC = ctypes.CDLL(None, use_errno=True)
STILL_WAITING = 'reason="still waiting"'  # shuntd, of what does not end


class LabError(RuntimeError):
    """A command of the lab's own failed; the text has the command and what it said."""


def command(argv, timeout=COMMAND_TIMEOUT_S, stdin=None, check=True):
    """Runs a short command to its end; returns its CompletedProcess."""
    done = subprocess.run(argv, input=stdin, stdin=None if stdin else subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout, check=False)
    if check and done.returncode != 0:
        raise LabError(f"{' '.join(map(str, argv))}: {done.stderr.strip() or done.stdout.strip()}")
    return done


def wait_until(condition, timeout, what, interval=0.02):
    """Polls until condition() is true and returns its value; TimeoutError names `what`. The longer it waits the
    less often it looks: most looks are processes, and what is waited for wants the CPU."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited >= timeout:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(max(interval, min(waited / 10, SELDOM_S)))


def _set_namespace(namespace):
    if LIBC.setns(namespace.fileno(), 0) != 0:
        raise OSError(ctypes.get_errno(), f"setns {namespace.name}")


@contextlib.contextmanager
def inside(ns):
    """The sockets that the calling thread makes meanwhile are in the namespace of this name, and stay there."""
    with open("/proc/thread-self/ns/net", "rb") as here, open(NS_ROOT / ns, "rb") as there:
        try:
            _set_namespace(there)
            yield
        finally:
            _set_namespace(here)


class Process:
    """A running command with a log file; stop() is polite first, kill() is not."""

    def __init__(self, name, argv, log_path, popen):
        self.name = name
        self.argv = argv
        self.log_path = log_path
        self.popen = popen
        self.started_s = time.monotonic()

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def output(self):
        return self.log_path.read_text(errors="replace")

    def wait(self, timeout):
        """Exit status, or TimeoutError."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name}: still running after {timeout} s") from None

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self):
        """SIGKILL to the whole process group, and reaps."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(STOP_TIMEOUT_S)

    def stop(self, timeout=STOP_TIMEOUT_S):
        """SIGTERM, then SIGKILL when it does not go; returns the exit status. If it had longer than is usual, or says
        itself that it waits for something, where it stands is told."""
        self.signal(signal.SIGTERM)
        deadline, told = time.monotonic() + timeout, timeout <= STOP_TIMEOUT_S
        while self.alive() and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(STOP_LOOK_S)
            if not told and STILL_WAITING in self.output():
                print(f"{self.name} waits:\n{self.stacks()}", file=sys.stderr, flush=True)
                told = True
        if not told and self.alive():
            print(f"{self.name}: still running after {timeout} s:\n{self.stacks()}", file=sys.stderr, flush=True)
        self.kill()
        return self.popen.returncode

    def stacks(self):
        """Of its threads: names, and where each is in the kernel; in the program, too, where there is a gdb."""
        told = []
        for task in sorted(pathlib.Path(f"/proc/{self.pid}/task").glob("*")):
            with contextlib.suppress(OSError):  # one that just ended
                told.append(f"{(task / 'comm').read_text().strip()}:\n{(task / 'stack').read_text()}")
        if shutil.which("gdb"):
            argv = ["gdb", "-p", str(self.pid), "-batch", "-ex", "thread apply all bt"]
            with contextlib.suppress(subprocess.TimeoutExpired):
                told.append(command(argv, check=False).stdout)
        return "\n".join(told)

    def status_kib(self, field):
        """A memory field of /proc/PID/status, e.g. VmRSS."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise LabError(f"{self.name}: no {field}")


class Lab:
    """One world of namespaces. Use as a context manager, from the main thread. Processes die with
    us, even when we are killed, if leashed; a world to keep() can't have them leashed."""

    def __init__(self, label="shunt", leashed=True):
        self.processes = []
        self._namespaces = []
        self._owner = os.getpid()
        self._leashed = leashed
        self.kept = False
        self._closed = False
        _install_signal_handlers()
        with _signals_blocked():
            with _registry_locked():
                _sweep_locked()
                self.prefix, self.dir, self._lock = _claim_run_dir(label)
            atexit.register(self.close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- the network

    def ns(self, name):
        """The full name of a namespace of this lab, made at first use."""
        full = f"{self.prefix}-{name}"
        if full not in self._namespaces:
            command(["ip", "netns", "add", full])
            self._namespaces.append(full)
            command(["ip", "netns", "exec", full, "sysctl", "-qw", *NS_SYSCTLS])
            command(["ip", "-n", full, "link", "set", "lo", "up"])
        return full

    def link(self, end_a, end_b, mtu=1500, queues=1):
        """A veth pair between (namespace, interface) ends, up, offloads off: what leaves one end is
        what a wire would carry, with real checksums and no super-packets."""
        n = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
        (ns_a, if_a), (ns_b, if_b) = end_a, end_b
        command(["ip", "link", "add", if_a, "netns", self.ns(ns_a), "mtu", str(mtu), *n,
                 "type", "veth", "peer", "name", if_b, "netns", self.ns(ns_b), "mtu", str(mtu),
                 *n])
        for ns, interface in (end_a, end_b):
            self.set_offloads(ns, interface, "off")
            self.ip(ns, "link", "set", interface, "up")

    def set_offloads(self, ns, interface, state, names=OFFLOADS):
        """on, as the kernel makes a veth, or off."""
        self.exec(ns, ["ethtool", "-K", interface, *(word for name in names for word in (name, state))])

    def enable_ip6(self, ns, interface):
        """Namespaces have no IPv6, which would send by itself, unless an interface of theirs shall. Libraries take it
        for absent where the loopback has none."""
        for name in ("lo", interface):
            self.exec(ns, ["sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=0"])

    def bridge(self, ns, name, *ports):
        """A learning bridge in ns over interfaces that are already there."""
        self.ip(ns, "link", "add", "name", name, "type", "bridge", "forward_delay", "0")
        for port in ports:
            self.ip(ns, "link", "set", port, "master", name)
        self.ip(ns, "link", "set", name, "up")

    def address(self, ns, interface, *prefixes):
        for prefix in prefixes:
            self.ip(ns, "addr", "add", prefix, "dev", interface)

    def ip(self, ns, *words):
        return command(["ip", "-n", self.ns(ns), *words])

    def accepts(self, ns, ip, port, timeout):
        """Whether a connection from ns to ip:port is made in so many seconds. It costs no process: many wait so."""
        with inside(self.ns(ns)):
            sock = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET)
        with sock:
            sock.settimeout(timeout)
            return sock.connect_ex((ip, int(port))) == 0

    def unanswered(self, ns, target, count, pause_s):
        """Which of so many echo requests nobody answered; it has to be none. With -w, for without it ping waits for its
        last answer no longer than a pause; it may ask once more."""
        said = self.exec(ns, ["ping", "-c", str(count), "-i", str(pause_s), "-w", "20", target]).stdout
        return set(range(1, count + 1)) - {int(n) for n in re.findall(r"icmp_seq=(\d+)", said)}

    def resolver(self, ns, server):
        """Processes started in ns from now on ask this name server, once a second, three times."""
        folder = ETC_ROOT / self.ns(ns)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "resolv.conf").write_text(
            f"nameserver {server}\noptions timeout:1 attempts:3\n")

    def tcp_counters(self, ns):
        """What the kernel has counted of TCP there, by its own names."""
        told = self.exec(ns, ["cat", "/proc/net/snmp", "/proc/net/netstat"]).stdout.splitlines()
        rows = [line.split()[1:] for line in told if line.startswith(("Tcp:", "TcpExt:"))]
        return {name: int(n) for names, row in zip(rows[::2], rows[1::2]) for name, n in zip(names, row)}

    def nft(self, ns, ruleset):
        """Loads an nftables ruleset inside ns."""
        command(["ip", "netns", "exec", self.ns(ns), "nft", "-f", "-"], stdin=ruleset)

    # -- processes

    def exec(self, ns, argv, timeout=COMMAND_TIMEOUT_S, check=True):
        """Runs a command in ns to its end."""
        return command(["ip", "netns", "exec", self.ns(ns), *argv], timeout=timeout, check=check)

    def start(self, ns, name, argv, env=None, cpu=SUPPORT_CPU, files=4096, nice=0):
        """Starts a process in ns, its output in NAME.log of the run directory. cpu None leaves all
        cores to it; files: descriptors that it may have."""
        pin = [] if cpu is None else ["taskset", "-c", str(cpu)]
        share = [] if nice == 0 else ["nice", "-n", str(nice)]
        leash = [] if not self._leashed else ["setpriv", "--pdeathsig", "KILL"]
        full = ["ip", "netns", "exec", self.ns(ns), "prlimit", "--core=0", f"--nofile={files}",
                *leash, *pin, *share, *map(str, argv)]
        log_path = self.dir / f"{name}.log"
        with open(log_path, "ab") as log:
            popen = subprocess.Popen(full, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True, env={**os.environ, **(env or {})})
        if nice:
            self.share(popen.pid, nice)
        process = Process(name, argv, log_path, popen)
        self.processes.append(process)
        return process

    @staticmethod
    def share(pid, nice):
        """The same for its session: a process' nice counts within that alone where the kernel groups by sessions
        (sched(7), autogroup)."""
        with contextlib.suppress(OSError):  # it does not, or the process has ended
            pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(nice))

    # -- the end

    def keep(self):
        """What runs now stays after this program's end, until drop_dead()."""
        self.kept = True

    def close(self):
        """Stops every process and removes every namespace and file. Safe to call again."""
        if self._closed or os.getpid() != self._owner:
            return
        with _signals_blocked():
            self._closed = True
            atexit.unregister(self.close)
            if self.kept:
                (self.dir / "kept").touch()
                os.close(self._lock)
                return
            _stop_all(self.processes)
            with _registry_locked():
                _remove_world(self.prefix, self.dir)
                os.close(self._lock)


def _stop_all(processes):
    running = [p for p in reversed(processes) if p.alive()]
    for process in running:
        process.signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for process in running:
        with contextlib.suppress(TimeoutError):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()


def _lock_registry():
    # The directory goes with the last world: a lock on one that is gone already is no lock.
    while True:
        RUN_ROOT.mkdir(mode=0o755, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            root = os.open(RUN_ROOT, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(root, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.stat(RUN_ROOT).st_ino == os.fstat(root).st_ino:
                    return root
            os.close(root)


@contextlib.contextmanager
def _registry_locked():
    """One at a time claims or sweeps, so that a run directory is never seen before it is locked."""
    root = _lock_registry()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # others are at work
            RUN_ROOT.rmdir()
        os.close(root)


def _claim_run_dir(label):
    for attempt in range(1000):
        prefix = f"{label}-{os.getpid()}-{attempt}"
        path = RUN_ROOT / prefix
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o755)
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            return prefix, path, lock
    raise LabError(f"no free run directory under {RUN_ROOT}")


def _namespaces_of(prefix):
    if not NS_ROOT.is_dir():
        return []
    return [p.name for p in NS_ROOT.iterdir() if p.name.startswith(prefix + "-")]


def _pids_in(ns):
    done = command(["ip", "netns", "pids", ns], check=False)
    return [int(pid) for pid in done.stdout.split()]


def _remove_world(prefix, run_dir):
    for ns in _namespaces_of(prefix):
        for pid in _pids_in(ns):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            wait_until(lambda name=ns: not _pids_in(name), STOP_TIMEOUT_S, f"processes of {ns}")
        command(["ip", "netns", "del", ns], check=False)
    for folder in ETC_ROOT.glob(f"{prefix}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # not there, or others' or the system's stand in it
        ETC_ROOT.rmdir()
    shutil.rmtree(run_dir, ignore_errors=True)


def _dead_worlds():
    """(prefix, run directory, was it kept on purpose) of every world whose owner is gone."""
    for path in sorted(p for p in RUN_ROOT.iterdir() if p.is_dir()):
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield path.name, path, (path / "kept").exists()
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def _sweep_locked():
    for prefix, run_dir, kept in _dead_worlds():
        if kept and any(_pids_in(ns) for ns in _namespaces_of(prefix)):
            continue
        _remove_world(prefix, run_dir)


def sweep():
    """Removes what dead runs left behind; kept worlds stay as long as anything runs in them."""
    with _registry_locked():
        _sweep_locked()


def drop_dead(label, only=None):
    """Removes the worlds of a label whose owner is gone, by keep() or a SIGKILL, or the one of a
    prefix; returns their prefixes."""
    with _registry_locked():
        worlds = [(prefix, run_dir) for prefix, run_dir, _ in _dead_worlds()
                  if prefix.startswith(f"{label}-") and only in (None, prefix)]
        for prefix, run_dir in worlds:
            _remove_world(prefix, run_dir)
    return [prefix for prefix, _ in worlds]


def leftovers(label):
    """Namespaces and run directories of a label that exist now, for tests of tidiness."""
    names = {p.name for p in RUN_ROOT.glob(f"{label}-*")} if RUN_ROOT.is_dir() else set()
    names |= {p.name for p in ETC_ROOT.glob(f"{label}-*")}
    return sorted(names | set(_namespaces_of(label)))


def _install_signal_handlers():
    # Ends by the normal way out, so that every `with` and atexit handler runs.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _frame: sys.exit(128 + n))


@contextlib.contextmanager
def _signals_blocked():
    """Cleaning up is not interrupted by an impatient second Ctrl-C."""
    blocked = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
