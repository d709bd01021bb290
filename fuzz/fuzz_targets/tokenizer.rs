//! A tokenizer file from a model's public half, and a text: refused, or made as long as the file's owner says, of tokens that there are.
#![no_main]

use lanner_text::{Encoder, TextInput, TokenizerFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    // What the library's panics become is part of what is tried.
    init: std::panic::set_hook(Box::new(|_| ())),
    |input: &str| {
        let (text, file) = input.split_once('\0').unwrap_or(("a text", input));
        let described = |tokenizer: String, pad: u32, left: bool| TextInput {
            tokenizer,
            length: 8,
            pad,
            left,
            ids: "input_ids".to_owned(),
            mask: None,
            types: None,
        };
        try_text(&described(file.to_owned(), 0, false), text);
        if let Ok(read) = TokenizerFile::read(file, None) {
            let again = TokenizerFile::read(&read.text, None).unwrap_or_else(|_| std::process::abort());
            if again.text != read.text {
                std::process::abort();
            }
            try_text(&described(read.text, read.pad.unwrap_or(0), read.left), text);
        }
    }
);

fn try_text(input: &TextInput, text: &str) {
    let Ok(encoder) = Encoder::new(input) else { return };
    for truncate in [false, true] {
        if let Ok(made) = encoder.encode(text, truncate) {
            let lengths = [made.ids.len(), made.mask.len(), made.types.len()];
            let known = made.ids.iter().all(|&id| id <= encoder.largest());
            if lengths != [input.length; 3] || !known {
                std::process::abort();
            }
        }
    }
}
