"""The gateway: a server's models as the Open Inference Protocol v2 and a web page, on the data owner's machine.

Whoever may reach the gateway hands it inputs in the clear. It is therefore the data owner's, listens on loopback unless
it is told otherwise, and refuses what a foreign web page could make a browser send.

The protocol is that of https://github.com/kserve/open-inference-protocol, with Triton's extensions for binary tensors
and for classification.
"""
