# SPDX-License-Identifier: Apache-2.0
"""capabilities.py FILE: those that the container of a Kubernetes recipe adds, as OCI names them, in JSON."""
import json
import sys

import yaml

with open(sys.argv[1], encoding="utf-8") as recipe:
    container, = [container for made in yaml.safe_load_all(recipe) if made["kind"] == "DaemonSet"
                  for container in made["spec"]["template"]["spec"]["containers"]]
print(json.dumps([f"CAP_{name}" for name in container["securityContext"]["capabilities"]["add"]]))
