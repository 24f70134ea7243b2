# SPDX-License-Identifier: Apache-2.0
"""The builds that tools/test makes: configured when needed, and what Meson and ninja know of them."""

import configparser
import json
import os
import shutil
import subprocess

from testing.report import FAILED, ROOT, Stage, run

CLANG = {"CC": "clang-14", "CXX": "clang++-14"}
# The sanitizers' code is large and slow to optimise, and line tables are all that their reports read.
SANITIZED = ["-Deal=false", "-Doptimization=1", "-Dc_args=-g1", "-Dcpp_args=-g1"]
# Of binutils' two linkers the faster one: there are five hundred programs with large libraries.
FAST_LINK = ["-Dc_link_args=-fuse-ld=gold", "-Dcpp_link_args=-fuse-ld=gold"]
# name of the build directory: (meson options, environment)
BUILDS = {
    "build": ([], {}),
    "build-asan": ([*SANITIZED, *FAST_LINK, "-Db_sanitize=address,undefined"], {}),
    # shuntd itself, with DPDK, for tests/attacks
    "build-asan-eal": ([*SANITIZED[1:], "-Db_sanitize=address,undefined"], {}),
    "build-tsan": ([*SANITIZED, "-Db_sanitize=thread"], {}),  # gcc: clang's needs LLVM to name functions
    "build-clang": (["-Doptimization=0", "-Ddebug=false"], CLANG),  # nothing of it is run
}


def introspect(name):
    """Meson's tests and targets of a configured build; a target has what ninja calls its files, by name "paths"."""
    facts = json.loads(subprocess.run(["meson", "introspect", name, "--tests", "--targets"], cwd=ROOT,
                                      check=True, stdout=subprocess.PIPE).stdout)
    for target in facts["targets"]:
        target["paths"] = [os.path.relpath(path, ROOT / name) for path in target["filename"]]
    return facts["tests"], {target["id"]: target for target in facts["targets"]}


def suite_of(test):
    """The project's name stands before each."""
    return [suite.removeprefix("shunt:") for suite in test["suite"]]


def programs(name, suite):
    """What a suite's tests of a build need, as ninja's targets."""
    tests, targets = introspect(name)
    wanted = {i for test in tests if suite in suite_of(test) for i in test["depends"]}
    return sorted(path for i in wanted for path in targets[i]["paths"])


def given_options(folder):
    """The options that a build's folder was made with, as `meson setup` takes them; None = there is no such build."""
    if not (folder / "build.ninja").exists():
        return None
    kept = configparser.ConfigParser(interpolation=None, delimiters=["="])
    kept.optionxform = str
    kept.read(folder / "meson-private" / "cmd_line.txt")
    return {f"-D{option}={value}" for option, value in kept["options"].items()}


def configure(name):
    """Makes the build's folder, anew where it was made with other options, which Meson would keep silently."""
    options, extra = BUILDS[name]
    given = given_options(ROOT / name)
    if given == set(options):
        return True
    if given is not None:
        print(f"{name} was made with other options ({' '.join(sorted(given)) or 'none'}): it is made anew", flush=True)
        shutil.rmtree(ROOT / name)
    return run(["meson", "setup", name, *options], env={**os.environ, **extra}, stdout=subprocess.DEVNULL)


def build(name, suite=None, targets=()):
    """Configures when needed and builds all, or all that a suite's tests run, or these of ninja's targets. False, after
    saying so, when that fails."""
    env = {**os.environ, **BUILDS[name][1]}
    with Stage(f"building {name}"):
        # The linker has the last word in CI's log, so keep ninja's progress short there.
        configured = configure(name)
        if configured and suite:  # what is introspected is of the last configuration
            configured = run(["ninja", "-C", name, "--quiet", "build.ninja"], env=env)
        targets = programs(name, suite) if configured and suite else targets
        if configured and run(["ninja", "-C", name, "--quiet", *targets], env=env):
            return True
    print(f"{name} does not build", flush=True)
    FAILED.append(f"{name} does not build")
    return False
