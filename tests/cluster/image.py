"""Writes a container image of one layer as a docker archive, the same bytes each time for the same layer.

usage: image.py NAME LAYER.tar OUT.tar COMMAND [USER]      prints the image's id
"""
import hashlib
import io
import json
import sys
import tarfile


def digest(path):
    sha = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 22):
            sha.update(block)
    return sha.hexdigest()


def main(name, layer, out, command, user=""):
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(layer)]},
        "config": {"Env": [path], "Cmd": [command], "User": user},
    }).encode()
    image_id = hashlib.sha256(config).hexdigest()
    manifest = json.dumps([{"Config": image_id + ".json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(out, "w") as archive:
        for member, data in ((image_id + ".json", config), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        info = archive.gettarinfo(layer, arcname="layer.tar")
        info.mtime = info.uid = info.gid = 0
        with open(layer, "rb") as f:
            archive.addfile(info, f)
    print(image_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
