//! The names of pairings and of material.

use std::fmt;
use std::str::FromStr;

use lanner_primitives::{Label, derive_seed};

use crate::StoreError;

/// Names material: never two pieces by one name, whatever became of the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MaterialId([u8; 16]);

impl MaterialId {
    /// The name that both parties give to the material of a session's layer, operation, repetition and direction.
    #[must_use]
    pub fn of(label: &Label) -> Self {
        Self(*derive_seed(b"lanner material", label).as_bytes())
    }
}

/// Names a pairing, the same on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PairingId([u8; 16]);

impl FromStr for PairingId {
    type Err = StoreError;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        let number = number.ok_or_else(|| StoreError::NoName { text: text.to_owned() })?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// What both kinds of names have.
macro_rules! names {
    ($($name:ident),*) => {$(
        impl $name {
            /// The name of these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The bytes of the name.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", u128::from_be_bytes(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

names!(MaterialId, PairingId);
