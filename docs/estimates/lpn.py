"""Estimates of the noise problem behind silent transfers: learning parity with regular noise over GF(2).

The sets are those of ``crates/ot/src/silent/parameters.rs``: t trees of 2^d leaves and a code with k inputs give
N = t 2^d outputs whose noise has one 1 in each run of b = 2^d. Standard library only; a minute:

    python3 docs/estimates/lpn.py > docs/estimates/lpn.txt

Each function is the base-2 logarithm of an attack's cost in bit operations, at the best of its own parameters.
What is assumed:

- Memory is free, and so is the access to it.
- The code counts as a random one, but for the attack named subsystem, which is about what its sparsity gives away: ours
  has ten ones a column at pseudorandom places.
- One iteration is attacked by itself. Each has new inputs and noise, so m iterations are worth at most log2(m) bits to
  an attacker who needs to break any one of them.
- Regular noise is worth t equations to attacks on noise of any shape, as the noise of a run adds up to 1: they face
  (N - t, k - t, t).
- The degrees at which algebraic attacks succeed are their authors' conjecture: systems behave as generic ones do.

Sources:

- [LWYY22] Liu, Wang, Yang, Yu, eprint 2022/712: Gauss, SD, BJMM and statistical decoding at finite sizes.
- [ES24] Esser, Santini, eprint 2023/1568: information sets of regular noise.
- [BO23] Briaud, Oygarden, eprint 2023/176: the algebraic attack.
- [Hyb25] eprint 2025/1284: guesses and quadratic equations.
- [AGB25] eprint 2025/1476: the algebraic attack with two stages of guesses.
"""

from collections.abc import Iterator
from math import ceil, comb, floor, inf, lgamma, log, log2, sqrt
from typing import NamedTuple


class Problem(NamedTuple):
    """``t`` runs of noise, ``k`` inputs of the code, ``d`` levels of a tree."""

    t: int
    k: int
    d: int

    @property
    def outputs(self) -> int:
        """N."""
        return self.t << self.d

    @property
    def usable(self) -> int:
        """What an iteration gives beyond what the next begins with."""
        return self.outputs - self.k - self.t * self.d


IN_USE = [Problem(1400, 1 << 16, 9), Problem(1600, 1 << 17, 10), Problem(1850, 1 << 18, 11), Problem(2100, 1 << 19, 12)]

# Ones of a column of the code.
ONES = 10


def choose(n: float, m: float) -> float:
    """log2 of a binomial coefficient."""
    return -inf if m < 0 or m > n else (lgamma(n + 1) - lgamma(m + 1) - lgamma(n - m + 1)) / log(2)


def add(*costs: float) -> float:
    """log2 of a sum, of the summands' logarithms."""
    largest = max(costs)
    return largest + log2(sum(2.0 ** (cost - largest) for cost in costs))


# Noise of any shape


def gauss(n: int, k: int, t: int) -> float:
    """Prange with pooled samples: k outputs without noise, and their inverse in k^2.8."""
    return 2.8 * log2(min(k, n - k)) + choose(n, t) - choose(n - k, t)


def statistical(n: int, k: int, t: int) -> float:
    """Statistical decoding: parity checks of weight k + 1, whose bias is squared."""
    return log2(k + 1) + 2 * t * log2((n - t + 1) / (n - k - t))


def elimination(n: int, k: int, window: int) -> float:
    """One elimination of an information-set decoder."""
    return log2((n - k - window) * n / log2(n - k - window))


def stern(n: int, k: int, t: int) -> float:
    """Information sets with p errors inside, found by collisions on a window (SD; Stern, Dumer)."""

    def cost(p: int, window: int) -> float:
        half = choose((k + window) // 2, p // 2)
        found = 2 * half - window
        chance = choose(n - k - window, t - p) - choose(n, t) + window + found
        return inf if chance >= 0 else log2(n) + add(elimination(n, k, window), 1 + half, 1 + found) - chance

    def windows(p: int) -> range:
        return range(2 * ceil(choose(k // 2, p // 2)) + 40)

    return min(cost(p, window) for p in range(0, 16, 2) for window in windows(p))


def bjmm(n: int, k: int, t: int) -> float:
    """Information sets with representations, three levels (BJMM)."""

    def cost(quarter: int, window: int, twice: tuple[int, int]) -> float:
        places = k + window
        half = 2 * (quarter - twice[1])
        p = 2 * (half - twice[0])
        if not 0 <= p <= t or half <= 0:
            return inf
        # What a sum of two words of one weight is of the weight wanted, by how many of its ones coincide.
        inner = choose(quarter, twice[1]) + choose(places - quarter, quarter - twice[1]) - choose(places, quarter)
        outer = choose(half, twice[0]) + choose(places - half, half - twice[0]) - choose(places, half)
        base = choose(places // 2, quarter // 2)
        r2 = min(max(floor(inner + 4 * base - choose(places, half)), 0), max(window - 1, 0))
        r1 = floor(outer + 2 * choose(places, half) - choose(places, p)) - r2
        r1 = min(max(r1, 0), max(window - r2 - 1, 0))
        third = 2 * base - r2
        second = 2 * third - r1
        kept = min(inner + second, choose(places, half) - r1 - r2)
        first = 2 * kept - window + r1 + r2
        found = min(outer + first, choose(places, p) - window)
        chance = choose(n - k - window, t - p) + window + found - choose(n, t)
        lists = add(elimination(n, k, window), 3 + base, 2 + third, 1 + second, 1 + first)
        return inf if chance >= 0 else log2(n) + lists - chance

    def splits(quarter: int) -> Iterator[tuple[int, int]]:
        return ((e1, e2) for e2 in range(quarter) for e1 in range(2 * (quarter - e2)))

    return min(
        cost(quarter, window, split)
        for quarter in (2, 4, 6, 8)
        for window in range(2, 300, 2)
        for split in splits(quarter)
    )


# Regular noise


def within(problem: Problem, share: float) -> float:
    """How many outputs add no inputs but those of some choice of this share of them: no choice has more.

    The outputs of one choice are a binomial number with the chance share^ONES. Where the chance that they are so many,
    times the number of choices, is below 1, no such choice is expected; the bound on the chance is Chernoff's.
    """
    chance = share**ONES
    choices = -(share * log(share) + (1 - share) * log(1 - share)) * problem.k / problem.outputs
    least, most = chance, 1 - 1e-12
    for _ in range(50):
        middle = (least + most) / 2
        rare = middle * log(middle / chance) + (1 - middle) * log((1 - middle) / (1 - chance)) > choices
        least, most = (least, middle) if rare else (middle, most)
    return least * problem.outputs


def subsystem(problem: Problem) -> float:
    """Systems of some of the inputs and of the outputs that add no others, solved by themselves, with p errors inside.

    As columns are sparse, six tenths of the inputs have as many such outputs as they are, so that fewer outputs without
    noise are needed than the code has inputs. How well inputs can be chosen is bounded by what exists; a greedy search
    finds systems of 5% more inputs. Each try has another one, and eliminates by Wiedemann's algorithm: twice as many
    products with the sparse matrix as there are inputs.
    """

    def cost(inputs: int, outputs: int, errors: int) -> float:
        part = outputs / problem.outputs
        seldom = choose(problem.t, errors) + errors * log2(part) + (problem.t - errors) * log2(1 - part)
        each = log2(2 * ONES) + 2 * log2(inputs)
        return min(stern_tries(outputs, inputs, errors, p, each) for p in range(0, errors + 1, 2)) - seldom

    shares = (share / 500 for share in range(200, 490))
    systems = [(floor(share * problem.k), floor(within(problem, share))) for share in shares]
    systems = [(inputs, outputs) for inputs, outputs in systems if outputs > inputs]
    return min(cost(*system, errors) for system in systems[:5] for errors in range(12))


def stern_tries(n: int, k: int, t: int, p: int, each: float) -> float:
    """Information sets with p errors inside, found by collisions on the best window; an elimination takes 2^each."""

    def cost(window: int) -> float:
        half = choose((k + window) // 2, p // 2)
        found = 2 * half - window
        chance = choose(n - k - window, t - p) - choose(n, t) + window + found
        return add(each, 1 + half, 1 + found) - min(chance, 0)

    half = round(choose(k // 2, p // 2))
    windows = range(max(0, half - 12), min(half + 12, n - k))
    return min((cost(window) for window in windows), default=inf)


def regular_enumeration(problem: Problem) -> float:
    """Information sets that take equally many places of each run, with p errors inside, found by collisions [ES24]."""
    n, t, b = problem.outputs, problem.t, 1 << problem.d
    k = problem.k - t

    def cost(p: int, window: int) -> float:
        taken = (k + window) / t
        if taken >= b:
            return inf
        pairs = choose(t // 2, p // 2)
        chance = 2 * pairs + p * log2(taken / b) + (t - p) * log2(1 - taken / b)
        half = pairs + log2(taken) * (p / 2)
        return log2(n) + max(2 * log2(n - k), 1 + half, 2 * half - window) - chance

    def windows(p: int) -> range:
        half = choose(t // 2, p // 2) + log2(k / t) * (p / 2)
        return range(max(1, floor(half / 2)), floor(1.5 * half) + 20)

    return min(cost(p, window) for p in range(0, 24, 2) for window in windows(p))


def hybrid(problem: Problem) -> float:
    """Guesses of u or u + 1 places without noise in each run; quadratic equations in what stays unknown [Hyb25].

    The places of g runs are tried one by one. Within a run a product of two different places is 0.
    """
    n, k, t, b = problem.outputs, problem.k, problem.t, 1 << problem.d

    def cost(u: int, f: int, g: int) -> float:
        left = n - t - f - (t - g) * u
        if left <= 0 or u + 1 >= b:
            return inf
        guesses = -f * log2(1 - (u + 1) / b) - (t - g - f) * log2(1 - u / b)
        unknown = k - t - (u + 1) * f - (t - f - g) * u
        rows = n - k - ((n - k) // (b - 1)) * (b - u - 2)
        linear = log2(max(1, rows * (n - k) * (rows + unknown)))
        if unknown <= 0:
            return guesses + linear
        tried = (b - 1) * g
        quadratic = unknown - tried
        equations = (t - f - g) * (b - u - 2) * (b - u - 1) / 2 + f * (b - u - 2) * (b - u - 3) / 2
        if quadratic < 0 or quadratic > sqrt(2 * equations) - 2:
            return inf
        if quadratic == 0:
            return guesses + add(linear, g * log2(b))
        once = quadratic**4 * unknown**2 / 8 / log2(max(quadratic**2 / 2, 2))
        lifted = 2 * quadratic**2 * tried + quadratic * tried**2
        each = 1.25 * lifted + (2.5 * quadratic) ** 3 / log2(2.5 * quadratic + 2)
        return guesses + add(linear, log2(max(once, 1)), log2(each) + g * log2(b))

    # Guesses alone cost more than any attack here beyond this many places.
    most = min(b - 2, 200 * b // t)
    step = max(1, t // 40)
    _, u, f, g = min((cost(u, f, g), u, f, g) for u in range(most) for g in range(16) for f in range(0, t - g, step))
    near = range(max(0, f - 2 * step), min(t - g, f + 2 * step + 1))
    return min(cost(v, f, g) for v in range(max(0, u - 1), u + 2) for f in near)


class Macaulay(NamedTuple):
    """Monomials of degree at most 2, 3, 4, and how many of them the equations leave free."""

    monomials: tuple[int, ...]
    free: tuple[int, ...]


def macaulay(problem: Problem, f: int, u: int) -> Macaulay:
    """The system after u guesses in each of f runs, if it is generic: series up to the fourth power [BO23]."""
    b, checks = 1 << problem.d, problem.outputs - problem.k - 1
    guessed = [comb(f, i) * (b - u - 1) ** i for i in range(5)]
    others = [comb(problem.t - f, i) * (b - 1) ** i for i in range(5)]
    equations = [(-1) ** i * comb(checks + i - 1, i) for i in range(5)]

    def product(x: list[int], y: list[int]) -> list[int]:
        return [sum(x[i] * y[j - i] for i in range(j + 1)) for j in range(5)]

    monomials = product(guessed, others)
    free = product(monomials, equations)
    return Macaulay(*(tuple(sum(series[1 : degree + 1]) for degree in (2, 3, 4)) for series in (monomials, free)))


class Guess(NamedTuple):
    """u guesses in each of f runs, what that costs, and the system it leaves."""

    f: int
    u: int
    cost: float
    system: Macaulay


def guesses(problem: Problem) -> list[Guess]:
    """The guesses that cost at most 2^160."""
    b, step = 1 << problem.d, max(1, problem.t // 50)
    found = []
    for f in range(problem.t, 0, -step):
        for u in range(b - 1):
            cost = -f * log2(1 - u / b)
            if f * u > problem.k or cost > 160:
                break
            found.append(Guess(f, u, cost, macaulay(problem, f, u)))
    return found


def algebraic(problem: Problem, tries: list[Guess]) -> tuple[float, float]:
    """The algebraic attack with one stage of guesses [BO23], and with two [AGB25].

    One stage solves a sparse system at the first degree that leaves nothing free. In two, fewer guesses begin, their
    system is eliminated, and the remaining guesses are made for each result of that, in what stayed free. The second
    stage's guesses need not extend the first's here, which can only make the attack cheaper.
    """
    one = two = inf
    for degree in range(3):
        enough = [guess for guess in tries if guess.system.free[degree] < 1]
        if not enough:
            continue
        last = min(guess.cost for guess in enough)
        for guess in tries:
            monomials, free = guess.system.monomials[degree], max(guess.system.free[degree], 1)
            sparse = log2(3 * (problem.k + 1 - guess.f * guess.u)) + 2 * log2(monomials)
            if guess.system.free[degree] < 1:
                one = min(one, sparse + guess.cost)
            rank = max(monomials - free, 2)
            eliminated = min(sparse, log2(monomials) + 2 * log2(rank) - log2(log2(rank)) if rank > 2 else inf)
            rest = log2(5.64) + 2.8 * log2(min(free, rank))
            two = min(two, add(eliminated + guess.cost, rest + last))
    return one, two


def estimates(problem: Problem) -> dict[str, float]:
    """Every attack's cost by name."""
    free_form = (problem.outputs - problem.t, problem.k - problem.t, problem.t)
    one, two = algebraic(problem, guesses(problem))
    return {
        "Gauss": gauss(*free_form),
        "SD": stern(*free_form),
        "BJMM": bjmm(*free_form),
        "statistical": statistical(*free_form),
        "regular": regular_enumeration(problem),
        "subsystem": subsystem(problem),
        "hybrid": hybrid(problem),
        "algebraic": one,
        "two-stage": two,
    }


def table(title: str, problems: list[Problem]) -> None:
    """Print a row for each problem."""
    print(f"\n{title}")
    header = ("trees", "inputs", "depth", "usable")
    print(" ".join(f"{name:>9}" for name in header), end="")
    for row, problem in enumerate(problems):
        costs = estimates(problem)
        if row == 0:
            print("".join(f"{name:>12}" for name in costs), f"{'least':>9}")
        numbers = (problem.t, problem.k, problem.d, problem.usable)
        print(" ".join(f"{number:>9}" for number in numbers), end="")
        print("".join(f"{cost:>12.1f}" for cost in costs.values()), f"{min(costs.values()):>9.1f}")


def main() -> None:
    """Print the estimates of the sets in use, and of what else they might be."""
    print("Bits of security of learning parity with regular noise, by attack: docs/estimates/lpn.py.")
    table("The sets in use", IN_USE)
    larger = [problem._replace(t=problem.t // 2, d=problem.d + 1) for problem in IN_USE]
    table("With half as many trees of twice the leaves: enough for a random code, and not for one so sparse", larger)
    more = [problem._replace(t=problem.t * 5 // 4) for problem in IN_USE]
    table("With five quarters of the trees: more samples, and less security", more)


if __name__ == "__main__":
    main()
