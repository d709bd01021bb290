"""The smooth activations, by name: none has an exact form among the operators of the float graph.

They are refused as unknown operators are. Exporters also write some in parts: SiLU as a Sigmoid and a product, GELU
around an Erf or a Tanh, Mish around a Softplus and a Tanh; the part that stands here is then the one that is refused.
"""

from __future__ import annotations

SMOOTH = (
    *("Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "Swish", "Elu", "Selu", "Celu"),
    *("Softplus", "Softsign", "Mish", "Log"),
)
