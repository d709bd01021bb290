"""What the Tabula paper (Lam et al. 2022) gives for garbled circuits beside its lookups."""

#: What the Tabula paper gives for garbled circuits of so many bits: seconds online and bytes online of a ReLU, tables 3
#: and 1, and the bytes that are kept for it, section 4.2.
CIRCUITS = {32: (184e-6, 2170.0, 17_000.0), 16: (111e-6, 1100.0, 8500.0), 8: (69e-6, 562.0, 4250.0)}

#: The same of its own lookup, whose table has 2^k words of 64 bits.
LOOKUP = (0.55e-6, 16.0)

#: Bytes of a word of its tables.
WORD = 8

#: Seconds, table 4, and bytes, table 2, of networks with circuits of 32, 16 and 8 bits.
NETWORKS_OF_CIRCUITS = {
    "lenet": ((11.1, 6.3, 3.9), (124e6, 62e6, 31e6)),
    "resnet32": ((69.7, 43.4, 30.6), (311e6, 155e6, 77e6)),
    "vgg16": ((55.9, 32.1, 19.9), (286e6, 143e6, 72e6)),
    "cifar100_tabula_vgg16": ((55.9, 32.1, 19.9), (286e6, 143e6, 72e6)),
    "cifar100_tabula_resnet34": ((284.3, 159.9, 95.9), (1.5e9, 0.75e9, 370e6)),
}
