"""Known answers for BFV, by plain integer arithmetic.

A second implementation of the scheme as docs and papers define it, sharing no code and no algorithm with the library:
coefficients are Python integers modulo ``q`` or ``qP``, products are integer products of packed polynomials, transforms are
recursive evaluation, division is rounding of integers, AES is written out. It follows one layer from the client's keys to the
sealed answer under a seeded generator and prints a SHA-256 digest of every message.

    python3 vectors/bfv.py > vectors/bfv.txt
"""

import hashlib
from collections.abc import Iterator

N = 8192
LIMBS = [1125899903827969, 1125899902124033, 1125899887312897]
SPECIAL = 1125899886395393
T = 1032193
STEPS = 1
FLOOD_BITS = 78
WORD = (1 << 64) - 1

Poly = list[int]


# Generators


class SplitMix64:
    """[SLF14]; one output for each eight bytes."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def word(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        z = ((self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & WORD
        return z ^ z >> 31

    def words(self, count: int) -> list[int]:
        return [self.word() for _ in range(count)]

    def seed(self) -> bytes:
        return b"".join(word.to_bytes(8, "little") for word in self.words(2))


def aes_sbox() -> list[int]:
    """The S-box of FIPS 197 from its definition: inversion in GF(2^8), then an affine map."""
    box = [0x63] * 256
    p = q = 1
    while True:
        p ^= (p << 1) ^ (0x11B if p & 0x80 else 0)
        p &= 0xFF
        q ^= q << 1
        q ^= q << 2
        q ^= q << 4
        q &= 0xFF
        q ^= 0x09 if q & 0x80 else 0
        rotations = q
        for i in range(1, 5):
            rotations ^= (q << i | q >> (8 - i)) & 0xFF
        box[p] = rotations ^ 0x63
        if p == 1:
            return box


SBOX = aes_sbox()
DOUBLE = [(x << 1) ^ (0x11B if x & 0x80 else 0) for x in range(256)]


def aes_round_keys(key: bytes) -> list[bytes]:
    words = [key[i : i + 4] for i in range(0, 16, 4)]
    constant = 1
    for i in range(4, 44):
        last = words[-1]
        if i % 4 == 0:
            last = bytes(SBOX[b] for b in last[1:] + last[:1])
            last = bytes([last[0] ^ constant]) + last[1:]
            constant = DOUBLE[constant]
        words.append(bytes(a ^ b for a, b in zip(words[-4], last)))
    return [b"".join(words[i : i + 4]) for i in range(0, 44, 4)]


SHIFT_ROWS = [(4 * ((i // 4 + i % 4) % 4)) + i % 4 for i in range(16)]


def aes_encrypt(round_keys: list[bytes], block: bytes) -> bytes:
    state = [a ^ b for a, b in zip(block, round_keys[0])]
    for key in round_keys[1:10]:
        state = [SBOX[state[i]] for i in SHIFT_ROWS]
        mixed = []
        for c in range(0, 16, 4):
            column = state[c : c + 4]
            total = column[0] ^ column[1] ^ column[2] ^ column[3]
            mixed += [column[r] ^ total ^ DOUBLE[column[r] ^ column[(r + 1) % 4]] for r in range(4)]
        state = [a ^ b for a, b in zip(mixed, key)]
    return bytes(SBOX[state[i]] ^ k for i, k in zip(SHIFT_ROWS, round_keys[10]))


class Expansion:
    """AES-128 in counter mode from zero, the counter little-endian, read as little-endian words."""

    def __init__(self, seed: bytes) -> None:
        self.stream = self.generate(aes_round_keys(seed))

    @staticmethod
    def generate(round_keys: list[bytes]) -> Iterator[int]:
        counter = 0
        while True:
            block = aes_encrypt(round_keys, counter.to_bytes(16, "little"))
            yield int.from_bytes(block[:8], "little")
            yield int.from_bytes(block[8:], "little")
            counter += 1

    def words(self, count: int) -> list[int]:
        return [next(self.stream) for _ in range(count)]


# Samplers


def ternary(rng: SplitMix64) -> Poly:
    return [3 * word // 2**64 - 1 for word in rng.words(N)]


def error(rng: SplitMix64) -> Poly:
    side = (1 << 21) - 1
    return [(w & side).bit_count() - (w >> 21 & side).bit_count() for w in rng.words(N)]


def uniform_limb(expansion: Expansion, q: int) -> list[int]:
    """Low bits of a word for each value; then again, in order, for those that are not below ``q``."""
    mask = (1 << q.bit_length()) - 1
    values = [word & mask for word in expansion.words(N)]
    for i, value in enumerate(values):
        while value >= q:
            value = next(expansion.stream) & mask
        values[i] = value
    return values


def flood(rng: SplitMix64) -> Poly:
    """Sums of three uniform integers of FLOOD_BITS bits, centred."""
    sums = [-(3 << FLOOD_BITS - 1)] * N
    for _ in range(3):
        low, high = rng.words(N), rng.words(N)
        sums = [s + ((b << 64 | a) & (1 << FLOOD_BITS) - 1) for s, a, b in zip(sums, low, high)]
    return sums


def below(rng: SplitMix64, bound: int) -> list[int]:
    return [word % bound for word in rng.words(N)]


# The ring


def product(primes: list[int]) -> int:
    result = 1
    for q in primes:
        result *= q
    return result


def multiply(a: Poly, b: Poly, q: int) -> Poly:
    """The product modulo ``X^N + 1`` and ``q``, by one product of integers."""
    width = (2 * q.bit_length() + N.bit_length() + 7) // 8
    packed = (join(a, q, width) * join(b, q, width)).to_bytes(2 * N * width, "little")
    terms = [int.from_bytes(packed[i : i + width], "little") for i in range(0, len(packed), width)]
    return [(low - high) % q for low, high in zip(terms[:N], terms[N:])]


def join(poly: Poly, q: int, width: int) -> int:
    return int.from_bytes(b"".join((x % q).to_bytes(width, "little") for x in poly), "little")


def add(a: Poly, b: Poly, q: int) -> Poly:
    return [(x + y) % q for x, y in zip(a, b)]


def subtract(a: Poly, b: Poly, q: int) -> Poly:
    return [(x - y) % q for x, y in zip(a, b)]


def automorphism(a: Poly, g: int) -> Poly:
    result = [0] * N
    for i, x in enumerate(a):
        place = i * g % (2 * N)
        result[place % N] = x if place < N else -x
    return result


def center(x: int, q: int) -> int:
    x %= q
    return x - q if 2 * x > q else x


def divide_round(x: int, divisor: int) -> int:
    """The nearest integer to ``x / divisor``, for an odd divisor."""
    return (2 * x + divisor) // (2 * divisor)


def root(q: int) -> int:
    """The root of order ``2N`` that both parties find."""
    candidates = (pow(g, (q - 1) // (2 * N), q) for g in range(2, q))
    return next(psi for psi in candidates if pow(psi, N, q) == q - 1)


def evaluate(a: list[int], x: int, q: int) -> list[int]:
    """Values at ``x``, ``x w``, ``x w^2``, ... with ``w`` of order ``len(a)`` and ``x^len(a) = -1``: ``w = x^2``."""
    if len(a) == 1:
        return [a[0] % q]
    even = evaluate(a[0::2], x * x % q, q)
    odd = evaluate(a[1::2], x * x % q, q)
    power, square, values = x, x * x % q, []
    for i in range(len(a)):
        values.append((even[i % len(even)] + power * odd[i % len(odd)]) % q)
        power = power * square % q
    return values


def interpolate(values: list[int], x: int, q: int) -> list[int]:
    """The inverse of :func:`evaluate`, which is a transposed evaluation up to scaling."""
    inverse, scale = pow(x, -1, q), pow(len(values), -1, q)
    square = inverse * inverse % q
    # sum_i values[i] (x w^i)^-k is the value at w^-k of the polynomial with coefficients values, times x^-k.
    sums = plain_transform(values, square, q)
    power, result = 1, []
    for total in sums:
        result.append(total * power * scale % q)
        power = power * inverse % q
    return result


def plain_transform(a: list[int], w: int, q: int) -> list[int]:
    """Values at ``1, w, w^2, ...``."""
    if len(a) == 1:
        return a
    half = len(a) // 2
    even, odd = plain_transform(a[0::2], w * w % q, q), plain_transform(a[1::2], w * w % q, q)
    power, values = 1, []
    for i in range(len(a)):
        values.append((even[i % half] + power * odd[i % half]) % q)
        power = power * w % q
    return values


def reverse_bits(i: int) -> int:
    return int(format(i, f"0{N.bit_length() - 1}b")[::-1], 2)


REVERSED = [reverse_bits(i) for i in range(N)]


def to_wire_order(a: Poly, q: int) -> list[int]:
    """Place ``i`` holds the value at ``psi^(2 bitrev(i) + 1)``."""
    values = evaluate(a, root(q), q)
    return [values[i] for i in REVERSED]


def from_wire_order(values: list[int], q: int) -> Poly:
    return interpolate([values[i] for i in REVERSED], root(q), q)


def combine(limbs: list[list[int]], primes: list[int]) -> Poly:
    """Chinese remaindering."""
    q = product(primes)
    factors = [q // p * pow(q // p, -1, p) for p in primes]
    return [sum(x * f for x, f in zip(residues, factors)) % q for residues in zip(*limbs)]


def expand(expansion: Expansion, primes: list[int]) -> Poly:
    """A uniform polynomial, which is drawn as its values."""
    return combine([from_wire_order(uniform_limb(expansion, p), p) for p in primes], primes)


# The scheme


def encode_slots(slots: list[int]) -> Poly:
    """Slot ``i`` of the first row is the value at ``zeta^(3^i)``, of the second at ``zeta^(-3^i)``."""
    values = [0] * N
    power = 1
    for i in range(N // 2):
        values[power // 2] = slots[i]
        values[(2 * N - power) // 2] = slots[N // 2 + i]
        power = power * 3 % (2 * N)
    return interpolate(values, root(T), T)


def scale(message: Poly, q: int) -> Poly:
    return [divide_round(q * m, T) for m in message]


def pack(values: list[int], q: int) -> bytes:
    """Every value in the bits of ``q``, so eight of them in as many bytes."""
    bits = q.bit_length()
    out = []
    for start in range(0, N, 8):
        total = sum(x << (i * bits) for i, x in enumerate(values[start : start + 8]))
        out.append(total.to_bytes(bits, "little"))
    return b"".join(out)


def pack_values(poly: Poly, primes: list[int]) -> bytes:
    return b"".join(pack(to_wire_order(poly, p), p) for p in primes)


def pack_coefficients(poly: Poly, primes: list[int]) -> bytes:
    return b"".join(pack([x % p for x in poly], p) for p in primes)


def show(name: str, data: bytes) -> None:
    print(f"{name} {len(data)} {hashlib.sha256(data).hexdigest()}", flush=True)


def show_words(name: str, values: list[int]) -> None:
    show(name, b"".join(x.to_bytes(8, "little") for x in values))


def main() -> None:
    rng = SplitMix64(20_180_815)
    q, special = product(LIMBS), SPECIAL
    extended, modulus = [*LIMBS, SPECIAL], q * special

    s = ternary(rng)

    # Public key.
    seed = rng.seed()
    e = error(rng)
    a = expand(Expansion(seed), LIMBS)
    b = subtract(e, multiply(a, s, q), q)
    public = (b, a)
    show("public_key", seed + pack_values(b, LIMBS))

    # Key for one rotation: it takes s to phi^-1(s).
    g = pow(3, STEPS, 2 * N)
    target = automorphism(s, pow(g, -1, 2 * N))
    seed = rng.seed()
    expansion = Expansion(seed)
    wire, digits = seed, []
    for p in LIMBS:
        a = expand(expansion, extended)
        gadget = special * (q // p) * pow(q // p, -1, p)
        b = add(error(rng), [gadget * x for x in s], modulus)
        b = subtract(b, multiply(a, target, modulus), modulus)
        wire += pack_values(b, extended)
        digits.append((b, a))
    show("evaluation_keys", wire)

    # Upload.
    x = below(rng, T)
    message = encode_slots(x)
    show_words("encoded", message)
    seed = rng.seed()
    e = error(rng)
    c1 = expand(Expansion(seed), LIMBS)
    c0 = subtract(add(scale(message, q), e, q), multiply(c1, s, q), q)
    show("upload", seed + pack_values(c0, LIMBS))

    # The layer: y = x * w0 + rot(x) * w1.
    rotated0, rotated1 = [0] * N, [0] * N
    for p, (b, a) in zip(LIMBS, digits):
        digit = [center(v, p) for v in c1]
        rotated0 = add(rotated0, multiply(digit, b, modulus), modulus)
        rotated1 = add(rotated1, multiply(digit, a, modulus), modulus)
    rotated0 = add([divide_round(center(v, modulus), special) for v in rotated0], c0, q)
    rotated1 = [divide_round(center(v, modulus), special) for v in rotated1]
    rotated0, rotated1 = automorphism(rotated0, g), automorphism(rotated1, g)
    y0, y1 = [0] * N, [0] * N
    weights = [below(rng, T), below(rng, T)]
    for slots, (u0, u1) in zip(weights, [(c0, c1), (rotated0, rotated1)]):
        factor = [center(v, T) for v in encode_slots(slots)]
        y0 = add(y0, multiply(factor, u0, q), q)
        y1 = add(y1, multiply(factor, u1, q), q)

    # The answer.
    r = below(rng, T)
    u = ternary(rng)
    sealed = []
    for y, half in zip((y0, y1), public):
        sealed.append(add(add(y, multiply(half, u, q), q), error(rng), q))
    noise = flood(rng)
    at_flood = q // LIMBS[2]
    sealed = [[divide_round(center(v, q), LIMBS[2]) % at_flood for v in half] for half in sealed]
    sealed[0] = add(subtract(sealed[0], scale(encode_slots(r), at_flood), at_flood), noise, at_flood)
    sent = LIMBS[0]
    sealed = [[divide_round(center(v, at_flood), LIMBS[1]) % sent for v in half] for half in sealed]
    show("sealed", b"".join(pack_coefficients(half, [sent]) for half in sealed))

    # What the client gets, from the definition of the layer and from decryption.
    half_row = N // 2
    rotated = [x[i // half_row * half_row + (i + STEPS) % half_row] for i in range(N)]
    share = [(x[i] * weights[0][i] + rotated[i] * weights[1][i] - r[i]) % T for i in range(N)]
    phase = add(sealed[0], multiply(sealed[1], s, sent), sent)
    assert encode_slots(share) == [divide_round(T * v, sent) % T for v in phase]
    show_words("share", share)


if __name__ == "__main__":
    main()
