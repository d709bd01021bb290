"""Ensembles of decision trees: from ONNX's nodes to trees over a client's columns."""
