"""Attention as PyTorch's own layers export it: tokens first, heads merged with the batch."""

from __future__ import annotations

from enum import Enum

import onnx

from helpers.transformers import Exported

WIDTH, HEADS, TOKENS = 8, 2, 3


class Batch(Enum):
    """How the shapes of a file tell the size of the batch."""

    #: It is asked of values and multiplied.
    COMPUTED = "computed"
    #: It is what is left.
    REST = "-1"
    #: The file fixes a batch of one.
    ONE = "1"


class MergedHeads(Exported):
    """A model whose attention merges heads with the batch.

    Args:
        seed: What weights are drawn from.
        batch: How shapes tell the size of the batch.
    """

    def __init__(self, seed: int, batch: Batch) -> None:
        super().__init__(seed)
        self._batch = batch
        self._count = ""

    def shaped(self, x: str, *sides: int | None, times: int = 1) -> str:
        """x in another shape, in which None is the batch's size times a number."""
        if self._batch is not Batch.COMPUTED:
            size = -1 if self._batch is Batch.REST else times
            return self.node("Reshape", x, self.constant([size if side is None else side for side in sides]))
        scaled = self.node("Mul", self._count, self.constant([times]))
        parts = [scaled if side is None else self.constant([side]) for side in sides]
        return self.node("Reshape", x, self.node("Concat", *parts, axis=0))

    def tokens_first(self, x: str) -> str:
        """Samples (n, t, e) as (t, n, e)."""
        return self.counted(self.node("Transpose", x, perm=[1, 0, 2]))

    def counted(self, x: str) -> str:
        """Rows (t, n, e), from which shapes get the size of the batch."""
        self._count = self.node("Gather", self.node("Shape", x), self.constant([1]))
        return x

    def heads_first(self, x: str) -> str:
        """Rows (t, n, e) as (n h, t, e / h)."""
        merged = self.shaped(self.linear(x, WIDTH, WIDTH), TOKENS, None, WIDTH // HEADS, times=HEADS)
        return self.node("Transpose", merged, perm=[1, 0, 2])

    def shares(self, x: str) -> str:
        """What each token takes of every other, (n h, t, t)."""
        keys = self.node("Transpose", self.heads_first(x), perm=[0, 2, 1])
        scaled = self.node("Mul", self.heads_first(x), self.constant((WIDTH // HEADS) ** -0.5))
        return self.node("Softmax", self.node("MatMul", scaled, keys), axis=-1)

    def attend(self, x: str) -> str:
        """Attention of rows (t, n, e), whose last layer is a Gemm of (t n, e)."""
        mixed = self.node("Transpose", self.node("MatMul", self.shares(x), self.heads_first(x)), perm=[1, 0, 2])
        rows = self.shaped(mixed, None, WIDTH, times=TOKENS)
        projected = self.node("Gemm", rows, self.drawn(WIDTH, WIDTH), self.drawn(WIDTH, scale=0.1), alpha=0.5)
        return self.shaped(projected, TOKENS, None, WIDTH)

    def scores(self, x: str) -> onnx.ModelProto:
        """The model that ends in a classifier of the mean of rows (t, n, e)."""
        mean = self.node("ReduceMean", x, axes=[0], keepdims=0)
        scores = self.node("Gemm", mean, self.drawn(WIDTH, 3), self.drawn(3))
        return self.model(scores, [1 if self._batch is Batch.ONE else "batch", TOKENS, WIDTH])


def merged_attention(batch: Batch) -> onnx.ModelProto:
    """A residual block of attention with tokens first."""
    net = MergedHeads(11, batch)
    x = net.tokens_first("x")
    return net.scores(net.norm(net.node("Add", x, net.attend(x)), WIDTH))
