//! What repeats in a network repeats in its plan, and both parties do what they do where every step is planned by itself.

use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{BuiltPlan, Item, Mode, Plan, PlanError, Repeated, Step, plan};
use lanner_transfers::Rounding;

const STEPS: usize = 12;

/// `h_t = round(W [x_t, h_{t-1}] / 2^12)` over rows of two elements, then a layer.
fn recurrent() -> PublicNetwork {
    let parts = r#"{"name":"t0/part","op":{"Slice":{"starts":[0,0],"steps":[1,1]}},"inputs":[0],"shape":[1,2],"modulus":4294967296},
        {"name":"t0/x","op":"Reshape","inputs":[1],"shape":[2],"modulus":4294967296}"#;
    let begin = r#"{"name":"begin","op":{"Linear":{"outputs":2}},"inputs":[2],"shape":[2],"modulus":4294967296},
        {"name":"begin/rescale","op":{"Rescale":{"shift":12}},"inputs":[25],"shape":[2],"modulus":4294967296}"#;
    let step = r#"{"name":"t1/joined","op":{"Concat":{"axis":0}},"inputs":[4,26],"shape":[4],"modulus":4294967296},
        {"name":"t1/sums","op":{"Linear":{"outputs":2}},"inputs":[27],"shape":[2],"modulus":4294967296},
        {"name":"t1/h","op":{"Rescale":{"shift":12}},"inputs":[28],"shape":[2],"modulus":4294967296}"#;
    let end = r#"{"name":"y","op":{"Linear":{"outputs":3}},"inputs":[59],"shape":[3],"modulus":4294967296}"#;
    let repeats = r#"[{"first":0,"times":12,"advances":[[0,1,1,0],[2,1]]},{"first":4,"times":11,"advances":[[2,3,1],[3,1],[3,1]]}]"#;
    let json = format!(
        r#"{{"format_version":8,"input":{{"name":"x","shape":[12,2],"scale":{{"grid":0}},"low":0,"high":255,"modulus":4294967296}},"nodes":[{parts},{begin},{step},{end}],"repeats":{repeats},"output_scale":0,"head":"scores"}}"#
    );
    PublicNetwork::from_json(&json).unwrap()
}

/// The same, as if nothing repeated.
fn unrolled() -> PublicNetwork {
    let network = recurrent();
    let mut file: serde_json::Value = serde_json::from_str(&network.to_json().unwrap()).unwrap();
    file["nodes"] = serde_json::to_value(network.nodes()).unwrap();
    file["format_version"] = 7.into();
    file.as_object_mut().unwrap().remove("repeats");
    PublicNetwork::from_json(&file.to_string()).unwrap()
}

fn planned(network: &PublicNetwork) -> Plan {
    plan(network, Policy::Label, Mode::Cheetah(Rounding::Exact)).unwrap()
}

fn repeated(plan: &mut Plan) -> &mut Repeated {
    let mut items = plan.items.iter_mut();
    items
        .find_map(|item| match item {
            Item::Repeat(repeated) => Some(repeated),
            _ => None,
        })
        .unwrap()
}

/// What each visit of a plan is: the protocol, what is read, and what is made.
fn visits(plan: &Plan, built: &BuiltPlan) -> Vec<String> {
    let steps: Vec<&Step> = plan.steps().collect();
    let of = |visit: &lanner_plan::Visit| {
        let lanner_plan::Action::Step(step) = visit.action else { panic!("{visit:?}") };
        format!("{:?} {:?} {}", steps[step].protocol, visit.inputs, visit.output)
    };
    built.visits().iter().map(of).collect()
}

#[test]
fn a_step_that_repeats_is_built_once_and_visited_as_if_it_did_not() {
    let (mut rolled, flat) = (planned(&recurrent()), planned(&unrolled()));
    assert!(flat.items.iter().all(|item| matches!(item, Item::Step(_))));
    let [few, many] = [&rolled, &flat].map(|plan| plan.build().unwrap());
    assert_eq!(visits(&rolled, &few), visits(&flat, &many));
    assert!(few.steps().len() + 20 < many.steps().len(), "{} steps", few.steps().len());
    let [once, each] = [&few, &many].map(|built| built.cost().unwrap());
    assert_eq!(once.setup, each.setup);
    let totals = |cost: &lanner_plan::PlanCost| {
        [cost.offline_total(), cost.online_total()]
            .map(|cost| (cost.client_bytes(), cost.server_bytes(), cost.rounds()))
    };
    assert_eq!(totals(&once), totals(&each));
    let [shared, own] = [&few, &many].map(|built| built.memory().unwrap());
    assert_eq!((shared.client_material, shared.server_material), (own.client_material, own.server_material));
    assert!(shared.model < own.model / 2, "{} of {}", shared.model, own.model);
    let names: Vec<&str> = few.steps().iter().map(|step| step.name.as_str()).collect();
    assert!(names.contains(&"t1..11/sums"), "{names:?}");
    // Rows of the input begin elsewhere each time: their steps stay as many as they are.
    assert_eq!(rolled.steps().filter(|step| step.name.ends_with("/part")).count(), STEPS);
    let json = serde_json::to_string(&rolled).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), rolled);
    assert_eq!(repeated(&mut rolled).times, STEPS - 1);
}

#[test]
fn repeats_that_do_not_fit_together_are_refused() {
    let refused = |change: &dyn Fn(&mut Repeated)| {
        let mut plan = planned(&recurrent());
        change(repeated(&mut plan));
        matches!(plan.build(), Err(PlanError::Layer { .. } | PlanError::TooLarge { .. }))
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|repeated| repeated.times = 0));
    assert!(refused(&|repeated| repeated.times = usize::MAX));
    assert!(refused(&|repeated| repeated.times = 1 << 20));
    assert!(refused(&|repeated| repeated.times += 1), "there is no such row");
    assert!(refused(&|repeated: &mut Repeated| drop(repeated.advances.pop())));
    assert!(refused(&|repeated| repeated.advances[0].clear()));
    assert!(refused(&|repeated| repeated.advances[0][0] = i64::MAX));
    assert!(refused(&|repeated| repeated.advances[0][0] = i64::MIN));
    assert!(refused(&|repeated| repeated.advances[0][1] = 100));
    assert!(refused(&|repeated| repeated.body[0].inputs[0] = usize::MAX));
}
