# SPDX-License-Identifier: Apache-2.0
"""The recipes of contrib/kubernetes, as Kubernetes and as shuntd read them: each object fits Kubernetes' own schema,
what one object says of another holds, and shuntd takes the files of the ConfigMap once they are filled in."""

import copy
import os
import subprocess

import kubernetes_validate
import pytest
import yaml

from testbed import BUILD, ROOT

RECIPES = sorted((ROOT / "contrib" / "kubernetes").glob("*.yaml"))
SLACK_S = 5  # of a pod's end, beyond what shunt.yaml gives clients
# What an operator puts in place of words in capitals; longer ones first.
FILLED_IN = {"XDS_SERVER": "127.0.0.1", "PCI_ADDRESS": "0000:01:00.0", "INTERFACE": "lo", "ADDRESS": "192.0.2.10",
             "GATEWAY": "192.0.2.1", "LENGTH": "24", "PORT": "18000", "NODE": "node-1"}

each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=[path.name for path in RECIPES])


def objects_of(recipe):
    return [made for made in yaml.safe_load_all(recipe.read_text()) if made]


def only(objects, kind):
    found, = [made for made in objects if made["kind"] == kind]
    return found


def check_schema(made):
    kubernetes_validate.validate(made, kubernetes_validate.latest_version(), strict=True)


def test_there_is_a_recipe():
    assert [path.name for path in RECIPES]


@each_recipe
def test_each_object_of_a_recipe_fits_kubernetes_schema(recipe):
    for made in objects_of(recipe):
        check_schema(made)


@each_recipe
@pytest.mark.parametrize("spoil", [
    lambda pod: pod.update(hostnetwork=True),
    lambda pod: pod.update(terminationGracePeriodSeconds="45s"),
    lambda pod: pod["containers"][0].pop("name"),
    lambda pod: pod["containers"][0]["readinessProbe"].update(periodSecond=2),
    lambda pod: pod["volumes"][0].update(configMap="shunt"),
], ids=["unknown field", "wrong type", "missing field", "unknown field, deep", "text for an object"])
def test_a_recipe_with_a_mistake_does_not_fit(recipe, spoil):
    made = copy.deepcopy(only(objects_of(recipe), "DaemonSet"))
    spoil(made["spec"]["template"]["spec"])
    with pytest.raises(kubernetes_validate.ValidationError):
        check_schema(made)


@each_recipe
def test_what_a_pod_names_is_there(recipe):
    objects = objects_of(recipe)
    made = only(objects, "DaemonSet")
    template = made["spec"]["template"]
    assert made["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    pod = template["spec"]
    container, = pod["containers"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    maps = {made["metadata"]["name"] for made in objects if made["kind"] == "ConfigMap"}
    assert {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume} == maps
    assert {made["metadata"].get("namespace", "shunt") for made in objects} == {"shunt"}
    wanted = container["resources"]
    assert wanted["limits"] == wanted["requests"], "no whole cores of its own"


@each_recipe
def test_a_pod_has_the_time_to_drain(recipe):
    objects = objects_of(recipe)
    conf = yaml.safe_load(only(objects, "ConfigMap")["data"]["shunt.yaml"])
    leaves_s = sum(conf.get(name, 0) for name in ("farewell_s", "lame_duck_s", "drain_s"))
    pod = only(objects, "DaemonSet")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= leaves_s + SLACK_S


def fill_in(recipe, folder):
    """The ConfigMap's files in a folder, as an operator would have edited them."""
    for name, text in only(objects_of(recipe), "ConfigMap")["data"].items():
        for word, value in FILLED_IN.items():
            text = text.replace(word, value)
        (folder / name).write_text(text)


def check_files(folder):
    """shuntd --check there; it reads the bootstrap, too."""
    env = {name: value for name, value in os.environ.items() if name != "GRPC_XDS_BOOTSTRAP"}
    return subprocess.run([BUILD / "ctrl" / "shuntd", "-c", folder / "shunt.yaml", "--check"], env=env, check=False,
                          capture_output=True, text=True, timeout=60)


@each_recipe
def test_shuntd_takes_the_files_of_a_recipe(recipe, tmp_path):
    fill_in(recipe, tmp_path)
    done = check_files(tmp_path)
    assert done.returncode == 0 and "configuration OK" in done.stdout, done
    bootstrap = tmp_path / "bootstrap.json"
    bootstrap.write_text(bootstrap.read_text().replace('"insecure"', '"none"'))
    done = check_files(tmp_path)
    assert done.returncode == 1 and "bootstrap.json" in done.stderr, done
