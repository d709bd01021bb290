"""Products of columns, as scikit-learn's ``PolynomialFeatures`` is written: one node for each, and one for all here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from lanner.onnx.classical.edit import ML, Edit, attributes, axes_of, is_of


def join_products(edit: Edit) -> None:
    """Compute all products of as many columns at once, and put them in their places."""
    edit.each(_joined)


def _joined(edit: Edit, node: onnx.NodeProto) -> Sequence[onnx.NodeProto] | None:
    """Products of columns of one tensor that a ``Concat`` joins."""
    if not is_of(node, ("Concat",)) or attributes(node).get("axis") not in (1, -1):
        return None
    products = {name: columns for name in node.input if (columns := _columns(edit, name)) is not None}
    sources = {source for source, _ in products.values()}
    if len(sources) != 1 or len(products) < 2:
        return None
    (source,) = sources
    base = node.output[0]
    made: list[onnx.NodeProto] = []
    orders = sorted({len(columns) for _, columns in products.values()})
    # Behind what is no product come those of one column, of two, and so on.
    others = [name for name in dict.fromkeys(node.input) if name not in products]
    if not all(edit.maker(name, "ConstantOfShape") for name in others):
        # Only the column of ones has one column for sure.
        return None
    joined, places = list(others), {name: place for place, name in enumerate(others)}
    for order in orders:
        names = [name for name, (_, columns) in products.items() if len(columns) == order]
        whole = ""
        for factor in range(order):
            picked = edit.fresh(f"{base}_columns")
            indices = np.array([products[name][1][factor] for name in names], np.int64)
            held = edit.hold(indices, f"{picked}_indices")
            made.append(helper.make_node("ArrayFeatureExtractor", [source, held], [picked], name=picked, domain=ML))
            if whole:
                product = edit.fresh(f"{base}_products")
                made.append(helper.make_node("Mul", [whole, picked], [product], name=product))
                whole = product
            else:
                whole = picked
        places |= {name: len(places) + index for index, name in enumerate(names)}
        joined.append(whole)
    everything = edit.fresh(f"{base}_joined")
    made.append(helper.make_node("Concat", joined, [everything], name=everything, axis=1))
    back = edit.hold(np.array([places[name] for name in node.input], np.int64), f"{base}_order")
    name = node.name or base
    made.append(helper.make_node("ArrayFeatureExtractor", [everything, back], node.output, name=name, domain=ML))
    return made


def _columns(edit: Edit, name: str) -> tuple[str, list[int]] | None:
    """The tensor and its columns that a tensor is the product of; None where it is no such."""
    product = edit.maker(name, "ReduceProd")
    if product is None or axes_of(edit, product) not in ([1], [-1]) or not attributes(product).get("keepdims", 1):
        return None
    picked = edit.maker(product.input[0], "ArrayFeatureExtractor", domain=ML)
    columns = None if picked is None else edit.constant(picked.input[1])
    return None if picked is None or columns is None else (str(picked.input[0]), np.ravel(columns).astype(int).tolist())
