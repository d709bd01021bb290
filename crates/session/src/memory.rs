//! How much memory a process may expect to have.

use std::fs;

/// A quarter of the machine's memory in bytes; 2 GiB where the system does not tell how much it has.
#[must_use]
pub fn quarter_of_memory() -> u64 {
    let told = fs::read_to_string("/proc/meminfo").ok();
    told.and_then(|text| total(&text)).map_or(UNKNOWN, |total| total / 4)
}

/// Bytes, of the line `MemTotal:  16384 kB`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

const UNKNOWN: u64 = 2 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_its_line() {
        assert_eq!(total("MemFree: 7 kB\nMemTotal:       16384 kB\nMemFree: 9 kB\n"), Some(16384 << 10));
        for text in
            ["", "MemTotal: kB", "MemTotal: 5 MB", "MemTotal: -5 kB", "MemTotal: 18446744073709551615 kB"]
        {
            assert_eq!(total(text), None, "{text}");
        }
        assert!(quarter_of_memory() > 0);
    }
}
