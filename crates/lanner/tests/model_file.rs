//! The model file: what is written is read, and damage is an error.

#![allow(clippy::unwrap_used)]

use lanner::{CompileOptions, ErrorKind, Model};
use lanner_graph::{Graph, Tensor, Tensors};

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[4]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

fn options(output: &str) -> CompileOptions {
    CompileOptions {
        name: "tiny".to_owned(),
        mode: "auto".to_owned(),
        rounding: None,
        output: output.to_owned(),
        k: 1,
        digits: 2,
        input_range: None,
        classes: None,
        image: Some(serde_json::json!({"channels": 1})),
    }
}

fn compile(options: &CompileOptions) -> lanner::Result<Model> {
    compile_weights(|i| (i * 5 % 11) as f32 / 11.0 - 0.4, 8, options)
}

fn compile_weights(
    weight: fn(usize) -> f32,
    samples: usize,
    options: &CompileOptions,
) -> lanner::Result<Model> {
    let mut tensors = Tensors::default();
    for (name, shape) in [("w1", [4, 6]), ("w2", [6, 3])] {
        let weights = (0..shape[0] * shape[1]).map(weight).collect();
        tensors.insert(name, Tensor::new(shape.to_vec(), weights).unwrap()).unwrap();
    }
    let count = samples * 4;
    let calibration: Vec<f32> = (0..count).map(|i| i as f32 / count as f32).collect();
    Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &calibration, options)
}

fn place(name: &str) -> std::path::PathBuf {
    let directory = std::env::temp_dir().join(format!("lanner-model-file-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory.join(name)
}

#[test]
fn a_model_survives_its_file() {
    for mode in ["auto", "gazelle", "falcon"] {
        survives(&CompileOptions { mode: mode.to_owned(), ..options("logits") });
    }
}

fn survives(options: &CompileOptions) {
    let model = compile(options).unwrap();
    assert!(options.mode == "auto" || model.manifest().mode == options.mode);
    let path = place("survives.lanner");
    model.save(&path).unwrap();
    let again = Model::load(&path).unwrap();
    assert_eq!(again.manifest(), model.manifest());
    let sample = [0.1, 0.9, 0.3, 0.5];
    assert_eq!(again.fixed(&sample).unwrap(), model.fixed(&sample).unwrap());
    assert_eq!(again.float(&sample).unwrap(), model.float(&sample).unwrap());
}

/// Both parties in memory, with a model that went through its file.
#[test]
fn every_mode_predicts_what_its_reference_does() {
    let modes = [("gazelle", None), ("falcon", None), ("cheetah", None), ("cheetah", Some("exact"))];
    for (mode, rounding) in modes {
        let (mode, rounding) = (mode.to_owned(), rounding.map(str::to_owned));
        let model = compile(&CompileOptions { mode: mode.clone(), rounding, ..options("logits") }).unwrap();
        let path = place(&format!("{mode}.lanner"));
        model.save(&path).unwrap();
        let model = Model::load(&path).unwrap();
        assert_eq!(model.manifest().mode, mode);
        let sample = [0.1, 0.9, 0.3, 0.5];
        let prediction = lanner::run(&model, &sample).unwrap();
        assert_eq!(prediction.values.as_ref(), model.fixed(&sample).unwrap().scores.first());
        assert_eq!(model.report().unwrap()["mode"].is_object(), mode == "cheetah");
        assert_eq!(model.secure_error(), 0);
    }
    let faithful = |mode: &str| CompileOptions {
        mode: mode.to_owned(),
        rounding: Some("faithful".to_owned()),
        ..options("logits")
    };
    let model = compile(&faithful("cheetah")).unwrap();
    assert_eq!(model.report().unwrap()["mode"], serde_json::json!({"cheetah": "faithful"}));
    assert_eq!(model.secure_error(), *model.network().faithful_errors().last().unwrap());
    assert!(model.secure_error() > 0);
    assert_eq!(compile(&faithful("gazelle")).err().unwrap().kind, ErrorKind::Misuse);
}

/// Labels of calibration samples choose the rounding that is left open, and the file remembers why.
#[test]
fn rounding_is_faithful_where_no_label_changes() {
    let chosen = |weight: fn(usize) -> f32, samples: usize, rounding: Option<&str>, output: &str| {
        let (mode, rounding) = ("cheetah".to_owned(), rounding.map(str::to_owned));
        let options = CompileOptions { mode, rounding, k: 3, ..options(output) };
        let model = compile_weights(weight, samples, &options).unwrap();
        let path = place("rounding.lanner");
        model.save(&path).unwrap();
        let report = Model::load(&path).unwrap().report().unwrap();
        assert_eq!(report, model.report().unwrap());
        let reason = report["rounding"].as_str().unwrap().to_owned();
        assert!(reason.starts_with(report["mode"]["cheetah"].as_str().unwrap()), "{reason}");
        reason
    };
    // The last class is far ahead of two that have the same scores, or one of three that have.
    let apart = |i: usize| if i % 3 == 2 { 0.9 } else { 0.1 };
    let equal = |_: usize| 0.5;
    for output in ["label", "logits", "probability"] {
        assert_eq!(chosen(apart, 40, None, output), "faithful: labels of all 40 calibration samples stay");
    }
    for (weight, output) in [(equal as fn(usize) -> f32, "label"), (apart, "top-k")] {
        let reason = chosen(weight, 40, None, output);
        assert!(reason.starts_with("exact: faithful rounding changed the label of"), "{reason}");
    }
    assert_eq!(chosen(apart, 31, None, "label"), "exact: 31 calibration samples are fewer than 32");
    assert_eq!(chosen(equal, 40, Some("faithful"), "label"), "faithful: as asked");
    assert_eq!(chosen(apart, 40, Some("exact"), "label"), "exact: as asked");
    assert!(compile(&options("label")).unwrap().report().unwrap().get("rounding").is_none());
}

#[test]
fn a_policy_survives_its_file() {
    for options in
        [CompileOptions { digits: 3, ..options("probability") }, CompileOptions { k: 2, ..options("top-k") }]
    {
        let model = compile(&options).unwrap();
        let path = place(&format!("{}.lanner", options.output));
        model.save(&path).unwrap();
        // The plan is computed again from the network that was read, and must be the one in the file.
        assert_eq!(Model::load(&path).unwrap().manifest(), model.manifest());
    }
}

#[test]
fn equal_models_have_different_identities() {
    let (one, two) = (compile(&options("label")).unwrap(), compile(&options("label")).unwrap());
    assert_ne!(one.manifest().weights, two.manifest().weights);
    assert_ne!(one.manifest().commitment, two.manifest().commitment);
}

#[test]
fn damage_anywhere_in_the_file_is_an_error() {
    let path = place("damaged.lanner");
    compile(&options("logits")).unwrap().save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for position in (0..bytes.len()).step_by(bytes.len() / 97 + 1) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x41;
        std::fs::write(&path, &damaged).unwrap();
        // A byte that nothing reads may change (a time stamp); the model is then the same.
        if let Err(error) = Model::load(&path) {
            assert_eq!(error.kind, ErrorKind::Model, "{error}");
            assert!(error.place.contains("damaged.lanner"), "{error}");
        }
    }
    for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert_eq!(Model::load(&path).err().unwrap().kind, ErrorKind::Model);
    }
}

#[test]
fn what_cannot_be_served_is_refused_at_compile_time() {
    assert_eq!(compile(&options("best")).err().unwrap().kind, ErrorKind::Misuse);
    for changed in [
        CompileOptions { k: 4, ..options("top-k") },
        CompileOptions { k: 0, ..options("top-k") },
        CompileOptions { digits: 7, ..options("probability") },
    ] {
        assert_eq!(compile(&changed).err().unwrap().kind, ErrorKind::Model);
    }
    let later = CompileOptions { mode: "spectral".to_owned(), ..options("label") };
    assert_eq!(compile(&later).err().unwrap().kind, ErrorKind::Unsupported);
    let classes = CompileOptions { classes: Some(vec!["a".to_owned()]), ..options("label") };
    assert_eq!(compile(&classes).err().unwrap().kind, ErrorKind::Model);
}
