"""The tree of files of the image: the program, the libraries that it loads with their loader, and what those read.

There is no shell and no package manager. The package records and copyright files are there for scanners and licences.
"""
import os
import pathlib
import re
import shutil

from image_packages import output

ROOT = pathlib.Path(__file__).resolve().parents[1]
USER = "65532"
PASSWD = f"root:x:0:0:root:/:/none\nnonroot:x:{USER}:{USER}:nonroot:/:/none\n"
GROUP = f"root:x:0:\nnonroot:x:{USER}:\n"
NAMES = "hosts: files dns\n"   # /etc/nsswitch.conf: as without the file, but said
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def needed(path):
    """The names of the libraries that a program or library asks for."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))


def loader(program):
    return re.search(r"program interpreter: (.*)\]", output("readelf", "-lW", program))[1]


def libraries(program, root):
    """Name -> path in the root of each library that the program needs, directly or not. The loader is none of them."""
    found, todo = {}, needed(program)
    interpreter = os.path.basename(loader(program))
    while todo:
        name = todo.pop()
        if name not in found and name != interpreter:
            found[name] = root.library(name)
            todo += needed(root.file(found[name]))
    return found


class Tree:
    """Files are added with the package that they are of; None: they are the project's own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.package_of = {}

    def add(self, path, content, package=None, mode=0o644):
        """content: a path of this machine, or text."""
        target = self.folder / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pathlib.Path):
            shutil.copyfile(content, target)
        else:
            target.write_text(content)
        target.chmod(mode)
        self.package_of[path] = package

    def packages(self):
        return sorted({package for package in self.package_of.values() if package})

    def size(self):
        return sum(path.lstat().st_size for path in self.folder.rglob("*") if not path.is_dir())


def certificates(root):
    """Mozilla's, as Debian has them, and none that this machine trusts besides."""
    folder = root.file("/usr/share/ca-certificates/mozilla")
    return "".join(path.read_text().strip() + "\n" for path in sorted(folder.glob("*.crt")))


def make(folder, root, program):
    """The tree of a stripped program, in an empty folder, with libraries of this root."""
    tree = Tree(folder)
    tree.add("/usr/bin/trainer", pathlib.Path(program), mode=0o755)
    # The name by which Deployments of upstream's managers call it.
    (tree.folder / "manager").symlink_to("usr/bin/trainer")
    tree.package_of["/manager"] = None
    interpreter = loader(program)
    tree.add(interpreter, root.file(interpreter), root.owner(interpreter), mode=0o755)
    for name, path in sorted(libraries(program, root).items()):
        tree.add(f"/usr/lib/{root.triplet}/{name}", root.file(path), root.owner(path))
    tree.add(CERTIFICATES, certificates(root), "ca-certificates")
    tree.add("/etc/os-release", root.file("/usr/lib/os-release"), "base-files")
    for path, text in (("/etc/passwd", PASSWD), ("/etc/group", GROUP), ("/etc/nsswitch.conf", NAMES)):
        tree.add(path, text)
    tree.add("/usr/share/doc/trainer/copyright", ROOT / "LICENSE")
    for package in tree.packages():
        tree.add(f"/usr/share/doc/{package}/copyright", root.file(f"/usr/share/doc/{package}/copyright"), package)
        tree.add(f"/var/lib/dpkg/status.d/{package}", root.record(package), package)
    return tree
