"""The files that a submission can see, and the modules that it can import."""

import ast
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from grader.judge.sandbox import sight
from grader.judge.sandbox.launch import Form
from grader.judge.sandbox.sight import GpuAccess

FORMS = ["bubblewrap"]
READS = "read = lambda path: len(open(path, 'rb').read(100))\n"


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A file of the grading user, in the home and in the temporary folder."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    return home / "secret"


@pytest.mark.parametrize("form", FORMS)
def test_it_reads_no_file_of_the_grader(form, told, secret, repository):
    """It cannot read oracles, tests, solutions, the user's files or the system's passwords."""
    exercise = next((repository / "grader/exercises").rglob("*.py"))
    solution = next((repository / "source").glob("*/*.py"))
    paths = [secret, exercise, solution, Path(__file__), repository / "grader/judge/arbiter.py", Path("/etc/shadow")]
    paths += [Path("/etc/machine-id"), Path("/var/lib/dpkg/status"), Path("/root/.bashrc"), Path("/usr/share/doc")]
    found = told(form, READS + f"tell(**{{path: lambda path=path: read(path) for path in {list(map(str, paths))}}})")
    assert set(found.values()) <= {"ENOENT", "EACCES"}, found
    assert secret.read_text() == "secret"


def test_bubblewrap_shows_a_few_folders_and_no_other_name(told, repository):
    """It shows programs, libraries and headers; of a hidden folder it shows only the parts that are needed."""
    found = told(
        "bubblewrap",
        f"""
names = lambda path: sorted(os.listdir(path))
tell(root=lambda: names("/"), etc=lambda: names("/etc"), dev=lambda: names("/dev"), local=lambda: names("/usr/local"),
     tmp=lambda: names("/tmp"), home=lambda: names("/home"), own=lambda: names("/home/worker"),
     project=lambda: names({str(repository)!r}), grader=lambda: names("/opt/grader/grader"))
""",
    )
    etc = {"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"}
    assert set(found["etc"]) <= etc | {"passwd", "group", "hosts", "nsswitch.conf"}
    assert set(found["dev"]) == {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr"}
    assert not {"share", "etc", "src"} & set(found["local"])
    shown = {path.split("/")[2] for path in (sys.prefix, sys.base_prefix) if path.startswith("/tmp/")}
    assert set(found["tmp"]) <= shown
    assert found["home"] == ["worker"]
    assert found["own"] == ["tmp"]
    assert found["project"] == "ENOENT" or set(found["project"]) <= {".venv", "venv"}
    assert set(found["grader"]) == {*sight.MODULES, "__pycache__"}
    assert not {"run", "var", "mnt", "srv", "boot"} & set(found["root"])


def test_bubblewrap_names_neither_the_home_nor_the_project(told, tmp_path, monkeypatch, repository):
    """No command line, mount, environment variable, Python path or installation record contains them.

    Only Python's own folder is known, because it has the same path inside.
    """
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", os.pathsep.join([str(home / "bin"), str(repository / "bin"), os.environ["PATH"]]))
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join([str(home), str(repository / "lib"), "/usr/lib"]))
    monkeypatch.setenv("CUDA_PATH", str(home / "cuda"))
    found = told(
        "bubblewrap",
        """
import glob, sysconfig
import grader.worker.main
read = lambda path: open(path, "rb").read().decode(errors="replace")
every = lambda pattern: [read(path) for path in glob.glob(pattern)]
links = lambda pattern: [os.readlink(path) for path in glob.glob(pattern) if os.path.lexists(path)]
packages = sysconfig.get_paths()["purelib"]
tell(lines=lambda: every("/proc/[0-9]*/cmdline"), own=lambda: read("/proc/self/environ"), of=lambda: dict(os.environ),
     mounts=lambda: every("/proc/self/mount*"), maps=lambda: every("/proc/self/maps"), path=lambda: sys.path,
     links=lambda: links("/proc/self/*") + links("/proc/self/fd/*"), files=lambda: every("/etc/[phn]*"),
     modules=lambda: [str(vars(module).get("__file__")) for module in list(sys.modules.values())],
     code=lambda: grader.worker.main.main.__code__.co_filename,
     installed=lambda: every(packages + "/__editable__*") + every(packages + "/gpu_course-*/direct_url.json"))
""",
    )
    text = json.dumps(found)
    for prefix in {sys.prefix, sys.base_prefix, os.path.dirname(sys.executable)}:
        text = text.replace(prefix, "PYTHON")
    assert str(home) not in text
    assert str(repository) not in text
    assert "/opt/grader/grader/worker/main.py" in text


def test_the_modules_inside_are_not_compiled_at_each_start(told):
    """Copied files are newer than their bytecode, which is used without a check of the time."""
    found = told(
        "bubblewrap",
        """
import importlib._bootstrap_external as importing
compiled = []
real = importing.SourceLoader.source_to_code
importing.SourceLoader.source_to_code = lambda *args, **options: compiled.append(args[2]) or real(*args, **options)
import grader.worker.main
tell(compiled=lambda: [path for path in compiled if "grader" in path], there=lambda: grader.worker.main.__file__)
""",
    )
    assert found == {"compiled": [], "there": "/opt/grader/grader/worker/main.py"}


@pytest.mark.parametrize("form", ["bubblewrap", "none"])
def test_it_imports_only_the_worker_and_the_protocol(form, told):
    """The worker and the protocol can be imported in every form; exercises and judge in none."""
    found = told(
        form,
        """
import importlib.util
import grader.worker.main, grader.protocol.arena
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]  # it would find this checkout
find = lambda name: importlib.util.find_spec(name) is not None
tell(**{name: lambda name=name: find(f"grader.{name}") for name in ("exercises", "judge", "worker")})
""",
    )
    assert found == {"exercises": False, "judge": False, "worker": True}


def test_every_module_that_a_worker_imports_is_shown():
    """A module that imports a hidden one would fail only when it is used."""
    files = [path for name in sight.MODULES for path in [sight.PACKAGE / name, *(sight.PACKAGE / name).rglob("*.py")]]
    imported = set()
    for path in files:
        if path.name in ("__init__.py",) and path.parent == sight.PACKAGE:
            continue  # its imports are for notebooks
        for node in ast.walk(ast.parse(path.read_text()) if path.suffix == ".py" else ast.Module([], [])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("grader."):
                imported.add(node.module.split(".")[1])
            elif isinstance(node, ast.Import):
                imported |= {each.name.split(".")[1] for each in node.names if each.name.startswith("grader.")}
    assert imported
    assert imported <= {Path(name).stem for name in sight.MODULES}


@pytest.mark.parametrize("form", FORMS)
def test_an_installed_grader_is_hidden(form, told, tmp_path, monkeypatch):
    """Other packages can be imported, but the grader's exercises can be neither read nor found."""
    packages = tmp_path / "packages"
    shutil.copytree(sight.PACKAGE / "exercises", packages / "grader/exercises")
    (packages / "grader/judge").mkdir()
    (packages / "beside.py").write_text("number = 3")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    found = told(
        form,
        READS
        + f"""
import beside
tell(beside=lambda: beside.number, read=lambda: read({str(packages / "grader/exercises/triton/softmax.py")!r}))
""",
    )
    assert found["beside"] == 3
    assert found["read"] in ("ENOENT", "EACCES")


@pytest.mark.parametrize("form", FORMS)
def test_an_installed_grader_is_hidden_under_every_name(form, told, tmp_path, monkeypatch):
    """The folder of an environment may be a link, and its lib64 is a link to lib."""
    real, linked = tmp_path / "real", tmp_path / "linked"
    packages = real / "lib/packages"
    shutil.copytree(sight.PACKAGE / "exercises", packages / "grader/exercises")
    (packages / "grader/judge").mkdir()
    (packages / "beside.py").write_text("number = 3")
    (real / "lib64").symlink_to("lib")
    linked.symlink_to(real)
    monkeypatch.setattr(sys, "prefix", str(linked))
    monkeypatch.setattr(sys, "path", [*sys.path, str(linked / "lib/packages")])
    places = [f"{root}/{lib}/packages" for root in (real, linked) for lib in ("lib", "lib64")]
    found = told(
        form,
        READS
        + f"""
tell(**{{place: lambda place=place: read(place + "/grader/exercises/triton/softmax.py") for place in {places}}},
     beside=lambda: read({places[-1]!r} + "/beside.py"))
""",
    )
    assert found.pop("beside") == len("number = 3")
    assert set(found.values()) <= {"ENOENT", "EACCES"}, found


@pytest.mark.parametrize("form", [*FORMS, Form("bubblewrap", own_user=False)], ids=str)
def test_it_can_write_only_to_its_own_folders(form, told):
    """Folders of the system, of Python and of the sandbox itself refuse a file."""
    code = f"""
folders = ["/", "/etc", "/dev", "/usr", "/usr/lib", "/opt", "/var/tmp", "/proc", "/sys", {str(sight.PACKAGE)!r},
           os.path.dirname(os.__file__), os.path.dirname(sys.executable), sys.path[0], "/opt/grader/grader/worker"]
write = lambda folder: os.close(os.open(folder + "/new", os.O_CREAT | os.O_WRONLY))
within = [folder for folder in folders if not folder.startswith(os.environ["HOME"])]
tell(home=lambda: write(os.environ["HOME"]), **{{folder: lambda folder=folder: write(folder) for folder in within}})
"""
    found = told(form, code)
    assert found.pop("home") is None
    assert set(found.values()) <= {"EROFS", "EACCES", "ENOENT"}, found


@pytest.mark.parametrize("own_user", [True, False])
def test_files_in_proc_that_control_the_machine_are_closed(own_user, told):
    """This holds even for a submission that must run as root, which owns them."""
    if own_user and os.geteuid() != 0:
        pytest.skip("needs root")
    found = told(
        Form("bubblewrap", own_user),
        """
write = lambda path: os.close(os.open(path, os.O_WRONLY))
tell(core=lambda: write("/proc/sys/kernel/core_pattern"), keys=lambda: write("/proc/sysrq-trigger"))
""",
    )
    assert set(found.values()) <= {"EROFS", "EACCES", "ENOENT"}


def test_a_gpus_toolkit_is_shown_with_the_links_to_it(tmp_path, monkeypatch):
    """Links in the grader's cache are followed; a home is not shown just because its cache has a toolkit."""
    real = tmp_path / "site/nvidia/cu13"
    for name in ("bin", "include", "lib", "samples"):
        (real / name).mkdir(parents=True)
    home = tmp_path / "home"
    linked = home / ".cache/grader/cuda-13.0"
    linked.mkdir(parents=True)
    (linked / "bin").symlink_to(real / "bin")
    monkeypatch.setenv("HOME", str(home))
    paths = sight.shown(GpuAccess(toolkit=linked))
    assert {linked / "bin", real / "bin", Path("/sys")} <= set(paths)
    assert not {home, real, real / "samples", linked} & set(paths)
    assert {real / "include", real / "lib"} <= set(sight.shown(GpuAccess(toolkit=real)))
    assert Path("/sys") not in sight.shown(None)


def test_folders_of_the_path_show_neither_the_project_nor_the_home(tmp_path, monkeypatch, repository):
    """PYTHONPATH and LD_LIBRARY_PATH may name any folder; those that contain the home are left out."""
    home, packages = tmp_path / "home", tmp_path / "home/packages"
    packages.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    named = os.pathsep.join(map(str, [repository, repository / "source", home, tmp_path, packages]))
    monkeypatch.setenv("PYTHONPATH", named)
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(["", ".", str(home), str(packages)]))
    assert sight.added_folders() == [packages]
    assert packages in sight.shown(None)
    assert not {home, tmp_path, repository} & set(sight.shown(None))
    assert sight.import_folders()[0] == str(repository)
