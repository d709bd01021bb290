//! Material as bytes, so that it outlives the session that made it.
//!
//! Format, all little-endian: version (4), party (1: client 0, server 1), identity (32); then what each step that is visited
//! encodes, in order. Every length follows from the plan. The bytes are secret: see [`Step::encode`](lanner_step::Step::encode).

use lanner_process::Mark;
use lanner_step::{Lifetime, Party, PartyState};
use lanner_store::Material;
use lanner_wire::{DecodeError, Reader, Writer};

use super::session::Prepared;
use super::{ExecutionError, PartyPlan, Phase};

impl Prepared {
    /// The bytes of the material, for a store. `identity` names the plan and the weights that it was made for, the same on both sides: a
    /// model's commitment, or a hash of what stands for it.
    ///
    /// # Errors
    /// [`ExecutionError::NotKept`] as [`PartyPlan::check_kept`]; [`ExecutionError::Step`] if it is the material of another plan.
    pub fn encode<P: PartyState>(
        self,
        plan: &PartyPlan<P>,
        identity: &[u8; 32],
    ) -> Result<Material, ExecutionError> {
        plan.check_kept()?;
        if self.materials.len() != plan.visits.len() {
            return Err(ExecutionError::OtherMaterial { what: "plan" });
        }
        let mut writer = Writer::new();
        writer.u32(VERSION);
        writer.u8(code(P::PARTY));
        writer.bytes(identity);
        for (visit, material) in plan.visits.iter().zip(&self.materials) {
            if let Some(((_, step), material)) = plan.step_of(visit).zip(material.as_ref()) {
                step.step.encode(material, &mut writer).map_err(ExecutionError::step(&step.name))?;
            }
        }
        Ok(Material::new(writer.into_bytes()))
    }
}

impl<P: PartyState> PartyPlan<P> {
    /// Checks that material of this plan can be kept until another session.
    ///
    /// # Errors
    /// [`ExecutionError::NotKept`] naming a layer whose material needs more than a channel.
    pub fn check_kept(&self) -> Result<(), ExecutionError> {
        match self.steps.iter().find(|step| step.lifetime != Lifetime::Free) {
            Some(step) => Err(ExecutionError::NotKept { step: step.name.clone() }),
            None => Ok(()),
        }
    }

    /// Reads what [`Prepared::encode`] wrote for the same plan, party and identity. Its costs are nothing: it was made before.
    ///
    /// # Errors
    /// [`ExecutionError::OtherMaterial`] if it is of another version, party or identity; [`ExecutionError::Material`] if the bytes are
    /// none that [`Prepared::encode`] writes.
    pub fn decode(&self, bytes: &[u8], identity: &[u8; 32]) -> Result<Prepared, ExecutionError> {
        let mut reader = Reader::new(bytes);
        let other = |what| Err(ExecutionError::OtherMaterial { what });
        if reader.u32()? != VERSION {
            return other("version");
        }
        if reader.u8()? != code(P::PARTY) {
            return other("party");
        }
        if reader.array()? != *identity {
            return other("plan");
        }
        let material = |visit| self.step_of(visit).map(|(_, step)| step.step.decode(&mut reader)).transpose();
        let materials = self.visits.iter().map(material).collect::<Result<_, DecodeError>>()?;
        reader.finish()?;
        Ok(Prepared { materials, costs: self.costs(Phase::Offline), mark: Mark::here() })
    }
}

const fn code(party: Party) -> u8 {
    match party {
        Party::Client => 0,
        Party::Server => 1,
    }
}

/// Changes with what any step encodes.
const VERSION: u32 = 2;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lanner_graph::Graph;
    use lanner_network::{Policy, Tensor, Tensors};
    use lanner_plan::{Mode, plan};
    use lanner_quantize::{QuantizationOptions, compile};

    use super::*;
    use crate::executor::ClientPlan;

    #[test]
    fn material_that_needs_its_session_is_refused_naming_the_layer() {
        let json = r#"{"format_version":2,"inputs":[{"name":"x","shape":[2]}],"nodes":[
            {"name":"fc","op":{"MatMul":{"weight":"w","bias":null}},"inputs":["x"]}],"output":"fc"}"#;
        let mut tensors = Tensors::default();
        tensors.insert("w", Tensor::new(vec![2, 2], vec![0.5, -0.25, 0.75, 0.125]).unwrap()).unwrap();
        let graph = Graph::from_json(json).unwrap();
        let network = compile(&graph, &tensors, &[0.5; 16], &QuantizationOptions::default()).unwrap();
        let plan = plan(network.public(), Policy::Logits, Mode::Falcon).unwrap();
        let mut plan = ClientPlan::new(network.public(), &plan).unwrap();
        plan.check_kept().unwrap();
        for lifetime in [Lifetime::Pairing, Lifetime::Session] {
            plan.steps[0].lifetime = lifetime;
            let prepared = Prepared { materials: Vec::new(), costs: Vec::new(), mark: Mark::here() };
            let error = prepared.encode(&plan, &[0; 32]).err().unwrap();
            assert!(matches!(&error, ExecutionError::NotKept { step } if step == "fc"), "{error}");
        }
    }
}
