"""The networks that come with the package, as ONNX files; their model card is in models/ of the repository."""
