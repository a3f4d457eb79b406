"""Lists what the linker put into the portable tree, as SPDX 2.3 in JSON: spdx.py WORK TREE FILE.

WORK is the folder that tools/dist.sh builds in.  Its maps/ say which members of which archives the linker took, and its
sysroot/ which package of Debian each archive is from.  Prints the copyright file of each such package.
"""
import datetime
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

# A package that is not here stops the build: somebody has to read its licence first.
LICENCES = {
    "libc6-dev": "LGPL-2.1-or-later",  # libc_nonshared.a
    "libgcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libjansson-dev": "MIT",
    "liblz4-dev": "BSD-2-Clause",
    "libncurses-dev": "X11-distribute-modifications-variant",
    "libnghttp2-dev": "MIT",
    "libsqlite3-dev": "blessing",
    "libzstd-dev": "BSD-3-Clause",
    "zlib1g-dev": "Zlib",
}


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout


def archives_of(path, work):
    """Reads a linker's map: the file that was linked, and the archives of others that it has
    members of."""
    output, archives = None, set()
    own, sysroot = work + "/", work + "/sysroot/"
    with open(path) as file:
        for line in file:
            member = re.match(r"(\S+\.a)\(", line)
            archive = os.path.normpath(os.path.join(work, member.group(1))) if member else own
            if archive.startswith(sysroot) or not archive.startswith(own):
                archives.add(archive)
            if line.startswith("Discarded input sections"):
                break
        for line in file:
            if line.startswith("OUTPUT("):
                output = line[len("OUTPUT("):].split()[0]
    return os.path.basename(output), archives


def sysroot_packages(sysroot):
    """Path in the sysroot to name and version, of all packages there."""
    found = {}
    for deb in sorted(glob.glob(sysroot + "/packages/*.deb")):
        name, version = output_of("dpkg-deb", "-f", deb, "Package", "Version").split("\n")[:2]
        package = name.split(": ")[1], version.split(": ")[1]
        for line in output_of("dpkg-deb", "-c", deb).splitlines():
            if not line.startswith(("d", "l")):
                found[os.path.normpath("/" + line.split(None, 5)[5])] = package
    return found


class Packages:
    def __init__(self, sysroot):
        self.sysroot = os.path.realpath(sysroot)
        self.of_path = sysroot_packages(sysroot)

    def of(self, archive):
        """Name, version and copyright file of the package that an archive is from."""
        real = os.path.realpath(archive)
        if real.startswith(self.sysroot + "/"):
            inside = real[len(self.sysroot):]
            known = self.of_path.get(inside) or self.of_path[inside.replace("/usr/lib/", "/lib/", 1)]
            return known + ("%s/usr/share/doc/%s/copyright" % (self.sysroot, known[0]),)
        package = output_of("dpkg-query", "-S", archive).split(":")[0]  # the compiler's own
        version = output_of("dpkg-query", "-W", "-f", "${Version}", package)
        name = "libgcc" if os.path.basename(archive) == "libgcc.a" else package
        return name, version, "/usr/share/doc/%s/copyright" % package


def identifier(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def checksums(path):
    with open(path, "rb") as file:
        content = file.read()
    return [{"algorithm": name, "checksumValue": hashlib.new(name.lower(), content).hexdigest()}
            for name in ("SHA1", "SHA256")]


def relation(of, kind, to):
    return {"spdxElementId": of, "relationshipType": kind, "relatedSpdxElement": to}


def main(work, tree, to):
    work = os.path.abspath(work)
    name = os.path.basename(os.path.normpath(tree))
    version = name.split("-")[1]
    linked = dict(archives_of(path, work) for path in glob.glob(work + "/maps/*.map"))
    packages, known = Packages(work + "/sysroot"), {}
    files, relations = [], [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-weir")]
    for path in sorted(glob.glob(tree + "/**", recursive=True)):
        if os.path.islink(path) or not os.path.isfile(path) or not is_elf(path):
            continue
        inside = os.path.relpath(path, tree)
        files.append({"SPDXID": identifier("file-" + inside), "fileName": "./" + inside, "checksums": checksums(path),
                      "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"],
                      "copyrightText": "NOASSERTION", "fileTypes": ["BINARY"]})
        relations.append(relation("SPDXRef-weir", "CONTAINS", files[-1]["SPDXID"]))
        output = next(o for o in linked if os.path.basename(path) == o or os.path.basename(path).startswith(o + "."))
        for package in sorted({packages.of(archive) for archive in linked[output]}):
            known[package[0]] = package
            relations.append(relation(files[-1]["SPDXID"], "STATIC_LINK", identifier(package[0])))
    listed = [{"SPDXID": "SPDXRef-weir", "name": "weir", "versionInfo": version, "downloadLocation": "NOASSERTION",
               "filesAnalyzed": False, "licenseConcluded": "MIT", "licenseDeclared": "MIT",
               "copyrightText": "2026 The Weir authors", "primaryPackagePurpose": "APPLICATION"}]
    for package, its_version, copyright_file in sorted(known.values()):
        listed.append({"SPDXID": identifier(package), "name": package, "versionInfo": its_version,
                       "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                       "licenseConcluded": LICENCES[package], "licenseDeclared": LICENCES[package],
                       "copyrightText": "NOASSERTION", "primaryPackagePurpose": "LIBRARY",
                       "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                         "referenceLocator": "pkg:deb/debian/%s@%s" % (package, its_version)}]})
        print(package, copyright_file)
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    content = hashlib.sha256(json.dumps([listed, files, relations]).encode()).hexdigest()
    with open(to, "w") as file:
        json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                   "documentNamespace": "https://spdx.org/spdxdocs/%s-%s" % (name, content[:32]),
                   "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                                    "creators": ["Tool: weir-spdx-" + version]},
                   "packages": listed, "files": files, "relationships": relations}, file, indent=1)
        file.write("\n")


main(*sys.argv[1:])
