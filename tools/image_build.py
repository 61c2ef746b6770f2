"""Compiles the program for an architecture against a sysroot, so that the bits depend on nothing of this machine but its compiler."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from image_packages import TRIPLETS, install_tool, output, this_architecture

ROOT = pathlib.Path(__file__).resolve().parents[1]
CPUS = {"amd64": "x86_64", "arm64": "aarch64"}
HEADERS = ("libc6-dev", "libstdc++-12-dev")   # the compiler's own are this machine's


def listed(name):
    """An array of tools/steps.sh."""
    with tempfile.TemporaryDirectory() as logs:
        return output("bash", "-c", f'. tools/steps.sh; echo "${{{name}[@]}}"', cwd=ROOT, env={**os.environ, "ROOT": str(ROOT), "LOGS": logs}).split()


def sources(of_build=False):
    """The packages that a program is compiled from: the image's own, which has no local mode and so no SQLite, or that of a build
    directory."""
    left_out = ("catch2",) if of_build else ("catch2", "libsqlite3-dev")
    return [name for name in listed("LIBRARIES") if name not in left_out]


def binutils(architecture):
    """The prefix of the names of objcopy and strip for this architecture."""
    if architecture == this_architecture():
        install_tool("binutils")
        return ""
    triplet = TRIPLETS[architecture]
    install_tool("binutils-" + triplet.replace("_", "-"))
    return triplet + "-"


def machine_file(root):
    """Meson's description of the target. Paths of this machine and times are in none of what is compiled, and `char` is what it is where
    the tests run: arm64's has no sign."""
    target = root.path.resolve()
    maps = ", ".join(f"'-ffile-prefix-map={path}={name}'" for path, name in ((ROOT, "."), (target, "/sysroot")))
    wrap = "'ccache', " if "CCACHE_DISABLE" not in os.environ else ""
    return f"""[binaries]
cpp = [{wrap}'clang++-16', '--target={root.triplet}', '--sysroot={target}']
cpp_ld = 'lld'
strip = '{binutils(root.architecture)}strip'
pkgconfig = 'pkg-config'
[properties]
sys_root = '{target}'
pkg_config_libdir = ['{target}/usr/lib/{root.triplet}/pkgconfig', '{target}/usr/share/pkgconfig']
boost_includedir = '{target}/usr/include'
boost_librarydir = '{target}/usr/lib/{root.triplet}'
needs_exe_wrapper = true
[built-in options]
cpp_args = [{maps}, '-fsigned-char', '-Werror=date-time']
cpp_link_args = ['-Wl,--build-id=sha1']
[host_machine]
system = 'linux'
cpu_family = '{CPUS[root.architecture]}'
cpu = '{CPUS[root.architecture]}'
endian = 'little'
"""


def environment():
    """Without what would get into the program: flags, and the compiler cache's way to write paths. The cache compares the files: where
    only a comment has changed the preprocessor prints the same, but debug information has checksums of the files."""
    kept = {key: value for key, value in os.environ.items()
            if key not in ("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CCACHE_BASEDIR", "CCACHE_NOHASHDIR", "PKG_CONFIG_PATH")}
    return {**kept, "CCACHE_DEPEND": "1"}


def compiled(root, folder, target, *options):
    """The path of a target of this build directory, compiled as far as it has changed. The folder is one of the sources' root, since
    tools/trainer.profdata knows them as ../FOLDER/FILE."""
    install_tool(*listed("COMPILER"))
    build = ROOT / folder
    description = machine_file(root)
    kept = build / "machine.ini"
    if not (build / "build.ninja").exists() or kept.read_text() != description:
        shutil.rmtree(build, ignore_errors=True)
        build.mkdir()
        kept.write_text(description)
        # Warnings are errors where the tests are run; here a header of another version must not stop a release.
        subprocess.run(["meson", "setup", "--wrap-mode=nodownload", "--cross-file", kept, *options, "-Dwerror=false", "-Dkube:werror=false", build],
                       cwd=ROOT, check=True, env=environment())
    subprocess.run(["ninja", "-C", build, target], check=True, env=environment())
    return build / target


def program(root):
    return compiled(root, f"build-image-{root.architecture}", "trainer", "-Doptimization=2", "-Ddebug=true", "-Dtests=false", "-Dlocal=disabled",
                    "-Dlocal:werror=false")


def tests(root):
    """The program of tests with the golden cases. clang needs its own runtime library for what is not optimized at all."""
    return compiled(root, f"build-{root.architecture}", "tests/unit/pipeline/unit_pipeline", "-Doptimization=1", "-Ddebug=false", "-Dpure_only=true")


def split(program, architecture, stripped, debug):
    """Writes the program without what only debuggers read, and that apart: gdb finds it by the build id."""
    prefix = binutils(architecture)
    subprocess.run([f"{prefix}objcopy", "--only-keep-debug", "--compress-debug-sections=zlib", program, debug], check=True)
    subprocess.run([f"{prefix}strip", "--strip-all", "-o", stripped, program], check=True)
