//! Plans whose linear layers are encrypted ahead of time: every output integer as computed in the clear, what is predicted is what is sent, offline
//! in one round, and material that was bytes in between makes the same prediction.

use lanner_coefficient::delphi;
use lanner_network::{FixedExecutor, Network, Policy};
use lanner_plan::{Item, Mode, Plan, plan};
use lanner_protocol::Protocol;
use lanner_quantize::QuantizationOptions;
use lanner_session::executor::{ClientPlan, PartyPlan, Phase, Prepared, ServedModel};
use lanner_step::{Outcome, PartyState};
use lanner_transfers::Rounding;

use crate::common::{Digested, network, session, session_keeping};

const IDENTITY: [u8; 32] = [7; 32];

const JSON: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[1,8,8]}],"nodes":[
    {"name":"conv1","op":{"Conv":{"weight":"w1","bias":"b1","strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["x"]},
    {"name":"relu1","op":"Relu","inputs":["conv1"]},
    {"name":"pool","op":{"MaxPool":{"kernel":[2,2],"strides":[2,2],"pads":[0,0,0,0]}},"inputs":["relu1"]},
    {"name":"conv2","op":{"Conv":{"weight":"w2","bias":null,"strides":[1,1],"pads":[1,1,1,1],"dilations":[1,1],"groups":1}},"inputs":["pool"]},
    {"name":"sum","op":"Add","inputs":["conv2","pool"]},
    {"name":"relu2","op":"Relu","inputs":["sum"]},
    {"name":"flat","op":"Flatten","inputs":["relu2"]},
    {"name":"fc","op":{"MatMul":{"weight":"w3","bias":"b3"}},"inputs":["flat"]}],"output":"fc"}"#;
const SHAPES: [(&str, &[usize]); 5] =
    [("w1", &[3, 1, 3, 3]), ("b1", &[3]), ("w2", &[3, 3, 3, 3]), ("w3", &[48, 5]), ("b3", &[5])];

/// A plan of mode `cheetah`, all of whose linear layers are split.
fn split(network: &Network) -> Plan {
    let mut plan = plan(network.public(), Policy::Logits, Mode::Cheetah(Rounding::Exact)).unwrap();
    for item in &mut plan.items {
        let Item::Step(step) = item else { continue };
        if let Protocol::CheetahLinear(layer) = &step.protocol {
            step.protocol = delphi::Linear(layer.clone()).into();
        }
    }
    let layers = plan.steps().map(|step| step.protocol.name()).filter(|name| name.starts_with("delphi"));
    assert_eq!(layers.collect::<Vec<_>>(), ["delphi.conv", "delphi.conv", "delphi.fc"]);
    plan
}

/// The material as it comes back from its bytes.
fn through<P: PartyState>(prepared: Prepared, plan: &PartyPlan<P>) -> Prepared {
    let bytes = prepared.encode(plan, &IDENTITY).unwrap();
    plan.decode(bytes.as_bytes(), &IDENTITY).unwrap()
}

#[test]
fn split_layers_compute_what_the_network_does() {
    let (network, samples) = network(JSON, &SHAPES, 64, &QuantizationOptions::powers_of_two());
    let plan = split(&network);
    let executor = FixedExecutor::new(&network).unwrap();
    for sample in &samples[..2] {
        let input = network.public().input().quantize(sample).unwrap();
        let truth = Outcome::Logits(executor.run(&input).unwrap().output);
        let (channel, outcome, costs) = session(&network, &plan, &input, Digested::new);
        assert_eq!(outcome, truth);
        // What is predicted is what is sent, step by step.
        let cost = plan.build().unwrap().cost().unwrap();
        let predicted = std::iter::once(&cost.setup).chain(&cost.offline).chain(&cost.online);
        let predicted = predicted.map(|cost| (cost.client_bytes(), cost.server_bytes(), cost.rounds()));
        let sent = costs.iter().map(|step| (step.traffic.sent, step.traffic.received, step.traffic.rounds));
        assert_eq!(sent.collect::<Vec<_>>(), predicted.collect::<Vec<_>>());
        let offline = costs.iter().filter(|step| step.phase == Phase::Offline);
        assert_eq!(offline.map(|step| step.traffic.rounds).sum::<u64>(), 1);
        // The same by the same bytes from material that was bytes in between.
        let client = ClientPlan::new(network.public(), &plan).unwrap();
        let server = ServedModel::new(&network, &plan).unwrap();
        let (kept_channel, kept_outcome, _) = session_keeping(
            &network,
            &plan,
            &input,
            Digested::new,
            |prepared| through(prepared, &client),
            |prepared| through(prepared, &server),
        );
        assert_eq!(kept_outcome, truth);
        assert_eq!(kept_channel.digests(), channel.digests());
    }
}

#[test]
fn a_plan_writes_a_split_layer_down() {
    let (network, _) = network(JSON, &SHAPES, 64, &QuantizationOptions::powers_of_two());
    let plan = split(&network);
    let json = serde_json::to_string(&plan).unwrap();
    assert!(json.contains(r#""protocol":"delphi_linear""#));
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}
