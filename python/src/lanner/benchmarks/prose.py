"""The words of docs/benchmarks.md. They hold no figure that a run could change."""

INTRODUCTION = """# Benchmarks

What the `gazelle` mode takes in time, bytes and rounds, beside what the [GAZELLE paper][JVC18] and its [public
code][code] give for the same work. "Paper / ours" above 1 means that ours takes less. The paper's machines and
years were others, so read times as orders of magnitude; bytes and rounds do not depend on the machine.
"""

HOW = """## How figures are taken

- Two processes on this machine, a server and a client, over TLS 1.3; batch 1.
- **Wait** is wall time at the client. **Server** is wall time that the server computed in the steps concerned,
  without waits for the client and without transport: it begins when a message has been received and ends when the
  reply is serialized, and counts decoding and encoding. Papers give this one for linear layers.
- One prediction warms everything up and does not count. Then the median of 9 predictions, of 5 if one takes over 5
  s, of 3 if one takes over 20 s, where the first counts too. **Fastest** is the fastest of these: where it is far
  below the median, the machine was busy.
- Every prediction makes its own material: **offline**, before the input is used, and **online**, with it. Nothing
  is prepared outside the clock. What does not depend on the input is offline, and its time stands there. **Total**
  is the whole call. Set-up, once for a session, has a table of its own; a model's weights are encoded once for all
  sessions when the server starts, and are in none.
- **Bytes** are those on TCP in both directions, TLS and frames included; of a layer, as counted when they arrive. A
  **round** is a send of the client followed by a wait.
- **Between** the parties is loopback as it is; `lan`, 1 Gbit/s and 0.6 ms of round trip; or `wan`, 100 Mbit/s and
  40 ms. The last two are emulated by a relay inside the client's process, which delivers each byte when such a line
  would: no losses, no headers, no slow start.
- After the clock stopped, every integer that the client learned was compared with the fixed-point reference: all
  outputs, or the label for an arg-max, which reveals nothing else.
- Figures of the paper are those of its tables. Its public code was run once on two cores of an AMD Zen 5, not on
  this machine.
"""

NETWORKS = """## Networks

Tables XII and XIII, and residual networks. MNIST's A to D come with the package; a network with trained weights of
others, or else seeded random ones, is marked so. All give the client the ten scores, as in the paper. **Line
alone** is what the line takes for the bytes and the rounds, one after another, if nobody computes.
"""

SETUP = """Set-up, once for a session: keys for rotations and base oblivious transfers.
"""

LAYERS = """## Linear layers

Tables VIII and X, in the whole protocol, with the kernel that the planner takes. Ratios compare the server's time:
online alone, as the paper and the code count, and **with offline**, where half of each ciphertext's work lies here.
The paper's 28x28 convolution has stride 2; its public code has stride 1.
"""

ACTIVATIONS = """## Activations

Table XI, from shares to shares, without revealing the result. Parties overlap: the server may garble for a step while
the client is still in the one before. The ratio of times takes the larger of wait and server.
"""

OPERATIONS = """## Operations

Tables V to VII and IX, on one core, without a network. The paper has n = 2048 slots and a modulus of 60 bits. Ours
has 8192 slots and three primes of 50 bits, for the noise that hides the function: a ciphertext has twelve times the
words and four times the slots. One decomposition serves all, so there is one key size.
"""

KERNELS = """## Kernels

Tables VIII and X kernel by kernel: one thread plays both parties, without a network. A kernel that needs more than
64 keys or 8 ciphertexts for its output, or that does what another does, is left out, and the paper's figure stands
alone.
"""

LIMITS = """## What limits us

- **Bytes.** A ReLU is a garbled table of two blocks for each AND gate and each value. On a slow line the time is
  that of the line: compare "line alone" with the total. Bytes are offline for the most part, so they can be sent
  before they are needed.
- **Two parties on one machine.** Server and client compute at the same time and share caches and memory bandwidth
  with the relay. On machines of their own both are faster.
- **Rounds** matter over `wan` alone: each costs 40 ms, and a deep network has one or two for each layer.
- **Rotations.** In linear layers key switching takes most of the server's offline time. Online there is none of it,
  only products and transforms.

[JVC18]: https://www.usenix.org/conference/usenixsecurity18/presentation/juvekar
[code]: https://github.com/chiraag/gazelle_mpc
"""
