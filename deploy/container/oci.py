"""Writes an image of a folder as an archive that Docker, Podman and skopeo read: the layout of OCI, and beside it the
list that `docker load` looks for.  The same folder gives the same bytes.

    oci.py ROOT DOCKERFILE ARCHITECTURE SECONDS VERSION OUTPUT

What the image does when it starts comes from the Dockerfile.  All times in it are SECONDS, of the epoch.
"""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

OCI = "application/vnd.oci.image."


def add(tar, name, body, seconds):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(body), seconds, 0o644
    tar.addfile(entry, io.BytesIO(body))


def layer_of(root, seconds):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted(files + folders):
                path = os.path.join(folder, name)
                entry = tar.gettarinfo(path, os.path.relpath(path, root))
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mtime = seconds
                if entry.isreg():
                    with open(path, "rb") as body:
                        tar.addfile(entry, body)
                else:
                    tar.addfile(entry)
    return out.getvalue()


def config_of(dockerfile):
    """The image behind FROM: the words that say how the image starts."""
    config = {"Env": []}
    with open(dockerfile) as lines:
        for line in lines:
            word, _, rest = line.strip().partition(" ")
            if word == "ENV":
                config["Env"].append(rest)
            elif word in ("ENTRYPOINT", "CMD"):
                config[word.capitalize()] = json.loads(rest)
            elif line.strip() and word not in ("#", "FROM", "COPY") and not line.startswith("#"):
                sys.exit("oci.py: %s: %s is not known here" % (dockerfile, word))
    return config


def main(root, dockerfile, architecture, seconds, version, output):
    seconds = int(seconds)
    blobs = {}

    def put(media, body):
        digest = hashlib.sha256(body).hexdigest()
        blobs["blobs/sha256/" + digest] = body
        return {"mediaType": OCI + media, "digest": "sha256:" + digest, "size": len(body)}

    def put_json(media, value):
        return put(media, json.dumps(value, sort_keys=True).encode())

    plain = layer_of(root, seconds)
    layer = put("layer.v1.tar+gzip", gzip.compress(plain, mtime=0))
    config = put_json("config.v1+json", {
        "architecture": architecture, "os": "linux",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
        "config": config_of(dockerfile),
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]}})
    manifest = put_json("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": [layer]})
    manifest["platform"] = {"architecture": architecture, "os": "linux"}
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version,
                               "io.containerd.image.name": "localhost/weir:" + version}

    def path(descriptor):
        return descriptor["digest"].replace("sha256:", "blobs/sha256/")

    with tarfile.open(output, "w", format=tarfile.PAX_FORMAT) as tar:
        files = {"oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode(),
                 "index.json": json.dumps({"schemaVersion": 2, "mediaType": OCI + "index.v1+json",
                                           "manifests": [manifest]}, sort_keys=True).encode(),
                 "manifest.json": json.dumps([{"Config": path(config), "Layers": [path(layer)],
                                               "RepoTags": ["localhost/weir:" + version]}]).encode()}
        for name, body in sorted({**files, **blobs}.items()):
            add(tar, name, body, seconds)


main(*sys.argv[1:])
