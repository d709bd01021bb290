//! Layers that pick elements, before the input is known and when it is.

use lanner_primitives::Ring;
use lanner_step::{
    Client, Inputs, ModelParts, ProtocolError, Samples, Server, SetUp, Sets, Shared, Spec, Value,
    Weights,
};
use lanner_testkit::{Domains, Transcript};
use lanner_transfers::{RingSelect, SelectAhead};

use crate::common::{Party as End, rng, run};
use crate::transcripts::{EXTREMES, Shares, check_masks, check_uniform, kinds, transcript};

/// Numbers without an element among those of four bits; outputs whose messages no byte is padded in.
const INPUTS: usize = 12;
const OUTPUTS: usize = 256;
const BITS: usize = 24;

/// Rows that all pick the last element.
struct Picks {
    weights: Vec<i64>,
    shared: Shared,
}

impl ModelParts for Picks {
    fn weights(&self, _: &str, _: usize) -> Result<Weights<'_>, ProtocolError> {
        Ok(Weights { weight: &self.weights, bias: vec![0; OUTPUTS] })
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn sources(&self, _: &str) -> Result<Vec<Option<(usize, usize)>>, ProtocolError> {
        Err(ProtocolError::WrongInput("a layer's sources"))
    }
}

fn session_of(spec: &dyn Spec, number: u8, shares: Shares) -> Transcript {
    let sets = Sets::new().unwrap();
    let row = |_| (0..INPUTS).map(|i| i64::from(i + 1 == INPUTS));
    let model = Picks { weights: (0..OUTPUTS).flat_map(row).collect(), shared: Shared::default() };
    let ring = Ring::Pow2(BITS as u32);
    let built = || spec.build(&sets).unwrap();
    let needs = built().needs().unwrap();
    let set_up = SetUp::of(std::slice::from_ref(&needs), needs.transfers, &sets).unwrap();
    let (client_step, server_step) =
        (built().client("layer", &model).unwrap(), built().server("layer", &model).unwrap());
    let nothing = || Inputs::new(vec![None]);
    let input = |share| Inputs::new(vec![Some(std::rc::Rc::new(Value::Shared(share)))]);
    let mut channels = End::pair();
    run(
        &mut channels,
        |end| {
            let mut client = Client::set_up(end, &set_up, rng(90 + 2 * number)).unwrap();
            let request = client_step.request(end, &mut client).unwrap();
            let (material, _) = client_step.prepare(end, &mut client, request, &nothing()).unwrap();
            let share = shares.client.share(ring, INPUTS);
            client_step.online(end, material, &input(share)).unwrap();
        },
        |end| {
            let mut server = Server::set_up(end, &set_up, rng(91 + 2 * number)).unwrap();
            let request = server_step.request(end, &mut server).unwrap();
            let (material, _) = server_step.prepare(end, &mut server, request, &nothing()).unwrap();
            let share = shares.server.share(ring, INPUTS);
            server_step.online(end, material, &input(share)).unwrap();
        },
    );
    transcript(&channels)
}

fn spec() -> RingSelect {
    RingSelect { inputs: INPUTS, outputs: OUTPUTS, bits: BITS as u32, samples: Samples::ONE }
}

fn online(number: u8, shares: Shares) -> Transcript {
    session_of(&spec(), number, shares)
}

fn ahead(number: u8, shares: Shares) -> Transcript {
    session_of(&SelectAhead(spec()), number, shares)
}

fn domains() -> Domains {
    let mut domains = kinds::of_compare(&[4, BITS]);
    domains.insert(0x44, kinds::bits(&[BITS]));
    domains
}

#[test]
fn selections_are_uniform_whatever_the_shares() {
    check_uniform(online, &domains(), &EXTREMES);
    check_masks(online, &domains(), &[("client", 0x74)]);
}

#[test]
fn selections_ahead_are_uniform_whatever_the_shares() {
    check_uniform(ahead, &domains(), &EXTREMES);
    check_masks(ahead, &domains(), &[("client", 0x44)]);
}
