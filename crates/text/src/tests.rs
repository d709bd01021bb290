//! Small tokenizers of each kind: what texts become, and what is refused.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Encoder, Kind, MOST_TEXT, TextError, TextInput, TokenizerFile};

const AROUND: &str = r#"{"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}}"#;

fn special(id: u32, content: &str) -> Value {
    json!({"id": id, "content": content, "special": true, "normalized": false})
}

fn word_piece() -> Value {
    let words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "##s", "[", "]", "mask", "é"];
    let vocab: Value = words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), json!(id))).collect();
    json!({
        "added_tokens": words[..5].iter().enumerate().map(|(id, word)| special(id as u32, word)).collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": false,
                       "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": serde_json::from_str::<Value>(AROUND).unwrap(),
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab},
    })
}

fn unigram() -> Value {
    let pieces = json!([
        ["<unk>", 0.0],
        ["<s>", 0.0],
        ["</s>", 0.0],
        ["▁", -2.0],
        ["▁a", -3.0],
        ["b", -4.0],
        ["s", -5.0],
        ["<", -6.0],
        [">", -6.0],
        ["/", -6.0],
        ["<pad>", 0.0]
    ]);
    json!({
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>"), special(10, "<pad>")],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": false},
    })
}

fn byte_level() -> Value {
    json!({
        "added_tokens": [special(6, "<|end|>"), {"id": 7, "content": "<tab>", "normalized": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4, "<|end|>": 6, "<": 5},
                  "merges": ["a b", "Ġ ab"], "ignore_merges": true},
    })
}

fn input(document: &Value, length: usize, pad: Option<&str>) -> Result<TextInput, TextError> {
    let file = TokenizerFile::read(&document.to_string(), pad)?;
    Ok(TextInput {
        tokenizer: file.text,
        length,
        pad: file.pad.unwrap_or(0),
        left: file.left,
        ids: "input_ids".to_owned(),
        mask: None,
        types: None,
    })
}

fn encoder(document: &Value, length: usize) -> Encoder {
    Encoder::new(&input(document, length, None).unwrap()).unwrap()
}

fn encoder_of_bytes(length: usize) -> Encoder {
    encoder(&byte_level(), length)
}

fn ids(encoder: &Encoder, text: &str) -> Vec<u32> {
    encoder.encode(text, false).unwrap().ids.to_vec()
}

/// What is wrong with a file.
fn refusal(document: &Value) -> String {
    let made = input(document, 8, None).and_then(|input| Encoder::new(&input).map(|_| ()));
    made.expect_err("it is refused").to_string()
}

#[test]
fn every_text_has_the_length() {
    let encoder = encoder(&word_piece(), 6);
    assert_eq!(encoder.kind(), Kind::WordPiece);
    assert!(encoder.lowercases());
    assert_eq!((encoder.tokens(), encoder.largest()), (12, 11));
    let made = encoder.encode("A cats", false).unwrap();
    assert_eq!(*made.ids, [2, 5, 6, 7, 3, 0]);
    assert_eq!(*made.mask, [1, 1, 1, 1, 1, 0]);
    assert_eq!(*made.types, [0; 6]);
    assert_eq!(ids(&encoder, ""), [2, 3, 0, 0, 0, 0]);
    assert_eq!(ids(&encoder, "cat\u{0}s \u{1f600}"), [2, 6, 7, 1, 3, 0]);
}

#[test]
fn what_is_too_long_is_refused_or_cut() {
    let encoder = encoder(&word_piece(), 4);
    assert_eq!(encoder.encode("a a", false).unwrap().ids.len(), 4);
    assert_eq!(encoder.encode("a a a", false), Err(TextError::TooLong { length: 4 }));
    let made = encoder.encode("a cat a", true).unwrap();
    assert_eq!((made.ids.to_vec(), made.cut), (vec![2, 5, 6, 3], true));
    // Nothing is put around these.
    let bare = encoder_of_bytes(3);
    assert_eq!(bare.encode("ab ab ab", false).unwrap().ids.to_vec(), [2, 4, 4]);
    assert_eq!(bare.encode("ab ab ab ab", false), Err(TextError::TooLong { length: 3 }));
    assert!(bare.encode("ab ab ab ab", true).unwrap().cut);
    let long = "é".repeat(MOST_TEXT);
    assert_eq!(encoder.encode(&long, false), Err(TextError::TooLarge));
    assert!(encoder.encode(&long, true).unwrap().cut);
    let wide = "a".repeat(MOST_TEXT);
    assert_eq!(*encoder.encode(&wide, false).unwrap().ids, [2, 1, 3, 0]);
}

#[test]
fn special_tokens_in_a_text_are_text() {
    let piece = encoder(&word_piece(), 8);
    assert_eq!(ids(&piece, "a [MASK]"), [2, 5, 8, 10, 9, 3, 0, 0]);
    // A library that finds pieces by themselves would give 2 here.
    let pieces = encoder(&unigram(), 8);
    let typed = ids(&pieces, "a</s>");
    assert!(!typed.contains(&2) && !typed.contains(&1), "{typed:?}");
    assert_eq!(typed, [4, 7, 9, 6, 8, 10, 10, 10]);
    // As would one that looks words up before it joins bytes.
    let bytes = encoder_of_bytes(4);
    assert!(!ids(&bytes, "<|end|>").contains(&6));
    assert_eq!(ids(&bytes, "ab ab<tab>"), [2, 4, 7, 0]);
}

#[test]
fn the_names_of_special_tokens_cannot_be_typed() {
    for place in 0..4 {
        let text = format!("a\u{10ffff}\u{fdd0}{place}");
        let pieces = ids(&encoder(&unigram(), 16), &text);
        assert_eq!(pieces[0], 4);
        assert!(!pieces.iter().any(|id| [1, 2].contains(id)), "{pieces:?}");
        let bytes = encoder_of_bytes(16).encode(&text, false).unwrap();
        assert!(!bytes.ids.contains(&6));
    }
}

#[test]
fn texts_are_filled_up_where_the_file_says() {
    let mut document = word_piece();
    document["padding"] = json!({"strategy": {"Fixed": 9}, "direction": "Left", "pad_id": 4, "pad_type_id": 0, "pad_token": "[MASK]"});
    document["truncation"] =
        json!({"direction": "Right", "max_length": 77, "strategy": "LongestFirst", "stride": 0});
    let file = TokenizerFile::read(&document.to_string(), None).unwrap();
    assert_eq!((file.length, file.pad, file.left), (77, Some(4), true));
    assert_eq!(ids(&encoder(&document, 5), "a"), [4, 4, 2, 5, 3]);
    assert_eq!(input(&document, 5, Some("[PAD]")).unwrap().pad, 0);
    assert!(matches!(input(&document, 5, Some("none")), Err(TextError::Choice(_))));
    assert_eq!(TokenizerFile::read(&byte_level().to_string(), None).unwrap().pad, None);
}

#[test]
fn a_file_that_is_read_again_is_the_same() {
    for document in [word_piece(), unigram(), byte_level()] {
        let once = TokenizerFile::read(&document.to_string(), None).unwrap();
        assert_eq!(TokenizerFile::read(&once.text, None).unwrap().text, once.text);
    }
}

#[test]
fn files_beyond_the_bounds_are_refused() {
    let with = |path: &str, value: Value| {
        let mut document = word_piece();
        *document.pointer_mut(path).unwrap() = value;
        refusal(&document)
    };
    let step = json!({"type": "Lowercase"});
    let many: Vec<&Value> = vec![&step; 40];
    assert!(with("/normalizer", json!({"type": "Sequence", "normalizers": many})).contains("more than 32"));
    let long = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "b".repeat(17)});
    assert!(with("/normalizer", long).contains("16 bytes"));
    let slow = json!({"type": "Replace", "pattern": {"Regex": r"(a+)+(?!b)"}, "content": ""});
    assert!(with("/normalizer", slow).contains("regular expression"));
    let cut =
        json!({"type": "Split", "pattern": {"Regex": r"(\w)\1"}, "behavior": "Isolated", "invert": false});
    assert!(with("/pre_tokenizer", cut).contains("regular expression"));
    let charsmap = json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"});
    assert!(with("/normalizer", charsmap).contains("table of characters"));
    assert!(with("/normalizer", json!({"type": "Nothing"})).contains("not read"));
    assert!(with("/pre_tokenizer", json!({"type": "FixedLength", "length": 0})).contains("not read"));
    assert!(with("/model/max_input_chars_per_word", json!(1_000_000)).contains("256 characters"));
    assert!(with("/model/vocab", json!({})).contains("0 tokens"));
    assert!(with("/model/vocab", json!({"a": 1 << 20})).contains("number"));
    assert!(with("/model/vocab", json!({"a": -1})).contains("damaged"));
    assert!(with("/model/type", json!("Hash")).contains("not read"));
    assert!(with("/added_tokens/4/id", json!(70)).contains("follows nothing"));
    assert!(
        with("/post_processor", json!({"type": "TemplateProcessing", "x": "y".repeat(20_000)}))
            .contains("bytes")
    );
    assert!(refusal(&json!([])).contains("no `model`"));
    assert!(matches!(TokenizerFile::read("{", None), Err(TextError::File(_))));
}

#[test]
fn texts_that_grow_are_refused() {
    let mut document = word_piece();
    let double = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
    document["normalizer"] = json!({"type": "Sequence", "normalizers": vec![double; 20]});
    let encoder = encoder(&document, 8);
    assert!(matches!(encoder.encode("a", true), Err(TextError::Text(what)) if what.contains("too long")));
}

#[test]
fn what_is_put_around_a_text_leaves_room() {
    let made = Encoder::new(&input(&word_piece(), 2, None).unwrap());
    assert!(matches!(made, Err(TextError::Choice(what)) if what.contains("no room")));
    let mut unbounded = input(&word_piece(), 8, None).unwrap();
    unbounded.length = 1 << 20;
    assert!(matches!(Encoder::new(&unbounded), Err(TextError::File(_))));
}

/// The places in a document, and its members' values.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(place, value)| places(value, &format!("{at}/{place}"), found));
        }
        _ => {}
    }
}

fn damaged(mut document: Value, changes: &[(usize, usize)]) -> Value {
    let values = [
        json!(null),
        json!(-1),
        json!(4_000_000_000_u32),
        json!(""),
        json!("[UNK]"),
        json!([]),
        json!({}),
        json!(true),
        json!("\u{0}"),
        json!([["", 1e300]]),
        json!({"Regex": "(?:a?){90}"}),
        json!(0.5),
    ];
    for &(place, value) in changes {
        let mut found = Vec::new();
        places(&document, "", &mut found);
        let at = &found[place % found.len()];
        if let Some(target) = document.pointer_mut(at) {
            *target = values[value % values.len()].clone();
        }
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_refused_or_keep_the_length(
        which in 0_usize..3,
        changes in prop::collection::vec((0_usize..1000, 0_usize..12), 1..4),
        text in "(\\PC|\\s|[<>/\\[\\]a-c]){0,40}",
    ) {
        let document = damaged([word_piece(), unigram(), byte_level()][which].clone(), &changes);
        let read = input(&document, 8, None).and_then(|input| Encoder::new(&input));
        if let Ok(encoder) = read && let Ok(made) = encoder.encode(&text, true) {
            prop_assert_eq!((made.ids.len(), made.mask.len(), made.types.len()), (8, 8, 8));
            prop_assert!(made.ids.iter().all(|&id| id <= encoder.largest()));
        }
    }

    #[test]
    fn no_text_becomes_a_special_token(text in "(\\PC|\\s|</s>|<s>|\\[MASK\\]|<pad>|\u{10ffff}|\u{fdd0}){0,12}") {
        let encoder = encoder(&unigram(), 64);
        let made = encoder.encode(&text, true).unwrap();
        let of_text = made.ids.iter().zip(made.mask.iter()).filter(|(_, mask)| **mask == 1);
        prop_assert!(of_text.into_iter().all(|(id, _)| ![1, 2, 10].contains(id)));
    }
}
