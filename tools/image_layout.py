"""An OCI image layout in one tar archive: the same bits for the same trees, times and labels.

https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md
"""
import datetime
import gzip
import hashlib
import io
import json
import os
import tarfile

from image_tree import CERTIFICATES, USER

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def rfc3339(epoch):
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def layer(folder, epoch):
    """The tar of a folder, in the order of names; all of it is root's, and no one else may write it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            info = archive.gettarinfo(path, arcname=str(path.relative_to(folder)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = epoch
            info.mode = 0o777 if info.issym() else 0o755 if info.isdir() or os.access(path, os.X_OK) else 0o644
            with open(path if info.isreg() else os.devnull, "rb") as content:
                archive.addfile(info, content)
    return out.getvalue()


class Layout:
    """Collects blobs and writes the archive."""

    def __init__(self, epoch, labels):
        self.epoch = epoch
        self.labels = labels
        self.blobs = {}
        self.manifests = []

    def blob(self, media_type, data, **more):
        """Keeps data and answers its descriptor."""
        self.blobs[digest(data)] = data
        return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}

    def json(self, media_type, value, **more):
        return self.blob(media_type, json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), **more)

    def add(self, architecture, folder):
        """An image of this tree; answers the digest of its uncompressed layer."""
        tar = layer(folder, self.epoch)
        platform = {"architecture": architecture, "os": "linux", **({"variant": "v8"} if architecture == "arm64" else {})}
        config = self.json(CONFIG, {
            **platform, "created": rfc3339(self.epoch),
            "config": {"User": f"{USER}:{USER}", "Env": ["PATH=/usr/bin", f"SSL_CERT_FILE={CERTIFICATES}"],
                       "Entrypoint": ["/usr/bin/trainer"], "Cmd": ["controller"], "WorkingDir": "/", "Labels": self.labels},
            "rootfs": {"type": "layers", "diff_ids": [digest(tar)]},
            "history": [{"created": rfc3339(self.epoch), "created_by": "tools/image"}]})
        packed = self.blob(LAYER, gzip.compress(tar, 9, mtime=0))
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [packed], "annotations": self.labels}
        self.manifests.append(self.json(MANIFEST, manifest, platform=platform))
        return digest(tar)

    def write(self, path, name):
        """The archive with one image for all platforms, called name (such as registry.example.com/trainer:1.0.0). Its digest."""
        index = self.json(INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": self.manifests, "annotations": self.labels}, annotations={
            "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]})
        members = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
                   "index.json": json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]}, sort_keys=True).encode()}
        members |= {f"blobs/sha256/{key.partition(':')[2]}": self.blobs[key] for key in sorted(self.blobs)}
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
            for member, data in members.items():
                info = tarfile.TarInfo(member)
                info.size, info.mtime, info.mode = len(data), self.epoch, 0o644
                archive.addfile(info, io.BytesIO(data))
        return index["digest"]
