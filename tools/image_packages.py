"""Packages of Debian 12: those of this machine, or those of an architecture unpacked into a folder, a sysroot.

A sysroot has a package database of its own (var/lib/dpkg), so dpkg-query answers alike for both. Nothing of this machine's
packages, foreign architectures or package lists is changed, and no maintainer script runs.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "trainer/image"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
RELEASES = ("bookworm", "bookworm-updates", "bookworm-security")


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def this_architecture():
    return output("dpkg", "--print-architecture").strip()


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


class Root:
    """A tree of packages with its database: / or a sysroot."""

    def __init__(self, path, architecture):
        self.path = pathlib.Path(path)
        self.architecture = architecture
        self.triplet = TRIPLETS[architecture]

    def query(self, *arguments):
        done = subprocess.run(["dpkg-query", f"--admindir={self.path}/var/lib/dpkg", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.stdout if done.returncode == 0 else None

    def file(self, path):
        """Where a path of the tree is on this machine, with links below it followed inside the tree."""
        here = self.path / str(path).lstrip("/")
        while here.is_symlink():
            target = os.readlink(here)
            here = self.path / target.lstrip("/") if target.startswith("/") else here.parent / target
        return here

    def library(self, name):
        """The path in the tree of a shared library that programs ask for by this name."""
        for folder in (f"/usr/lib/{self.triplet}", f"/lib/{self.triplet}"):
            if self.file(f"{folder}/{name}").is_file():
                return f"{folder}/{name}"
        raise SystemExit(f"tools/image: no package of {self.path} has the library {name}")

    def owner(self, path):
        """The name of the package that a path belongs to. /lib may be a link to /usr/lib, which no package knows of."""
        other = path.removeprefix("/usr") if path.startswith("/usr/") else "/usr" + path
        for each in (path, other):
            if found := self.query("-S", each):
                return found.split(":")[0]
        raise SystemExit(f"tools/image: {path} in {self.path} belongs to no package")

    def package(self, name):
        """The entry of a package in the database."""
        fields = ("Version", "source:Package", "source:Version", "Maintainer", "Homepage", "SHA256")
        text = self.query("-W", "-f", "\\t".join(f"${{{field}}}" for field in fields), f"{name}:{self.architecture}") or self.query(
            "-W", "-f", "\\t".join(f"${{{field}}}" for field in fields), name)
        if text is None:
            raise SystemExit(f"tools/image: {self.path} has no package {name}")
        return dict(zip(fields, text.split("\t")), Package=name)

    def record(self, name):
        """The text that a scanner reads about a package, as in Debian's database. Whether it is unpacked or configured here does not matter."""
        fields = ("Package", "Status", "Maintainer", "Architecture", "Source", "Version", "Homepage")
        known = {**self.package(name), "Status": "install ok installed", "Architecture": self.architecture}
        known["Source"] = f"{known['source:Package']} ({known['source:Version']})"
        return "".join(f"{field}: {known[field]}\n" for field in fields if known[field])


# ---- a sysroot


def mirrors():
    """(release, address) of Debian's main, from the sources of this machine's apt."""
    lines = output("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages", "Origin: Debian").splitlines()
    found = sorted({(release, address) for release, component, address in map(str.split, lines) if component == "main" and release in RELEASES})
    if not any(release == "bookworm" for release, _ in found):
        raise SystemExit("tools/image: apt has no source of Debian 12 (bookworm main); add one and run apt-get update")
    return found


class Apt:
    """apt-get for another architecture, with lists and archives of its own."""

    def __init__(self, architecture):
        folder = CACHE / f"apt-{architecture}"
        for each in ("lists/partial", "archives/partial"):
            (folder / each).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text("".join(
            f"deb [arch={architecture} signed-by={KEYRING}] {address} {release} main\n" for release, address in mirrors()))
        settings = {
            "Dir::State": folder, "Dir::State::Lists": folder / "lists", "Dir::State::status": folder / "status",
            "Dir::Cache": folder, "Dir::Cache::archives": folder / "archives", "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null", "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": architecture, "APT::Architectures": architecture, "APT::Sandbox::User": "root", "APT::Install-Recommends": "false",
        }
        self.options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        self.archives = folder / "archives"

    def packages(self, names):
        """Downloads these and what they depend on; their files."""
        subprocess.run(["apt-get", *self.options, "-qq", "update"], check=True)
        command = ["apt-get", *self.options, "-qq", "-y", "install"]
        # --print-uris leaves out what has been downloaded before.
        with tempfile.TemporaryDirectory() as empty:
            wanted = [line.split()[1] for line in output(*command, "--print-uris", "-o", f"Dir::Cache::archives={empty}", *names).splitlines()]
        subprocess.run([*command, "--download-only", *names], check=True, stdout=subprocess.DEVNULL)
        return sorted(self.archives / name for name in wanted)


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sysroot(architecture, names):
    """A Root with these packages in the versions that the mirror has now. Unpacked once for the same versions."""
    with locked(CACHE / f"{architecture}.lock"):
        archives = Apt(architecture).packages(names)
        key = hashlib.sha256("".join(f"{path.name} {sha256(path)}\n" for path in archives).encode()).hexdigest()[:12]
        target = CACHE / f"sysroot-{architecture}-{key}"
        if not target.exists():
            begun = CACHE / f"{architecture}.part"
            shutil.rmtree(begun, ignore_errors=True)   # of a run that was cut off
            unpack(archives, begun)
            begun.rename(target)
    return Root(target, architecture)


def unpack(archives, root):
    database = root / "var/lib/dpkg/info"
    database.mkdir(parents=True)
    status = []
    for archive in archives:
        subprocess.run(["dpkg-deb", "-x", archive, root], check=True)
        control = output("dpkg-deb", "-f", archive)
        name = next(line.split()[1] for line in control.splitlines() if line.startswith("Package:"))
        files = [line.removeprefix(".") or "/." for line in output("sh", "-c", 'dpkg-deb --fsys-tarfile "$1" | tar -t', "sh", archive).splitlines()]
        (database / f"{name}.list").write_text("".join(f"{file.rstrip('/') or '/.'}\n" for file in files))
        status.append(f"{control}Status: install ok unpacked\nSHA256: {sha256(archive)}\n\n")
    (root / "var/lib/dpkg/status").write_text("".join(status))
    make_links_relative(root)


def make_links_relative(root):
    """Links that a compiler follows must not lead out of the sysroot."""
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            if os.path.islink(path) and (target := os.readlink(path)).startswith("/"):
                os.remove(path)
                os.symlink(os.path.relpath(f"{root}{target}", folder), path)


def install_tool(*packages):
    """Packages of this machine that are missing are installed."""
    subprocess.run([pathlib.Path(__file__).parent / "debian-packages", *packages], check=True, stdout=subprocess.DEVNULL)
