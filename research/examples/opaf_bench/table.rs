//! The table, as text or as rows of Markdown.

use lanner_step::Cost;

use crate::count::Blocks;
use crate::trial::{Function, Trial};

/// One line of it.
pub(crate) struct Row<'r> {
    pub(crate) function: &'r Function,
    pub(crate) way: &'r str,
    pub(crate) trial: Trial,
    pub(crate) blocks: Blocks,
    pub(crate) online: Cost,
    /// What the paper says of it.
    pub(crate) paper: &'r str,
}

/// Names of the columns, and their widths as text.
const COLUMNS: [(&str, usize); 17] = [
    ("function", 16),
    ("way", 46),
    ("scale", 5),
    ("ULP", 5),
    ("by shares", 9),
    ("comparisons", 11),
    ("bits", 4),
    ("muxes", 5),
    ("products", 8),
    ("lookups", 8),
    ("transfers", 9),
    ("rounds", 6),
    ("turns", 5),
    ("offline", 8),
    ("online", 8),
    ("bytes", 7),
    ("paper", 24),
];

/// Prints lines as they come.
pub(crate) struct Table {
    is_markdown: bool,
}

impl Table {
    pub(crate) fn new(is_markdown: bool) -> Self {
        let table = Self { is_markdown };
        table.line(&COLUMNS.map(|(name, _)| name.to_owned()));
        if is_markdown {
            table.line(&COLUMNS.map(|_| "---".to_owned()));
        }
        table
    }

    pub(crate) fn print(&self, row: &Row<'_>) {
        let Blocks { comparisons, bits, muxes, products, lookups, transfers, turns } = row.blocks;
        let sized =
            |[count, size]: [usize; 2]| if count == 0 { "-".into() } else { format!("{count} ({size})") };
        let [offline, online] = row.trial.times;
        self.line(&[
            row.function.name.to_owned(),
            row.way.to_owned(),
            row.function.scale.to_string(),
            format!("{:.2}", row.trial.ulp),
            if row.trial.depending > 0.0 {
                format!("{:.0}%", 100.0 * row.trial.depending)
            } else {
                "-".into()
            },
            sized(comparisons),
            bits.to_string(),
            muxes.to_string(),
            sized(products),
            sized(lookups),
            transfers.to_string(),
            row.online.rounds().to_string(),
            turns.to_string(),
            format!("{offline:.0} ms"),
            format!("{online:.0} ms"),
            format!("{:.1} MB", row.trial.bytes / 1e6),
            row.paper.to_owned(),
        ]);
    }

    fn line(&self, cells: &[String; COLUMNS.len()]) {
        if self.is_markdown {
            println!("| {} |", cells.join(" | "));
            return;
        }
        let padded = cells.iter().zip(COLUMNS).enumerate().map(|(number, (cell, (_, width)))| {
            if number < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
}
