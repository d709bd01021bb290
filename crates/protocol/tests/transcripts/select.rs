//! Layers that pick elements, before the input is known and when it is.

use lanner_primitives::Ring;
use lanner_step::{Client, Samples, Server, SetUp, Sets, Spec};
use lanner_testkit::Transcript;
use lanner_transfers::{ComputedAhead, RingSelect};

use crate::common::laws::Model;
use crate::common::{Party as End, inputs, rng, run, unknown};
use crate::transcripts::{OPPOSITES, Shares, check_masks, check_uniform, kinds, transcript};

/// Numbers without an element among those of four bits; outputs whose messages no byte is padded in.
const INPUTS: usize = 12;
const OUTPUTS: usize = 256;
const BITS: usize = 24;

/// Both layers in one session.
fn session(number: u8, shares: Shares) -> Transcript {
    let sets = Sets::new().unwrap();
    // Rows that all pick the last element.
    let row = |_| (0..INPUTS).map(|i| i64::from(i + 1 == INPUTS));
    let model = Model::new((0..OUTPUTS).flat_map(row).collect(), vec![0; OUTPUTS]);
    let spec = RingSelect { elements: INPUTS, outputs: OUTPUTS, bits: BITS as u32, samples: Samples::ONE };
    let ahead = ComputedAhead(spec.clone());
    let ring = Ring::Pow2(spec.bits);
    let built = || [&spec as &dyn Spec, &ahead].map(|spec| spec.build(&sets).unwrap());
    let needs = built().map(|built| built.needs().unwrap());
    let transfers = [needs[0].transfers[0] + needs[1].transfers[0], 0];
    let set_up = SetUp::of(&needs, transfers, &sets).unwrap();
    let of_client = built().map(|built| built.client("layer", &model).unwrap());
    let of_server = built().map(|built| built.server("layer", &model).unwrap());
    let mut channels = End::pair();
    run(
        &mut channels,
        |end| {
            let mut client = Client::set_up(end, &set_up, rng(90 + 2 * number)).unwrap();
            for step in &of_client {
                let request = step.request(end, &mut client).unwrap();
                let (material, _) = step.prepare(end, &mut client, request, &unknown(1)).unwrap();
                step.online(end, material, &inputs(&[&shares.client.share(ring, INPUTS)])).unwrap();
            }
        },
        |end| {
            let mut server = Server::set_up(end, &set_up, rng(91 + 2 * number)).unwrap();
            for step in &of_server {
                let request = step.request(end, &mut server).unwrap();
                let (material, _) = step.prepare(end, &mut server, request, &unknown(1)).unwrap();
                step.online(end, material, &inputs(&[&shares.server.share(ring, INPUTS)])).unwrap();
            }
        },
    );
    transcript(&channels)
}

#[test]
fn selections_are_uniform_whatever_the_shares() {
    let mut domains = kinds::of_compare(&[4, BITS]);
    domains.insert(0x44, kinds::bits(&[BITS]));
    check_uniform(session, &domains, OPPOSITES);
    check_masks(session, &domains, &[("client", 0x74), ("client", 0x44)]);
}
