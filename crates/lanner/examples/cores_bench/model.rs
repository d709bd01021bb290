//! A model of what more cores would do: nothing here is measured but the three figures that it takes.
//!
//! A prediction computes `c` seconds on one core and reads `w` bytes of encoded weights, which no cache holds, from a memory that gives `b` bytes
//! in a second to all cores together. Sessions share nothing else that they wait for. Of `n` cores with a session each, predictions in a
//! second are then at most `min(n / c, b / w)`, and at least `n / (c + (n - 1) w / b)`, where each waits for all others' reads: the
//! bounds of a closed network of queues ([Lazowska et al. 1984](https://homes.cs.washington.edu/~lazowska/qsp/), chapter 5).

/// Prints both bounds, for the memory that was measured and for ones that give more.
pub(crate) fn print(seconds: f64, bytes: f64, bandwidth: f64) {
    println!(
        "model, not measured: c = {seconds:.3} s, w = {:.2} GB, predictions in a second, at least and at most",
        bytes / 1e9
    );
    let memories = [bandwidth, 100e9, 400e9];
    let heads = memories.map(|memory| format!("{:>18}", format!("b = {:.0} GB/s", memory / 1e9)));
    println!("{:>6} {}", "cores", heads.join(" "));
    for cores in [1.0, 2.0, 4.0, 16.0, 64.0] {
        let cells = memories.map(|memory| {
            let wait = bytes / memory;
            let least = cores / (seconds + (cores - 1.0) * wait);
            let most = (cores / seconds).min(1.0 / wait);
            format!("{:>18}", format!("{least:.2} to {most:.2}"))
        });
        println!("{cores:>6} {}", cells.join(" "));
    }
}
