# SPDX-License-Identifier: Apache-2.0
"""recipe.py FILE: each object of a Kubernetes recipe fits Kubernetes' own schema; prints the capabilities that its
container adds, as OCI names them."""
import json
import sys

import kubernetes_validate
import yaml


def main(path):
    with open(path, encoding="utf-8") as file:
        objects = list(yaml.safe_load_all(file))
    for made in objects:
        kubernetes_validate.validate(made, kubernetes_validate.latest_version(), strict=True)
    sets = [made for made in objects if made["kind"] == "DaemonSet"]
    container, = sets[0]["spec"]["template"]["spec"]["containers"]
    print(json.dumps([f"CAP_{name}" for name in container["securityContext"]["capabilities"]["add"]]))


main(sys.argv[1])
