"""Values whose batch shares an axis with heads or tokens, beside onnxruntime at several sizes of the batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

import lanner
from helpers.data import exported
from helpers.merged_heads import HEADS, TOKENS, WIDTH, Batch, MergedHeads, merged_attention
from helpers.times import marked
from lanner.errors import UnsupportedOpError
from lanner.onnx import import_model

FLOAT_TOLERANCE = 1e-5

#: The width of a head.
HEAD = WIDTH // HEADS


def samples(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(5).standard_normal((12, *shape)).astype(np.float32)


def check(proto: onnx.ModelProto, x: NDArray[np.float32], *sizes: int, precision: str | None = None) -> lanner.Model:
    """Compare with onnxruntime on batches of these sizes."""
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    model = lanner.compile(proto, x, mode="cheetah", output="logits", precision=precision)
    computed = model.native.float(x)
    largest = float(np.abs(computed).max())
    assert largest > 0.01
    for size in sizes:
        truth = np.asarray(session.run(None, {session.get_inputs()[0].name: x[:size]})[0])
        assert np.abs(computed[:size] - truth).max() <= FLOAT_TOLERANCE * largest
    assert np.abs(model.predict_fixed(x) - computed).max() <= 0.02 * largest
    return model


@pytest.mark.parametrize("batch", list(Batch))
def test_heads_merged_with_the_batch_agree_at_every_size(batch: Batch) -> None:
    sizes = (1,) if batch is Batch.ONE else (1, 3)
    check(merged_attention(batch), samples(TOKENS, WIDTH), *sizes)


def test_they_run_privately() -> None:
    x = samples(TOKENS, WIDTH)
    model = check(merged_attention(Batch.COMPUTED), x, 3)
    (integers,), overflows = model.predict_integers(x[:1])
    assert overflows == 0
    assert lanner.run(model, x[0]).integers == integers.tolist()


@pytest.mark.parametrize("name", marked(["encoder_ts17", "vit_small_dn18"], {"vit_small_dn18"}))
def test_exported_networks_agree_at_every_size(name: str) -> None:
    proto = onnx.load(str(exported(name)))
    # A network that is not trained may have a last layer of zeros, of which nothing is seen.
    last = next(tensor for tensor in proto.graph.initializer if tensor.name == proto.graph.node[-1].input[1])
    drawn = np.random.default_rng(0).standard_normal(numpy_helper.to_array(last).shape).astype(np.float32)
    last.CopyFrom(numpy_helper.from_array(drawn, last.name))
    sides = proto.graph.input[0].type.tensor_type.shape.dim
    # Nor is a layer drawn at random as precise as a trained one.
    check(proto, samples(*(side.dim_value for side in sides[1:])), 1, 3, precision="1%")


@pytest.mark.parametrize("batch", [Batch.COMPUTED, Batch.REST])
def test_a_layer_whose_input_has_tokens_first_agrees(batch: Batch) -> None:
    net = MergedHeads(14, batch)
    rows = net.counted(net.node("Identity", "x"))
    rows = net.norm(net.node("Add", rows, net.attend(rows)), WIDTH)
    hidden = net.node("Relu", net.linear(rows, WIDTH, 2 * WIDTH))
    rows = net.norm(net.node("Add", rows, net.linear(hidden, 2 * WIDTH, WIDTH)), WIDTH)
    scores = net.node("Gemm", net.node("ReduceMean", rows, axes=[0], keepdims=0), net.drawn(WIDTH, 3), net.drawn(3))
    proto = net.model(scores, [TOKENS, "batch", WIDTH])
    x = samples(TOKENS, WIDTH)
    truth = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x.transpose(1, 0, 2)})[0]
    computed = lanner.compile(proto, x, output="logits").native.float(x)
    assert np.abs(computed - np.asarray(truth)).max() <= FLOAT_TOLERANCE * np.abs(computed).max()


def rows_of_parts(net: MergedHeads) -> str:
    """A dense layer of all rows of all samples, (n t, e), as other exporters write it."""
    rows = net.node("Reshape", "x", net.constant([-1, WIDTH]))
    bent = net.node("Tanh", net.node("Add", net.linear(rows, WIDTH, WIDTH), rows))
    normal = net.norm(bent, WIDTH)
    return net.tokens_first(net.node("Reshape", normal, net.constant([-1, TOKENS, WIDTH])))


def softmax_in_parts(net: MergedHeads) -> str:
    heads = net.heads_first(net.tokens_first("x"))
    powers = net.node("Exp", net.node("Sub", heads, net.node("ReduceMax", heads, axes=[2])))
    shares = net.node("Div", powers, net.node("ReduceSum", powers, net.constant([-1])))
    return net.shaped(net.node("Transpose", shares, perm=[1, 0, 2]), TOKENS, None, WIDTH)


def constants_of_heads(net: MergedHeads) -> str:
    """A constant matrix on the left, rows in front, a join and cuts beside heads, and axes of one element."""
    heads = net.node("MatMul", net.drawn(TOKENS, TOKENS), net.heads_first(net.tokens_first("x")))
    wide = net.node("Concat", net.node("Add", heads, net.drawn(1, TOKENS, 1)), heads, axis=-1)
    apart = net.node("Unsqueeze", net.node("MatMul", wide, net.drawn(1, 2 * HEAD, HEAD)), net.constant([0, 2]))
    rows = net.node("Transpose", net.node("Squeeze", apart, net.constant([0, 2])), perm=[1, 0, 2])
    return net.shaped(rows, TOKENS, None, WIDTH)


def softmax_of_tokens(net: MergedHeads) -> str:
    """Operators along other axes than that of the batch, which is the second."""
    return net.node("Softmax", net.norm(net.tokens_first("x"), WIDTH), axis=0)


def normalised_rows(net: MergedHeads) -> str:
    """Statistics that training left, of rows of all samples, (n t, e) and (n t, e / 2, 2), as LeViT has them."""

    def statistics(x: str, channels: int) -> str:
        spread = net.constant(np.linspace(0.5, 2.0, channels, dtype=np.float32))
        return net.node("BatchNormalization", x, *(net.drawn(channels) for _ in range(3)), spread, epsilon=1e-3)

    rows = statistics(net.node("Flatten", net.linear("x", WIDTH, WIDTH), axis=2), WIDTH)
    pairs = statistics(net.node("Reshape", rows, net.constant([-1, HEAD, 2])), HEAD)
    return net.tokens_first(net.node("Reshape", net.node("Relu", pairs), net.constant([-1, TOKENS, WIDTH])))


def windows(net: MergedHeads) -> str:
    """A softmax and a layer in each of several windows of the tokens, merged with the batch as Swin has them."""
    parts = net.node("Reshape", "x", net.constant([-1, TOKENS, 2, HEAD]))
    apart = net.node("Reshape", net.node("Transpose", parts, perm=[0, 2, 1, 3]), net.constant([-1, TOKENS, HEAD]))
    shares = net.node("Softmax", net.node("MatMul", apart, net.node("Transpose", apart, perm=[0, 2, 1])), axis=-1)
    mixed = net.linear(net.node("MatMul", shares, apart), HEAD, HEAD)
    back = net.node("Transpose", net.node("Reshape", mixed, net.constant([-1, 2, TOKENS, HEAD])), perm=[0, 2, 1, 3])
    return net.tokens_first(net.node("Reshape", back, net.constant([-1, TOKENS, WIDTH])))


def numbered_rows(net: MergedHeads, rows: int = TOKENS) -> str:
    """Rows of each sample by its number, as PyTorch writes ``x[sample, place]``, and all elements in a line."""
    count = net.node("Gather", net.node("Shape", "x"), net.constant(0))
    samples = net.node("Range", net.constant(0), count, net.constant(1))
    first = net.node("Mul", net.node("Unsqueeze", samples, net.constant([1])), net.constant([rows]))
    places = net.node("Add", net.constant([[2, 0, 1]]), first)
    picked = net.node("Gather", net.node("Flatten", "x", axis=2), places, axis=0)
    line = net.node("Tanh", net.node("Reshape", picked, net.constant([-1])))
    return net.tokens_first(net.node("Reshape", line, net.node("Shape", picked)))


def test_what_is_left_of_one_sample_is_a_head_and_no_batch() -> None:
    net = MergedHeads(15, Batch.ONE)
    # One head, as the first stage of SegFormer has.
    apart = net.node("Reshape", "x", net.constant([1, TOKENS, 1, WIDTH]))
    heads = net.node("Transpose", net.node("Tanh", apart), perm=[0, 2, 1, 3])
    again = net.node("Reshape", heads, net.constant([1, -1, TOKENS, WIDTH]))
    rows = net.node("Reshape", net.node("Transpose", again, perm=[0, 2, 1, 3]), net.constant([1, TOKENS, -1]))
    check(net.scores(net.node("Transpose", net.linear(rows, WIDTH, WIDTH), perm=[1, 0, 2])), samples(TOKENS, WIDTH), 1)


FORMS: dict[str, Callable[[MergedHeads], str]] = {
    "rows of parts": rows_of_parts,
    "a softmax in parts": softmax_in_parts,
    "constants": constants_of_heads,
    "a softmax of tokens": softmax_of_tokens,
    "normalised rows": normalised_rows,
    "windows": windows,
    "numbered rows": numbered_rows,
}


@pytest.mark.parametrize("name", FORMS)
def test_other_forms_agree_at_every_size(name: str) -> None:
    net = MergedHeads(12, Batch.COMPUTED)
    check(net.scores(FORMS[name](net)), samples(TOKENS, WIDTH), 1, 3)


def merged(net: MergedHeads) -> str:
    return net.heads_first(net.tokens_first("x"))


def turned_back(net: MergedHeads, *sides: int | None, times: int) -> str:
    """Samples (n, t, e) in another shape without a Transpose of the tokens to the front."""
    back = net.node("Transpose", net.tokens_first("x"), perm=[1, 0, 2])
    return net.shaped(back, *sides, times=times)


REFUSED: dict[str, tuple[Callable[[MergedHeads], str], str]] = {
    "tokens that hold samples": (
        lambda net: turned_back(net, TOKENS, None, times=WIDTH),
        r"shape of Reshape turns \(n, 3, 8\) into \(3, 8\); samples must stay apart",
    ),
    "tokens of samples, counted": (
        lambda net: turned_back(net, TOKENS, None, HEAD, times=HEADS),
        r"shape of Reshape turns \(n, 3, 8\) into \(3, 2, 4\); samples must stay apart",
    ),
    "features that hold samples": (
        lambda net: net.node("Reshape", net.tokens_first("x"), net.constant([TOKENS, HEADS, -1])),
        r"shape of Reshape turns \(3, n, 8\) into \(3, 2, 4\); samples must stay apart",
    ),
    "heads taken apart the other way": (
        lambda net: net.shaped(merged(net), HEADS, None, TOKENS, HEAD),
        r"shape of Reshape turns \(n \* 2, 3, 4\) into \(2, 1, 3, 4\); samples must stay apart",
    ),
    "heads as numbers": (
        lambda net: net.node("Reshape", net.tokens_first("x"), net.constant([TOKENS, HEADS, HEAD])),
        r"shape of Reshape turns \(3, n, 8\) into \(3, 2, 4\); samples must stay apart",
    ),
    "a softmax of heads": (
        lambda net: net.node("Relu", net.node("Softmax", merged(net), axis=0)),
        r"axis of Softmax is 0, along which the samples of \(n \* 2, 3, 4\) lie",
    ),
    "a normalisation of heads": (
        lambda net: net.node("LayerNormalization", merged(net), net.drawn(HEADS, TOKENS, HEAD), axis=0),
        r"axis of LayerNormalization is 0, behind which the samples of \(n \* 2, 3, 4\) lie",
    ),
    "a sum of heads": (
        lambda net: net.node("ReduceSum", merged(net), net.constant([0])),
        r"axes of ReduceSum is 0, along which",
    ),
    "a mean of everything": (lambda net: net.node("ReduceMean", merged(net)), "axes of ReduceMean is absent"),
    "a join of heads": (
        lambda net: (lambda x: net.node("Concat", x, x, axis=0))(merged(net)),
        r"axis of Concat is 0, along which",
    ),
    "one head of all": (
        lambda net: net.node("Gather", merged(net), net.constant([0]), axis=0),
        r"input 0 of Gather has shape \(n \* 2, 3, 4\); samples must have an axis of their own",
    ),
    "products over heads": (
        lambda net: net.node(
            "MatMul",
            net.node("Transpose", merged(net), perm=[1, 2, 0]),
            net.node("Transpose", merged(net), perm=[1, 0, 2]),
        ),
        r"inputs of MatMul have shapes \(3, 4, n \* 2\), \(3, n \* 2, 4\), which would not keep samples apart",
    ),
    "a matrix over heads": (
        lambda net: net.node("MatMul", net.node("Transpose", merged(net), perm=[1, 2, 0]), net.drawn(HEADS, HEADS)),
        r"inputs of MatMul have shapes \(3, 4, n \* 2\) and \(2, 2\); samples must stay apart",
    ),
    "heads beside tokens": (
        lambda net: net.node("Add", merged(net), net.shaped("x", None, HEADS, HEAD, times=TOKENS)),
        r"inputs of Add have shapes \(n \* 2, 3, 4\), \(n \* 3, 2, 4\), which would not keep samples apart",
    ),
    "a constant of three heads": (
        lambda net: net.node("Add", merged(net), net.drawn(3, TOKENS, HEAD)),
        r"input 1 of Add has shape \(3, 3, 4\), which does not fit",
    ),
    "statistics of tokens": (
        lambda net: net.node("BatchNormalization", net.tokens_first("x"), *(net.drawn(TOKENS) for _ in range(4))),
        r"input 0 of BatchNormalization has shape \(3, n, 8\); samples must come first",
    ),
    "rows of other samples": (
        lambda net: numbered_rows(net, rows=TOKENS - 1),
        r"input 1 of Gather depends on the size of the batch|samples must have an axis of their own",
    ),
    "an end of rows": (
        lambda net: net.node("Gemm", net.node("Reshape", "x", net.constant([-1, WIDTH])), net.drawn(WIDTH, 3)),
        r"the scores are of shape \(n \* 3, 3\), and samples must come first",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_mix_samples_is_refused(name: str) -> None:
    make, sentence = REFUSED[name]
    net = MergedHeads(13, Batch.COMPUTED)
    with pytest.raises(UnsupportedOpError, match=sentence):
        import_model(net.model(make(net), ["batch", TOKENS, WIDTH]))
