# SPDX-License-Identifier: Apache-2.0
# For debian/tests/request: the daemon in a container of the image that is unpacked in /tmp/bundle.
start_daemon() {
  bundle=/tmp/bundle
  mkdir -p "$bundle/rootfs/etc/shunt"
  cp "$work/shunt.yaml" "$examples/bootstrap.json" "$bundle/rootfs/etc/shunt/"
  jq --arg netns "/run/netns/$run-shunt" --slurpfile add /tmp/capabilities.json '
    .process.terminal = false
    | .process.capabilities |= map_values($add[0])
    | .root.readonly = true
    | .linux.namespaces |= map(select(.type != "network") + {}) + [{type: "network", path: $netns}]
    | .linux.resources = {}
    | .mounts += [{destination: "/run/shunt", type: "bind", source: "/run/shunt", options: ["rbind", "rw"]}]' \
    "$bundle/config.json" >"$work/config.json"
  mv "$work/config.json" "$bundle/config.json"
  exec runc run --no-pivot --bundle "$bundle" "$run"
}
