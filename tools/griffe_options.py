"""Extends Griffe, which reads the pages' docstrings: `lanner.compile` has its options by name, as it has when it runs.

`lanner.option.takes` gives it signature and docstring, from `lanner.options.CompileKeywords`; what is read without
running it gets them here, from the same declarations.
"""

from __future__ import annotations

import ast
from typing import Any

import griffe

FUNCTION, KEYWORDS = "model.compile", "options.CompileKeywords"


class OptionsExtension(griffe.Extension):
    """Names the options of `lanner.compile`."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Extend the function of the loaded package."""
        if pkg.name != "lanner":
            return
        function, keywords = pkg[FUNCTION], pkg[KEYWORDS]
        plain = [each for each in function.parameters if each.kind is not griffe.ParameterKind.var_keyword]
        declared = [declaration(name, str(attribute.annotation)) for name, attribute in keywords.attributes.items()]
        if not declared:
            raise ValueError(f"{keywords.path} declares no option")
        options = [
            griffe.Parameter(name, annotation=annotation, kind=griffe.ParameterKind.keyword_only, default=repr(default))
            for name, annotation, default, _ in declared
        ]
        function.parameters = griffe.Parameters(*plain, *options)
        head, raises, tail = function.docstring.value.partition("\n\nRaises:")
        entries = "".join(f"\n    {name}: {doc}" for name, _, _, doc in declared)
        function.docstring.value = f"{head}{entries}{raises}{tail}"


def declaration(name: str, text: str) -> tuple[str, str, Any, str]:
    """The name, the type, the default and the documentation of ``Annotated[TYPE, Option(DOC, default=..., ...)]``."""
    annotated = ast.parse(text, mode="eval").body
    kind, option = annotated.slice.elts  # type: ignore[attr-defined]
    default = next((ast.literal_eval(word.value) for word in option.keywords if word.arg == "default"), None)
    return name, ast.unparse(kind), default, ast.literal_eval(option.args[0])
