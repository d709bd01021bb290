"""A compiled model: what `compile` makes of an ONNX file, `save` writes and `load` reads."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanner import _native
from lanner.apart import COMPARED, sentence_apart
from lanner.capacity import LIKE_THE_TABLES, Machine
from lanner.columns import Coding, StatedColumn
from lanner.coverage import sentence_beside, sentence_on
from lanner.divergence import Divergence, diverge
from lanner.embeddings import beside, write_tables
from lanner.errors import InputError, MisuseError, ModelError, native_errors, option_named, spelled
from lanner.estimate import Estimate, estimate
from lanner.extras import is_installed, require
from lanner.files import check_exported, check_file, check_target, place_of, why, write_whole
from lanner.images import ImageDescription
from lanner.inputs import Arrays, as_batch, batch_of, check_range, to_float32
from lanner.interrupts import interruptible
from lanner.kernel_times import KernelTimes, stored_times
from lanner.limits import limits_document
from lanner.manifest import InputDescription, Manifest
from lanner.named import Given, NamedInput, check_ranges, largest, published_tables
from lanner.network import LOOPBACK, Network
from lanner.option import takes
from lanner.options import OPTIONS, CompileKeywords, CompileOptions
from lanner.precision import PrecisionWarning, Reached
from lanner.reference import OnnxReference, measure, outvoted, reference_of
from lanner.stated_columns import check_stated, read_columns
from lanner.tables import Notes, read_objects, stated_by
from lanner.texts import TextDescription, describe_texts, texts_of

if TYPE_CHECKING:
    from lanner.onnx import Frame, ImportedModel

_COMMITMENT = re.compile(r"[0-9a-fA-F]{64}")


class Model:
    """A fixed-point network with its scales, plan and output policy. Made by `compile` and `load`.

    Attributes:
        native: The native model.
        notes: What its owner should know of how `compile` took the network's end and the samples, in sentences.
    """

    def __init__(
        self, native: _native.NativeModel, reference: OnnxReference | None = None, *, notes: Sequence[str] = ()
    ) -> None:
        self.native = native
        self.notes = tuple(notes)
        self._reference = reference

    @cached_property
    def manifest(self) -> Manifest:
        """The part that clients may see."""
        return Manifest.parse(self.native.manifest()).holding(self.published)

    @cached_property
    def published(self) -> Mapping[str, NDArray[np.float32]]:
        """The tables of embeddings that the owner publishes, shape (rows, width), by the names of their inputs."""
        names = [str(entry["name"]) for entry in json.loads(self.native.manifest()).get("inputs") or ()]
        tables = {name: self.native.published(name) for name in names}
        return {name: table for name, table in tables.items() if table is not None}

    @property
    def name(self) -> str:
        """The name under which a server offers the model by default."""
        return self.manifest.name

    @property
    def commitment(self) -> str:
        """The salted commitment that identifies the model, in hexadecimal."""
        return self.manifest.commitment

    def save(self, path: str | Path) -> None:
        """Write the model to a ``.lanner`` file. It holds the weights: keep it on the server.

        What had the name is there until all is written. A symbolic link stays, and what it leads to is written.

        Raises:
            ModelError: If the file cannot be written.
        """
        check_target(path, ModelError)
        with native_errors(str(path)):
            self.native.save(str(place_of(path)))

    def export_public(self, path: str | Path) -> None:
        """Write the half that a client may see and pin; as `save` does.

        The tables of embeddings that the owner publishes go into a file beside it, which has ``.embeddings.npz`` behind
        its name.

        Raises:
            ModelError: If the file cannot be written.
        """
        with native_errors():
            text = self.native.manifest()
        if self.published:
            write_tables(beside(path), self.published)
        write_whole(path, text, ModelError)

    def keeping(
        self, bits: int, calibration: Given, *, max_memory: str | int | None = None, max_seconds: int | None = None
    ) -> Model:
        """The same network compiled for mode ``tabula`` with lookups that keep so many bits, as `compile` does.

        Args:
            bits: As `kept_bits` of `compile`.
            calibration: Typical samples, shape (n, *input shape): a model keeps none of its own.
            max_memory: As for `compile`.
            max_seconds: As for `compile`.

        Raises:
            InputError: If the samples do not fit the model's input.
            MisuseError: If lookups cannot keep so many bits.
            ModelError: If no ring holds a layer's range.
        """
        batch = batch_of(calibration, self.manifest.input, "calibration")
        limits = limits_document(max_memory, max_seconds)
        with native_errors(self.name):
            native = interruptible(lambda: self.native.keeping(bits, batch, limits["memory"], limits["seconds"]))
        return Model(native, self._reference, notes=self.notes)

    def predict_float(self, x: Given) -> NDArray[np.float32]:
        """The float reference's logits: onnxruntime's where the model was compiled here from ONNX, else native.

        Args:
            x: One sample, shape `manifest.input.shape`, or several, (n, *shape).

        Returns:
            Shape (n, outputs): the scores before a final softmax or sigmoid. Of a binary classifier of one score they
            are those of both classes, 0 and the score, unless its output is ``logits``. Several outputs follow one
            another, in the order of `manifest.outputs`.

        Raises:
            InputError: If the shape does not fit or a value is not finite.
        """
        batch = self._batch(x)
        return self._own_float(batch) if self._reference is None else self._reference.logits(batch)

    def _own_float(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """What `predict_float` returns without onnxruntime."""
        with native_errors():
            scores = interruptible(lambda: self.native.float(batch))
        return (scores / self._factors).astype(np.float32)

    def predict_fixed(self, x: Given) -> NDArray[np.float64]:
        """The logits of the exact fixed-point reference, which a secure prediction equals up to `secure_error`.

        Args:
            x: One sample, shape `manifest.input.shape`, or several, (n, *shape).

        Returns:
            Real numbers, shape (n, outputs) as `predict_float` has them: `reals` of `predict_integers`.

        Raises:
            InputError: If the shape does not fit, or a value is not finite or out of the range that the model accepts.
        """
        return self.reals(self.predict_integers(x)[0])

    def predict_probability(self, x: Given) -> NDArray[np.float64]:
        """The largest softmax probability of each sample's fixed-point logits.

        Of a model with output ``probability`` it is what every secure prediction gives, digit for digit: within
        ``10**-digits`` of the softmax, which other models' is but for floating point.

        Args:
            x: One sample, shape `manifest.input.shape`, or several, (n, *shape).

        Returns:
            Shape (n,); of one score the larger of its sigmoid and the rest.

        Raises:
            InputError: If the shape does not fit, or a value is not finite or out of the range that the model accepts.
            MisuseError: If the model has no classes of which one holds.
        """
        if self.manifest.output in ("labels", "label-map", "value"):
            raise MisuseError(f"a model with output {self.manifest.output} has no probability of one class")
        integers = self.predict_integers(x)[0]
        revealed = [self.probability_of(row) for row in integers]
        if None not in revealed:
            return np.array(revealed, np.float64)
        logits = self.reals(integers)
        if logits.shape[1] == 1:
            logits = np.pad(logits, ((0, 0), (1, 0)))
        probabilities: NDArray[np.float64] = 1.0 / np.exp(logits - logits.max(1, keepdims=True)).sum(1)
        return probabilities

    def probability_of(self, integers: ArrayLike) -> float | None:
        """The probability that a secure prediction gives for integer logits, shape (outputs,); None if it has none.

        Raises:
            InputError: If there are more or fewer logits than outputs.
        """
        with native_errors():
            return self.native.probability([int(integer) for integer in np.asarray(integers).tolist()])

    def reals(self, integers: NDArray[Any]) -> NDArray[np.float64]:
        """Integer logits, shape (n, outputs), of Python's own where they have more than 64 bits, as real numbers."""
        return integers.astype(np.float64) / (np.float64(self.logits_scale) * self._factors)

    @cached_property
    def _factors(self) -> NDArray[np.float64]:
        """What outputs are multiplied with inside the network: shape (outputs,) of several, else (1,)."""
        return np.array([output.factor for output in self.manifest.outputs for _ in range(output.size)] or [1.0])

    def predict_integers(self, x: Given) -> tuple[NDArray[np.int64], int]:
        """The fixed-point reference's integer logits, shape (n, outputs), and the number of overflows met.

        Logits of more than 64 bits, which mode ``spectral`` may have, come as an array of Python's integers.

        Raises:
            InputError: If the shape does not fit, or a value is not finite or out of the range that the model accepts.
        """
        integers, overflows, _ = self.predict_saturating(x)
        return integers, overflows

    def predict_saturating(self, x: Given) -> tuple[NDArray[np.int64], int, list[dict[str, int]]]:
        """As `predict_integers`, and for each sample where its values were beyond what the network has room for.

        That is, by the layer's name, how many values saturated or left their ring: where there are any, the result may
        be another than the model's. A client of a server does not learn it, since whether a hidden value saturates
        says something of it and of the weights; it learns one bit if the model is compiled with ``reveal_saturation``.

        Raises:
            InputError: If the shape does not fit, or a value is not finite or out of the range that the model accepts.
        """
        batch = self._batch(x)
        check_range(batch, self.manifest.input)
        with native_errors():
            integers, overflows, saturated = interruptible(lambda: self.native.fixed(batch))
        return integers, overflows, [_by_layer(counts) for counts in saturated]

    @property
    def logits_scale(self) -> float:
        """How many units of the integer logits make one: reals are integers divided by it."""
        return self.native.logits_scale

    @property
    def secure_error(self) -> int:
        """How far a secure integer logit may be from that of `predict_integers`: 0 where rounding is exact.

        Elsewhere it is the proved bound of the model's network, far above the usual difference. Its labels may differ
        where the two largest logits are at most twice as far apart.
        """
        return self.native.secure_error

    @cached_property
    def precision(self) -> Reached | None:
        """What was asked of the model and what it reaches on the calibration samples. The owner's alone."""
        return Reached.of_report(self.report()["precision"])

    def report(self) -> dict[str, Any]:
        """Per node the range, whether it is proved or calibrated, and the bits; what the mode leaks."""
        with native_errors():
            report: dict[str, Any] = json.loads(self.native.report())
        return report

    def debug(self, sample: Given, *, secure: bool = True) -> Divergence:
        """One sample layer by layer: float, fixed-point and both parties, in this process; see `lanner.divergence`.

        Args:
            sample: Shape `manifest.input.shape`.
            secure: Whether both parties compute it, too.

        Raises:
            InputError: If the sample does not fit the model.
        """
        batch = self._batch(sample)
        if len(batch) != 1:
            raise InputError(f"these are {len(batch)} samples", fix="give one")
        return diverge(self, batch[0], secure=secure)

    def estimate(
        self,
        link: str | Network = LOOPBACK,
        *,
        state_dir: str | Path | None = None,
        client: Machine = LIKE_THE_TABLES,
        server: Machine = LIKE_THE_TABLES,
        kernel_times: str | Path | KernelTimes | None = None,
    ) -> Estimate:
        """The cost of a session with one prediction over a network, before a run; see `lanner.estimate`.

        Args:
            link: ``loopback``, ``lan``, ``wan``, the path of a TOML file, or a `Network`.
            state_dir: Where this machine's kernel times are kept, which the first estimate measures; see
                `lanner.state`.
            client: The data owner's machine, where its cores are not those of the kernel times' machine, or its memory
                is bounded.
            server: The model owner's, likewise.
            kernel_times: Another table of kernel times; see `lanner.estimate`.
        """
        return estimate(
            self.manifest, link, state_dir=state_dir, client=client, server=server, kernel_times=kernel_times
        )

    def _batch(self, x: Given) -> NDArray[np.float32]:
        return batch_of(x, self.manifest.input)

    def __reduce__(self) -> NoReturn:
        raise MisuseError(
            "a model is not pickled: its weights would go wherever the pickle goes",
            fix="save it with `Model.save`, and load the file with `lanner.load` there",
        )

    def __repr__(self) -> str:
        entry = self.manifest
        return f"<lanner.Model {entry.name}: input {entry.input.shape}, mode {entry.mode}, output {entry.output}>"


@takes(CompileKeywords, OPTIONS)
def compile(  # noqa: A001 - the interface's name, used as lanner.compile
    model: object, calibration: Given, **options: Unpack[CompileKeywords]
) -> Model:
    """Compile an ONNX model to a fixed-point network and a plan of protocols.

    Args:
        model: A path, an ``onnx.ModelProto``, a ``torch.nn.Module``, or a fitted estimator of scikit-learn, XGBoost,
            LightGBM or CatBoost.
        calibration: Typical samples, shape (n, *input shape), or of a model with several inputs arrays by name; of a
            table also a pandas DataFrame, which gives its columns' names, too; of a model that reads texts a list of
            them. 32 or more are advised.

    Raises:
        MisuseError: If an option is wrong, or onnx is not installed.
        ModelError: If the model cannot be read, a layer's range is too wide for every parameter set, or `precision`,
            given or not, is missed and `allow_imprecise` is not set.
        UnsupportedOpError: If an operator, the mode or the output policy is not supported; `nodes` lists every reason.
        InputError: If the calibration samples do not fit the model's input.
    """
    calibration, reads_texts = _with_texts(model, options, calibration)
    image = options.get("image")
    description = ImageDescription.read(Path(image)) if isinstance(image, str | Path) else image
    options["image"], options["name"] = description, options.get("name") or _default_name(model)
    options.setdefault("network", NETWORK)
    if options.get("mode", "auto") == "auto":
        options["kernel_times"] = stored_times(options.get("kernel_times"), options.get("state_dir"))
    else:
        options.pop("kernel_times", None)
    CompileOptions(**options)
    model, words = _with_words(model, options, calibration)
    given = calibration_arrays(calibration, words or read_columns(options.get("columns")))
    frame = frame_of(options, given)
    if not frame.needs_table:
        frame = replace(frame, columns=stated_by(calibration))
    # Of a model of words these are what is published.
    options["public_preprocessing"] = bool(options.get("public_preprocessing")) and not words
    chosen = CompileOptions(**options)
    imported = _import(model, given, options.get("output"), frame)
    if _codes_columns(imported):
        # What scales and fills columns in is in the network, and stays secret.
        options["public_preprocessing"] = False
        chosen = CompileOptions(**options)
    chosen, given = _fit_texts(options, chosen, imported.named, given, only=reads_texts)
    _check_stated(options.get("input_range"), imported.named)
    samples = as_batch(given, input_of(imported), "calibration")
    measured = measure(imported, frame, samples)
    if measured is not frame:
        imported = _import(model, given, options.get("output"), measured)
    if description is not None:
        description.check_shape(imported.input_shape)
    _check_votes(imported, samples, chosen.name, imprecise=bool(options.get("allow_imprecise")))
    columns = _columns_of(imported, frame)
    document = chosen.document(
        imported.policy.output, imported.classes, imported.named, imported.outputs, columns, imported.places
    )
    check_ranges(options, imported.named)
    _check_graph(imported, chosen.name, document)
    tracer = options.get("tracer")
    traces = None if tracer is None else tracer.over(samples)
    tables = {f"public.{name}": table for name, table in published_tables(imported.named).items()}
    with native_errors(chosen.name):
        native = interruptible(
            lambda: _native.NativeModel.compile(
                imported.graph.document,
                imported.graph.tensors | tables,
                samples,
                document,
                options.get("progress"),
                traces,
            )
        )
    compiled = Model(native, reference_of(imported), notes=imported.policy.notes)
    _note_doubts(compiled, imported, samples, options.get("input_range"))
    return compiled


def _note_doubts(
    model: Model, imported: ImportedModel, samples: NDArray[np.float32], stated: tuple[float, float] | None
) -> None:
    """Note and warn where results may be less precise than was asked, or other than the file's."""
    told, sentence = model.report()["calibration"], None
    if stated is not None:
        sentence = sentence_on(samples, stated, told["inputs_made"])
    if (sentence := sentence or sentence_beside(told["inputs_given_up"])) is not None:
        model.notes = (*model.notes, sentence)
        if not told["inputs_made"]:
            warnings.warn(f"{model.name}: {sentence}", PrecisionWarning, stacklevel=3)
    if (sentence := _apart(model, imported, samples)) is not None:
        model.notes = (*model.notes, sentence)
        warnings.warn(f"{model.name}: {sentence}", PrecisionWarning, stacklevel=3)
    if imported.policy.supposed:
        imported.policy.check_scores(model.predict_float(samples))
    if model.precision is not None and (shortfall := model.precision.shortfall()) is not None:
        warnings.warn(f"{model.name}: {shortfall}", PrecisionWarning, stacklevel=3)


def _apart(model: Model, imported: ImportedModel, samples: NDArray[np.float32]) -> str | None:
    """What the owner should know where the float network is not the file's; None where it is, or none ran the file."""
    if model._reference is None:
        return None
    few = samples[:: max(1, -(-len(samples) // COMPARED))]
    try:
        theirs = model._reference.logits(few)
    except Exception:  # noqa: BLE001 - onnxruntime raises errors of many kinds
        return None
    return sentence_apart(imported.proto, model._own_float(few), theirs)


def load(
    path: str | Path,
    *,
    commitment: str | None = None,
    max_memory: str | int | None = None,
    max_seconds: int | None = None,
) -> Model:
    """Read a ``.lanner`` file.

    Args:
        path: The file.
        commitment: That of the one model that is accepted, 64 hexadecimal digits, if only one is.
        max_memory: As for `compile`.
        max_seconds: As for `compile`.

    Raises:
        ModelError: If the file cannot be read, is damaged, has another format version (both are named), or a prediction
            needs more than the limits, or if its commitment is another.
        MisuseError: If a limit or the commitment is not one.
    """
    if commitment is not None and not _COMMITMENT.fullmatch(commitment):
        raise MisuseError(
            f"{commitment!r} is not a model's commitment", where="commitment", fix="give 64 hexadecimal digits"
        )
    _check_compiled(Path(path))
    limits = limits_document(max_memory, max_seconds)
    with native_errors(str(path)):
        model = Model(_native.NativeModel.load(str(path), limits["memory"], limits["seconds"]))
    # It was computed of what was read, weights included, not of what the file says of itself.
    if commitment is not None and model.commitment != commitment.lower():
        raise ModelError(
            f"found the model with commitment {model.commitment}, expected {commitment.lower()}",
            where=str(path),
            fix="replace the file by the model that was expected, or expect this one",
        )
    return model


def as_model(given: object) -> Model:
    """A model that is given as it is, or as the path of its file, which is read within the usual limits.

    Raises:
        MisuseError: If it is neither.
        ModelError: As `load`.
    """
    if isinstance(given, Model):
        return given
    if isinstance(given, str | Path):
        return load(given)
    raise MisuseError(
        f"a {type(given).__name__} is not a compiled model",
        fix="give what compile or load returns, or a path",
    )


def _check_compiled(path: Path) -> None:
    """Refuse what is often given in place of a compiled model by its own name."""
    check_file(path, ModelError)
    check_exported(path)
    if path.suffix == ".onnx":
        raise ModelError(
            "this is an ONNX model, which must be compiled first", where=str(path), fix="see `lanner compile --help`"
        )
    try:
        with path.open("rb") as file:
            is_public_half = file.read(1) == b"{"
    except OSError as error:
        raise ModelError(f"cannot be read ({why(error)})", where=str(path), fix="check who may read it") from None
    if is_public_half:
        raise ModelError(
            "this is a model's public half, which has no weights", where=str(path), fix="give the .lanner file itself"
        )


def text_of(model: object, options: CompileKeywords) -> TextDescription | None:
    """How a text becomes the inputs of a model, or None where nobody says.

    Raises:
        MisuseError: If it is said wrongly, or the model is no ONNX model.
        ModelError: If the tokenizer or the model cannot be read.
    """
    given = options.get("text")
    if given is None or isinstance(given, TextDescription):
        return given
    require("onnx", "compiling")
    from lanner.onnx.frame import read_fixed
    from lanner.onnx.load import input_names

    return describe_texts(given, input_names(model, read_fixed(options.get("fix"))))


def _with_texts(model: object, options: CompileKeywords, calibration: Given) -> tuple[Given, bool]:
    """Read the tokenizer of the options; the calibration samples, of texts the arrays, and whether they were texts."""
    options["text"] = described = text_of(model, options)
    texts = None if described is None else texts_of(calibration)
    if described is None or texts is None:
        return calibration, False
    return described.cutting().arrays(texts, "calibration"), True


def _fit_texts(
    options: CompileKeywords, chosen: CompileOptions, named: Sequence[NamedInput], given: Arrays, *, only: bool
) -> tuple[CompileOptions, Arrays]:
    """The options with what the model reads of a text alone, and with `only` the arrays of that alone."""
    described = options.get("text")
    if not isinstance(described, TextDescription):
        return chosen, given
    options["text"] = described = _fitting(described, named)
    arrays = {name: given[name] for name in described.names} if only and isinstance(given, dict) else given
    return CompileOptions(**options), arrays


def _fitting(described: TextDescription, named: Sequence[NamedInput]) -> TextDescription:
    """How a text becomes the inputs that a model reads, where it has a row for each token.

    Raises:
        MisuseError: If they make others.
        ModelError: If a token has no row.
    """
    described = described.only([entry.name for entry in named])
    if {entry.name for entry in named} != set(described.names):
        held = ", ".join(entry.name for entry in named) or "numbers"
        raise MisuseError(f"the model has {held} as inputs, not tokens", where="text", fix="leave it out")
    largest = int(described.tokenizer["largest"])
    for entry in named:
        if math.prod(entry.shape) != described.length:
            raise MisuseError(
                f"input {entry.name} is {entry.shape}, and a text is {described.length} tokens",
                where="text",
                fix="give the length that the model has: ,length=N behind the tokenizer",
            )
        if entry.name == described.ids and entry.choices is not None and largest >= entry.choices:
            raise ModelError(
                f"the tokenizer has tokens up to {largest}, and {entry.name} is looked up in {entry.choices} rows",
                where="text",
                fix="give the tokenizer that the model was trained with",
            )
    return described


def _with_words(model: object, options: CompileKeywords, calibration: Given) -> tuple[object, tuple[StatedColumn, ...]]:
    """A model, of a pipeline that reads words the file that is made of it; and the columns of a model of words.

    Raises:
        MisuseError: If its converter is not installed, or it is a model that cannot read words.
        ModelError: If it cannot be exported.
        UnsupportedOpError: If something else than encoders reads words.
    """
    if not is_installed("onnx"):
        return model, ()
    from lanner.onnx.estimators import export_pipeline, has_words, package_of
    from lanner.onnx.frame import read_fixed
    from lanner.onnx.words import words_in

    if package_of(model) is not None and has_words(calibration):
        model = export_pipeline(model, calibration)
    words = words_in(model, read_fixed(options.get("fix")))
    return model, () if words is None else words.columns


def calibration_arrays(calibration: Given, stated: Sequence[StatedColumn] = ()) -> Arrays:
    """Calibration samples as float32; where columns are stated, also of objects and of columns by name.

    Raises:
        InputError: If they are no numbers.
    """
    columns = stated or stated_by(calibration)
    rows = read_objects(calibration, columns, "x", "calibration", notes := Notes()) if columns else None
    if rows is not None:
        notes.warn(stacklevel=3)
        return to_float32(rows, "calibration", missing=True)
    if isinstance(calibration, Mapping):
        return {name: to_float32(values, f"calibration, {name}", missing=True) for name, values in calibration.items()}
    return to_float32(calibration, "calibration", missing=True)


def frame_of(options: CompileKeywords, samples: Arrays) -> Frame:
    """What the options say of the file's sizes, inputs and outputs, and what the samples do.

    Raises:
        MisuseError: If an option is not written as it must be.
    """
    require("onnx", "compiling")
    from lanner.onnx import Frame
    from lanner.onnx.published import read_published

    frame = Frame.of(
        options.get("shape"),
        options.get("fix"),
        options.get("output_name"),
        options.get("columns"),
        publishes_words=bool(options.get("public_preprocessing")),
    )
    if isinstance(described := options.get("text"), TextDescription):
        frame = replace(frame, sizes=described.sizes | dict(frame.sizes))
    published = read_published(options.get("public_embeddings"))
    frame = replace(frame, published=published, classes=len(options.get("classes") or ()))
    by_name = dict(samples) if isinstance(samples, dict) else {"": samples}
    # A file of one input may call it so, whatever the model does.
    by_name |= {"": by_name["x"]} if "x" in by_name else {}
    shapes = {name: values.shape for name, values in by_name.items()}
    ranged = options.get("input_range") is not None
    most = {name: largest(values) for name, values in by_name.items()}
    return replace(frame, ranged=ranged, samples=shapes, largest=most, arrays=by_name)


def _check_stated(stated: tuple[float, float] | None, named: Sequence[NamedInput]) -> None:
    """Check that a range may be stated for inputs of which some are indices, which are zeros and ones to the network.

    Raises:
        MisuseError: If there is nothing else, or these are outside.
    """
    indices = [entry for entry in named if entry.choices is not None]
    if stated is None or not indices:
        return
    shown = ", ".join(f"{entry.name} of {entry.choices} choices" for entry in indices)
    if len(indices) == len(named):
        what, fix = f"the model has no numbers as inputs, only {shown}", "leave it out"
    elif not stated[0] <= 0 < 1 <= stated[1]:
        what = f"[{stated[0]:g}, {stated[1]:g}] has no room for the 0 and 1 that {shown} is made of"
        fix = "leave it out, so that each input has the range of its samples, or state a wider one"
    else:
        return
    raise MisuseError(what, where=option_named("input_range"), fix=fix)


def _columns_of(imported: ImportedModel, frame: Frame) -> list[str]:
    """The names of a row's numbers, where no tree reads them; none where a data frame has categories."""
    columns = frame.columns
    is_row = not imported.named and imported.input_shape == (len(columns),)
    if not is_row or any(column.categories is not None for column in columns):
        return []
    where = option_named("columns") if frame.needs_table else "calibration"
    return [column.name for column in check_stated(columns, where)]


def _codes_columns(imported: ImportedModel) -> bool:
    """Whether the input is a row whose columns have codes of their own, though no tree reads it."""
    columns = [column for entry in imported.named for column in entry.columns or ()]
    return any(column.coding is not Coding.CODE for column in columns)


def input_of(imported: ImportedModel) -> InputDescription:
    """What an imported model expects, before anything of ranges is known."""
    return InputDescription(imported.input_name, imported.input_shape, named=imported.named)


def _import(model: object, samples: Arrays, output: str | None, frame: Frame) -> ImportedModel:
    from lanner.onnx import export_torch, import_model
    from lanner.onnx.estimators import export_estimator, package_of

    if package_of(model) is not None:
        if isinstance(samples, dict):
            fix = "give rows of shape (n, columns)"
            raise MisuseError("an estimator reads one array of rows", where="calibration", fix=fix)
        return import_model(export_estimator(model, samples), output, frame)
    if any(f"{kind.__module__}.{kind.__name__}" == _TORCH_MODULE for kind in type(model).__mro__):
        arrays = samples if isinstance(samples, dict) else {"input": samples}
        shape = next((values.shape for values in arrays.values() if values.ndim < 2), None)
        if shape is not None:
            raise InputError(
                f"the shape is {shape}",
                where="calibration",
                fix="give several samples, so that the sample's shape is known",
            )
        return import_model(export_torch(model, {name: values[:1] for name, values in arrays.items()}), output, frame)
    return import_model(model, output, frame)


def _check_votes(imported: ImportedModel, samples: NDArray[np.float32], name: str, *, imprecise: bool) -> None:
    """Check that nearest neighbours elect the file's classes on the samples; warn where that may be missed."""
    if (others := outvoted(imported, samples)) == 0:
        return
    what = (
        f"{others} of {len(samples)} calibration samples get other labels than in the file: several rows tie as last "
        "neighbour, and lanner counts them all"
    )
    if not imprecise:
        fix = spelled("remove rows that are equal but for their labels, or pass ⟦allow_imprecise⟧")
        raise ModelError(what, where=name, fix=fix)
    warnings.warn(f"{name}: {what}", PrecisionWarning, stacklevel=3)


def _check_graph(imported: ImportedModel, name: str, options: str) -> None:
    """Refuse what no sample could change, with every reason, before samples are run."""
    from lanner.onnx import check_graph

    with native_errors(name):
        error = check_graph(imported.graph, options).error()
    if error is not None:
        raise error


def _default_name(model: object) -> str:
    if isinstance(model, str | Path):
        return Path(model).stem
    graph = getattr(model, "graph", None)
    if graph is None and hasattr(model, "fit"):
        return type(model).__name__
    return getattr(graph, "name", "") or "model"


#: The network between the parties that a model is compiled for where none is given.
NETWORK = "lan"

_TORCH_MODULE = "torch.nn.modules.module.Module"


def _by_layer(counts: list[tuple[str, int]]) -> dict[str, int]:
    """Counts by name; those of a layer's several nodes add up."""
    found: dict[str, int] = {}
    for name, count in counts:
        found[name] = found.get(name, 0) + count
    return found
