//! The network to a real server: its round trip and its bandwidth.

use std::time::Instant;

use lanner_primitives::Prg;
use lanner_session::handshake::{Greeting, PROBE_LIMIT};

use crate::connect::open;
use crate::{ClientConfig, Error, ErrorKind, NetworkProfile, Result};

/// Measures the network to a server, which needs no model there: the fastest of some round trips, and the bandwidth in the slower direction
/// of one connection, TLS included.
///
/// # Errors
/// [`ErrorKind::Misuse`] if nothing says whom to trust; [`ErrorKind::Transport`] or [`ErrorKind::Peer`] about the server.
pub fn measure_link(config: &ClientConfig) -> Result<NetworkProfile> {
    let mut rng = Prg::from_entropy().map_err(|error| Error::new(ErrorKind::Misuse, error.to_string()))?;
    let mut channel = open(config, &config.address.parse()?)?;
    let mut greeting = Greeting::send(&mut channel, &mut rng)?;
    // TLS does not compress, so that zeros take as long as anything else.
    let bytes = vec![0; PROBE_LIMIT];
    let mut fastest = |times: usize, sent: usize, received: usize| -> Result<f64> {
        let mut least = f64::INFINITY;
        for _ in 0..times {
            let start = Instant::now();
            greeting.probe(&mut channel, &bytes[..sent], received as u32)?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok(least)
    };
    let round_trip_seconds = fastest(ROUND_TRIPS, 0, 0)?;
    let (up, down) = (fastest(BULKS, PROBE_LIMIT, 0)?, fastest(BULKS, 0, PROBE_LIMIT)?);
    let seconds = (up.max(down) - round_trip_seconds).max(LEAST_SECONDS);
    Ok(NetworkProfile { bandwidth_bits_per_second: 8.0 * PROBE_LIMIT as f64 / seconds, round_trip_seconds })
}

/// Probes without bytes: the first one also waits for the server's first message.
const ROUND_TRIPS: usize = 6;
/// Probes of a megabyte in one direction: the first ones are slower, since TCP begins slowly.
const BULKS: usize = 4;
/// What a megabyte takes at least, so that a clock's grain makes no bandwidth infinite.
const LEAST_SECONDS: f64 = 1e-6;
