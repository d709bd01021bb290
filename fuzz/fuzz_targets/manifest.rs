//! The public half of a model with its plan, as a client takes it from a server: refused, or written back the same, and planned.
//!
//! A commitment says only that the document was not changed after it was sealed, which a hostile server does itself: every document is
//! sealed here first, as it is and with the plan of its network, so that the checks behind the commitment are reached.
#![no_main]

use lanner::Manifest;
use lanner_session::executor::ClientPlan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    let _ = Manifest::from_json(json);
    let Ok(document) = serde_json::from_str::<Manifest>(json) else { return };
    let plan = lanner_plan::plan(&document.network, document.policy, document.plan.mode);
    receive(document.clone());
    if let Ok(plan) = plan {
        receive(Manifest { plan, ..document });
    }
});

fn receive(document: Manifest) {
    let Ok(sealed) = document.sealed() else { return };
    let Ok(manifest) = Manifest::from_json(&sealed.to_json().unwrap()) else { return };
    let written = manifest.to_json().unwrap();
    assert_eq!(Manifest::from_json(&written).unwrap(), manifest);
    let _ = ClientPlan::new(&manifest.network, &manifest.plan);
}
