"""The image that `make image` builds: test_image.py BUILD SOURCE.  It is checked by what the specification of OCI asks
of a layout, started in a chroot, and by Podman, where that can start containers."""
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD, SOURCE = map(os.path.abspath, sys.argv[1:3])
DIST = os.path.join(SOURCE, "dist")
MOST_BYTES = 40 << 20
OCI = "application/vnd.oci.image."
MANIFEST, CONFIG, LAYER = OCI + "manifest.v1+json", OCI + "config.v1+json", OCI + "layer.v1.tar+gzip"
PODMAN = ["podman", "--root", "{0}/root", "--runroot", "{0}/run", "--storage-driver", "vfs", "--cgroup-manager=cgroupfs"]
# In a mount namespace of its own, with the one kind of cgroups that crun takes, and the specifications of the test.
NAMESPACE = """mount --bind {0}/cdi /etc/cdi && { umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; } &&
exec "$@" """


def image():
    found = [name for name in (os.listdir(DIST) if os.path.isdir(DIST) else ()) if name.endswith(".oci.tar")
             and platform.machine() in name]
    if len(found) != 1:
        print("no image is here; run: make image")
        sys.exit(77)
    return os.path.join(DIST, found[0])


def read(archive):
    with tarfile.open(archive) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar}


def check(files):
    """The layer's tar and the configuration, of a valid layout."""
    used = {"oci-layout", "index.json", "manifest.json"}

    def follow(descriptor, media):
        body = files[descriptor["digest"].replace("sha256:", "blobs/sha256/")]
        used.add(descriptor["digest"].replace("sha256:", "blobs/sha256/"))
        assert descriptor["mediaType"] == media, descriptor
        assert descriptor["size"] == len(body), "size"
        assert descriptor["digest"] == "sha256:" + hashlib.sha256(body).hexdigest(), "digest"
        return body

    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(files["index.json"])
    assert index["schemaVersion"] == 2 and index["mediaType"] == OCI + "index.v1+json"
    manifest = json.loads(follow(index["manifests"][0], MANIFEST))
    assert manifest["schemaVersion"] == 2 and manifest["mediaType"] == MANIFEST
    config = json.loads(follow(manifest["config"], CONFIG))
    layer = gzip.decompress(follow(manifest["layers"][0], LAYER))
    assert config["rootfs"] == {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}
    assert config["os"] == "linux" and config["architecture"] in ("amd64", "arm64")
    docker = json.loads(files["manifest.json"])[0]
    assert [docker["Config"]] + docker["Layers"] == [
        d["digest"].replace("sha256:", "blobs/sha256/") for d in [manifest["config"]] + manifest["layers"]]
    assert used == set(files), "files that nothing names"
    return layer, config["config"]


class Image(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.scratch)

    def run_it(self, *command, **more):
        done = subprocess.run(command, capture_output=True, text=True, **more)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def test_the_layout_is_valid_and_small(self):
        layer, config = check(read(image()))
        self.assertLess(os.path.getsize(image()), MOST_BYTES)
        self.assertEqual(config["Entrypoint"], ["/weir/bin/weir"])
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            self.assertEqual({(entry.uid, entry.gid) for entry in tar}, {(0, 0)})

    def test_the_check_finds_what_is_wrong(self):
        good = read(image())
        largest = max(good, key=lambda name: len(good[name]))
        for name, body in ((largest, good[largest][:-1]), (largest, b"x" + good[largest][1:]), ("blobs/sha256/00", b""),
                           ("oci-layout", b"{}"), ("index.json", good["index.json"].replace(b"index", b"indexes")),
                           ("index.json", good["index.json"].replace(b"+json", b""))):
            with self.assertRaises(AssertionError):
                check({**good, name: body})

    def test_another_build_has_the_same_bytes(self):
        self.run_it("sh", SOURCE + "/deploy/container/image.sh", platform.machine(), self.scratch)
        with open(image(), "rb") as a, open(os.path.join(self.scratch, os.path.basename(image())), "rb") as b:
            self.assertEqual(hashlib.sha256(a.read()).digest(), hashlib.sha256(b.read()).digest())

    @unittest.skipUnless(shutil.which("skopeo"), "skopeo is not installed")
    def test_skopeo_reads_both_lists(self):
        for kind in "oci-archive", "docker-archive":
            said = json.loads(self.run_it("skopeo", "inspect", "--config", kind + ":" + image()))
            self.assertEqual(said["config"]["Cmd"], ["help"])

    def unpack(self):
        """How a command runs in the image, beside a program in /tmp/app, and the image's configuration."""
        layer, config = check(read(image()))
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            tar.extractall(self.scratch)
        shutil.copy(BUILD + "/examples/vecadd", self.scratch + "/tmp/app")
        env = dict(v.split("=", 1) for v in config["Env"])

        def inside(*words, **more):
            return self.run_it("unshare", "-m", "sh", "-c", "mount --rbind /proc $0/proc && mount --rbind /dev $0/dev &&"
                               ' exec %s $0 "$@"' % shutil.which("chroot"), self.scratch, *words,
                               env={**os.environ, **env, **more})

        return inside, config

    @unittest.skipUnless(os.geteuid() == 0, "only root can change the root folder")
    def test_it_runs_in_a_chroot(self):
        inside, config = self.unpack()
        self.assertIn("record", inside(*config["Entrypoint"], *config["Cmd"]))
        doctor = inside("weir", "doctor", "--sim")
        self.assertIn("libdw.so.1", doctor)
        inside("weir", "record", "--sim", "-o", "/tmp/app.weir", "--", "/tmp/app")
        self.assertIn("240", inside("weir", "report", "/tmp/app.weir"))
        metrics = inside("sh", "-c", "weir monitor --listen 127.0.0.1:0 >/tmp/said 2>&1 & until [ -s /tmp/said ]; do sleep 0.1;"
                         " done; kill $!; cat /tmp/said")
        self.assertIn("metrics are at", metrics)

    @unittest.skipUnless(os.geteuid() == 0, "only root can change the root folder")
    def test_init_containers_install_it_for_others(self):
        inside, _ = self.unpack()
        os.makedirs(self.scratch + "/opt/weir")
        os.mkdir(self.scratch + "/etc/cdi")

        def command(file):
            with open(SOURCE + "/deploy/kubernetes/" + file) as text:
                return " ".join(re.search(r">-\n((?: {14}.*\n)+)", text.read()).group(1).split())

        library = self.scratch + "/opt/weir/lib/weir/libweir.so"
        inside("sh", "-c", command("base/daemonset.yaml"))
        with open(library, "rb") as used:  # by a program, while another version is installed
            inside("sh", "-c", command("base/daemonset.yaml"))
            self.assertNotEqual(os.fstat(used.fileno()).st_ino, os.stat(library).st_ino)
        with open(self.scratch + "/etc/cdi/weir.json") as spec:
            self.assertIn('"LD_PRELOAD=/opt/weir/lib/weir/libweir.so"', spec.read())
        with open(SOURCE + "/deploy/kubernetes/inject-init/patch.yaml") as patch:
            env = dict(re.findall(r"name: ([A-Z0-9_]+), value: \"?([^\"}]*)", patch.read()))
        inside("sh", "-c", command("inject-init/patch.yaml"))
        inside("sh", "-c", command("inject-init/patch.yaml"))  # as when a pod starts again
        inside("env", "LD_PRELOAD=" + env.pop("LD_PRELOAD"), "LD_AUDIT=" + env.pop("LD_AUDIT"), "/tmp/app",
               LD_LIBRARY_PATH="/weir/lib/weir/sim", **env)
        self.assertIn("240", inside("weir", "report", "/opt/weir/traces/%s.weir" % socket.gethostname()))

    def podman(self, *words):
        return self.run_it("unshare", "-m", "sh", "-c", NAMESPACE.replace("{0}", self.scratch), "sh",
                           *[word.format(self.scratch) for word in PODMAN], *words)

    @unittest.skipUnless(shutil.which("podman") and os.geteuid() == 0, "podman is not installed, or this is not root")
    def test_podman_runs_it_and_adds_weir_to_containers(self):
        here = self.scratch
        for folder in "cdi", "tree", "traces", "program":
            os.mkdir(os.path.join(here, folder))
        os.chmod(here, 0o755)
        os.makedirs("/etc/cdi", exist_ok=True)
        tree = image().replace(".oci.tar", ".tar.zst")
        self.run_it("sh", "-c", 'zstd -dc "$0" | tar -C "$1" --strip-components=1 -xf -', tree, here + "/tree")
        self.run_it(here + "/tree/bin/weir", "cdi", "--traces", here + "/traces", "-o", here + "/cdi/weir.json")
        shutil.copy(BUILD + "/examples/vecadd", here + "/program/app")
        limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--cgroups=disabled", "--network=none"]
        try:
            self.podman("load", "-i", image())
            version = self.podman("run", "--rm", *limits, "localhost/weir:" + os.path.basename(image()).split("-")[1],
                                  "version")
        except AssertionError as cannot:
            self.skipTest("podman starts no container here: %s" % cannot.args[0][-300:])
        self.assertEqual(version, "weir %s\n" % os.path.basename(image()).split("-")[1])
        self.podman("run", "--rm", *limits, "--device", "weir/inject=record", "--hostname", "guest", "-v",
                    here + "/program:/program:ro", "-e", "LD_LIBRARY_PATH=%s/tree/lib/weir/sim" % here, "--entrypoint",
                    "/program/app", "localhost/weir:" + os.path.basename(image()).split("-")[1])
        report = self.run_it(here + "/tree/bin/weir", "report", "--json", here + "/traces/guest.weir")
        self.assertEqual(json.loads(report)["totals"]["launches"], 240)


image()
unittest.main(argv=sys.argv[:1])
