"""Notes code that no exercise needs: foreign memory, patched modules, processes, graphs, streams, looking inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from grader.judge.rules.names import Names, text, words
from grader.judge.rules.notes import Note, shown, written

_REACHES = re.compile(
    r"""gc\.(get_objects|get_referrers|get_referents|callbacks)
    | inspect\.(stack|currentframe|trace|getouterframes|getinnerframes|getmembers|getclosurevars)
    | sys\.(_getframe|_current_frames|_current_exceptions|settrace|setprofile|addaudithook|monitoring
           |meta_path|path_hooks|setswitchinterval)
    | os\.(fork|forkpty|_exit|abort|kill|killpg|system|popen|posix_spawnp?|exec[lv]\w*|spawn[lv]\w*|memfd_create
          |dup2?|pipe2?|open|p?read|p?write|ftruncate|sendfile|sched_setaffinity|setpriority|nice|pidfd_open)
    | subprocess\.(run|Popen|call|check_call|check_output|getoutput|getstatusoutput)
    | (socket|socketserver|mmap|fcntl|pty|signal|urllib|http|multiprocessing(?!\.cpu_count\b))\.\w+
    | _thread\.start_new_thread
    | ctypes\.(pythonapi|PyDLL|memmove|memset|py_object|wstring_at)
    | pynvml\.nvmlDeviceSet\w+ | traceback\.(walk_tb|walk_stack|extract_stack) | torch\.compiler\.set_stance
    | importlib\.(util|machinery|_bootstrap\w*)\.\w+ | importlib\.reload | (runpy|pkgutil)\.\w+""",
    re.VERBOSE,
)
_WHOLLY = {"socket", "socketserver", "mmap", "fcntl", "pty", "signal", "urllib", "http", "multiprocessing"}
_TOOLS = re.compile(  # noted whatever they are applied to
    r"""(inspect|dis|pickle|marshal|copyreg|cloudpickle|dill|ctypes|tracemalloc|traceback|code|pdb|bdb|symtable
        |weakref|unittest|cProfile|profile|trace|pydoc|faulthandler)\..+
    | types\.(?!SimpleNamespace$|TracebackType$).+
    | torch\.(?!cuda\._\w+$)(\w+\.)*_.+ | string\.Formatter
    | gc\.(?!collect$|disable$|enable$|isenabled$|freeze$|unfreeze$).+ | operator\.(attrgetter|methodcaller)
    | sys\.(exc_info|last_\w+|_\w+|modules|settrace|setprofile|gettrace|monitoring.*)
    | threading\.(settrace|setprofile)\w*
    | builtins\.(vars|dir|globals|locals|__builtins__|__loader__|__spec__|delattr|memoryview)
    | (copy|importlib|runpy|pkgutil)\..+""",
    re.VERBOSE,
)
_BY_NAME = {"builtins.getattr", "builtins.hasattr"}
_BARE = {*_BY_NAME, "builtins.setattr", "builtins.type", "builtins.object"}
_COMPUTES = ast.Call, ast.Lambda, ast.NamedExpr, ast.comprehension  # in a type hint, which is an expression
_DUNDER = re.compile(r"__\w+__")
_ORDINARY = words("__init__ __name__ __doc__ __version__ __enter__ __exit__ __main__ __file__ __getattr__")
_MAY_BE_SET = words("__name__ __doc__")
_PUBLIC = re.compile(r"grader(\.(explore(\..*)?|benchmark|check|device|leaderboard|progress|standings|__version__))?")
_DYNAMIC = {"builtins.exec", "builtins.eval", "builtins.compile", "builtins.__import__"}
_GRAPHS = re.compile(r"torch\.cuda\.(CUDAGraph|graph|graphs\.\w+|make_graphed_callables)")
_THREADS = {"threading.Thread", "threading.Timer"}
_EXECUTORS = {"concurrent.futures.ThreadPoolExecutor", "concurrent.futures.ProcessPoolExecutor"}
_LIBRARIES_OF_THE_SYSTEM = re.compile(r"lib((c|dl|rt|pthread)\b|python|torch|c10)")

_FRAMES = words(
    """__closure__ cell_contents __globals__ f_locals f_globals f_back f_builtins f_code tb_frame tb_next gi_frame
    cr_frame ag_frame"""
)
_SWITCHES = re.compile(r"torch\._dynamo\.config\.(disable|suppress_errors)")
_PATCHERS = re.compile(r"unittest\.mock\.(patch|_patch\w*)|(_pytest\.monkeypatch|pytest)\.MonkeyPatch")
_REGISTERS = re.compile(r"torch\.library\.(Library|impl|register_\w+|define)")
_OF_TORCH = re.compile(r"(aten|prims|prim)(::.*)?")
_MEANT_TO_BE_SET = {"config", "backends", "knobs", "environ", "flags"}
_CURRENT = {"torch.cuda.current_stream", "torch.cuda.default_stream"}
_WAITS_IN_CPP = re.compile(r"cuda(Stream|Device|Event)Synchronize|cudaStreamWaitEvent")


def beyond(names: Names) -> Iterator[Note]:
    """Note everything in the source that an exercise does not need."""
    harmless = _harmless(names)
    waits = _waits(names)
    for node in ast.walk(names.module):
        match node:
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                if node not in harmless:
                    yield from _reference(names.dotted(node), node.lineno, waits)
                if isinstance(node, ast.Attribute) and node.attr == "from_address":
                    yield Note("reach", node.lineno, "`from_address` of `ctypes`")
                if isinstance(node, ast.Attribute) and node.attr in _FRAMES:
                    yield Note("reach", node.lineno, shown(node.attr))
            case ast.Call():
                yield from _call(names, node, waits)
            case ast.Import():
                yield from (_import(alias.name, node.lineno) for alias in node.names if not _public(alias.name))
            case ast.ImportFrom(module=str(module)):
                wholes = [f"{module}.{alias.name}" for alias in node.names]
                yield from (_import(whole, node.lineno) for whole in wholes if not _public(whole))
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                yield from (_patch(_target(names, target), target) for target in targets if _patches(names, target))
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                if _patches(names, target):
                    yield _patch(_target(names, target), target)
            case ast.Constant(value=str(value)) if node not in harmless:
                yield from _string(value, node.lineno, waits)


def inside(names: Names) -> Iterator[Note]:
    """Note the tools that look inside a function or an object, wherever the source uses them.

    A function that an exercise passes hides its inside (`CallOnly` in `grader.worker.outputs`), so it is not followed
    from name to name: to look inside takes one of these. `torch.cuda` alone has private names that a timer needs.
    """
    nodes = list(ast.walk(names.module))
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    own, hints = _own_attributes(nodes), _hints(nodes)
    for node in nodes:
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name.startswith("_"):
                ordinary = name in _ORDINARY or (name in own and not _DUNDER.fullmatch(name))
                known = names.dotted(node).startswith("torch.cuda.") and not _DUNDER.fullmatch(name)
                if not ordinary and not known:
                    yield Note("apart", node.lineno, written(node))
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if _DUNDER.fullmatch(name):
                if name not in _MAY_BE_SET:
                    yield Note("apart", node.lineno, written(node))
            case ast.Attribute(attr="format" | "format_map", value=template, ctx=ast.Load()):
                said = text(names.value_of(template))  # a field such as `{0._name}` reads an attribute
                if not said or "._" in said:
                    parent = parents.get(node)
                    whole = parent if isinstance(parent, ast.Call) and parent.func is node else node
                    yield Note("apart", node.lineno, written(whole))
            case ast.Attribute() | ast.Name() if isinstance(node.ctx, ast.Load):
                dotted, parent = names.dotted(node), parents.get(node)
                called = isinstance(parent, ast.Call) and parent.func is node
                bare = dotted in _BARE and node not in hints and not called
                if _TOOLS.fullmatch(dotted) or bare:
                    yield Note("apart", node.lineno, shown(dotted.removeprefix("builtins.")))
            case ast.Call(args=args) if names.dotted(node.func) in _BY_NAME:
                said = text(args[1]) if len(args) > 1 else ""  # `getattr(*pair)` has one argument
                if not said or said.startswith("_"):
                    yield Note("apart", node.lineno, written(node))
            case ast.ImportFrom(module=str(module)):
                wholes = [f"{module}.{alias.name}" for alias in node.names]
                yield from (Note("apart", node.lineno, shown(whole)) for whole in wholes if _TOOLS.fullmatch(whole))
            case ast.MatchClass(kwd_attrs=attributes):
                yield from (Note("apart", node.lineno, shown(name)) for name in attributes if name.startswith("_"))
            case ast.Constant() | ast.BinOp() | ast.JoinedStr() if not isinstance(parents.get(node), ast.Expr):
                found = _DUNDER.search(text(node))
                if found and found[0] not in _ORDINARY:
                    yield Note("apart", node.lineno, shown(found[0]))


def _hints(nodes: list[ast.AST]) -> set[ast.AST]:
    """Each `object` or `type` of a type hint that only names types, and each `object` that a class inherits from."""
    found: set[ast.AST] = set()
    for node in nodes:
        match node:
            case (
                ast.arg(annotation=ast.expr() as hint)
                | ast.AnnAssign(annotation=hint)
                | ast.FunctionDef(returns=ast.expr() as hint)
            ):
                within = [*ast.walk(hint)]
                if not any(isinstance(each, _COMPUTES) for each in within):
                    found |= {each for each in within if isinstance(each, ast.Name) and each.id in ("object", "type")}
            case ast.ClassDef(bases=bases):
                found |= {base for base in bases if isinstance(base, ast.Name) and base.id == "object"}
    return found


def _own_attributes(nodes: list[ast.AST]) -> set[str]:
    """Attributes that the submission itself defines, in its classes or by an assignment."""
    own = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            own |= {each.id for line in node.body for each in ast.walk(line) if isinstance(each, ast.Name)}
            own |= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return own


def _reference(dotted: str, line: int, waits: set[str]) -> Iterator[Note]:
    if dotted in _DYNAMIC:
        yield Note("dynamic", line, shown(dotted.removeprefix("builtins.")))
    elif _PATCHERS.match(dotted):
        yield Note("patch", line, shown(dotted))
    elif dotted == "sys.modules" or _REACHES.fullmatch(dotted):
        module = dotted.partition(".")[0]
        yield Note("reach", line, shown(module if module in _WHOLLY else dotted))
    elif dotted.startswith("grader.") and not _PUBLIC.fullmatch(dotted):
        yield _import(dotted, line)
    elif _GRAPHS.fullmatch(dotted):
        yield Note("graph", line, shown(dotted))
    elif dotted == "torch.cuda.Stream" and "stream" not in waits:
        yield Note("stream", line)
    elif (dotted in _THREADS or dotted in _EXECUTORS) and "thread" not in waits:
        yield Note("thread", line, shown(dotted))


def _call(names: Names, node: ast.Call, waits: set[str]) -> Iterator[Note]:
    called = names.dotted(node.func)
    if called == "builtins.getattr":
        yield from _reference(names.dotted(node), node.lineno, waits)
    elif called == "importlib.import_module" and node.args and not text(names.value_of(node.args[0])):
        yield Note("dynamic", node.lineno, written(node))
    elif called in ("importlib.import_module", "importlib.__import__") and not _public(names.dotted(node)):
        yield _import(names.dotted(node), node.lineno)
    elif _REGISTERS.fullmatch(called) and any(_OF_TORCH.fullmatch(text(each)) for each in node.args[:2]):
        yield Note("patch", node.lineno, written(node))
    elif called in ("ctypes.CDLL", "ctypes.cdll.LoadLibrary"):
        path = node.args[0] if node.args else ast.Constant(None)
        if isinstance(path, ast.Constant) and (path.value is None or _LIBRARIES_OF_THE_SYSTEM.search(text(path))):
            yield Note("reach", node.lineno, written(node))
    elif called == "ctypes.string_at":
        inner = [each for argument in node.args[:1] for each in ast.walk(argument)]
        if any(isinstance(each, ast.expr) and names.dotted(each) == "builtins.id" for each in inner):
            yield Note("reach", node.lineno, written(node))
    elif called in ("builtins.setattr", "builtins.delattr") and len(node.args) > 1:
        yield from _set(names, node, *node.args[:2])
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("__setattr__", "__delattr__") and node.args:
        holder = names.dotted(node.func.value)
        if holder in ("builtins.type", "builtins.object") and len(node.args) > 1:
            yield from _set(names, node, *node.args[:2])
        else:
            yield from _set(names, node, node.func.value, node.args[0])
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "setdefault", "pop", "__setitem__"):
        holder = _names_of(names, node.func.value)
        if _patchable(names, f"{holder}.…"):
            yield _patch(f"{holder}.…", node)


def _set(names: Names, node: ast.Call, whose: ast.expr, name: ast.expr) -> Iterator[Note]:
    """An attribute that is set by name: of a module, or of an unknown object."""
    holder = names.dotted(whose)
    if holder and _patchable(names, f"{holder}.{text(name)}"):
        yield _patch(f"{holder}.{text(name) or '…'}", node)
    elif not holder and not (isinstance(whose, ast.Name) and (whose.id == "self" or whose.id in names.top)):
        yield Note("patch", node.lineno, written(node))


def _names_of(names: Names, node: ast.expr) -> str:
    """The module or class whose dictionary this is: `vars(torch)`, `torch.__dict__`."""
    if isinstance(node, ast.Call) and node.args and names.dotted(node.func) == "builtins.vars":
        return names.dotted(node.args[0])
    holder = names.dotted(node)
    return holder.removesuffix(".__dict__") if holder.endswith(".__dict__") else ""


def _string(value: str, line: int, waits: set[str]) -> Iterator[Note]:
    if "/proc/" in value:
        yield Note("reach", line, "`/proc`")
    if "cudaGraphLaunch" in value:
        yield Note("graph", line, "`cudaGraphLaunch`")
    if "cudaStreamNonBlocking" in value and "stream" not in waits:
        yield Note("stream", line)


def _harmless(names: Names) -> set[ast.AST]:
    """Nodes that need no note: bare strings, `name in sys.modules`, and running `nvcc`."""
    found: set[ast.AST] = set()
    run: dict[ast.expr, bool] = {}
    for node in ast.walk(names.module):
        match node:
            case ast.Expr(value=ast.Constant() as bare):
                found.add(bare)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]):
                found.add(right)
            case ast.Subscript(value=value, slice=ast.Name(id="__name__")):
                found.add(value)
            case ast.Call(func=func, args=[command, *_], keywords=more) if names.dotted(func).startswith("subprocess."):
                if any(each.arg in ("shell", None) for each in more):
                    continue
                named = {names.value_of(part) for part in ast.walk(command) if isinstance(part, ast.Name)}
                for part in {command, *named} - run.keys():
                    run[part] = _runs_a_tool(part)
                if any(run[part] for part in (command, *named)):
                    found.add(func)
    return found


def _runs_a_tool(command: ast.expr) -> bool:
    texts = (text(each) for each in ast.walk(command) if isinstance(each, ast.expr))
    programs = (word for each in texts for word in each.split(maxsplit=1)[:1])
    return any(program.rpartition("/")[2] in ("nvcc", "nvidia-smi") for program in programs)


def _waits(names: Names) -> set[str]:
    """Return what the source waits for: "stream", "thread". A side stream's own wait does not count."""
    found, inbound = set(), set()
    for node in ast.walk(names.module):
        match node:
            case ast.Attribute(attr="join", value=value) if not isinstance(value, ast.Constant | ast.JoinedStr):
                found.add("thread")
            case ast.Attribute(attr="result" | "shutdown"):
                found.add("thread")
            case ast.withitem(context_expr=ast.Call(func=func)) if names.dotted(func) in _EXECUTORS:
                found.add("thread")
            case ast.Call(func=ast.Attribute(attr="wait_stream") as func, args=[ast.Call(func=whose)]) if (
                names.dotted(whose) in _CURRENT
            ):
                inbound.add(func)  # `ast.walk` yields a call before its parts
            case ast.Attribute(attr="wait" | "wait_stream" | "wait_event" | "synchronize") if node not in inbound:
                found.add("stream")
            case ast.Constant(value=str(value)) if _WAITS_IN_CPP.search(value):
                found.add("stream")
    return found


def _public(module: str) -> bool:
    return module.split(".")[0] != "grader" or bool(_PUBLIC.fullmatch(module))


def _import(module: str, line: int) -> Note:
    return Note("import", line, shown(".".join(module.split(".")[:2])))


def _patches(names: Names, target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript) and (
        names.dotted(target.value) == "sys.modules" or _patchable(names, f"{_names_of(names, target.value)}.…")
    ):
        return True
    return isinstance(target, ast.Attribute | ast.Subscript) and _patchable(names, names.dotted(target))


def _patchable(names: Names, dotted: str) -> bool:
    """Whether this is an attribute of an imported module that is not meant to be set."""
    parts = dotted.split(".")
    if not parts[0] or (parts[0] == "builtins" and len(parts) != 2):
        return False
    if parts[0] not in names.modules | {"builtins"}:
        return False
    if _SWITCHES.fullmatch(dotted):
        return True
    return not _MEANT_TO_BE_SET & set(parts) and not parts[-1].isupper()


def _target(names: Names, target: ast.expr) -> str:
    holder = _names_of(names, target.value) if isinstance(target, ast.Subscript) else ""
    return names.dotted(target) or f"{holder or 'sys.modules'}.…"


def _patch(dotted: str, node: ast.expr) -> Note:
    return Note("patch", node.lineno, shown(dotted))
