"""A small tokenizer and networks that read tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from helpers.several import Arrays, drawn, model_of, node

WORDS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "good",
    "bad",
    "film",
    "##s",
    "not",
    "the",
    "[",
    "]",
    "mask",
)

#: A sentence to calibrate on for each number of words.
SENTENCES = ["", "A good film", "the bad films", "not bad", "not a good film", "the the the", "zebra", "films films"]


def tokenizer_of(words: tuple[str, ...] = WORDS, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    """A file of WordPiece that lowercases, with the special tokens around a text."""
    special = [
        {
            "id": index,
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, word in enumerate(words)
        if word in WORDS[:5]
    ]
    around = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            name: {"id": name, "ids": [words.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")
        },
    }
    return {
        "version": "1.0",
        "added_tokens": special,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": around,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: index for index, word in enumerate(words)},
        },
        **members,
    }


def save_tokenizer(folder: Path, **members: Any) -> Path:  # noqa: ANN401
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_of(**members)), encoding="utf-8")
    return path


def reader(rows: int = len(WORDS)) -> onnx.ModelProto:
    """A network of three scores of the words that the mask leaves, of open sizes."""
    nodes = [
        node("Gather", ["words", "input_ids"], "word"),
        node("Gather", ["kinds", "token_type_ids"], "kind"),
        node("Add", ["word", "kind"], "both"),
        node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], "wide"),
        node("Mul", ["both", "wide"], "left"),
        node("ReduceSum", ["left", "middle"], "sum", keepdims=0),
        node("Relu", ["sum"], "relu"),
        node("MatMul", ["relu", "head"], "logits"),
    ]
    weights: Arrays = {
        "words": drawn(rows, 4),
        "kinds": drawn(2, 4),
        "head": drawn(4, 3),
        "last": np.array([2]),
        "middle": np.array([1]),
    }
    names = ("input_ids", "attention_mask", "token_type_ids")
    return model_of(
        nodes, {name: (TensorProto.INT64, ["batch", "sequence"]) for name in names}, {"logits": ["batch", 3]}, **weights
    )


def tagger(rows: int = len(WORDS)) -> onnx.ModelProto:
    """A network of three scores at each token, of its word and of all words together, of open sizes."""
    nodes = [
        node("Gather", ["words", "input_ids"], "word"),
        node("ReduceMean", ["word"], "mean", axes=[1], keepdims=1),
        node("Add", ["word", "mean"], "both"),
        node("Relu", ["both"], "relu"),
        node("MatMul", ["relu", "head"], "logits"),
    ]
    weights: Arrays = {"words": drawn(rows, 4), "head": drawn(4, 3)}
    return model_of(
        nodes,
        {"input_ids": (TensorProto.INT64, ["batch", "sequence"])},
        {"logits": ["batch", "sequence", 3]},
        **weights,
    )
