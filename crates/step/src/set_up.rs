//! What a session sets up for all its steps.

use std::collections::BTreeMap;

use lanner_bfv::{EvaluationKeys, NeededKey, ParameterSet, Parameters};
use lanner_ot::silent;
use sha2::{Digest, Sha256};

use super::{
    ClientKeys, Cost, EvaluationNeeds, KeyUse, Needs, ProtocolError, Rotation, Sets, galois_element,
    garbling_cost, keys_cost, power_of, transfer_sets, transfers_cost,
};

/// Bits of computational security of stretched keys: a guess at the AES key of one is tried at all of a layer or of a session's
/// predictions together, up to `2^20`.
const STRETCHED_SECURITY_BITS: u32 = 128 - 20;

/// What a session sets up before its first prediction: all that its steps need.
#[allow(clippy::struct_excessive_bools, reason = "each is a need of its own")]
pub struct SetUp {
    /// Keys, one for each parameter set in use.
    pub keys: Vec<SetKeys>,
    /// Whether the client makes a key for each prediction beside these.
    pub own_keys: bool,
    /// Whether circuits are garbled.
    pub garbling: bool,
    /// Whether keys of transfers are stretched that one evaluation of the cipher tries together.
    pub stretched_keys: bool,
    /// Whether comparison keys are made.
    pub comparison_keys: bool,
    /// The sets of the client's silent transfers and of the server's, if there are any.
    pub transfers: Option<[silent::Parameters; 2]>,
}

/// What a session's keys of one parameter set are made for.
pub struct SetKeys {
    /// The set.
    pub set: ParameterSet,
    /// Its parameters.
    pub parameters: Parameters,
    /// What its evaluation keys are for.
    pub uses: EvaluationNeeds,
    /// These keys.
    pub needed: Vec<NeededKey>,
}

impl SetUp {
    /// What steps of these needs take together, in all visits of which the client and the server send so many transfers.
    ///
    /// # Errors
    /// [`ProtocolError::Parameters`] if a rotation is none of its set's parameters.
    pub fn of(needs: &[Needs], transfers: [usize; 2], sets: &Sets) -> Result<Self, ProtocolError> {
        let mut uses: BTreeMap<ParameterSet, EvaluationNeeds> = BTreeMap::new();
        for (set, more) in needs.iter().filter_map(|needs| needs.keys.as_ref()) {
            let uses = uses.entry(*set).or_default();
            for (key_use, limbs) in more {
                let most = uses.entry(*key_use).or_default();
                *most = (*most).max(*limbs);
            }
        }
        let keys = |(set, uses): (ParameterSet, EvaluationNeeds)| {
            let parameters = sets.get(set)?.clone();
            let uses: EvaluationNeeds =
                uses.into_iter().map(|(key_use, limbs)| (key_use, limbs.min(parameters.limbs()))).collect();
            let key = |(key_use, limbs): (&KeyUse, &usize)| {
                let key = match key_use {
                    KeyUse::Rotation(rotation) => galois_element(*rotation, parameters.degree())?.into(),
                    KeyUse::Product => NeededKey::product(),
                    KeyUse::Power(power) => power_of(*power, parameters.degree())?.into(),
                };
                Ok::<_, ProtocolError>(key.at(*limbs))
            };
            let needed = uses.iter().map(key).collect::<Result<_, _>>()?;
            Ok(SetKeys { set, parameters, uses, needed })
        };
        let keys = uses.into_iter().map(keys).collect::<Result<_, ProtocolError>>()?;
        let garbling = needs.iter().any(|needs| needs.garbling);
        let own_keys = needs.iter().any(|needs| needs.own_keys);
        let stretched_keys = needs.iter().any(|needs| needs.stretched_keys);
        let comparison_keys = needs.iter().any(|needs| needs.comparison_keys);
        let transfers = (transfers != [0, 0]).then(|| transfer_sets(transfers));
        Ok(Self { keys, own_keys, garbling, stretched_keys, comparison_keys, transfers })
    }

    /// Bits of computational security of each part that is set up, by name.
    #[must_use]
    pub fn security(&self) -> Vec<(&'static str, u32)> {
        let transfers = self.garbling || self.transfers.is_some();
        let parts = [
            (!self.keys.is_empty() || self.own_keys, ("encryption", lanner_bfv::SECURITY_BITS)),
            (self.garbling, ("garbling", lanner_gc::SECURITY_BITS)),
            (transfers, ("base transfers", lanner_ot::base::SECURITY_BITS)),
            (transfers, ("transfers' hash", lanner_ot::SECURITY_BITS)),
            (transfers, ("transfers' checks", lanner_ot::softspoken::CHECK_SECURITY_BITS)),
            (self.transfers.is_some(), ("silent transfers", silent::SECURITY_BITS)),
            (self.stretched_keys, ("stretched keys", STRETCHED_SECURITY_BITS)),
            (self.comparison_keys, ("comparison keys", lanner_dpf::SECURITY_BITS)),
        ];
        parts.into_iter().filter_map(|(used, part)| used.then_some(part)).collect()
    }

    /// What the set-up sends.
    ///
    /// # Errors
    /// [`ProtocolError::Bfv`] for an automorphism of another degree, or any where the parameters have none.
    pub fn cost(&self) -> Result<Cost, ProtocolError> {
        let keys = self.keys.iter().try_fold(Cost::NONE, |cost, keys| {
            Ok::<_, ProtocolError>(cost.then(keys_cost(&keys.parameters, &keys.needed)?))
        })?;
        let garbling = if self.garbling { garbling_cost() } else { Cost::NONE };
        Ok(keys.then(garbling).then(self.transfers_cost()))
    }

    fn transfers_cost(&self) -> Cost {
        let cost = |sets| transfers_cost(sets, self.comparison_keys);
        self.transfers.map_or(Cost::NONE, cost)
    }

    /// Bytes of what `Server::write_keys` writes.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn encoded_keys_len(&self) -> Result<usize, ProtocolError> {
        self.keys.iter().try_fold(0, |bytes, SetKeys { parameters, needed, .. }| {
            Ok(bytes + ClientKeys::encoded_len(parameters, needed)?)
        })
    }

    /// What keys are made for, as a hash: set-ups of one identity make the same keys of one seed.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn keys_identity(&self) -> Result<[u8; 32], ProtocolError> {
        let mut hash = Sha256::new_with_prefix("lanner keys v1");
        // Whatever is added to a set's keys changes their length, if nothing else.
        hash.update((self.encoded_keys_len()? as u64).to_le_bytes());
        for SetKeys { set, parameters: _, uses, needed: _ } in &self.keys {
            hash.update(set.name());
            for (key_use, limbs) in uses {
                hash.update(match key_use {
                    KeyUse::Rotation(Rotation { step, swap }) => format!(" rotation {step} {swap} {limbs}"),
                    KeyUse::Product => format!(" product {limbs}"),
                    KeyUse::Power(power) => format!(" power {power} {limbs}"),
                });
            }
            hash.update("\n");
        }
        Ok(hash.finalize().into())
    }

    /// What keys are made for, in words.
    #[must_use]
    pub fn keys_described(&self) -> String {
        let described = self.keys.iter().map(|SetKeys { set, needed, .. }| match needed.len() {
            0 => format!("parameter set {}", set.name()),
            count => format!("parameter set {} with {count} evaluation keys", set.name()),
        });
        match &described.collect::<Vec<_>>()[..] {
            [] => "no keys".to_owned(),
            described => described.join(", "),
        }
    }

    /// Bytes that the server keeps of the client's keys.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn key_bytes(&self) -> Result<u64, ProtocolError> {
        self.keys.iter().try_fold(0, |bytes, keys| {
            Ok(bytes + EvaluationKeys::kept_bytes(&keys.parameters, &keys.needed)? as u64)
        })
    }
}
