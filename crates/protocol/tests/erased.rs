//! What holds secrets is erased when it is dropped: the bound is checked when this compiles.

use lanner_bfv::function_privacy::{PhaseSealing, PreparedPhase, Sealing};
use lanner_bfv::halves::{C0, PreparedDecryption, PreparedEncryption};
use lanner_bfv::{Blinding, Ciphertext, CoefficientFactor, Multiplier, Plaintext, SecretKey};
use lanner_primitives::{Bits, Prg, Seed, Share};
use lanner_ring::{Buffer, Coeff, Eval, Poly};
use zeroize::ZeroizeOnDrop;

fn is_erased<T: ZeroizeOnDrop>() {}

#[test]
fn secret_types_are_erased_when_dropped() {
    is_erased::<Buffer>();
    is_erased::<Poly<Coeff>>();
    is_erased::<Poly<Eval>>();
    is_erased::<Bits>();
    is_erased::<Prg>();
    is_erased::<Seed>();
    is_erased::<Share>();
    is_erased::<SecretKey>();
    is_erased::<Plaintext>();
    is_erased::<Multiplier>();
    is_erased::<CoefficientFactor>();
    is_erased::<Ciphertext>();
    is_erased::<C0>();
    is_erased::<Blinding>();
    is_erased::<Sealing>();
    is_erased::<PhaseSealing>();
    // What a client keeps of `c1 s`.
    is_erased::<PreparedDecryption>();
    is_erased::<PreparedPhase>();
    is_erased::<PreparedEncryption>();
}
