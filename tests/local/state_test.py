#!/usr/bin/python3
"""The state directory: what is stored can be read again, and what another user could have written is not used."""
import base64
import contextlib
import json
import os
import shutil
import sqlite3
import ssl
import urllib.error
import urllib.request

import yaml

import bed
from bed import DEFINITION

OPTIONS = ("--no-node", "--no-controller")
THINGS = "/apis/x.io/v1/namespaces/default/things"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LIMIT = 3 << 19   # docs/local.md


def send(local, method, path, body=None, media_type="application/json"):
    """The status and the object of the answer; `body` is sent as JSON, but for bytes."""
    config = yaml.safe_load((local.state / "kubeconfig").read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(cluster["server"] + path, data, {"Content-Type": media_type, "Authorization": "Bearer " + user["token"]},
                                   method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60, context=context) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def nested(depth):
    return b'{"a":' * depth + b"{}" + b"}" * depth


def thing(name, spec):
    return b'{"apiVersion":"x.io/v1","kind":"Thing","metadata":{"name":"%s"},"spec":%s}' % (name.encode(), spec)


def config_map(name, data=None):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {}}


def field(number, text):
    def count(value):
        return bytes([value]) if value < 0x80 else bytes([value & 0x7f | 0x80]) + count(value >> 7)
    return count(number << 3 | 2) + count(len(text)) + text


def protobuf_config_map(name, fields):
    """With these fieldsV1."""
    entry = field(1, b"m") + field(2, b"Update") + field(3, b"v1") + field(6, b"FieldsV1") + field(7, field(1, fields))
    metadata = field(1, name.encode()) + field(3, b"default") + field(17, entry)
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, b"ConfigMap")) + field(2, field(1, metadata))


def check_lists(local):
    """The objects of both lists."""
    objects = []
    for path in (THINGS, CONFIG_MAPS):
        status, listed = send(local, "GET", path)
        assert status == 200, (path, status, listed)
        objects += listed["items"]
    return objects


def deep_custom_resources(local):
    """Their managedFields are deeper than they are."""
    for depth in range(170, 200):
        yield send(local, "POST", THINGS, thing(f"deep-{depth}", nested(depth)))


def deep_fields_in_protobuf(local):
    for depth in range(180, 200):
        yield send(local, "POST", CONFIG_MAPS, protobuf_config_map(f"fields-{depth}", b'{"f:a":' * depth + b"{}" + b"}" * depth),
                   "application/vnd.kubernetes.protobuf")


def json_patches_on_each_other(local):
    assert send(local, "POST", THINGS, thing("patched", b"{}"))[0] == 201
    for start in ("/spec/a", "/spec/a" + "/a" * 151):
        patch = b'[{"op":"add","path":"%s","value":%s}]' % (start.encode(), nested(150))
        yield send(local, "PATCH", f"{THINGS}/patched", patch, "application/json-patch+json")
    for _ in range(20):   # copies of copies
        patch = b'[{"op":"copy","from":"/spec","path":"/spec/a"}]'
        yield send(local, "PATCH", f"{THINGS}/patched", patch, "application/json-patch+json")


def merge_patches_that_add_up(local):
    assert send(local, "POST", THINGS, thing("large", b"{}"))[0] == 201
    for i in range(20):
        yield send(local, "PATCH", f"{THINGS}/large", {"spec": {f"k{i}": "x" * (900 << 10)}}, "application/merge-patch+json")


def managers_that_are_no_text(local):
    for manager in ("%ff", "%ed%a0%80", "a%0ab"):
        yield send(local, "POST", f"{CONFIG_MAPS}?fieldManager={manager}", config_map("manager"))


def test_what_is_stored_can_be_read(local):
    """However it is made, an object is refused, or all lists continue and a restart brings it back."""
    local.up(*OPTIONS)
    local.request("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, "POST")
    for way in (deep_custom_resources, deep_fields_in_protobuf, json_patches_on_each_other, merge_patches_that_add_up,
                managers_that_are_no_text):
        answers = set()
        for status, answer in way(local):
            answers.add(status)
            assert status in (200, 201) or (status in (400, 413, 422) and answer["message"]), (way.__name__, status, answer)
            check_lists(local)
        assert answers & {413, 422}, (way.__name__, "reaches no limit", answers)
    before = check_lists(local)
    local.run("down")
    said = local.run("up", *OPTIONS)
    assert "cannot be read" not in said.stdout, said.stdout
    assert check_lists(local) == before


def test_the_bound_of_an_object(local):
    """The limit is etcd's; the message names it."""
    local.up(*OPTIONS)
    local.request("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, "POST")
    status, answer = send(local, "POST", THINGS, thing("fits", b'"%s"' % (b"x" * (LIMIT - 1_000))))   # room for metadata
    assert status == 201, answer
    status, answer = send(local, "POST", THINGS, thing("larger", b'"%s"' % (b"x" * LIMIT)))
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge"), answer
    assert f"Request entity too large: limit is {LIMIT}" in answer["message"] and '"larger"' in answer["message"], answer
    status, answer = send(local, "POST", THINGS, thing("body", b'"%s"' % (b"x" * 2 * LIMIT)))
    assert status == 413 and f"limit is {2 * LIMIT}" in answer["message"], answer
    status, answer = send(local, "DELETE", f"{THINGS}/fits?propagationPolicy=Foreground")
    assert status == 200, answer
    check_lists(local)


def test_an_unreadable_object_is_set_aside(local):
    """An earlier version, or a disk, has left such an object. It is kept for its user, and reported once."""
    local.up(*OPTIONS)
    for name in ("a", "b", "c"):
        assert send(local, "POST", CONFIG_MAPS, config_map(name))[0] == 201
    local.run("down")
    broken = nested(300).decode()
    with contextlib.closing(sqlite3.connect(local.state / "state.db")) as database, database:
        assert database.execute("UPDATE objects SET body = ? WHERE name = 'a'", (broken,)).rowcount == 1
        assert database.execute("UPDATE objects SET body = replace(body, '\"b\"', '\"x\"') WHERE name = 'b'").rowcount == 1
    said = local.run("up", *OPTIONS).stdout
    for name in ("ConfigMap default/a cannot be read", "nested deeper", "ConfigMap default/b cannot be read"):
        assert name in said and name in local.run("status").stdout, said
    assert {item["metadata"]["name"] for item in send(local, "GET", CONFIG_MAPS)[1]["items"]} == {"c"}
    files = sorted((local.state / "unreadable").iterdir(), key=lambda file: file.stat().st_size)
    assert len(files) == 2 and str(files[1]) in said and files[1].read_text() == broken, files
    assert "cannot be read" in local.log()
    assert send(local, "POST", CONFIG_MAPS, config_map("a"))[0] == 201
    local.run("down")
    assert "cannot be read" not in local.run("up", *OPTIONS).stdout
    assert len(list((local.state / "unreadable").iterdir())) == 2


COMMANDS = (("up", *OPTIONS), ("status",), ("env",), ("down",), ("logs", "x"), ("stop", "x"), ("run", "job.yaml"))


def check_refused(local, path, *words):
    """By each command, in a sentence that names the path."""
    local.write("job.yaml", bed.trainjob("x", "true"))
    for command in COMMANDS:
        done = local.run(*command, code=None)
        said = done.stdout + done.stderr
        assert done.returncode != 0 and str(path) in said and all(word in said for word in words), (command, done.returncode, said)
    assert not local.left_over()


def test_a_state_of_another_user_is_not_used(local):
    """It decides which token is accepted, and what kubectl starts."""
    if os.geteuid() != 0:
        raise bed.Skipped("only root can make files of another user")
    local.up(*OPTIONS)
    token = yaml.safe_load((local.state / "kubeconfig").read_text())["users"][0]["user"]["token"]
    local.run("down")
    for name in ("access.json", "kubeconfig", "state.db", "lock", "daemon.json", "options", "state.db-wal", "start.lock"):
        if name in ("daemon.json", "state.db-wal") and not (local.state / name).exists():
            (local.state / name).write_text("{}")
        os.chown(local.state / name, bed.ORDINARY, bed.ORDINARY)
        done = local.run("up", *OPTIONS, code=1)
        said = done.stdout + done.stderr
        assert f"{local.state / name} (owner {bed.ORDINARY}, mode 06" in said and f"chown 0 {local.state / name}" in said, said
        os.chown(local.state / name, 0, 0)
        if name in ("daemon.json", "state.db-wal"):
            (local.state / name).unlink()
    os.chown(local.state, bed.ORDINARY, bed.ORDINARY)
    check_refused(local, local.state, f"owner {bed.ORDINARY}", "mode 0700", "chown 0")
    os.chown(local.state, 0, 0)
    local.up(*OPTIONS)
    assert token == yaml.safe_load((local.state / "kubeconfig").read_text())["users"][0]["user"]["token"]


def test_folders_of_another_user_are_not_used(local):
    """Their contents would be mounted into pods, or started."""
    local.up()
    local.run("down")
    for name in ("pods", "volumes", "claims"):
        folder = local.state / name
        folder.chmod(0o777)
        assert f"{folder} (owner {os.geteuid()}, mode 0777) can be written by other users" in local.run("up", code=1).stderr
        folder.chmod(0o700)
        if os.geteuid() == 0:
            os.chown(folder, bed.ORDINARY, bed.ORDINARY)
            assert f"{folder} (owner {bed.ORDINARY}, mode 0700) belongs to another user" in local.run("up", code=1).stderr
            os.chown(folder, 0, 0)
        folder.rename(local.state / "real")
        folder.symlink_to("real")
        assert f"{folder} is no folder" in local.run("up", code=1).stderr
        folder.unlink()
        (local.state / "real").rename(folder)
    local.up()


def test_a_damaged_row_is_set_aside(local):
    """It is JSON, but no object of its kind and name: lists and the next start continue."""
    local.up()
    damage = ("json_remove(body, '$.metadata.resourceVersion')", "json_remove(body, '$.metadata.name')", "json_set(body, '$.kind', 'Secret')",
              "json_remove(body, '$.metadata')", "json_array(body)")
    for i in range(len(damage) + 1):
        assert send(local, "POST", CONFIG_MAPS, config_map(f"c{i}"))[0] == 201
    local.run("down")
    with contextlib.closing(sqlite3.connect(local.state / "state.db")) as database, database:
        for i, change in enumerate(damage):
            assert database.execute(f"UPDATE objects SET body = {change} WHERE name = 'c{i}'").rowcount == 1
    said = local.run("up").stdout
    for i in range(len(damage)):
        assert f"ConfigMap default/c{i} cannot be read" in said, said
    assert {item["metadata"]["name"] for item in send(local, "GET", CONFIG_MAPS)[1]["items"]} == {f"c{len(damage)}"}
    assert len(list((local.state / "unreadable").iterdir())) == len(damage)
    local.run("run", local.write("job.yaml", bed.trainjob("works", "true")))


def test_a_state_that_others_can_write_is_not_used(local):
    local.up(*OPTIONS)
    local.run("down")
    local.state.chmod(0o777)
    check_refused(local, local.state, "mode 0777", f"chmod go-w {local.state}")
    local.state.chmod(0o700)
    local.folder.chmod(0o757)
    check_refused(local, local.folder, "mode 0757", "chmod go-w")
    local.folder.chmod(0o1777)   # as /tmp
    local.up(*OPTIONS)
    local.run("down")
    local.folder.chmod(0o755)


def test_a_link_is_not_followed(local):
    local.up(*OPTIONS)
    local.run("down")
    for name in ("access.json", "state.db", "daemon.log"):
        shutil.move(local.state / name, local.state / "real")
        (local.state / name).symlink_to("real")
        done = local.run("up", *OPTIONS, code=None)
        said = done.stdout + done.stderr
        # A log is renamed and made again.
        assert name == "daemon.log" or (done.returncode == 1 and f"{local.state / name} is no file but a link" in said), said
        local.run("down", code=None)
        (local.state / name).unlink()
        shutil.move(local.state / "real", local.state / name)


def test_an_ordinary_user(local):
    """Has a state of its own below folders of root, and none of root's."""
    if os.geteuid() != 0:
        raise bed.Skipped("only root can become another user")
    other = bed.Local(bed.FOLDER / "ordinary", uid=bed.ORDINARY)
    other.up(*OPTIONS)
    other.run("down")
    local.up(*OPTIONS)
    local.run("down")
    for path in (local.state, local.state / "access.json"):
        path.chmod(0o755)
    done = other.run("up", *OPTIONS, "--state", local.state, code=1)
    assert f"{local.state} (owner 0, mode 0755) belongs to another user" in done.stderr, done.stderr


if __name__ == "__main__":
    bed.main()
