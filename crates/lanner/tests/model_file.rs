//! The model file: what is written is read, and damage is an error.

use lanner::{CompileOptions, ErrorKind, Manifest, Model};
use lanner_graph::Graph;
use lanner_network::{Tensor, Tensors};

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[4]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":"Relu","inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

fn options(output: &str) -> CompileOptions {
    CompileOptions {
        name: "tiny".to_owned(),
        mode: "auto".to_owned(),
        output: output.to_owned(),
        digits: Some(2),
        image: Some(serde_json::json!({"channels": 1})),
        ..CompileOptions::default()
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
    let manifest = model.manifest();
    // What mode auto chooses is exact, whatever it is.
    assert!(options.mode == "auto" && manifest.plan.mode.is_exact() || manifest.mode == options.mode);
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
        let prediction = lanner::run(&model, &[&sample]).unwrap().remove(0);
        assert_eq!(prediction.integers.as_ref(), model.fixed(&sample).unwrap().scores.first());
        assert_eq!(
            model.report().unwrap()["mode"].is_object(),
            ["cheetah", "tabula"].contains(&mode.as_str())
        );
        assert_eq!(model.secure_error(), 0);
    }
}

fn rounded(rounding: Option<&str>, mode: &str, output: &str) -> CompileOptions {
    CompileOptions { mode: mode.to_owned(), rounding: rounding.map(str::to_owned), k: 3, ..options(output) }
}

const OUTPUTS: [&str; 6] = ["label", "labels", "probability", "top-k", "logits", "value"];

/// Weights whose scores are far apart, and as many samples as one likes, do not make a model faithful: only its owner does.
#[test]
fn mode_cheetah_is_exact_unless_its_owner_says_otherwise() {
    let apart = |i: usize| if i % 3 == 2 { 0.9 } else { 0.1 };
    for (rounding, output) in
        [None, Some("exact")].into_iter().flat_map(|r| OUTPUTS.map(|output| (r, output)))
    {
        let model = compile_weights(apart, 64, &rounded(rounding, "cheetah", output)).unwrap();
        assert_eq!(model.secure_error(), 0);
        let report = model.report().unwrap();
        assert_eq!(report["mode"], serde_json::json!({"cheetah": "exact"}));
        assert!(report["rounding"].as_str().unwrap().starts_with("exact: "));
        assert!(report["leakage"].get("rounding").is_none());
    }
    let gazelle = compile(&rounded(None, "gazelle", "label")).unwrap();
    assert!(gazelle.report().unwrap().get("rounding").is_none());
}

/// What belongs to a policy is told, and nothing else.
#[test]
fn a_prediction_has_what_its_policy_reveals() {
    let sample = [0.1, 0.9, 0.3, 0.5];
    for output in ["labels", "value"] {
        let classes = (output == "labels").then(|| ["a", "b", "c"].map(str::to_owned).to_vec());
        let model = compile(&CompileOptions { classes: classes.clone(), ..options(output) }).unwrap();
        let scores = model.fixed(&sample).unwrap().scores.remove(0);
        let prediction = lanner::run(&model, &[&sample]).unwrap().remove(0);
        assert_eq!((prediction.label, prediction.class_name, prediction.logits), (None, None, None));
        if let Some(classes) = classes {
            let positive: Vec<usize> = (0..3).filter(|class| scores[*class] > 0).collect();
            let names = positive.iter().map(|class| classes[*class].clone()).collect();
            assert_eq!((prediction.labels, prediction.class_names), (Some(positive), Some(names)));
            assert_eq!((prediction.values, prediction.integers), (None, None));
        } else {
            let scale = model.network().output_scale();
            let values = scores.iter().map(|score| *score as f64 * scale).collect();
            assert_eq!((prediction.labels, prediction.class_names), (None, None));
            assert_eq!((prediction.values, prediction.integers), (Some(values), Some(scores)));
        }
    }
}

/// The names of what is listed, in its order; of one score there is no list, as its classes are two.
#[test]
fn classes_that_are_listed_have_their_names() {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let sample = [0.1, 0.9, 0.3, 0.5];
    for output in ["top-k", "logits", "label", "probability"] {
        let model = CompileOptions { classes: Some(names.clone()), k: 2, ..options(output) };
        let prediction = lanner::run(&compile(&model).unwrap(), &[&sample]).unwrap().remove(0);
        let best = |top: &Vec<usize>| top.iter().map(|class| names[*class].clone()).collect::<Vec<_>>();
        let expected = match output {
            "top-k" => Some(prediction.top.as_ref().map(best).unwrap()),
            "logits" => Some(names.clone()),
            _ => None,
        };
        assert_eq!(prediction.class_names, expected, "{output}");
        assert_eq!(prediction.digits, (output == "probability").then_some(2));
        assert_eq!(prediction.class_name, prediction.label.map(|label| names[label].clone()));
    }
}

/// A title and a note are kept and committed to; what has neither is as it was, its version and its commitment too.
#[test]
fn a_title_and_a_note_survive_the_file() {
    let text = |given: &str| Some(given.to_owned());
    let plain = compile(&options("label")).unwrap();
    assert_eq!(plain.manifest().format_version, 4);
    let written = plain.manifest().to_json().unwrap();
    assert!(!written.contains("\"title\"") && !written.contains("\"note\""));
    let longest = ("é".repeat(80), "é".repeat(500));
    for (title, note) in [
        (text("Chest X-ray"), text("Not for clinical use")),
        (text("Chest X-ray"), None),
        (None, text("in mm Hg")),
        (Some(longest.0), Some(longest.1)),
    ] {
        let described = CompileOptions { title: title.clone(), note: note.clone(), ..options("label") };
        let model = compile(&described).unwrap();
        assert_eq!(model.manifest().format_version, 7);
        let path = place("described.lanner");
        model.save(&path).unwrap();
        let again = Model::load(&path).unwrap();
        assert_eq!((&again.manifest().title, &again.manifest().note), (&title, &note));
        let renamed = Manifest { title: text("Other"), ..again.manifest().clone() };
        assert!(Manifest::from_json(&renamed.to_json().unwrap()).unwrap_err().what.contains("commitment"));
    }
}

/// Whoever writes a public half may put anything into it: what terminals and pages show is bounded and on one line.
#[test]
fn what_cannot_be_shown_is_no_title() {
    let long = "x".repeat(81);
    let wrong = [
        ("", "is empty"),
        (" ", "is empty"),
        ("a\nb", "line break"),
        ("\u{1b}[2J", "control"),
        (&long, "81"),
    ];
    for (title, said) in wrong {
        let titled = CompileOptions { title: Some(title.to_owned()), ..options("label") };
        let error = compile(&titled).err().unwrap();
        assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Misuse, "title"));
        assert!(error.what.contains(said), "{error}");
        let good = compile(&CompileOptions { title: Some("t".to_owned()), ..options("label") }).unwrap();
        let hostile = Manifest { title: Some(title.to_owned()), ..good.manifest().clone() }.sealed().unwrap();
        let error = Manifest::from_json(&hostile.to_json().unwrap()).unwrap_err();
        assert!(error.what.contains("description"), "{error}");
    }
    let note = CompileOptions { note: Some("x".repeat(501)), ..options("label") };
    assert_eq!(compile(&note).err().unwrap().place, "note");
}

#[test]
fn quantities_have_no_class_names() {
    let names = Some(["a", "b", "c"].map(str::to_owned).to_vec());
    let error = compile(&CompileOptions { classes: names, ..options("value") }).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Misuse);
    assert!(error.what.contains("no classes"), "{error}");
}

/// What faithful rounding leaks is told, also of a model that was read from its file.
#[test]
fn a_faithful_model_says_what_it_leaks() {
    let model = compile(&rounded(Some("faithful"), "cheetah", "label")).unwrap();
    let path = place("faithful.lanner");
    model.save(&path).unwrap();
    let report = Model::load(&path).unwrap().report().unwrap();
    assert_eq!(report, model.report().unwrap());
    assert_eq!(report["mode"], serde_json::json!({"cheetah": "faithful"}));
    assert!(report["rounding"].as_str().unwrap().starts_with("faithful, as its owner asked"));
    assert!(report["leakage"]["rounding"].as_str().unwrap().contains("repeats a query"));
    assert_eq!(model.secure_error(), *model.network().faithful_errors().last().unwrap());
    assert!(model.secure_error() > 0);
}

#[test]
fn each_rounding_goes_with_its_mode_and_labels_alone() {
    for (rounding, of) in [("faithful", "cheetah"), ("stochastic", "tabula")] {
        for output in &OUTPUTS[1..] {
            let error = compile(&rounded(Some(rounding), of, output)).err().unwrap();
            assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Misuse, "rounding"));
            assert!(error.what.contains(output) && error.fix.contains("rounding exact"), "{error}");
        }
        for mode in ["gazelle", "falcon", "cheetah", "tabula", "auto"].into_iter().filter(|mode| *mode != of)
        {
            let error = compile(&rounded(Some(rounding), mode, "label")).err().unwrap();
            assert_eq!((error.kind, error.place.as_str()), (ErrorKind::Misuse, "rounding"));
            let expected = format!("{rounding} rounding goes with mode {of} alone, and this is {mode}");
            assert_eq!(error.what, expected);
        }
    }
}

/// What stochastic rounding tells is told, and how far scores may be off; of a network with one rescale nothing is rounded so.
#[test]
fn a_stochastic_model_says_what_it_leaks() {
    let model = compile(&rounded(Some("stochastic"), "tabula", "label")).unwrap();
    let report = model.report().unwrap();
    assert_eq!(report["mode"], serde_json::json!({"tabula": "stochastic"}));
    assert!(report["rounding"].as_str().unwrap().starts_with("stochastic, as its owner asked"));
    assert!(report["leakage"]["rounding"].as_str().unwrap().contains("repeats a query"));
    assert_eq!(model.secure_error(), *model.network().stochastic_errors().last().unwrap());
}

#[test]
fn a_policy_survives_its_file() {
    for options in [
        CompileOptions { digits: Some(3), ..options("probability") },
        CompileOptions { k: 2, ..options("top-k") },
    ] {
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
fn a_place_that_cannot_be_read_or_written_is_told_with_what_to_do() {
    let absent = place("no such folder").join("m.lanner");
    let read = Model::load(&absent).err().unwrap();
    let written = compile(&options("logits")).unwrap().save(&absent).err().unwrap();
    for (error, what, fix) in [
        (read, "cannot be read", "who may read the file"),
        (written, "cannot be written", "its folder is there"),
    ] {
        assert!(error.what.contains(what) && error.fix.contains(fix), "{error}");
        assert!(error.place.ends_with("m.lanner"), "{error}");
    }
}

#[test]
fn what_cannot_be_served_is_refused_at_compile_time() {
    assert_eq!(compile(&options("best")).err().unwrap().kind, ErrorKind::Misuse);
    for changed in [
        CompileOptions { k: 4, ..options("top-k") },
        CompileOptions { k: 0, ..options("top-k") },
        CompileOptions { digits: Some(7), ..options("probability") },
        CompileOptions { classes: Some(vec!["a".to_owned()]), ..options("label") },
    ] {
        assert_eq!(compile(&changed).err().unwrap().kind, ErrorKind::Misuse);
    }
    let later = CompileOptions { mode: "spectral".to_owned(), ..options("label") };
    assert_eq!(compile(&later).err().unwrap().kind, ErrorKind::Unsupported);
}

#[cfg(unix)]
mod private {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    /// A folder with nothing in it.
    fn folder(name: &str) -> PathBuf {
        let folder = place(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    /// Saves a model, which others may then not read; nothing else is left in the folder than what was there.
    fn save(path: &Path) {
        let names = || fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut expected: Vec<_> = names().chain([path.file_name().unwrap().to_owned()]).collect();
        compile(&options("label")).unwrap().save(path).unwrap();
        assert!(fs::symlink_metadata(path).unwrap().is_file());
        assert_eq!(mode(path), 0o600);
        assert!(Model::load(path).is_ok());
        let mut left: Vec<_> = names().collect();
        expected.sort();
        expected.dedup();
        left.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_file_that_others_may_read_is_replaced() {
        let path = folder("loose").join("model.lanner");
        fs::write(&path, b"an older model").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        // Another name of the old file: it is not the new one's.
        let other = path.with_file_name("other");
        fs::hard_link(&path, &other).unwrap();
        save(&path);
        assert_eq!((fs::read(&other).unwrap().as_slice(), mode(&other)), (&b"an older model"[..], 0o644));
    }

    #[test]
    fn a_symbolic_link_is_replaced_and_not_followed() {
        let path = folder("link").join("model.lanner");
        let (target, nowhere) = (path.with_file_name("target"), path.with_file_name("nowhere"));
        fs::write(&target, b"of somebody else").unwrap();
        for target in [&target, &nowhere] {
            let _ = fs::remove_file(&path);
            symlink(target, &path).unwrap();
            save(&path);
        }
        assert_eq!(fs::read(&target).unwrap(), b"of somebody else");
        assert!(!nowhere.exists());
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let path = folder("failure").join("model.lanner");
        fs::create_dir_all(path.join("in the way")).unwrap();
        assert_eq!(compile(&options("label")).unwrap().save(&path).unwrap_err().kind, ErrorKind::Model);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "the draft is gone");
        assert!(compile(&options("label")).unwrap().save(&path.join("no/such/folder")).is_err());
    }

    /// The mask is the process's, so that each is tried in a process of its own.
    #[test]
    fn the_umask_changes_nothing() {
        let program = std::env::current_exe().unwrap();
        for umask in ["000", "022", "077", "277"] {
            let folder = folder(&format!("umask-{umask}"));
            let child = Command::new("sh")
                .args([
                    "-c",
                    &format!("umask {umask}; exec \"$0\" --exact model_file::private::child --ignored"),
                ])
                .arg(&program)
                .env(CHILD, folder.join("model.lanner"))
                .output();
            assert!(child.unwrap().status.success(), "{umask}");
            assert!(folder.join("model.lanner").exists(), "{umask}");
        }
    }

    /// Not a test: what the one above runs.
    #[test]
    #[ignore = "runs as a child of the test above"]
    fn child() {
        if let Some(path) = std::env::var_os(CHILD) {
            save(Path::new(&path));
        }
    }

    const CHILD: &str = "LANNER_TEST_SAVE";
}
