"""Texts as a model's inputs: a tokenizer file in the model's public half, which the client applies by itself.

A text becomes as many tokens as the model reads, filled up at the end, so that a server does not see how long it is.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanner import _native
from lanner.errors import InputError, MisuseError, ModelError, native_errors, spelled
from lanner.files import check_file, why
from lanner.named import NamedInput, decode_inputs

#: The files of texts, one a line.
LINES = (".txt",)

#: The most bytes of a file of texts.
_MOST_BYTES = 1 << 26

_FORM = "write TOKENIZER.json, or TOKENIZER.json,length=128 and ,pad=TOKEN behind it"


class TextWarning(UserWarning):
    """A model cuts texts that are too long."""


@dataclass(frozen=True, slots=True)
class TextChoice:
    """What an owner says of texts.

    Attributes:
        tokenizer: The path of a ``tokenizer.json``.
        length: How many tokens every text is made; None for what the file says, or 128.
        pad: The token that fills up; None for the file's.
    """

    tokenizer: Path
    length: int | None = None
    pad: str | None = None

    @classmethod
    def parse(cls, written: str) -> TextChoice:
        """Read ``TOKENIZER.json[,length=N][,pad=TOKEN]``.

        Raises:
            MisuseError: If it is written otherwise.
        """
        path, _, rest = written.partition(",")
        chosen: dict[str, str] = {}
        for part in rest.split(",") if rest else ():
            name, equals, value = part.partition("=")
            if name not in ("length", "pad") or not equals or not value or name in chosen:
                raise MisuseError(f"{part!r} is no choice for texts", where="text", fix=_FORM)
            chosen[name] = value
        if not path:
            raise MisuseError("there is no tokenizer", where="text", fix=_FORM)
        length = chosen.get("length")
        if length is not None and not (length.isascii() and length.isdigit() and len(length) < _DIGITS):
            raise MisuseError(f"a length of {length} is no number of tokens", where="text", fix=_FORM)
        return cls(Path(path), None if length is None else int(length), chosen.get("pad"))


@dataclass(frozen=True)
class TextDescription:
    """How a text becomes a model's inputs.

    Attributes:
        length: How many tokens every text is made.
        ids: The input that takes the tokens.
        mask: The input that says where there are some, or None.
        types: The input that says of which sentence they are, or None.
        truncate: Whether a text that is too long is cut.
        told: The whole object of the public half.
    """

    length: int
    ids: str
    mask: str | None
    types: str | None
    truncate: bool = False
    told: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TextDescription:
        """Read a manifest's ``text``."""
        mask, types = document.get("mask"), document.get("types")
        return cls(
            int(document["length"]),
            str(document["ids"]),
            None if mask is None else str(mask),
            None if types is None else str(types),
            told=document,
        )

    def document(self) -> dict[str, Any]:
        """The object of a manifest's ``text``."""
        return dict(self.told)

    def cutting(self) -> TextDescription:
        """The same, where a text that is too long is cut."""
        return replace(self, truncate=True)

    def only(self, inputs: Sequence[str]) -> TextDescription:
        """The same without the mask and the types, where a model does not read them."""
        dropped = {role for role in ("mask", "types") if self.told.get(role) not in (None, *inputs)}
        return TextDescription.from_document({name: told for name, told in self.told.items() if name not in dropped})

    @property
    def names(self) -> list[str]:
        """The inputs that are made."""
        return [name for name in (self.ids, self.mask, self.types) if name is not None]

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs for one text."""
        return dict.fromkeys(self.names, (1, self.length))

    @cached_property
    def _native(self) -> _native.NativeText:
        with native_errors("tokenizer"):
            return _native.NativeText(json.dumps(self.told))

    @cached_property
    def tokenizer(self) -> Mapping[str, Any]:
        """What the tokenizer is: its kind, how many tokens there are, the largest number, and whether it lowercases.

        Raises:
            ModelError: If it is damaged.
        """
        native = self._native
        told: dict[str, Any] = json.loads(native.describe())
        return told

    def arrays(self, texts: Sequence[str], where: str = "input") -> dict[str, NDArray[np.float32]]:
        """What texts become: an array of shape (n, `length`) for each input.

        A `TextWarning` says how many were cut.

        Raises:
            InputError: If one is too long and is not to be cut, or the tokenizer cannot read it; its place is named.
            ModelError: If the tokenizer is damaged.
        """
        if not texts:
            raise InputError("there are no texts", where=where, fix="give at least one")
        # What is no Unicode, as half a surrogate, is read as what stands for that.
        whole = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        native = self._native
        try:
            with native_errors():
                ids, mask, types, cut = native.encode(whole, self.truncate)
        except InputError as error:
            place = f"{where}, text {int(error.where) + 1}" if len(texts) > 1 and error.where.isdigit() else where
            raise InputError(error.what, where=place, fix=error.fix) from None
        if count := sum(cut):
            said = "the text was" if len(texts) == 1 else f"{count} of {len(texts)} texts were"
            warnings.warn(f"{said} cut to the {self.length} tokens that the model reads", TextWarning, stacklevel=2)
        made = ((self.ids, ids), (self.mask, mask), (self.types, types))
        return {name: values.astype(np.float32) for name, values in made if name is not None}

    def tokens(self, row: NDArray[np.float32], inputs: Sequence[NamedInput]) -> list[str | None] | None:
        """The tokens of an encoded text, None where it is filled up; of a model that reads their vectors None.

        Args:
            row: The network's input for one text.
            inputs: The model's inputs by name; none where the tokens are the only one.
        """
        read = next((entry for entry in inputs if entry.name == self.ids), None)
        if read is not None and read.embeddings is not None:
            return None
        made = decode_inputs(inputs, row[np.newaxis]) if inputs else {self.ids: row}
        ids = np.ravel(made[self.ids]).astype(np.int64)
        # Where no mask says it, what fills up is known by its token.
        holds = ids != int(self.told["pad"]) if self.mask is None else np.ravel(made[self.mask]) != 0
        tokens = self._native.tokens(ids.tolist())
        return [token if held else None for token, held in zip(tokens, holds, strict=True)]


def texts_of(given: object) -> list[str] | None:
    """A text, or a list of them; None of anything else."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, np.ndarray) and given.dtype.kind in "UT" and given.ndim <= 1:
        return [str(text) for text in np.atleast_1d(given)]
    if isinstance(given, list | tuple) and given and all(isinstance(text, str) for text in given):
        return list(given)
    return None


def read_lines(path: Path) -> tuple[str, ...]:
    """The texts of a file, one a line; an empty line is an empty text.

    Raises:
        InputError: If it cannot be read, or has none.
    """
    check_file(path, InputError)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"it has more than {_MOST_BYTES} bytes", where=str(path), fix="cut it into several files")
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read as text ({why(error)})", where=str(path), fix="give a UTF-8 file with a text on each line"
        ) from None
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise InputError("there are no texts in it", where=str(path), fix="give a file with a text on each line")
    return tuple(line.removesuffix("\r") for line in lines)


def describe_texts(chosen: str | Path | TextChoice, inputs: Sequence[str]) -> TextDescription:
    """Read a tokenizer file for a model with these inputs.

    Raises:
        MisuseError: If the choice is not written as it must be, there is no token to fill up with, or the model has
            inputs that are not made of a text.
        ModelError: If the tokenizer cannot be read.
    """
    if not isinstance(chosen, TextChoice):
        chosen = TextChoice.parse(str(chosen))
    where = str(chosen.tokenizer)
    check_file(chosen.tokenizer, MisuseError)
    try:
        written = chosen.tokenizer.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"cannot be read ({why(error)})", where=where, fix="give a tokenizer.json") from None
    with native_errors(where):
        read = json.loads(_native.read_tokenizer(written, chosen.pad))
    if read["pad"] is None:
        raise MisuseError(
            "the tokenizer has no token to fill texts up with", where=where, fix="name one: ,pad=TOKEN behind the file"
        )
    told = {
        "tokenizer": read["tokenizer"],
        "length": read["length"] if chosen.length is None else chosen.length,
        "pad": read["pad"],
        "left": read["left"],
        **_made(inputs),
    }
    described = TextDescription.from_document(told)
    try:
        _ = described.tokenizer
    except ModelError as error:
        raise ModelError(error.what, where=where, fix=error.fix) from None
    return described


def _made(inputs: Sequence[str]) -> dict[str, str]:
    """Which of a model's inputs are the tokens, the mask and the types."""
    found: dict[str, str] = {}
    for name in inputs:
        role = next((role for role, ends in _ROLES.items() if name.lower().endswith(ends)), None)
        if role is None and len(inputs) == 1:
            role = "ids"
        if role is None or role in found:
            raise MisuseError(
                f"lanner cannot make input {name} from a text; it makes tokens, mask and types",
                where="text",
                fix=spelled(f"make it a constant: ⟦fix={name}=VALUE⟧"),
            )
        found[role] = name
    if "ids" not in found:
        raise MisuseError(
            f"the model has no input for tokens but {', '.join(inputs)}", where="text", fix="name it input_ids"
        )
    return found


def tokens_among(inputs: Sequence[str]) -> str | None:
    """The input for tokens by its name, where texts may make all of a model's inputs; else None."""
    try:
        name = _made(inputs)["ids"]
    except MisuseError:
        return None
    return name if name.lower().endswith(_ROLES["ids"]) else None


#: What the names of inputs end with, by what they are.
_ROLES = {
    "types": ("token_type_ids", "segment_ids", "type_ids"),
    "mask": ("mask",),
    "ids": ("input_ids", "word_ids", "ids", "tokens"),
}

#: The most bytes that a text takes in JSON: each byte of it may be written as six.
MOST_WRITTEN = 6 * (32 << 10)

#: Numbers of more digits are no lengths.
_DIGITS = 8
