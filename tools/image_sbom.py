"""The contents of an image, as SPDX 2.3 in JSON: its packages of Debian, its files, and what the program was compiled from.

https://spdx.github.io/spdx-spec/v2.3/
"""
import hashlib
import json
import re

from image_layout import rfc3339

NOTHING = "NOASSERTION"


def spdx_id(kind, name):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name.lstrip("/"))


def person(maintainer):
    """Debian's Maintainer field as SPDX writes a supplier."""
    name, _, address = maintainer.partition(" <")
    return f"Organization: {name} ({address.rstrip('>')})" if address else f"Organization: {name}"


def verification(files):
    """The code by which SPDX names a set of files."""
    sums = sorted(each["checksums"][0]["checksumValue"] for each in files)
    return {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()}


def package(root, name):
    known = root.package(name)
    entry = {
        "SPDXID": spdx_id("Package", name), "name": name, "versionInfo": known["Version"], "supplier": person(known["Maintainer"]),
        "downloadLocation": NOTHING, "filesAnalyzed": False, "licenseConcluded": NOTHING, "licenseDeclared": NOTHING, "copyrightText": NOTHING,
        "sourceInfo": f"built from {known['source:Package']} {known['source:Version']} of Debian 12",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator":
                          f"pkg:deb/debian/{name}@{known['Version']}?arch={root.architecture}&distro=bookworm".replace("+", "%2B")}],
    }
    if known["Homepage"]:
        entry["homepage"] = known["Homepage"]
    if known["SHA256"]:
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": known["SHA256"]}]
    return entry


def file(tree, path):
    data = (tree.folder / path.lstrip("/")).read_bytes()
    return {
        "SPDXID": spdx_id("File", path), "fileName": "." + path, "licenseConcluded": NOTHING, "licenseInfoInFiles": [NOTHING], "copyrightText": NOTHING,
        "checksums": [{"algorithm": name, "checksumValue": hashlib.new(name, data).hexdigest()} for name in ("SHA1", "SHA256")],
    }


def document(tree, root, version, epoch, layer, compiled_from):
    """layer: the digest of the image's uncompressed layer. compiled_from: packages whose code is in the program."""
    name = f"trainer-{version}-{root.architecture}"
    packages = {each: package(root, each) for each in sorted({*tree.packages(), *compiled_from})}
    packages["trainer"] = {
        "SPDXID": spdx_id("Package", "trainer"), "name": "trainer", "versionInfo": version, "supplier": NOTHING, "downloadLocation": NOTHING,
        "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": NOTHING,
        "primaryPackagePurpose": "CONTAINER", "checksums": [{"algorithm": "SHA256", "checksumValue": layer.partition(":")[2]}],
    }
    files = {path: file(tree, path) for path in sorted(tree.package_of) if not (tree.folder / path.lstrip("/")).is_symlink()}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", spdx_id("Package", "trainer"))]
    relations += [(spdx_id("Package", "trainer"), "CONTAINS", spdx_id("Package", each)) for each in tree.packages()]
    relations += [(spdx_id("Package", each), "BUILD_DEPENDENCY_OF", spdx_id("Package", "trainer")) for each in compiled_from]
    for owner, entry in packages.items():
        if mine := [path for path in files if (tree.package_of[path] or "trainer") == owner]:
            entry |= {"filesAnalyzed": True, "packageVerificationCode": verification(files[path] for path in mine)}
            relations += [(entry["SPDXID"], "CONTAINS", spdx_id("File", path)) for path in mine]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{layer.partition(':')[2]}",
        "creationInfo": {"created": rfc3339(epoch), "creators": ["Tool: tools-image"]},
        "packages": list(packages.values()), "files": list(files.values()),
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }


def write(path, *arguments):
    with open(path, "w") as out:
        json.dump(document(*arguments), out, indent=1, sort_keys=True)
        out.write("\n")
