//! The table, as text or as rows of Markdown.

use crate::count::Blocks;

/// One line of it.
pub(crate) struct Row<'r> {
    pub(crate) function: &'r str,
    pub(crate) way: &'r str,
    pub(crate) scale: u32,
    pub(crate) ulp: f64,
    pub(crate) depends_on_shares: bool,
    pub(crate) blocks: Blocks,
    pub(crate) rounds: u64,
    /// Milliseconds offline and online.
    pub(crate) times: [f64; 2],
    /// Those of both parties, offline and online.
    pub(crate) bytes: [f64; 2],
    pub(crate) paper: &'r str,
}

/// Names of the columns, and their widths as text.
const COLUMNS: [(&str, usize); 16] = [
    ("function", 16),
    ("way", 45),
    ("scale", 5),
    ("ULP", 5),
    ("shares", 6),
    ("comparisons", 11),
    ("bits", 4),
    ("muxes", 5),
    ("products", 8),
    ("lookups", 8),
    ("transfers", 9),
    ("rounds", 6),
    ("offline", 8),
    ("online", 8),
    ("bytes", 17),
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
        let Blocks { comparisons, bits, muxes, products, lookups, transfers } = row.blocks;
        let sized =
            |[count, size]: [usize; 2]| if count == 0 { "-".into() } else { format!("{count} ({size})") };
        let [offline, online] = row.bytes.map(|bytes| bytes / 1e6);
        self.line(&[
            row.function.to_owned(),
            row.way.to_owned(),
            row.scale.to_string(),
            format!("{:.2}", row.ulp),
            if row.depends_on_shares { "depend" } else { "-" }.to_owned(),
            sized(comparisons),
            bits.to_string(),
            muxes.to_string(),
            sized(products),
            sized(lookups),
            transfers.to_string(),
            row.rounds.to_string(),
            format!("{:.1} ms", row.times[0]),
            format!("{:.1} ms", row.times[1]),
            format!("{offline:.2} + {online:.2} MB"),
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
