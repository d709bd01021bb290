//! What a client is told of a model: no more of its scales than the policy and the grid say.

use lanner::{CompileOptions, ErrorKind, Manifest, Model, NamedInput};
use lanner_graph::Graph;
use lanner_network::{Tensor, Tensors};
use serde_json::{Value, json};

const GRAPH: &str = r#"{"format_version":2,"inputs":[{"name":"x","shape":[6]}],"nodes":[
    {"name":"fc1","op":{"MatMul":{"weight":"w1","bias":null}},"inputs":["x"]},
    {"name":"relu","op":{"Clip":{"min":0.0,"max":0.9}},"inputs":["fc1"]},
    {"name":"fc2","op":{"MatMul":{"weight":"w2","bias":null}},"inputs":["relu"]}],"output":"fc2"}"#;

fn options(mode: &str, output: &str) -> CompileOptions {
    CompileOptions {
        name: "told".to_owned(),
        mode: mode.to_owned(),
        output: output.to_owned(),
        k: 2,
        digits: Some(2),
        ..CompileOptions::default()
    }
}

/// A model with weights of a seed, the largest of each layer times `factor`.
fn model(seed: usize, factor: f32, options: &CompileOptions) -> Model {
    let mut tensors = Tensors::default();
    for (layer, (name, shape)) in [("w1", [6, 8]), ("w2", [8, 3])].into_iter().enumerate() {
        let count = shape[0] * shape[1];
        let mut data: Vec<f32> =
            (0..count).map(|i| ((i * 37 + seed * 101 + layer * 11) % 97) as f32 / 97.0 - 0.5).collect();
        // One weight that is the largest whatever the seed.
        data[seed % count] = 0.8 * factor;
        tensors.insert(name, Tensor::new(shape.to_vec(), data).unwrap()).unwrap();
    }
    let calibration: Vec<f32> = (0..40 * 6).map(|i| (i * 29 % 101) as f32 / 101.0).collect();
    Model::compile(Graph::from_json(GRAPH).unwrap(), tensors, &calibration, options).unwrap()
}

fn document(model: &Model) -> Value {
    serde_json::from_str(&model.manifest().to_json().unwrap()).unwrap()
}

#[test]
fn the_scale_of_scores_is_told_where_the_policy_needs_it() {
    for (output, told) in [("label", false), ("top-k", false), ("probability", true), ("logits", true)] {
        let model = model(1, 1.0, &options("gazelle", output));
        let document = document(&model);
        assert_eq!(document["network"]["output_scale"].is_i64(), told, "{output}");
        assert_eq!(document["network"].get("output_scale").is_some(), told, "{output}");
        let leakage = model.report().unwrap()["leakage"]["client"].as_str().unwrap().to_owned();
        assert_eq!(leakage.contains("the scale of the scores"), told, "{leakage}");
        assert!(
            leakage.contains("upper bounds of activations") && leakage.contains("rounded up"),
            "{leakage}"
        );
    }
}

/// Every number of the document that is not whole, with its place.
fn fractions(value: &Value, place: &str, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) if number.is_f64() => found.push((place.to_owned(), number.as_f64().unwrap())),
        Value::Array(items) => items.iter().for_each(|item| fractions(item, place, found)),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| fractions(field, &format!("{place}/{key}"), found));
        }
        _ => {}
    }
}

#[test]
fn whatever_is_not_a_whole_number_follows_from_the_grid() {
    for output in ["label", "top-k", "probability", "logits"] {
        let model = model(2, 1.0, &options("cheetah", output));
        let mut found = Vec::new();
        fractions(&document(&model), "", &mut found);
        for (place, number) in found {
            let input = model.manifest().network.input();
            match place.as_str() {
                "/input/limit" => assert_eq!(number.to_bits(), input.limits()[1].to_bits()),
                // The softmax's, which both parties compute with.
                "/plan/items/step/scale" => assert_eq!(Some(number), model.manifest().network.output_scale()),
                _ => panic!("{place} is {number}"),
            }
        }
    }
}

#[test]
fn models_that_differ_within_a_cell_of_the_grid_cannot_be_told_apart() {
    for mode in ["gazelle", "falcon", "cheetah"] {
        for output in ["label", "logits"] {
            let options = options(mode, output);
            let alike = (0..12).filter(|&seed| {
                let models = [model(seed, 1.0, &options), model(seed, 0.99, &options)];
                let weights =
                    models.each_ref().map(|model| model.network().weights(0).unwrap().weight().to_vec());
                assert_ne!(weights[0], weights[1]);
                let [one, other] = models.each_ref().map(|model| {
                    // Salted hashes, which differ between equal models too.
                    let (commitment, weights) = (String::new(), String::new());
                    Manifest { commitment, weights, ..model.manifest().clone() }.to_json().unwrap()
                });
                one == other
            });
            // A step is 9%, so that one in nine or so crosses to the next at each of two layers.
            let count = alike.count();
            assert!(count >= 8, "{mode} {output}: {count} of 12");
        }
    }
}

#[test]
fn a_client_refuses_scores_without_a_scale_and_a_scale_without_scores() {
    for (output, scale) in [("logits", None), ("label", Some(0))] {
        let mut changed = document(&model(3, 1.0, &options("gazelle", output)));
        let network = changed["network"].as_object_mut().unwrap();
        match scale {
            Some(scale) => network.insert("output_scale".to_owned(), json!(scale)),
            None => network.remove("output_scale"),
        };
        let sealed = serde_json::from_value::<Manifest>(changed).unwrap().sealed().unwrap();
        let error = Manifest::from_json(&sealed.to_json().unwrap()).unwrap_err();
        assert!(error.what.contains("description"), "{error}");
    }
}

#[test]
fn an_older_manifest_is_refused_naming_both_versions() {
    let mut old = document(&model(4, 1.0, &options("gazelle", "label")));
    old["format_version"] = json!(3);
    let error = Manifest::from_json(&old.to_string()).unwrap_err();
    assert!(error.what.contains("format version 3; this build reads 4"), "{error}");
}

/// Names of a row's columns are one for each number, none twice; whoever writes a public half may put anything there.
#[test]
fn names_of_a_row_are_one_for_each_number() {
    let names = |count: usize| Some((0..count).map(|index| format!("c{index}")).collect::<Vec<_>>());
    let named = CompileOptions { columns: names(6), ..options("gazelle", "label") };
    let good = model(4, 1.0, &named).manifest().clone();
    assert_eq!((good.format_version, &good.columns), (7, &names(6)));
    assert_eq!(Manifest::from_json(&good.to_json().unwrap()).unwrap(), good);
    let twice = Some(vec!["c".to_owned(); 6]);
    let long = Some((0..6).map(|index| format!("{index}{}", "x".repeat(256))).collect());
    for columns in [names(5), names(7), twice, long, Some(vec![String::new(); 6])] {
        let wrong = Manifest { columns, ..good.clone() }.sealed().unwrap();
        let error = Manifest::from_json(&wrong.to_json().unwrap()).unwrap_err();
        assert!(error.what.contains("description"), "{error}");
    }
}

/// Labels of places are one for each place of the network's output, which has the classes last; a row of scores has no places.
#[test]
fn places_are_those_of_the_networks_output() {
    let row = model(4, 1.0, &options("gazelle", "label-map"));
    let error = Manifest::from_json(&row.manifest().to_json().unwrap()).unwrap_err();
    assert!(error.what.contains("description"), "{error}");
}

/// Of a plan that this build does not make the sentence says what to do.
#[test]
fn a_plan_of_another_version_is_refused_with_what_to_do() {
    let mut manifest = model(4, 1.0, &options("gazelle", "label")).manifest().clone();
    manifest.plan.items.pop();
    let error = Manifest::from_json(&manifest.sealed().unwrap().to_json().unwrap()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Model);
    assert!(
        error.what.contains("another version") && error.fix.contains("compile the model again"),
        "{error}"
    );
}

/// The model's input as six columns of a table, of which the second has these members, too.
fn table(second: &Value) -> Vec<NamedInput> {
    let column = |name: &str| json!({"unit": 1.0, "offset": 0, "high": 100, "missing": false, "name": name});
    let mut columns: Vec<Value> = ["a", "b", "c", "d", "e", "f"].map(column).to_vec();
    for (key, value) in second.as_object().unwrap() {
        columns[1][key] = value.clone();
    }
    let input = json!({"name": "t", "datatype": "FP32", "shape": [6], "choices": null, "factor": 1.0, "columns": columns});
    vec![serde_json::from_value(input).unwrap()]
}

#[test]
fn what_columns_are_called_is_bounded_and_no_two_are_alike() {
    let many = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
    for (sound, second) in [
        (true, json!({})),
        (true, json!({"name": "x".repeat(256)})),
        (true, json!({"categories": many(4096), "high": 4095})),
        (true, json!({"categories": many(3), "high": 2})),
        (false, json!({"name": "x".repeat(257)})),
        (false, json!({"name": ""})),
        (false, json!({"name": "a"})),
        (false, json!({"categories": many(4097), "high": 4096})),
        // The codes are those of the categories.
        (false, json!({"categories": many(3)})),
        (false, json!({"categories": many(3), "high": 2, "unit": 0.5})),
        (false, json!({"categories": []})),
        (false, json!({"categories": ["no", "no"], "high": 1})),
        (false, json!({"categories": ["x".repeat(257)], "high": 1})),
    ] {
        let options = CompileOptions { inputs: table(&second), ..options("cheetah", "label") };
        let text = model(3, 1.0, &options).manifest().to_json().unwrap();
        assert_eq!(Manifest::from_json(&text).is_ok(), sound, "{:.200}", second.to_string());
    }
}
