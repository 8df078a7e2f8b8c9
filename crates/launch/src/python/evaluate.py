# Evaluates Python expressions for pteros. A request is a line of JSON on standard
# input, an answer a line on standard output. Expressions see neither.
import functools
import importlib
import json
import os
import resource
import signal
import sys

requests = os.fdopen(os.dup(0), "rb")
answers = os.fdopen(os.dup(1), "w", encoding="ascii")
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0)
os.dup2(nothing, 1)
# The interpreter is isolated; packages of the user's workspace stay importable.
sys.path += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
MEMORY_BYTES_MAX = 2 << 30
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
most = MEMORY_BYTES_MAX if hard == resource.RLIM_INFINITY else min(hard, MEMORY_BYTES_MAX)
resource.setrlimit(resource.RLIMIT_AS, (most, hard))
classes = {}


class Message:
    def __init__(self, fields):
        self.__dict__.update(fields)

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self):
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


def restored(value):
    if "fields" in value:
        name = value["type"]
        if name not in classes:
            classes[name] = type(name, (Message,), {})
        return classes[name](zip(value["fields"], value["values"]))
    if "bytes" in value:
        return bytes(value["bytes"])
    return float(value["number"]) if "number" in value else value


@functools.lru_cache(maxsize=8)
def compiled(expression):
    return compile(expression.lstrip(" \t"), "<expression>", "eval")


def evaluated(request):
    code = compiled(request["expression"])
    names = {}
    for name in request["modules"]:
        module = importlib.import_module(name)
        if name == "math":
            names.update(vars(module))
        root = name.partition(".")[0]
        names[root] = sys.modules[root]
    names.update(vars(request["names"]))
    if request["wanted"] == "check":
        return ""
    value = eval(code, names)
    return str(value) if request["wanted"] == "text" else str(bool(value))


# Nobody waits longer. The default action ends the process, also if pteros was killed.
SECONDS_MAX = 90

for line in requests:
    signal.alarm(SECONDS_MAX)
    try:
        answer = {"value": evaluated(json.loads(line, object_hook=restored))}
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
        if isinstance(error, SyntaxError):
            answer = {"error": f"SyntaxError: {error.msg}", "character": error.offset}
        if isinstance(error, NameError):
            answer["name"] = getattr(error, "name", None)
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
    signal.alarm(0)
