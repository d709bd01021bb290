"""The words of docs/benchmarks-data.md. They hold no figure that a run could change."""

from dataclasses import dataclass

INTRODUCTION = """# All figures

[Benchmarks](benchmarks.md) has the tables that most readers want. This page has every row that was measured.

What private predictions take in time, bytes and rounds, mode by mode, beside what the mode's paper gives for the same
work: the [GAZELLE paper][JVC18] and its [public code][code], the [FALCON paper][LXDGWWW18] and the [Tabula
paper][LMRWB22]. "Paper / ours" above 1 means that ours takes less. The papers' machines and years were others, so read
times as orders of magnitude; bytes and rounds do not depend on the machine.
"""

HOW = """## How figures are taken

- Two processes on this machine, a server and a client, over TLS 1.3; batch 1.
- **Wait** is wall time at the client. **Server** is wall time that the server computed in the steps concerned,
  without waits for the client and without transport: it begins when a message has been received and ends when the
  reply is serialized, and counts decoding and encoding. Papers give this one for linear layers.
- **Precision** is what the model was compiled for, a percentage or bits of every activation, and **logit error** what
  it reaches: the largest error of a score against the float network's on the calibration samples, [relative to the
  scores' range](numerics.md#how-many-bits). Random weights have 8 bits: their scores say little of a trained network's.
- One prediction warms everything up and does not count. Then the median of 9 predictions, of 5 if one takes over 5
  s, of 3 if one takes over 20 s, where the first counts too. **Fastest** is the fastest of these: where it is far
  below the median, the machine was busy.
- Every prediction makes its own material: **offline**, before the input is used, and **online**, with it. Nothing
  is prepared outside the clock. What does not depend on the input is offline, and its time stands there. **Total**
  is the whole call. Set-up, once for a session, has a table of its own; a model's weights are encoded once for all
  sessions when the server starts, and are in none.
- **Bytes** are those on TCP in both directions, TLS and frames included; of a layer or an activation, those of its
  messages with their frames. A **round** is a send of the client followed by a wait.
- **Between** the parties is loopback as it is; `lan`, 1 Gbit/s and 0.6 ms of round trip; or `wan`, 100 Mbit/s and
  40 ms. The last two are emulated by a relay inside the client's process, which delivers each byte when such a line
  would: no losses, no headers, no slow start.
- After the clock stopped, all that the client learned was compared with the fixed-point reference: all outputs, or
  the label of an arg-max, which reveals nothing else, or label and probability, digit for digit. Only where rounding is
  `faithful`, the label may be that of a score as near to the largest as [its bound](numerics.md#faithful-rounding)
  allows.
- Figures of a paper are those of its tables. GAZELLE's public code was run once on two cores of an AMD Zen 5, not on
  this machine.
"""

SETUP = """Set-up, once for a session: keys and base oblivious transfers.
"""


@dataclass(frozen=True, slots=True)
class Words:
    """What is said above the tables of a mode; what is said of every mode goes before it."""

    networks: str = ""
    layers: str = ""
    activations: str = ""


TRANSFORMERS = """### Transformers

Transformers with drawn weights. Encoders of BERT's kind, from the vectors of 128 embedded tokens to their mean: 2
layers of width 128 (the size of BERT-tiny), 6 of 384 (MiniLM-L6) and 12 of 768 (BERT-base). A decoder of the size of
GPT-2 small, from 64 embedded tokens to the five likeliest next ones of 50,257. A classifier of the size of ViT-base,
from a picture of 224x224 pixels to 1,000 scores. Earlier measurements of SecretFlow-SPU 0.9.5, both parties on two
cores of one machine, gave 26.5 s and 360 MB for the first encoder, 320 s and 4.4 GB for the second, and 104 s and
1.07 GB for a layer of the third; they do not say how its GELU was written. [By turns with ours](#beside-another-system)
the first took more.
"""

TREES = """### Trees

Ensembles with drawn questions and leaves, on rows of any numbers, which have 24 bits: 100 trees of depth 6 on 30
columns, 50 trees of depth 5 on 30 columns and two scores, and 500 trees of 31 leaves for each of five classes on 100
columns, as LightGBM grows them. Columns of few decimals take less. Of 1,000 rows that were asked for together, the
figures are those of one. SecretFlow-SPU 0.9.5, which has complete trees alone, took 0.25 s and 2.46 MB for the first
and 0.14 s and 1.94 MB for the second on another machine, both parties on two cores; Concrete ML, which rounds to few
bits and sends one ciphertext each way, 49.7 s for the second there, and 3.5 s for its keys of 77 MB.
"""

RECURRENT = """### Recurrent networks

Trained by others, unrolled over all steps, each of which waits for the one before; its gates are one function:
FastGRNN on keywords (99 steps of 100 units) and on USPS digits (16 of 32), two layers of FastRNN and an LSTM on
keywords. The OPAF paper's figures are those of its table XI, on four threads a party; its lines have other speeds than
`lan` and `wan` here.
"""

NETWORKS = """### Networks

MNIST's A to D come with the package; a network with trained weights of others, or else seeded random ones, is marked
so. **Line alone** is what the line takes for the bytes and the rounds, one after another, if nobody computes.
"""

IMAGENET = """### Networks of ImageNet's size

Images of 224x224 pixels, 1000 scores, which the client is given. Weights are random and activations have 8 bits: time,
bytes and memory are those of trained networks, labels mean nothing. One prediction after one that warms up, or the
first alone where that takes over 20 s. **Memory** is the most that both processes together had resident while they
predicted, the model that the client's process compiled included. The Cheetah paper's figures are bounds of its
abstract, over a line between two regions.
"""

LAYERS = """### Linear layers

In the whole protocol, as the planner lays them out. Ratios compare the server's time: online alone, as papers count,
and **with offline**, where half of each ciphertext's work lies here.
"""

ACTIVATIONS = """### Activations

From shares to shares, without revealing the result. Parties overlap: the server may garble for a step while the client
is still in the one before. The ratio of times takes the larger of wait and server.
"""

ACCURACY = """### Accuracy

On whole test sets, in floating point and in the integers that every exact secure run equals. Of each set the first
images were computed by two processes too, and all scores compared. A paper's figures are of weights of its own.
"""

GAZELLE = Words(
    networks="""Tables XII and XIII, and residual networks. All give the client the ten scores, as in the paper.
""",
    layers="""Tables VIII and X. The paper's 28x28 convolution has stride 2; its public code has stride 1.
""",
    activations="""Table XI.
""",
)

FALCON = Words(
    networks="""Table 5, of a local network, which leaves the softmax out: these give the client the ten scores.
`pneumonia` gives the label and its probability to two digits.
""",
    layers="""Table 2, which does not say how its convolutions are padded. Its transforms are as large as the image: as
ours where filters stay inside it, in the rows `inner`, but not where padding makes the output as large as the image.
Its set-up transforms filters and encrypts masks; filters are transformed here when the server starts.
""",
    activations="""Tables 3 and 4, whose sizes count inputs: a row `of_1000` pools 1000 values to 250. Table 3 gives the
preparation of shares a row of its own. Here it is part of every circuit, so the paper's figure is that of both;
`rescale` is a preparation alone, and a rescaling. ReLU and max-pool are written in this order, and exchanged as the
paper's optimized row has them; its row without that has no counterpart. A `softmax_10_2` is one of ten classes to two
digits; the paper's bytes online for 1000 classes are as printed.
""",
)

CHEETAH = Words(
    networks="""Networks as in the other modes, and VGG-16 and ResNet-34 for CIFAR-100 with random weights. Figures of
the Cheetah paper are not given beside ours. **Rounding** is `exact`, the default, where every integer is the
fixed-point reference's: all but `pneumonia` give the client all scores. Below these stands `faithful`, which drops low
bits without their carry. It takes fewer bytes and [tells a client that repeats its
query](threat-model.md#faithful-rounding) more of the weights than the results do, so it goes with labels alone.
[The plot](networks.svg) has what a multiply-accumulate and a value that is compared take and send, offline and online
together, from MNIST's networks to ResNet-50 at ImageNet's size.
""",
    layers="""Coefficients hold matrices and filters, so nothing is rotated.
""",
    activations="""Comparisons and selections by oblivious transfer, from shares modulo a power of two.
""",
)

TABULA = Words(
    networks="""Networks of the [Tabula paper][LMRWB22], and others; every integer is the fixed-point reference's. The
paper's figures stand [below](#online-alone), where phases are apart: it has the online phase only.
""",
    activations="""From shares to shares; beside the paper's figures for one ReLU, so many times.
""",
)

ONLINE = """### Online alone

Tables 2 and 4 of the [Tabula paper][LMRWB22], one prediction. The paper measures the online phase and leaves the
offline phase to others; ours makes all its material in the same session, and what that takes stands here too: it is the
price of the rest. The paper's machines were two c5.4xlarge of eight cores, in California and Oregon, with 5 to 10
Gbit/s between them; ours are two processes on the machine above. **Our circuits** are the same network in mode
`gazelle`, where it was measured over the same line; its linear layers are online in part, so the difference is not that
of activations alone.

- `lenet` is the paper's large LeNet for MNIST, as [its code](https://github.com/tabulainference/tabula) has it: 3x3
  convolutions to 32 and 64 channels without padding, an average pool, dense layers of 128 and 10; 58,624 ReLUs.
- `resnet32` is for CIFAR-10 and has 303,104; `cifar100_delphi_resnet32` is Delphi's for CIFAR-100, with ReLU6.
- The paper gives VGG-16 as 276K ReLUs in table 2 and as 284.7K in table 4. `vgg16` has 276,480, max-pools and one
  dense layer; as a maximum may be rectified in place of what it is of, **ReLUs** counts fewer.
  `cifar100_tabula_vgg16` has the average pools of the paper's code, and the two hidden dense layers of 4096 values that
  its code leaves out and that make 284,672.
- The paper's ResNet-34 has 1.47M, since its code rectifies both sides of its sums, too: `cifar100_tabula_resnet34`,
  1,474,560. `resnet34` is He et al.'s, 966,656, for which the paper has no figure. A ReLU that no rescale follows, as
  those of sums are there, goes by transfers as in mode `cheetah`, in more rounds.
- Figure 5 draws the times of table 4, with 12 bits for lookups, against accuracies that are in no table. A lookup here
  keeps as many bits as its layer's ring leaves, for results that are [the reference's](numerics.md#how-many-bits).
"""

LOOKUPS = """### An activation alone

Tables 1 and 3 and figure 3 of the [Tabula paper][LMRWB22]: a ReLU with its rescale, amortized on {values:,}, by lookups
that keep k bits and drop d, and by garbled circuits, in one run of `tabula_bench`. Both parties are threads of one
process without a network, so times are of computation alone, of which circuits that are garbled ahead take little, too:
what lookups save is bytes. **Kept** is what a party holds between the phases. The paper keeps tables of 2^k words of 64
bits on both sides, so figure 3 is its column **paper keeps**, and opens 64 bits; its time and bytes are the same for
every k. It measures its circuits between two regions and drops no bits in them. Ours are those of mode `gazelle`: they
add shares, round and rectify in one.
"""

#: What is said of each mode.
WORDS = {"gazelle": GAZELLE, "falcon": FALCON, "cheetah": CHEETAH, "tabula": TABULA}

OPERATIONS = """## Operations

The GAZELLE paper's tables V to VII and IX, on one core, without a network. The paper has n = 2048 slots and a modulus
of 60 bits. Ours has 8192 slots and three primes of 50 bits, for the noise that hides the function: a ciphertext has
twelve times the words and four times the slots. One decomposition serves all, so there is one key size.
"""

COUNTS = """### Beside the limit of their operations

On one core. The limit is the time that the operations counted take if nothing else did: two vector multiply-adds a
cycle, transforms as measured here, AES blocks at the rate of counter mode under one key. Additions and permutations
are not counted, nor the schedules of garbling's keys, two a gate for sixteen instances, nor the way of rotations' keys
from memory.
"""

KERNELS = """## Kernels

The GAZELLE paper's tables VIII and X kernel by kernel: one thread plays both parties, without a network. A kernel that
needs more than 64 keys, or that does what another does, is left out, and the paper's
figure stands alone.
"""

PEERS = """## Beside another system

The same networks, each from one float graph with batch normalizations folded, in mode `cheetah` and in the Cheetah
protocol of [SecretFlow-SPU][SPU]. `make bench-peers` measures them and writes this section. VGG-16 and ResNet-34 are
those for CIFAR-100. Encoders are [those above](#transformers), for SPU as functions of jax, whose GELU is by a
hyperbolic tangent; ours is exact. "Theirs / ours" above 1 means that ours takes less.

- Every system has two processes, of which one has the image and the other the weights. All are up at once and predict
  by turns, after one prediction that warms them up and makes what a session needs once; medians of the turns.
- Ours is the whole call at the client: material made in it, over TLS, outputs revealed. Theirs is the run of the
  protocol alone, from shares to shares, without TLS; to share the image and to reveal the outputs is not counted.
- SPU runs with its defaults in the ring of 64 bits, with 18 bits after the point, but for
  `experimental_enable_colocated_optimization`, which spares it half the messages of linear layers.
- **Error** is the largest difference of an output from the float network's, over all runs. Ours rounds `exact`, as
  scores that are revealed must: every result equalled the fixed-point reference in every integer, so its error is that
  of the quantization alone. It stands with 8, 12 and 16 bits of every activation: the last come near SPU's precision.
- **Messages** are sends of the client; of ours those that a wait follows.

[SPU]: https://github.com/secretflow/spu
"""

ELSEWHERE = """## On another machine

What the machine above has not measured. Compare times with those of this section alone: bytes and rounds are the same
on every machine.
"""

VERSIONS = """## Beside an older build

The build of commit {before} and this one, {now}, by turns on one machine: `make bench-against BEFORE=FOLDER`, where
FOLDER has a checkout of the older build. Mode `cheetah`, exact. Medians of the turns' medians, whole predictions with
all their material over TLS; `relu_... of ... bits` are transfers, comparisons and selections alone, both parties in one
process.
"""

LIMITS = """## What limits us

- **Bytes.** In modes `gazelle` and `falcon` a ReLU is a garbled table of two blocks for each AND gate and each value.
  On a slow line the time is that of the line: compare "line alone" with the total. There, and in mode `tabula`, most
  bytes are offline, so they can be sent before they are needed.
- **Two parties on one machine.** Server and client compute at the same time and share caches and memory bandwidth
  with the relay. On machines of their own both are faster.
- **Rounds** matter over `wan`: each costs 40 ms. Mode `cheetah` has up to eight for each layer, which show over
  `lan` too.
- **Rotations.** In linear layers of mode `gazelle` key switching takes most of the server's offline time. Online
  there is none of it, only products and transforms.
- **Memory.** A frequency-domain layer reads each of its transformed weights once, eight bytes for each value and limb
  of a product, and for the largest layers that is most of the server's time online. Most sums beyond 22 bits need
  parameter set B there: limbs of 50 bits for limbs of 40.

[JVC18]: https://www.usenix.org/conference/usenixsecurity18/presentation/juvekar
[LXDGWWW18]: https://arxiv.org/abs/1811.08257
[LMRWB22]: https://arxiv.org/abs/2203.02833
[code]: https://github.com/chiraag/gazelle_mpc
"""
