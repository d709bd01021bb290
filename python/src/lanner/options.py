"""The choices of a model's owner: the mode, what the client learns, and everything else that `lanner.compile` is asked.

Each is declared here and nowhere else in Python; the native compiler checks what is chosen.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

from numpy.typing import ArrayLike

from lanner import _native
from lanner.errors import native_errors
from lanner.images import ImageDescription
from lanner.kernel_times import KernelTimes, stored_times
from lanner.limits import DEFAULT_MEMORY, DEFAULT_SECONDS, limits_document, parse_bytes
from lanner.named import NamedInput, NamedOutput, range_of
from lanner.network import LOOPBACK, Network, read_network
from lanner.option import Flag, Option, declared, document_of
from lanner.precision import DEFAULT, DEFAULT_WITHOUT_RESCALES, KEPT_BITS
from lanner.texts import TextChoice, TextDescription
from lanner.tracing import Tracer

_MODES: list[dict[str, Any]] = json.loads(_native.modes())

#: All modes; ``spectral`` takes networks of sums and products alone, and ``hardened`` those of layers, sums and ReLUs.
MODES: tuple[str, ...] = tuple(mode["name"] for mode in _MODES)

#: Modes that take every network. In ``auto`` the planner chooses, for the whole and for each layer.
INTERACTIVE_MODES: tuple[str, ...] = tuple(mode["name"] for mode in _MODES if mode["interactive"])

#: Modes whose requests may hold several samples, packed into the same ciphertexts.
PACKING_MODES: tuple[str, ...] = tuple(mode["name"] for mode in _MODES if mode["packing"])

#: Modes that look up what they rescale, so that `kept_bits` says how much of it.
LOOKUP_MODES: tuple[str, ...] = tuple(mode["name"] for mode in _MODES if mode["lookups"])

#: How values are rescaled: of mode cheetah exactly or faithfully, of mode tabula exactly or stochastically.
ROUNDINGS: tuple[str, ...] = tuple(dict.fromkeys(rounding for mode in _MODES for rounding in mode["roundings"]))

#: Output policies that an owner can choose. Of labels that do not exclude each other ``label`` is ``labels``.
OUTPUTS = ("label", "probability", "top-k", "logits", "value")

#: Whom a model can be compiled against.
AGAINST = ("cheating-clients",)

#: What mode ``auto`` can be asked for the least of: seconds of a prediction, its share of the set-up included, in a
#: session of 16; seconds from the input to the result; bytes of a prediction, with its share; memory of both parties.
OBJECTIVES = ("latency", "online", "bytes", "memory")


def read_range(text: str) -> tuple[float, float]:
    """Read ``LOW,HIGH``.

    Raises:
        ArgumentTypeError: If the text is no such thing.
    """
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not LOW,HIGH, as 0,1 is") from None
    return low, high


class CompileKeywords(TypedDict, total=False):
    """The options of `lanner.compile`, each with its type and its descriptions."""

    mode: Annotated[
        str,
        Option(
            "One of gazelle, falcon, cheetah, tabula, spectral, hardened, auto. In ``auto`` the planner compares "
            "the cost of a prediction over `network` in all modes but ``hardened``, and in mixtures that choose a "
            "mode for each layer. It chooses the best for `optimize`; results are exact. Mode ``spectral`` accepts "
            "networks of sums and products only, such as those with squares as activations. Mode ``hardened`` "
            "protects the weights from clients that cheat, and accepts layers, sums, pools and ReLUs; ``auto`` "
            "chooses it where `against` asks for it.",
            default="auto",
            flag=Flag(
                "the protocols (default: auto, which chooses the best protocol for each layer)",
                choices=MODES,
            ),
        ),
    ]
    against: Annotated[
        str | None,
        Option(
            "``cheating-clients``, and clients may send whatever they like: mode ``auto`` is ``hardened`` then, other "
            "modes are refused, and so is a network that ``hardened`` does not take. Where it is not given, clients "
            "are trusted to follow the protocol, but in mode ``hardened``.",
            flag=Flag(
                "protect the weights from clients that cheat: mode auto becomes hardened; other modes, and models that "
                "hardened cannot run, are rejected",
                choices=AGAINST,
            ),
        ),
    ]
    rounding: Annotated[
        str | None,
        Option(
            "exact, which is the default, or faithful for mode ``cheetah``, or stochastic for mode ``tabula``. The "
            "last two send fewer bytes, require output ``label``, and reveal more than the label to a client that "
            "repeats a query; see SECURITY.md.",
            flag=Flag(
                "how values are rescaled (default: exact). faithful (mode cheetah) and stochastic (mode tabula) send"
                " fewer bytes, require --output label, and reveal more of the weights to a client that repeats a "
                "query",
                choices=ROUNDINGS,
            ),
        ),
    ]
    output: Annotated[
        str | None,
        Option(
            "What the client learns: label, probability, top-k, logits or value. Where it is not given, the label; of "
            "a network of one score without a sigmoid at its end, a regression, the value; of a map, as a segmentation "
            "gives, and of as many numbers as the input has, as an autoencoder gives, the values. Of a final sigmoid "
            "over several scores ``label`` is the list of the labels whose scores are above 0. ``logits`` are the "
            "scores before a final softmax or sigmoid.",
            flag=Flag(
                "what the client learns (default: label; value for a regression, a map, or as many numbers as the "
                "input has)",
                choices=OUTPUTS,
            ),
        ),
    ]
    output_name: Annotated[
        str | Sequence[str] | None,
        Option(
            "Which of the file's outputs is computed, where there are several. The scores of a classifier that has its "
            "label beside them, as scikit-learn's, need not be named. Several, as names with commas between them, go "
            "with output ``value``, and `Prediction.values` has those of each by its name.",
            flag=Flag(
                "which of the file's outputs to compute; with --output value several, as in a,b",
                metavar="NAME[,NAME]",
            ),
            at=None,
        ),
    ]
    shape: Annotated[
        str | Mapping[str, int | Sequence[int]] | None,
        Option(
            'Sizes that the file leaves open: of an input\'s axes, ``{"x": (1, 3, 320, 320)}`` or '
            '``"x=1x3x320x320"``, or of axes by their names, ``{"height": 320}`` or ``"height=320,width=320"``.',
            flag=Flag(
                "sizes that the file leaves open: of an input, NAME=1x3x320x320, or of named axes, "
                "height=320,width=320",
                metavar="NAME=SIZES",
            ),
            at=None,
        ),
    ]
    fix: Annotated[
        str | Sequence[str] | Mapping[str, ArrayLike] | None,
        Option(
            "Inputs of the file that are the owner's constants, such as a sample rate or a layer's first state: "
            '``{"sr": 16000}``. One number is that of every element.',
            flag=Flag(
                "an input that is a constant of the owner, as in sr=16000 or state=F.npy; may be repeated",
                metavar="NAME=VALUE|F.npy",
                repeated=True,
            ),
            at=None,
        ),
    ]
    columns: Annotated[
        str | Path | Sequence[str | Mapping[str, object]] | None,
        Option(
            'The columns of the table that a model reads, in its order: names, ``"age,sex"`` or a list, '
            'objects ``{"name": "sex", "missing": True, "categories": ["no", "yes"]}``, or the path of a ``.csv`` file '
            "with a header or of a ``.json`` file with such a list. Clients may give columns by name, in any order, a "
            "missing number where `missing` is set or a sample lacks one, and of `categories` the words for 0, 1, "
            "and so on; both go with trees alone. A pandas DataFrame as `calibration` gives its names by itself. "
            "Clients learn all of it.",
            flag=Flag(
                "names of a table's columns, in the order of the input: a,b,c, a .csv file with a header, or a .json"
                " list that also says which columns may be missing and what their numbers mean; clients learn them",
                metavar="NAMES|FILE",
            ),
            at=None,
        ),
    ]
    k: Annotated[
        int,
        Option(
            "How many classes ``top-k`` reveals.",
            default=1,
            flag=Flag(
                "number of classes that top-k reveals (default: 1)",
                metavar="K",
                type=int,
                outputs=("top-k",),
            ),
        ),
    ]
    digits: Annotated[
        int | None,
        Option(
            "How many decimal digits ``probability`` reveals, 1 to 6, or 2 without it. The probability is that of a "
            "softmax after the logits, whether the model ends in one or not. A ``value`` that a layer or a product "
            "makes is rounded to so many, inside the protocol; without it, the client gets it unrounded.",
            flag=Flag(
                "decimal digits of a probability, 1 to 6 (default: 2), or of a value (default: all)",
                metavar="L",
                type=int,
                outputs=("probability", "value"),
            ),
        ),
    ]
    input_range: Annotated[
        tuple[float, float] | None,
        Option(
            "The smallest and the largest value that an input may have, 0 between them; (0, 1) for pixels. Where the "
            "samples cover less than a quarter of it, inputs of the compiler's own making join them, and `Model.notes` "
            "says so, with a `PrecisionWarning` where there is no room for these. Where no range is given, twice the "
            "range of the calibration samples is accepted, and the client learns it to the next step of 2^(1/8); of "
            "features that differ much in size, of each the range to a power of two and the middle to a quarter of the "
            "range.",
            flag=Flag(
                "smallest and largest accepted input value, as in --input-range=0,1 (default: twice the calibrated "
                "range, rounded up; if columns differ in magnitude, a range for each column)",
                metavar="LOW,HIGH",
                type=read_range,
            ),
            written=_range,
        ),
    ]
    public_preprocessing: Annotated[
        bool,
        Option(
            "Whether the constants in front of the first layer, such as the means and scales of a scaler, are "
            "published exactly, for the client to apply in floating point. Of a model that reads words, the words of "
            "its encoders are published, and no constant is.",
            default=False,
            flag=Flag(
                "publish the constants in front of the first layer (a scaler's means and scales), or the words of "
                "encoders; the client applies them. Not with --input-range",
            ),
        ),
    ]
    public_embeddings: Annotated[
        bool | str | Sequence[str] | None,
        Option(
            "Publish tables of embeddings, for the client to look its indices up by itself: it sends no row of zeros "
            "with a one, and there is no product of the vocabulary's size. True, or ``all``, publishes each table that "
            "nothing else reads, and refuses one that something does; names of tables, as the file has them, publish "
            "those, whatever else reads them. Anybody may have a published table.",
            flag=Flag(
                "publish embedding tables, which clients then look up themselves: all, or the tables of these names "
                "in the file; all excludes tables with another use",
                metavar="all|TABLE[,TABLE]",
            ),
            at=None,
        ),
    ]
    precision: Annotated[
        str | int | None,
        Option(
            "The largest error of a score on the calibration samples, as a percentage of the range of its sample's "
            'scores (``"0.5%"``); the compiler chooses the fewest bits that reach it. Or bits of all activations (12). '
            "The default is 0.5%, or 20% for ``logits`` of mode ``spectral``, where the compiler uses all bits that "
            "the cheapest plaintext moduli have room for. ``model.precision`` has what is reached.",
            flag=Flag(
                "largest error of a score on the calibration samples, as a percentage of the scores' range, or the "
                f"bits of all activations, as in --precision 12 (default: {DEFAULT}%; for logits in mode spectral "
                f"{DEFAULT_WITHOUT_RESCALES}%)",
                metavar="P",
            ),
        ),
    ]
    kept_bits: Annotated[
        int | None,
        Option(
            "For mode ``tabula``, the bits that each of its lookups keeps of a value, 3 to 16, including its sign and "
            "room for twice the calibrated range. Each bit less halves the preparation, about. Inputs and weights then "
            "have as many bits, and 8 at least, unless `precision` is given, too. `lanner evaluate --bits` measures "
            "the accuracy that is left.",
            flag=Flag(
                f"mode tabula: bits of a value that each lookup keeps, {KEPT_BITS[0]} to {KEPT_BITS[1]}; each bit "
                "less halves the preparation, and `lanner evaluate --bits` measures the accuracy (default: as "
                "--precision requires)",
                metavar="K",
                type=int,
            ),
        ),
    ]
    allow_imprecise: Annotated[
        bool,
        Option(
            "Take the network with the most bits, with a `PrecisionWarning`, where `precision` is missed.",
            default=False,
            flag=Flag(
                "if no network reaches --precision, compile the one with the most bits instead of failing",
            ),
        ),
    ]
    replace_relu: Annotated[
        bool,
        Option(
            "For mode ``spectral``, put the quadratic that fits it best on the calibration samples, a square between "
            "layers, in the place of every ReLU. `predict_float` remains the network with its ReLUs.",
            default=False,
            flag=Flag(
                "mode spectral: replace every ReLU by the quadratic that fits the calibration samples best",
            ),
        ),
    ]
    proved_ranges: Annotated[
        bool,
        Option(
            "Prove that no accepted input overflows a ring, so that every result is right or saturated, or refuse the "
            "network. Modes ``gazelle``, ``falcon`` and ``tabula`` do so by themselves as far as rings have room. "
            "Modes ``cheetah`` and ``auto`` then use larger rings and upper bounds, and send more bytes.",
            default=False,
            flag=Flag(
                "prove that no accepted input overflows a ring, or reject the model; results are then right or "
                "saturated. Sends more bytes in modes cheetah and auto. Not with --kept-bits or mode spectral",
            ),
        ),
    ]
    reveal_saturation: Annotated[
        bool,
        Option(
            "For outputs ``logits`` and ``value``, let the client learn in one bit beside the result whether any "
            "activation reached an upper bound of the compiler's own (`Prediction.saturated`): where none did, the "
            "result is the one that calibration vouches for. A client that asks about many inputs learns more of the "
            "weights from it. Refused where nothing can saturate, and where some sums are not proved to fit.",
            default=False,
            flag=Flag(
                "with --output logits or value: reveal in one bit whether an activation reached an upper bound, "
                "where the result may differ from the model's; reveals more of the weights",
            ),
        ),
    ]
    batch: Annotated[
        int,
        Option(
            "For modes ``gazelle``, ``cheetah``, ``auto`` and ``spectral``, how many samples a request holds, packed "
            "into the same ciphertexts: a power of two. Places that a request leaves empty hold zeros, and cost as "
            "much.",
            default=1,
            flag=Flag(
                "samples in one request, packed into the same ciphertexts; a power of two; modes gazelle, cheetah, "
                "auto and spectral (default: 1)",
                metavar="N",
                type=int,
            ),
        ),
    ]
    optimize: Annotated[
        str | None,
        Option(
            "For mode ``auto``, what is to be least: ``latency``, the seconds of a prediction, offline and online, "
            "with its share of the set-up in a session of 16, as where it is not given; ``online``, the seconds from "
            "the input to the result; ``bytes`` of a prediction, with its share; or ``memory``, what both parties "
            "hold.",
            flag=Flag(
                "mode auto: what to minimise over --network (default: latency, the seconds of a prediction with its "
                "share of the set-up; online counts from the input to the result)",
                choices=OBJECTIVES,
            ),
            at=("auto", "optimize"),
        ),
    ]
    image: Annotated[
        ImageDescription | str | Path | None,
        Option(
            "How a PNG or JPEG becomes an input: a description, or the path of its TOML file.",
            flag=Flag(
                "how a PNG or JPEG becomes an input: a TOML file with channels, size, resize, scale, mean, std, invert",
                metavar="S.toml",
                type=Path,
            ),
            written=_image,
        ),
    ]
    text: Annotated[
        str | Path | TextChoice | TextDescription | None,
        Option(
            "How a text becomes the inputs of an ONNX model that reads tokens: the path of its Hugging Face "
            "``tokenizer.json``, with ``,length=128`` behind it for how many tokens every text is made, and "
            "``,pad=TOKEN`` for the one that fills up. Clients learn it, and apply it by themselves. `calibration` may "
            "then be a list of texts.",
            flag=Flag(
                "how a text becomes the input of a model that reads tokens: a Hugging Face tokenizer.json, which "
                "clients learn; length is the number of tokens of every text (default: as the file says, or 128), "
                "pad the token that fills it up",
                metavar="TOKENIZER.json[,length=N][,pad=TOKEN]",
            ),
            written=_text,
        ),
    ]
    classes: Annotated[
        Sequence[str] | None,
        Option(
            "Names of the classes, one for each; those in the file where they are not given. One score has two "
            "classes.",
            flag=Flag(
                "a file with the classes' names, one on each line",
                metavar="F.txt",
                type=Path,
            ),
            written=list,
        ),
    ]
    title: Annotated[
        str | None,
        Option(
            'What the model is called before people, 1 to 80 characters: ``"Chest X-ray"``. ``lanner inspect``, the '
            "results of ``lanner predict`` and the pages show it. Clients learn it.",
            flag=Flag(
                "a title of 1 to 80 characters that clients see beside results, as in --title 'Chest X-ray'",
                metavar="TEXT",
            ),
        ),
    ]
    note: Annotated[
        str | None,
        Option(
            "What people should know of the results, 1 to 500 characters on one line, such as their unit, or ``not for "
            "clinical use``. It is shown where `title` is. Clients learn it.",
            flag=Flag(
                "a note of 1 to 500 characters that clients see beside results, as in --note 'Not for clinical use'",
                metavar="TEXT",
            ),
        ),
    ]
    max_memory: Annotated[
        str | int | None,
        Option(
            "Bytes that either party may hold for a session with one prediction, the server's model included, as a "
            'number or as ``"12GB"``; 8 GiB where it is not given. The compiler refuses what needs more. Clients and '
            "`load` have limits of their own.",
            flag=Flag(
                "memory that either party may use for a prediction, the server's model included, as in 12GB "
                f"(default: {DEFAULT_MEMORY})",
                metavar="SIZE",
            ),
            at=("limits", "memory"),
            written=parse_bytes,
        ),
    ]
    max_seconds: Annotated[
        int | None,
        Option(
            "Seconds that both parties together may compute on one core, very roughly; 1800 where it is not given.",
            flag=Flag(
                "computing time of both parties together, in seconds of one core, roughly (default: "
                f"{DEFAULT_SECONDS})",
                metavar="S",
                type=int,
            ),
            at=("limits", "seconds"),
            written=_seconds,
        ),
    ]
    name: Annotated[
        str | None,
        Option(
            "The name on the server; the file's name without its suffix where it is not given.",
        ),
    ]
    network: Annotated[
        str | Network,
        Option(
            "For mode ``auto``, the network between the parties: ``loopback``, ``lan``, ``wan``, a TOML file, or a "
            "`Network`.",
            default="lan",
            at=("auto", "network"),
            written=_profile,
        ),
    ]
    state_dir: Annotated[
        str | Path | None,
        Option(
            "Where this machine's table of kernel times is, for mode ``auto``: the one that ``lanner doctor "
            "--calibrate`` left, else that of an earlier estimate. Without either the package's is used: compiling "
            "measures nothing, and one table gives one plan. The model's owner finds in `Model.report` which it was.",
            at=None,
        ),
    ]
    kernel_times: Annotated[
        str | Path | KernelTimes | None,
        Option(
            "For mode ``auto``, another table; see `lanner.estimate`.",
            at=("auto", "kernels"),
            written=_table,
        ),
    ]
    progress: Annotated[
        Callable[[str], None] | None,
        Option(
            "Hears the name of each stage as it begins, and what is tried in it.",
            at=None,
        ),
    ]
    tracer: Annotated[
        Tracer | None,
        Option(
            "What runs the networks that are tried on the calibration samples, such as `lanner.ray.Tracer`; this "
            "machine's cores where it is None.",
            at=None,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Protocols:
    """What secures predictions.

    Attributes:
        mode: One of `MODES`.
        rounding: One of `ROUNDINGS`; None is ``exact``.
        precision: As for `lanner.compile`.
        kept_bits: As for `lanner.compile`.
        network: What lies between the parties, for mode ``auto``.
        batch: How many samples a request holds.
        kernel_times: The table by which mode ``auto`` chooses; None for the one that is kept, else the package's.
    """

    mode: str
    rounding: str | None = None
    precision: str | int | None = None
    kept_bits: int | None = None
    network: Network = LOOPBACK
    batch: int = 1
    kernel_times: KernelTimes | None = None

    def output(self, wanted: str) -> str:
        """The output policy for what would reveal `wanted`: rounding that is not exact goes with ``label`` alone."""
        return wanted if self.rounding in (None, "exact") else "label"

    def keywords(self, **others: Unpack[CompileKeywords]) -> CompileKeywords:
        """The same as options of `lanner.compile`, with others."""
        own = CompileKeywords(
            mode=self.mode,
            rounding=self.rounding,
            precision=self.precision,
            kept_bits=self.kept_bits,
            network=self.network,
            batch=self.batch,
            kernel_times=self.kernel_times,
        )
        return {**own, **others}


class CompileOptions:
    """What a model is compiled for.

    Attributes:
        chosen: The options that were given.
    """

    def __init__(self, **chosen: Unpack[CompileKeywords]) -> None:
        """Check the options that the network has no say in.

        Raises:
            MisuseError: If they are none, or do not go together.
            TypeError: If there is no option of a name.
        """
        unknown = next((name for name in chosen if name not in OPTIONS), None)
        if unknown is not None:
            raise TypeError(f"compile() got an unexpected keyword argument {unknown!r}")
        self.chosen = chosen
        with native_errors():
            _native.check_options(self.document())

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self.chosen.get("name") or ""

    def document(
        self,
        output: str | None = None,
        named: Sequence[str] | None = None,
        inputs: Sequence[NamedInput] = (),
        outputs: Sequence[NamedOutput] = (),
        columns: Sequence[str] = (),
        places: int = 1,
    ) -> str:
        """The options as the JSON text that the native compiler takes; what was not given is left to it.

        Args:
            output: The output policy that follows from the network's end; that of the options where it is None.
            named: The names that the network's file gives its classes.
            inputs: The file's inputs, where the network's is made of them.
            outputs: The file's outputs, where the network's is made of them.
            columns: The names of a row's numbers, where no tree reads them.
            places: Places of a map that have a label each.
        """
        document = document_of(OPTIONS, self.chosen)
        document |= {} if output is None else {"output": output}
        document |= {"places": places} if places > 1 else {}
        document |= {} if named is None else {"named": list(named)}
        document |= {"inputs": [each.document() for each in inputs]} if inputs else {}
        if (ends := range_of(inputs)) is not None:
            document["input_range"] = _range(ends)
        document |= {"outputs": [each.document() for each in outputs]} if outputs else {}
        document |= {"columns": list(columns)} if columns else {}
        return json.dumps(document)


def _range(ends: Sequence[float]) -> list[float | str]:
    """The ends of a range; as text where JSON has no such number."""
    return [end if math.isfinite(end) else str(end) for end in ends]


def _image(given: ImageDescription | str | Path) -> dict[str, Any]:
    return (given if isinstance(given, ImageDescription) else ImageDescription.read(Path(given))).document()


def _text(given: str | Path | TextChoice | TextDescription) -> dict[str, Any] | None:
    """The object of a public half; none before the model's inputs are known."""
    return given.document() if isinstance(given, TextDescription) else None


def _seconds(given: int) -> int | None:
    return limits_document(None, given)["seconds"]


def _profile(given: str | Network) -> tuple[float, float] | None:
    return (given if isinstance(given, Network) else read_network(given)).profile


def _table(given: str | Path | KernelTimes) -> str | None:
    return stored_times(given).text


#: Each of them by its name.
OPTIONS = declared(CompileKeywords)
