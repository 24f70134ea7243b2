# SPDX-License-Identifier: Apache-2.0
# For debian/tests/request: the daemon in a container of the image that is unpacked in /tmp/bundle, in control group GROUP.
bundle=/tmp/bundle
mkdir "$work/run"
export SHUNT_SOCKET="$work/run/shunt/stats.sock"
cp "$work/shunt.yaml" "$examples/bootstrap.json" "$bundle/rootfs/etc/shunt/"

start_daemon() {
  jq --arg netns "/run/netns/$run-shunt" --arg run "$work/run" --arg group "/$GROUP" --slurpfile add /tmp/capabilities.json '
    .process.terminal = false
    | .process.capabilities |= map_values($add[0])
    | .root.readonly = true
    | .linux.namespaces |= map(select(.type != "network")) + [{type: "network", path: $netns}]
    | .linux.resources = {}
    | .linux.cgroupsPath = $group
    | .mounts |= map(select(.type != "cgroup"))
    | .mounts += [{destination: "/run", type: "bind", source: $run, options: ["rbind", "rw"]}]' \
    "$bundle/config.json" >"$work/config.json"
  mv "$work/config.json" "$bundle/config.json"
  exec runc run --no-pivot --bundle "$bundle" "$run"
}
