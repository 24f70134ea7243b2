# SPDX-License-Identifier: Apache-2.0
"""recipe.py FILE...: each object of Kubernetes recipes fits Kubernetes' own schema; prints the capabilities that the
container of the first one adds, as OCI names them."""
import json
import sys

import kubernetes_validate
import yaml


def daemon_set(path):
    with open(path, encoding="utf-8") as file:
        objects = list(yaml.safe_load_all(file))
    for made in objects:
        kubernetes_validate.validate(made, kubernetes_validate.latest_version(), strict=True)
    found, = [made for made in objects if made["kind"] == "DaemonSet"]
    return found


def main(paths):
    sets = [daemon_set(path) for path in paths]
    container, = sets[0]["spec"]["template"]["spec"]["containers"]
    print(json.dumps([f"CAP_{name}" for name in container["securityContext"]["capabilities"]["add"]]))


main(sys.argv[1:])
