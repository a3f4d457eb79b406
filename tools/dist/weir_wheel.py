"""Makes a wheel of the portable tree that this file is in: what pip asks of a build backend (PEP 517).

pip calls it where somebody says `pip install FOLDER` of the unpacked tree, and tools/packages.sh for the wheel that is
given away.  It needs nothing but the standard library, and so no network.  In the wheel are the Python package, and as
data the whole tree: pip puts its bin/ and lib/ where those of the environment are.
"""
import base64
import hashlib
import os
import stat
import zipfile

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF
METADATA = """Metadata-Version: 2.1
Name: weir
Version: %s
Summary: Measure and regulate CUDA programs
License: MIT
Requires-Python: >=3.7
"""
WHEEL = """Wheel-Version: 1.0
Generator: weir_wheel
Root-Is-Purelib: false
Tag: %s
"""


def _read(*path):
    with open(os.path.join(TREE, *path), "rb") as file:
        return file.read()


def _version():
    lines = _read("lib", "pkgconfig", "weirapi.pc").decode().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("Version:"))


def _machine():
    return MACHINES[int.from_bytes(_read("bin", "weir")[18:20], "little")]


def _files(folder):
    for directory, folders, names in os.walk(os.path.join(TREE, folder)):
        folders.sort()
        for name in sorted(names):
            if not name.endswith(".pyc"):
                yield os.path.relpath(os.path.join(directory, name), TREE)


class _Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name)  # of 1980: the same bytes whenever it is made
        entry.external_attr = (stat.S_IFREG | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))

    def close(self, info):
        name = info + "/RECORD"
        self.record.append(name + ",,\n")
        self.zip.writestr(zipfile.ZipInfo(name), "".join(self.record))
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    tag = "py3-none-manylinux_2_28_" + _machine()
    name = "weir-%s-%s.whl" % (version, tag)
    package, info, data = "lib/weir/python/", "weir-%s.dist-info" % version, "weir-%s.data/data/" % version
    wheel = _Wheel(os.path.join(wheel_directory, name))
    for path in _files(package + "weir"):
        wheel.add(path[len(package):], _read(path))
    for folder in ("bin", "include", "lib", "share"):
        for path in _files(folder):
            wheel.add(data + path, _read(path), os.stat(os.path.join(TREE, path)).st_mode & 0o777)
    for path in _files("share/doc/weir/licences"):
        wheel.add("%s/licenses/%s" % (info, os.path.basename(path)), _read(path))
    wheel.add(info + "/METADATA", (METADATA % version).encode())
    wheel.add(info + "/WHEEL", (WHEEL % tag).encode())
    wheel.close(info)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the source is not here: this is the portable tree")
