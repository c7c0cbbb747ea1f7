# SPDX-License-Identifier: BSD-2-Clause
"""
Compares the declarations of the Python package with collnet.h.

    python.py generate              a C program that prints constants, sizes and offsets in C
    python.py compare HEADER        compares its output with Python's, and the header's names and
                                    arguments with the package's
"""
import ctypes
import re
import sys

from collnet import _library as api

# What the package does not call.
ELSEWHERE = {"waitall", "testall", "send", "recv"} | set(api._collectives)


def expected():
    """Expressions of C, and their values in Python."""
    for enum in api.ENUMS:
        for member in enum:
            yield f"COLLNET_{member.name}", int(member)
    for name in api.CONSTANTS:
        yield f"COLLNET_{name}", getattr(api, name)
    for structure in api.STRUCTURES:
        yield f"sizeof(struct {structure.__name__})", ctypes.sizeof(structure)
        for name, _ in structure._fields_:
            field = getattr(structure, name)
            yield f"offsetof(struct {structure.__name__}, {name})", field.offset
            yield f"sizeof(((struct {structure.__name__} *)0)->{name})", field.size


def generate():
    print("#include <stddef.h>\n#include <stdio.h>\n#include <collnet/collnet.h>\n\n"
          "int main(void)\n{")
    for expression, _ in expected():
        print(f'\tprintf("%lld\\t%s\\n", (long long)({expression}), "{expression}");')
    print("}")


def kind(declaration):
    """pointer, or the bytes of an integer, of an argument or result in C."""
    if "*" in declaration or "_fn " in declaration + " ":
        return "pointer"
    word = declaration.replace("const ", "").split()
    return {"void": None, "int": 4, "enum": 4, "size_t": ctypes.sizeof(ctypes.c_size_t),
            "uint16_t": 2, "uint32_t": 4, "int32_t": 4}[word[0]]


def python_kind(argument):
    if argument is None:
        return None
    if issubclass(argument, (ctypes.c_void_p, ctypes.c_char_p, ctypes._Pointer, ctypes._CFuncPtr)):
        return "pointer"
    return ctypes.sizeof(argument)


def compare(path):
    wrong = []
    values = dict(reversed(line.rstrip("\n").split("\t")) for line in sys.stdin)
    for expression, value in expected():
        if int(values[expression]) != value:
            wrong.append(f"{expression} is {values[expression]}, in Python {value}")

    with open(path, encoding="utf-8") as file:
        header = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    names = set(re.findall(r"^\s*(COLLNET_\w+) = ", header, re.M))
    names |= set(re.findall(r"^#define (COLLNET_(?!H$|VERSION)\w+)", header, re.M))
    ours = {f"COLLNET_{m.name}" for enum in api.ENUMS for m in enum}
    ours |= {f"COLLNET_{name}" for name in api.CONSTANTS}
    wrong += [f"{name} is not in both" for name in names ^ ours]
    # Structures with their fields in order.
    structures = dict(re.findall(r"^struct (\w+) \{\n(.*?)^\};", header, re.M | re.S))
    wrong += [f"struct {name} is not in both"
              for name in set(structures) ^ {s.__name__ for s in api.STRUCTURES}]
    for structure in api.STRUCTURES:
        body = structures.get(structure.__name__, "")
        fields = re.findall(r"(?:\(\*(\w+)\)\(.*?\)|(\w+)(?:\[.*?\])?);", body, re.S)
        fields = [a or b for a, b in fields]
        if fields != [name for name, _ in structure._fields_]:
            wrong.append(f"struct {structure.__name__} has other fields: {', '.join(fields)}")

    functions = re.findall(r"^([a-z][\w ]*?[ *])(collnet_\w+)\(([^;]*?)\);", header, re.M | re.S)
    if len(functions) < 60:
        wrong.append(f"only {len(functions)} functions found")
    for result, name, arguments in functions:
        arguments = [] if arguments == "void" else arguments.split(",")
        if name[len("collnet_"):] in ELSEWHERE:
            continue
        if name not in api.FUNCTIONS:
            wrong.append(f"{name}() is not in the package")
            continue
        c = [kind(result.strip())] + [kind(" ".join(a.split())) for a in arguments]
        python = api.FUNCTIONS[name]
        python = [python_kind(python[0])] + [python_kind(a) for a in python[1]]
        if c != python:
            wrong.append(f"{name}(): {c} in C, {python} in Python")
    print("\n".join(wrong) or f"{len(values)} values and {len(functions)} functions agree")
    return 1 if wrong else 0


if sys.argv[1] == "generate":
    generate()
else:
    sys.exit(compare(sys.argv[2]))
