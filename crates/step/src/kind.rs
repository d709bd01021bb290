//! The kinds of the protocols' messages.

use lanner_wire::Kind;

/// The client's public key.
pub const PUBLIC_KEY: Kind = Kind(0x30);
/// The client's evaluation keys.
pub const EVALUATION_KEYS: Kind = Kind(0x31);
/// The salt of the session's garbling, server to client.
pub const SALT: Kind = Kind(0x32);
/// The first half of a packed layer's input ciphertext, client to server.
pub const LINEAR_INPUT: Kind = Kind(0x40);
/// The first half of a packed layer's masked output ciphertext, server to client.
pub const LINEAR_OUTPUT: Kind = Kind(0x41);
/// The seeds of the second halves of a packed layer's input ciphertexts, client to server.
pub const LINEAR_SEEDS: Kind = Kind(0x42);
/// The second half of a packed layer's masked output ciphertext, server to client.
pub const LINEAR_SECOND_HALF: Kind = Kind(0x43);
/// The difference between the client's share of a layer's input and the one that it prepared for, client to server.
pub const LINEAR_DIFFERENCE: Kind = Kind(0x44);
/// A chunk of garbled tables, server to client.
pub const TABLES: Kind = Kind(0x50);
/// The permute bits of revealed outputs, server to client.
pub const DECODING: Kind = Kind(0x51);
/// Masked input bits of a circuit, client to server.
pub const MASKED_INPUT: Kind = Kind(0x52);
/// The labels of masked input bits, server to client.
pub const INPUT_LABELS: Kind = Kind(0x53);
/// Masked bits of a conversion, client to server.
pub const MASKED_BITS: Kind = Kind(0x60);
/// The difference between two sharings, server to client.
pub const RESHARE: Kind = Kind(0x61);
/// The server's share of a revealed value, server to client.
pub const REVEAL: Kind = Kind(0x62);
/// Masked blocks of compared values, from who chooses.
pub const LEAF_CHOICES: Kind = Kind(0x70);
/// Masked comparisons of blocks, from who replies.
pub const LEAF_REPLIES: Kind = Kind(0x71);
/// Shared bits opened against triples, from both.
pub const BIT_PRODUCTS: Kind = Kind(0x72);
/// Masked choices and corrections of multiplexers and products of shared values, from both.
pub const MUX: Kind = Kind(0x73);
/// Masked choices and corrections of products, one from each.
pub const PRODUCTS: Kind = Kind(0x74);
/// Masked places in a table, from who chooses.
pub const LOOKUP_PLACES: Kind = Kind(0x75);
/// Masked entries of a table, from who replies.
pub const LOOKUP_REPLIES: Kind = Kind(0x76);
/// A party's part of the salts of keys that are made together: the server's in the set-up, the client's of each step's.
pub const KEY_SALT: Kind = Kind(0x77);
/// Shares of what corrects the nodes of keys, from both.
pub const KEY_NODES: Kind = Kind(0x78);
/// Shares of what corrects the values of keys, from both.
pub const KEY_VALUES: Kind = Kind(0x79);
/// Values under masks, from both.
pub const MASKED_VALUES: Kind = Kind(0x7a);
/// An encryption of a network's input, client to server.
pub const SPECTRAL_INPUT: Kind = Kind(0x80);
/// The sealed ciphertext of a network's output, server to client.
pub const SPECTRAL_OUTPUT: Kind = Kind(0x81);
/// The seed of half a public key, server to client.
pub const KEY_HALF: Kind = Kind(0x90);
/// A public key with commitments to what proves it, client to server.
pub const KEY_COMMITMENTS: Kind = Kind(0x91);
/// The commitments of a key that are to be opened, server to client.
pub const KEY_CHALLENGE: Kind = Kind(0x92);
/// Openings of a key's commitments, client to server.
pub const KEY_ANSWER: Kind = Kind(0x93);
/// The salts of a prediction's garbling and of its hashes, server to client.
pub const SALTS: Kind = Kind(0x94);
/// The second half of a check's masked sum, server to client.
pub const CHECK_SECOND_HALF: Kind = Kind(0x95);
/// What turns hashes of labels into shares of multiples, server to client.
pub const CORRECTIONS: Kind = Kind(0x96);
/// Masked bits that a client commits to beside circuits, client to server.
pub const COMMITTED_BITS: Kind = Kind(0x97);
/// Coefficients of the checks' masked sums, server to client.
pub const CHECK_VALUES: Kind = Kind(0x98);
/// The seed of the factors that join checks, server to client.
pub const CHECK_FACTORS: Kind = Kind(0x99);
/// The hash of what the checks of a prediction come to, client to server.
pub const CHECK_HASH: Kind = Kind(0x9a);
