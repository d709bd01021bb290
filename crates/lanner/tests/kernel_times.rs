//! Plans of mode auto are chosen by a table of kernel times: the same for the same table, and its owner finds which it was.

use lanner::{AutoOptions, CompileOptions, ErrorKind, Model, describe_kernel_times, shipped_kernel_times};
use lanner_graph::Graph;
use lanner_network::{Tensor, Tensors};

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[4]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

/// A table in which a step of protocols whose names begin so takes a second, and what is left out is as shipped.
fn dear(prefixes: &[&str]) -> String {
    let shipped: serde_json::Value = serde_json::from_str(&shipped_kernel_times().unwrap()).unwrap();
    let names = shipped["protocols"].as_object().unwrap().keys();
    let rates = serde_json::json!({"offline": {"steps": 1.0}, "online": {"steps": 1.0}});
    let is_dear = |name: &&String| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let protocols: serde_json::Map<_, _> =
        names.filter(is_dear).map(|name| (name.clone(), rates.clone())).collect();
    serde_json::json!({"machine": "abacus", "setup": {}, "protocols": protocols}).to_string()
}

fn compile(mode: &str, kernels: Option<String>) -> lanner::Result<Model> {
    let mut tensors = Tensors::default();
    for (name, shape) in [("w1", [4, 6]), ("w2", [6, 3])] {
        let weights = (0..shape[0] * shape[1]).map(|i| (i * 5 % 11) as f32 / 11.0 - 0.4).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), weights).unwrap()).unwrap();
    }
    let options = CompileOptions {
        name: "tiny".to_owned(),
        mode: mode.to_owned(),
        output: "label".to_owned(),
        auto: AutoOptions { kernels, ..AutoOptions::default() },
        ..CompileOptions::default()
    };
    let calibration: Vec<f32> = (0..32).map(|i| i as f32 / 32.0).collect();
    Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &calibration, &options)
}

fn protocols(model: &Model) -> Vec<String> {
    let report = model.report().unwrap();
    let steps = report["steps"].as_array().unwrap();
    steps.iter().map(|step| step["protocol"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn one_table_gives_one_plan_and_another_one_another() {
    let (circuits, transfers) = (dear(&["ot.", "tabula.", "falcon."]), dear(&["yao.activation", "tabula."]));
    let plan = |kernels: &str| compile("auto", Some(kernels.to_owned())).unwrap();
    let (one, again, other) = (plan(&circuits), plan(&circuits), plan(&transfers));
    assert_eq!(one.manifest().plan, again.manifest().plan);
    assert_eq!(one.kernel_times(), again.kernel_times());
    assert!(protocols(&one).iter().all(|name| !name.starts_with("ot.")), "{:?}", protocols(&one));
    assert!(protocols(&other).iter().any(|name| name.starts_with("ot.")), "{:?}", protocols(&other));
    assert_ne!(one.kernel_times(), other.kernel_times());
}

#[test]
fn the_owners_half_alone_tells_which_table_it_was() {
    let table = dear(&["tabula."]);
    let model = compile("auto", Some(table.clone())).unwrap();
    let used = describe_kernel_times(Some(&table)).unwrap();
    assert_eq!((used.table.as_str(), used.machine.as_str()), ("calibrated", "abacus"));
    let path = std::env::temp_dir().join(format!("lanner-kernel-times-{}.lanner", std::process::id()));
    model.save(&path).unwrap();
    let again = Model::load(&path);
    std::fs::remove_file(&path).unwrap();
    let again = again.unwrap();
    assert_eq!(again.kernel_times(), Some(&used));
    assert_eq!(again.report().unwrap()["kernel_times"], serde_json::json!(used));
    let public = again.manifest().to_json().unwrap();
    assert!(!public.contains(&used.sha256) && !public.contains("abacus"), "{public}");
}

#[test]
fn where_nothing_is_chosen_no_table_is_told() {
    let model = compile("cheetah", None).unwrap();
    assert_eq!(model.kernel_times(), None);
    assert!(model.report().unwrap().get("kernel_times").is_none());
    let shipped = compile("auto", None).unwrap();
    assert_eq!(shipped.kernel_times(), Some(&describe_kernel_times(None).unwrap()));
    let damaged = compile("auto", Some("{}".to_owned())).err().unwrap();
    assert_eq!(damaged.kind, ErrorKind::Misuse);
    assert!(damaged.fix.contains("--calibrate"), "{damaged}");
}
