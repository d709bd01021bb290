//! A prediction by both parties in one place, where their shares meet: what every step makes, for whoever looks for the step that is wrong.
//!
//! Both ends of the channel are made and used up here, by whoever has the weights and the input. A session with a peer never comes here.

use std::sync::Arc;
use std::thread;

use lanner_net::memory;
use lanner_network::Network;
use lanner_plan::{Plan, Visit};
use lanner_primitives::{Prg, Ring, Share};
use lanner_step::{PartyState, Value};
use lanner_wire::Channel;

use super::plan::PartyPlan;
use super::{ClientPlan, ClientSession, ExecutionError, Outcome, Prepared, ServedModel, ServerSession};

/// What a step makes, both shares together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// The name of the step's node: of what repeats, of that in the first iteration.
    pub name: String,
    /// The iteration.
    pub iteration: usize,
    /// The step's protocol.
    pub protocol: &'static str,
    /// The ring that it is shared in.
    pub ring: Ring,
    /// The secrets, as signed integers.
    pub integers: Vec<i64>,
}

/// Predicts with both parties on threads of this process; the result, and what is shared on the way, in order.
///
/// # Errors
/// As a session's; [`ExecutionError::Mismatch`] if a party's thread ends early.
pub fn together(
    network: &Network,
    plan: &Plan,
    input: &[i64],
) -> Result<(Outcome, Vec<Together>), ExecutionError> {
    let model = Arc::new(ServedModel::new(network, plan)?);
    let client_plan = Arc::new(ClientPlan::new(network.public(), plan)?);
    client_plan.check_input(input)?;
    let (mut client, mut server) = memory::pair();
    let (mine, theirs) = thread::scope(|scope| {
        // An end of the channel goes with its party, so that neither waits for one that is gone.
        let serving = scope.spawn(move || {
            let mut session = ServerSession::setup(&mut server, Arc::clone(&model), Prg::from_entropy()?)?;
            let prepared = session.prepare(&mut server)?;
            let (ring, len) = model.input;
            let shares = shares(&model, &mut server, prepared, Share::zero(ring, len));
            // The client waits for what is left in the buffer.
            server.flush()?;
            shares
        });
        let mine = (|| {
            let mut session =
                ClientSession::setup(&mut client, Arc::clone(&client_plan), Prg::from_entropy()?)?.0;
            let prepared = session.prepare(&mut client)?;
            shares(&client_plan, &mut client, prepared, Share::embed(client_plan.input.0, input))
        })();
        drop(client);
        let theirs = serving.join().map_err(|_| ExecutionError::Mismatch { what: "a party's thread" });
        (mine, theirs.flatten())
    });
    // The server's own error comes first: the client's is often only that the server is gone.
    let (theirs, mine) = (theirs?, mine?);
    let Some(Value::Revealed(outcome)) = mine.result else {
        return Err(ExecutionError::Mismatch { what: "a plan without an output" });
    };
    let meet = |((visit, mine), (_, theirs)): (&(usize, Share), &(usize, Share))| {
        let visit = &client_plan.visits[*visit];
        let (_, step) = client_plan.step_of(visit)?;
        let integers = mine.reveal(theirs).ok()?;
        let (name, iteration, protocol) = (step.node.clone(), visit.iteration, step.protocol);
        Some(Together { name, iteration, protocol, ring: mine.ring(), integers })
    };
    let made = mine.shares.iter().zip(&theirs.shares).filter_map(meet).collect();
    Ok((outcome, made))
}

/// What a party has made in the end, and its shares on the way, by visit.
struct Made {
    result: Option<Value>,
    shares: Vec<(usize, Share)>,
}

fn shares<P: PartyState>(
    plan: &PartyPlan<P>,
    channel: &mut dyn Channel,
    prepared: Prepared,
    input: Share,
) -> Result<Made, ExecutionError> {
    let (mut shares, mut number) = (Vec::new(), 0);
    let made = |_: &Visit, value: &Value| {
        if let Value::Shared(share) = value {
            shares.push((number, share.clone()));
        }
        number += 1;
    };
    let (result, _) = plan.online(channel, prepared.materials, input, made)?;
    Ok(Made { result, shares })
}
