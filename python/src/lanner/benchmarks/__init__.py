"""What `lanner bench` measures: single layers, activations and whole networks, through the public API."""
