"""A compiled model: what `compile` makes of an ONNX file, `save` writes and `load` reads."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanner import _native
from lanner.capacity import LIKE_THE_TABLES, Machine
from lanner.coverage import sentence_on
from lanner.divergence import Divergence, diverge
from lanner.errors import InputError, MisuseError, ModelError, native_errors
from lanner.estimate import Estimate, estimate
from lanner.extras import require
from lanner.files import check_file, check_target, place_of, why, write_whole
from lanner.images import ImageDescription
from lanner.inputs import as_batch, check_range, to_float32
from lanner.interrupts import interruptible
from lanner.kernel_times import KernelTimes, stored_times
from lanner.limits import limits_document
from lanner.manifest import InputDescription, Manifest
from lanner.network import LOOPBACK, Network, read_network
from lanner.options import CompileOptions
from lanner.precision import PrecisionWarning, Reached, check_kept_bits
from lanner.reference import OnnxReference, reference_of
from lanner.tracing import Tracer

if TYPE_CHECKING:
    from lanner.onnx import ImportedModel

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
        return Manifest.parse(self.native.manifest())

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

        Raises:
            ModelError: If the file cannot be written.
        """
        with native_errors():
            text = self.native.manifest()
        write_whole(path, text, ModelError)

    def keeping(
        self, bits: int, calibration: ArrayLike, *, max_memory: str | int | None = None, max_seconds: int | None = None
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
        check_kept_bits(bits)
        batch = as_batch(to_float32(calibration, "calibration"), self.manifest.input, "calibration")
        limits = limits_document(max_memory, max_seconds)
        with native_errors(self.name):
            native = interruptible(lambda: self.native.keeping(bits, batch, limits["memory"], limits["seconds"]))
        return Model(native, self._reference, notes=self.notes)

    def predict_float(self, x: ArrayLike) -> NDArray[np.float32]:
        """The float reference's logits: onnxruntime's where the model was compiled here from ONNX, else native.

        Args:
            x: One sample, shape `manifest.input.shape`, or several, (n, *shape).

        Returns:
            Shape (n, outputs): the scores before a final softmax or sigmoid. Of a binary classifier of one score they
            are those of both classes, 0 and the score, unless its output is ``logits``.

        Raises:
            InputError: If the shape does not fit or a value is not finite.
        """
        batch = self._batch(x)
        if self._reference is not None:
            return self._reference.logits(batch)
        with native_errors():
            return interruptible(lambda: self.native.float(batch))

    def predict_fixed(self, x: ArrayLike) -> NDArray[np.float64]:
        """The logits of the exact fixed-point reference, which a secure prediction equals up to `secure_error`.

        Args:
            x: One sample, shape `manifest.input.shape`, or several, (n, *shape).

        Returns:
            Real numbers, shape (n, outputs) as `predict_float` has them: the integers of `predict_integers` over
            `logits_scale`.

        Raises:
            InputError: If the shape does not fit, or a value is not finite or out of the range that the model accepts.
        """
        return self._reals(self.predict_integers(x)[0])

    def predict_probability(self, x: ArrayLike) -> NDArray[np.float64]:
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
        if self.manifest.output in ("labels", "value"):
            raise MisuseError(f"a model with output {self.manifest.output} has no probability of one class")
        integers = self.predict_integers(x)[0]
        revealed = [self.probability_of(row) for row in integers]
        if None not in revealed:
            return np.array(revealed, np.float64)
        logits = self._reals(integers)
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

    def _reals(self, integers: NDArray[Any]) -> NDArray[np.float64]:
        """Integer logits, of Python's own where they have more than 64 bits, as real numbers."""
        return integers.astype(np.float64) / np.float64(self.logits_scale)

    def predict_integers(self, x: ArrayLike) -> tuple[NDArray[np.int64], int]:
        """The fixed-point reference's integer logits, shape (n, outputs), and the number of overflows met.

        Logits of more than 64 bits, which mode ``spectral`` may have, come as an array of Python's integers.

        Raises:
            InputError: If the shape does not fit, or a value is not finite or out of the range that the model accepts.
        """
        integers, overflows, _ = self.predict_saturating(x)
        return integers, overflows

    def predict_saturating(self, x: ArrayLike) -> tuple[NDArray[np.int64], int, list[dict[str, int]]]:
        """As `predict_integers`, and for each sample where its values were beyond what the network has room for.

        That is, by the layer's name, how many values saturated or left their ring: where there are any, the result may
        be another than the model's. A prediction tells its client nothing of it, since whether a hidden value saturates
        says something of it and of the weights, or one bit where the model is compiled with ``reveal_saturation``.

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

    def debug(self, sample: ArrayLike, *, secure: bool = True) -> Divergence:
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
        """What a session with one prediction takes over a network, before a run; see `lanner.estimate`.

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

    def _batch(self, x: ArrayLike) -> NDArray[np.float32]:
        return as_batch(to_float32(x), self.manifest.input)

    def __repr__(self) -> str:
        entry = self.manifest
        return f"<lanner.Model {entry.name}: input {entry.input.shape}, mode {entry.mode}, output {entry.output}>"


def compile(  # noqa: A001 - the interface's name, used as lanner.compile
    model: object,
    calibration: ArrayLike,
    *,
    mode: str = "auto",
    output: str | None = None,
    output_name: str | None = None,
    k: int = 1,
    digits: int | None = None,
    classes: Sequence[str] | None = None,
    image: ImageDescription | str | Path | None = None,
    name: str | None = None,
    rounding: str | None = None,
    input_range: tuple[float, float] | None = None,
    public_preprocessing: bool = False,
    precision: str | int | None = None,
    kept_bits: int | None = None,
    allow_imprecise: bool = False,
    replace_relu: bool = False,
    reveal_saturation: bool = False,
    proved_ranges: bool = False,
    batch: int = 1,
    max_memory: str | int | None = None,
    max_seconds: int | None = None,
    optimize: str | None = None,
    network: str | Network = "lan",
    state_dir: str | Path | None = None,
    kernel_times: str | Path | KernelTimes | None = None,
    progress: Callable[[str], None] | None = None,
    tracer: Tracer | None = None,
) -> Model:
    """Compile an ONNX model to a fixed-point network and a plan of protocols.

    Args:
        model: A path, an ``onnx.ModelProto``, or a ``torch.nn.Module``.
        calibration: Typical samples, shape (n, *input shape); 32 or more are advised.
        mode: One of gazelle, falcon, cheetah, tabula, spectral, auto. In ``auto`` the planner compares all of them, and
            mixtures in which each layer follows another, by what a prediction takes over `network`, and takes the best
            for `optimize`; results are exact. Mode ``spectral`` takes networks of sums and products alone, such as
            those with squares for activations.
        output: What the client learns: label, probability, top-k, logits or value. Where it is not given, the label; of
            a network of one score without a sigmoid at its end, a regression, the value; of a map, as a segmentation
            gives, and of as many numbers as the input has, as an autoencoder gives, the values. Of a final sigmoid over
            several scores ``label`` is the list of the labels whose scores are above 0. ``logits`` are the scores
            before a final softmax or sigmoid.
        output_name: Which of the file's outputs is computed, where there are several. The scores of a classifier that
            has its label beside them, as scikit-learn's, need not be named.
        k: How many classes ``top-k`` reveals.
        digits: How many decimal digits ``probability`` reveals, 1 to 6, or 2 without it. The probability is that of a
            softmax after the logits, whether the model ends in one or not. A ``value`` that a layer or a product makes
            is rounded to so many, inside the protocol; without it, it is told as it is.
        classes: Names of the classes, one for each; those in the file where they are not given. One score has two
            classes.
        image: How a PNG or JPEG becomes an input: a description, or the path of its TOML file.
        name: The name on the server; the file's name without its suffix where it is not given.
        rounding: exact, which is the default, or faithful for mode ``cheetah``, or stochastic for mode ``tabula``;
            either takes fewer bytes, goes with output ``label`` alone, and tells a client that repeats a query more
            than its label; see SECURITY.md.
        input_range: The smallest and the largest value that an input may have, 0 between them; (0, 1) for pixels. Where
            the samples cover less than a quarter of it, inputs of the compiler's own making join them, and
            `Model.notes` says so, with a `PrecisionWarning` where there is no room for these. Where no range is given,
            twice the range of the calibration samples is accepted, and the client learns it to the next step of
            2^(1/8); of features that differ much in size, of each the range to a power of two and the middle to a
            quarter of the range.
        public_preprocessing: Whether the constants in front of the first layer, such as the means and scales of a
            scaler, are published exactly, for the client to apply in floating point.
        precision: What scores may be off by on the calibration samples, as a percentage of the range of their sample's
            scores (``"0.5%"``): the fewest bits that reach it are taken. Or bits of all activations (12). Where it is
            not given, it is 0.5%, or 20% for ``logits`` of mode ``spectral``, where all bits are used that the cheapest
            plaintext moduli have room for. ``model.precision`` tells what is reached.
        kept_bits: For mode ``tabula``, the bits that each of its lookups keeps of a value, 3 to 16, its sign and room
            for twice the calibrated range among them: preparation takes about half as long with each bit less. Inputs
            and weights then have 8 bits or, if those are more, as many, unless `precision` is given, too. `lanner
            evaluate --bits` tells what accuracy is left.
        allow_imprecise: Take the network with the most bits, with a `PrecisionWarning`, where `precision` is missed.
        replace_relu: For mode ``spectral``, put the quadratic that fits it best on the calibration samples, a square
            between layers, in the place of every ReLU. `predict_float` remains the network with its ReLUs.
        reveal_saturation: For outputs ``logits`` and ``value``, let the client learn in one bit beside the result
            whether any activation reached an upper bound of the compiler's own (`Prediction.saturated`): where none
            did, the result is the one that calibration vouches for. A client that asks about many inputs learns more
            of the weights from it. Refused where nothing can saturate, and where some sums are not proved to fit.
        proved_ranges: Let no accepted input take a value out of its ring: every result is right or saturated, and a
            network for which no rings prove that is refused. Modes ``gazelle``, ``falcon`` and ``tabula`` do so as far
            as rings have room; in modes ``cheetah`` and ``auto`` it takes larger rings and upper bounds, and a
            prediction more bytes.
        batch: For modes ``gazelle``, ``cheetah``, ``auto`` and ``spectral``, how many samples a request holds, packed
            into the same ciphertexts: a power of two. Places that a request leaves empty hold zeros, and take as long.
        max_memory: Bytes that either party may hold for a session with one prediction, the server's model included, as
            a number or as ``"12GB"``; 8 GiB where it is not given. What takes more is refused. Clients and `load` have
            limits of their own.
        max_seconds: Seconds that both parties together may compute on one core, very roughly; 1800 where it is not
            given.
        optimize: For mode ``auto``, what is to be least: ``latency``, the seconds of a prediction, offline and online,
            with its share of the set-up in a session of 16, as where it is not given; ``online``, the seconds from the
            input to the result; ``bytes`` of a prediction, with its share; or ``memory``, what both parties hold.
        network: For mode ``auto``, the network between the parties: ``loopback``, ``lan``, ``wan``, a TOML file, or a
            `Network`.
        state_dir: Where this machine's table of kernel times is, for mode ``auto``: the one that ``lanner doctor
            --calibrate`` left, else that of an earlier estimate. Without either the package's is used: compiling
            measures nothing, and one table gives one plan. The model's owner finds in `Model.report` which it was.
        kernel_times: For mode ``auto``, another table; see `lanner.estimate`.
        progress: Hears the name of each stage as it begins.
        tracer: What runs the networks that are tried on the calibration samples, such as `lanner.ray.Tracer`; this
            machine's cores where it is None.

    Raises:
        MisuseError: If an option is wrong, or onnx is not installed.
        ModelError: If the model cannot be read, a layer's range is too wide for every parameter set, or `precision`,
            given or not, is missed and `allow_imprecise` is not set.
        UnsupportedOpError: If an operator, the mode or the output policy is not supported; `nodes` lists every reason.
        InputError: If the calibration samples do not fit the model's input.
    """
    description = ImageDescription.read(Path(image)) if isinstance(image, str | Path) else image
    options = CompileOptions(
        name or _default_name(model),
        mode,
        output,
        k,
        digits,
        classes,
        description,
        rounding,
        input_range,
        public_preprocessing,
        precision,
        kept_bits,
        allow_imprecise,
        replace_relu,
        reveal_saturation,
        proved_ranges,
        batch,
        max_memory,
        max_seconds,
        optimize,
        network if isinstance(network, Network) else read_network(network),
        stored_times(kernel_times, state_dir).text if mode == "auto" else None,
    )
    samples = to_float32(calibration, "calibration")
    imported = _import(model, samples, output, output_name)
    entry = InputDescription(imported.input_name, imported.input_shape)
    samples = as_batch(samples, entry, "calibration")
    if description is not None:
        description.check_shape(imported.input_shape)
    options = options.for_end(imported.policy, int(np.prod(imported.graph.output_shape)), imported.classes)
    _check_graph(imported, options)
    traces = None if tracer is None else tracer.over(samples)
    with native_errors(options.name):
        native = interruptible(
            lambda: _native.NativeModel.compile(
                imported.graph.document, imported.graph.tensors, samples, options.document(), progress, traces
            )
        )
    compiled = Model(native, reference_of(imported), notes=imported.policy.notes)
    if options.input_range is not None:
        made = compiled.report()["calibration"]["inputs_made"]
        if (sentence := sentence_on(samples, options.input_range, made)) is not None:
            compiled.notes = (*compiled.notes, sentence)
            if not made:
                warnings.warn(f"{compiled.name}: {sentence}", PrecisionWarning, stacklevel=2)
    if imported.policy.supposed:
        imported.policy.check_scores(compiled.predict_float(samples))
    if compiled.precision is not None and (shortfall := compiled.precision.shortfall()) is not None:
        warnings.warn(f"{compiled.name}: {shortfall}", PrecisionWarning, stacklevel=2)
    return compiled


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
            takes more than the limits, or if its commitment is another.
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
        f"a {type(given).__name__} is no compiled model",
        fix="give what compile or load returns, or a path",
    )


def _check_compiled(path: Path) -> None:
    """Refuse what is often given in place of a compiled model by its own name."""
    check_file(path, ModelError)
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


def _import(model: object, samples: NDArray[np.float32], output: str | None, output_name: str | None) -> ImportedModel:
    require("onnx", "compiling")
    from lanner.onnx import export_torch, import_model

    if any(f"{kind.__module__}.{kind.__name__}" == _TORCH_MODULE for kind in type(model).__mro__):
        if samples.ndim < 2:
            raise InputError(
                f"the shape is {samples.shape}",
                where="calibration",
                fix="give several samples, so that the sample's shape is known",
            )
        return import_model(export_torch(model, samples[:1]), output, output_name)
    return import_model(model, output, output_name)


def _check_graph(imported: ImportedModel, options: CompileOptions) -> None:
    """Refuse what no sample could change, with every reason, before samples are run."""
    from lanner.onnx import check_graph

    with native_errors(options.name):
        error = check_graph(imported.graph, options.document()).error()
    if error is not None:
        raise error


def _default_name(model: object) -> str:
    if isinstance(model, str | Path):
        return Path(model).stem
    graph = getattr(model, "graph", None)
    return getattr(graph, "name", "") or "model"


_TORCH_MODULE = "torch.nn.modules.module.Module"


def _by_layer(counts: list[tuple[str, int]]) -> dict[str, int]:
    """Counts by name; those of a layer's several nodes add up."""
    found: dict[str, int] = {}
    for name, count in counts:
        found[name] = found.get(name, 0) + count
    return found
