//! Damaged and forged `.lanner` files: an error that names the file, and the same model or none.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use lanner::{ErrorKind, Model};
use lanner_attacks::guard;
use lanner_attacks::models::linear;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const MANIFEST: &str = "manifest.json";
const WEIGHTS: &str = "weights.safetensors";

/// A tensor's name, type, shape if it is there, and bytes.
type Tensor<'a> = (&'a str, Dtype, Option<&'a [usize]>, Vec<u8>);

/// The two entries of a model's file.
#[derive(Clone)]
struct Parts {
    manifest: Vec<u8>,
    weights: Vec<u8>,
}

impl Parts {
    fn of(model: &Model) -> Self {
        let bytes = saved(model);
        let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut entry = |name: &str| {
            let mut bytes = Vec::new();
            zip.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        };
        Self { manifest: entry(MANIFEST), weights: entry(WEIGHTS) }
    }

    fn zipped(&self) -> Vec<u8> {
        zipped(&[
            (MANIFEST, CompressionMethod::Deflated, &self.manifest),
            (WEIGHTS, CompressionMethod::Stored, &self.weights),
        ])
    }

    /// The manifest with one text for another.
    fn manifest_with(&self, old: &str, new: &str) -> Self {
        let text = String::from_utf8(self.manifest.clone()).unwrap();
        assert!(text.contains(old), "{old} in {text}");
        Self { manifest: text.replacen(old, new, 1).into_bytes(), ..self.clone() }
    }

    /// The weights with some tensors replaced, added or (without a shape) left out.
    fn weights_with(&self, changes: &[Tensor<'_>]) -> Self {
        let tensors = SafeTensors::deserialize(&self.weights).unwrap();
        let kept = |name: &String| !changes.iter().any(|(changed, ..)| changed == name);
        let mut views: Vec<(String, TensorView<'_>)> =
            tensors.tensors().into_iter().filter(|(name, _)| kept(name)).collect();
        for (name, dtype, shape, data) in changes {
            if let Some(shape) = shape {
                views.push(((*name).to_owned(), TensorView::new(*dtype, shape.to_vec(), data).unwrap()));
            }
        }
        Self { weights: safetensors::serialize(views, None).unwrap(), ..self.clone() }
    }
}

fn zipped(entries: &[(&str, CompressionMethod, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, method, bytes) in entries {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A file in a directory of its own, so that whatever is written beside it is seen.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        guard::start();
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("inside/model.lanner")
    }

    fn load(&self, bytes: &[u8]) -> lanner::Result<Model> {
        let path = self.path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        guard::bounded("a model file", move || Model::load(&path))
    }

    /// The file is refused by an error that names it.
    fn refuses(&self, what: &str, bytes: &[u8]) -> String {
        let error = self.load(bytes).err().unwrap_or_else(|| panic!("{what}: loaded"));
        assert_eq!(error.kind, ErrorKind::Model, "{what}: {error}");
        let named = error.place.contains("model.lanner") || error.place == MANIFEST;
        assert!(named, "{what}: {error} names {:?}", error.place);
        error.what
    }
}

fn saved(model: &Model) -> Vec<u8> {
    let place = Place::new();
    let path = place.directory.path().join("honest.lanner");
    model.save(&path).unwrap();
    fs::read(path).unwrap()
}

fn same(model: &Model, other: &Model) -> bool {
    let sample = [0.1, 0.2, 0.3, 0.4, 0.5];
    model.manifest() == other.manifest() && model.fixed(&sample).unwrap() == other.fixed(&sample).unwrap()
}

#[test]
fn the_parts_of_a_test_are_those_of_the_library() {
    let model = linear(1, "logits");
    assert!(same(&Place::new().load(&Parts::of(&model).zipped()).unwrap(), &model));
}

#[test]
fn a_truncated_file_is_refused() {
    let place = Place::new();
    let bytes = saved(&linear(1, "logits"));
    for length in (0..bytes.len()).step_by(7).chain(bytes.len() - 30..bytes.len()) {
        place.refuses("truncated", &bytes[..length]);
    }
}

#[test]
fn a_changed_byte_is_refused_or_changes_nothing() {
    let place = Place::new();
    let model = linear(1, "logits");
    let bytes = saved(&model);
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= if position % 2 == 0 { 0x01 } else { 0x80 };
        // A time stamp may change, and so on.
        if let Ok(loaded) = place.load(&damaged) {
            assert!(same(&loaded, &model), "byte {position}");
        }
    }
}

#[test]
fn what_is_no_zip_is_refused() {
    let place = Place::new();
    let honest = saved(&linear(1, "logits"));
    for bytes in [&b""[..], b"PK", b"PK\x05\x06", &[0; 22], &[0xff; 1000], &honest[4..]] {
        place.refuses("no zip", bytes);
    }
}

/// A few megabytes that unpack to gigabytes: memory stays bounded, see `guard`.
#[test]
fn a_zip_bomb_is_refused() {
    let place = Place::new();
    let parts = Parts::of(&linear(1, "logits"));
    let zeros = vec![0; 1 << 20];
    let bomb = |mebibytes: usize, name: &str| {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let other = if name == MANIFEST { (WEIGHTS, &parts.weights) } else { (MANIFEST, &parts.manifest) };
        zip.start_file(other.0, SimpleFileOptions::default()).unwrap();
        zip.write_all(other.1).unwrap();
        zip.start_file(name, SimpleFileOptions::default().compression_level(Some(1))).unwrap();
        for _ in 0..mebibytes {
            zip.write_all(&zeros).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    let weights = bomb(300, WEIGHTS);
    assert!(weights.len() < 4 << 20, "{} bytes", weights.len());
    assert!(place.refuses("weights", &weights).contains("compressed"));
    assert!(place.refuses("manifest", &bomb(80, MANIFEST)).contains("larger than"));
}

#[test]
fn other_entries_are_refused_and_nothing_is_unpacked() {
    let place = Place::new();
    let parts = Parts::of(&linear(1, "logits"));
    let honest = [
        (MANIFEST, CompressionMethod::Deflated, &parts.manifest[..]),
        (WEIGHTS, CompressionMethod::Stored, &parts.weights[..]),
    ];
    let absolute = place.directory.path().join("absolute");
    for name in ["../outside", "../../outside", absolute.to_str().unwrap(), "inside/../../outside", "other"] {
        let extra = [honest[0], honest[1], (name, CompressionMethod::Stored, b"unpacked")];
        assert!(place.refuses(name, &zipped(&extra)).contains("other entries"), "{name}");
    }
    // Names that only look like the right ones.
    for name in
        ["./manifest.json", "/manifest.json", "MANIFEST.JSON", "manifest.json\0", "x/../manifest.json"]
    {
        place.refuses(name, &zipped(&[(name, CompressionMethod::Deflated, &parts.manifest), honest[1]]));
    }
    place.refuses("one entry", &zipped(&honest[..1]));
    assert_eq!(files(place.directory.path()), [place.path()]);
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Two entries of one name: who checks one and uses the other is deceived.
#[test]
fn duplicate_entries_are_refused() {
    let place = Place::new();
    let (honest, other) = (Parts::of(&linear(1, "logits")), Parts::of(&linear(2, "logits")));
    let (deflated, stored) = (CompressionMethod::Deflated, CompressionMethod::Stored);
    let duplicated = zipped(&[
        (MANIFEST, deflated, &honest.manifest),
        (WEIGHTS, stored, &honest.weights),
        ("manifest.jsoX", deflated, &other.manifest),
        ("weights.safetensorX", stored, &other.weights),
    ]);
    let renamed = replace(
        &replace(&duplicated, b"manifest.jsoX", MANIFEST.as_bytes()),
        b"weights.safetensorX",
        WEIGHTS.as_bytes(),
    );
    place.refuses("both twice", &renamed);
    let duplicated = zipped(&[
        (MANIFEST, deflated, &honest.manifest),
        (WEIGHTS, stored, &honest.weights),
        ("manifest.jsoX", deflated, &other.manifest),
    ]);
    assert!(
        place
            .refuses("one twice", &replace(&duplicated, b"manifest.jsoX", MANIFEST.as_bytes()))
            .contains("entries")
    );
}

/// Every occurrence of `old` replaced by `new`, which is as long.
fn replace(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut replaced = bytes.to_vec();
    let places: Vec<usize> =
        (0..=bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    assert_eq!(places.len(), 2, "a local header and a central one");
    for at in places {
        replaced[at..at + new.len()].copy_from_slice(new);
    }
    replaced
}

#[test]
fn weights_of_another_model_are_refused() {
    let place = Place::new();
    let (one, two) = (Parts::of(&linear(1, "logits")), Parts::of(&linear(2, "logits")));
    let mixed = Parts { manifest: one.manifest.clone(), weights: two.weights.clone() };
    assert!(place.refuses("weights", &mixed.zipped()).contains("commits to"));
    // The same weights under another salt, and the right salt over other weights.
    let salt = vec![7; 32];
    let resalted = one.weights_with(&[("commitment/salt", Dtype::U8, Some(&[32]), salt)]);
    assert!(place.refuses("salt", &resalted.zipped()).contains("commits to"));
    let zeroed = one.weights_with(&[("fixed/0.weight", Dtype::I32, Some(&[15]), vec![0; 60])]);
    assert!(place.refuses("zeros", &zeroed.zipped()).contains("commits to"));
}

#[test]
fn a_forged_manifest_is_refused() {
    let place = Place::new();
    let model = linear(1, "logits");
    let (parts, manifest) = (Parts::of(&model), model.manifest());
    let changes: [(&str, &str, &str); 9] = [
        (&manifest.commitment, &"0".repeat(64), "commitment"),
        (&manifest.commitment, "", "commitment"),
        (&manifest.weights, &"0".repeat(64), "commitment"),
        ("\"ash\"", "\"oak\"", "commitment"),
        ("\"logits\"", "\"label\"", "commitment"),
        ("\"format_version\":4", "\"format_version\":5", "version"),
        ("\"format_version\":4,", "", "manifest"),
        ("\"public\":{", "\"public\":{\"unknown\":1,", "unknown"),
        ("\"public\":{", "\"public\":{},\"public\":{", "manifest"),
    ];
    for (old, new, because) in changes {
        let what = place.refuses(new, &parts.manifest_with(old, new).zipped());
        assert!(what.contains(because), "{old} to {new}: {what}");
    }
    for manifest in
        [&b"null"[..], b"[]", b"{}", &[0xff; 50], &vec![b'['; 1 << 20], &br#"{"a":"#.repeat(1 << 18)]
    {
        place.refuses("no manifest", &Parts { manifest: manifest.to_vec(), ..parts.clone() }.zipped());
    }
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    let place = Place::new();
    let parts = Parts::of(&linear(1, "logits"));
    let weight = "fixed/0.weight";
    let extremes: Vec<u8> =
        [i32::MIN, i32::MAX, -1].iter().cycle().take(15).flat_map(|w| w.to_le_bytes()).collect();
    let changes: [Tensor<'_>; 9] = [
        (weight, Dtype::I32, None, vec![]),
        (weight, Dtype::I32, Some(&[14]), vec![0; 56]),
        (weight, Dtype::I32, Some(&[16]), vec![0; 64]),
        (weight, Dtype::I32, Some(&[0]), vec![]),
        (weight, Dtype::F32, Some(&[15]), vec![0; 60]),
        (weight, Dtype::I32, Some(&[15]), extremes),
        ("fixed/7.weight", Dtype::I32, Some(&[1]), vec![0; 4]),
        ("commitment/salt", Dtype::U8, None, vec![]),
        ("commitment/salt", Dtype::U8, Some(&[31]), vec![0; 31]),
    ];
    for change in changes {
        let what = format!("{} {:?} {:?}", change.0, change.1, change.2);
        place.refuses(&what, &parts.weights_with(&[change]).zipped());
    }
}

#[test]
fn a_damaged_safetensors_header_is_refused() {
    let place = Place::new();
    let parts = Parts::of(&linear(1, "logits"));
    let with_header = |length: u64, header: &str, rest: &[u8]| Parts {
        weights: [&length.to_le_bytes(), header.as_bytes(), rest].concat(),
        ..parts.clone()
    };
    let sized = |header: &str| with_header(header.len() as u64, header, &[0; 64]);
    let tensor = |shape: &str, offsets: &str| {
        sized(&format!(r#"{{"fixed/0.weight":{{"dtype":"I32","shape":{shape},"data_offsets":{offsets}}}}}"#))
    };
    let cases = [
        ("a header of all there is", with_header(u64::MAX, "{}", &[])),
        ("a header of 4 GiB", with_header(1 << 32, "{}", &[])),
        ("a header past the end", with_header(99_999_999, "{}", &[])),
        ("no JSON", sized("}{")),
        ("deep JSON", sized(&"[".repeat(100_000))),
        ("a shape that overflows", tensor("[4294967296,4294967296]", "[0,64]")),
        ("a shape beyond the data", tensor("[1000000000000]", "[0,64]")),
        ("offsets beyond the file", tensor("[16]", "[0,18446744073709551615]")),
        ("offsets backwards", tensor("[16]", "[64,0]")),
        ("a hole", tensor("[8]", "[32,64]")),
        (
            "a name twice",
            sized(
                r#"{"a":{"dtype":"I32","shape":[8],"data_offsets":[0,32]},"a":{"dtype":"I32","shape":[8],"data_offsets":[32,64]}}"#,
            ),
        ),
        (
            "overlapping tensors",
            sized(
                r#"{"a":{"dtype":"I32","shape":[16],"data_offsets":[0,64]},"b":{"dtype":"I32","shape":[16],"data_offsets":[0,64]}}"#,
            ),
        ),
    ];
    for (what, parts) in cases {
        place.refuses(what, &parts.zipped());
    }
}
