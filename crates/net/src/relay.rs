//! A network emulated between two processes: a relay on this machine that delivers bytes late.
//!
//! It carries TCP payload and counts nothing else: no headers, no losses, no slow start, and no round trip to connect.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lanner_process::Mark;

use crate::platform::sleep_precisely;
use crate::profile::Link;
use crate::{Address, Listener, NetError, NetworkProfile};

/// A relay in front of a server: clients that connect to it meet the delay and the bandwidth of a network.
///
/// It sees only what any network sees. Dropping it stops it.
pub struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
    mark: Mark,
}

impl Relay {
    /// Relays between clients and the server at `target`, each connection over its own network.
    ///
    /// # Errors
    /// [`NetError`] if the target has no address or no port is free.
    pub fn start(target: &Address, profile: NetworkProfile) -> Result<Self, NetError> {
        let targets = target.resolve()?;
        let listener = Listener::bind(&"127.0.0.1:0".parse()?)?;
        let address = listener.address();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let accepting = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if let Ok(Some((client, _))) = listener.accept(PATIENCE) {
                    // A target that does not answer closes the client's connection.
                    let _ = join(client, &targets, profile);
                }
            }
        });
        Ok(Self { address, stop, accepting: Some(accepting), mark: Mark::here() })
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if !self.mark.is_here() {
            // A child that `fork` made has no such thread, to wait for or to let go.
            std::mem::forget(self.accepting.take());
            return;
        }
        self.stop.store(true, Ordering::Relaxed);
        if let Some(accepting) = self.accepting.take() {
            // It cannot have panicked with anything to report.
            let _ = accepting.join();
        }
    }
}

fn join(client: TcpStream, targets: &[SocketAddr], profile: NetworkProfile) -> std::io::Result<()> {
    let server = TcpStream::connect(targets)?;
    client.set_nonblocking(false)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(client.try_clone()?, server.try_clone()?, profile);
    carry(server, client, profile);
    Ok(())
}

/// Carries one direction: one thread stamps what comes with its arrival, another delivers it then.
fn carry(source: TcpStream, destination: TcpStream, profile: NetworkProfile) {
    let (stamped, due) = mpsc::sync_channel(chunks_in_flight(profile));
    thread::spawn(move || stamp(source, &stamped, Link::new(profile)));
    thread::spawn(move || deliver(destination, &due));
}

fn stamp(mut source: TcpStream, stamped: &SyncSender<(Instant, Vec<u8>)>, mut link: Link) {
    let mut buffer = vec![0; CHUNK_LENGTH];
    while let Ok(count) = source.read(&mut buffer) {
        let arrival = link.arrival(Instant::now(), count);
        if count == 0 || stamped.send((arrival, buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn deliver(mut destination: TcpStream, due: &Receiver<(Instant, Vec<u8>)>) {
    // Linux adds 50 us to a sleep, which count against 0.3 ms of latency.
    sleep_precisely();
    while let Ok((arrival, bytes)) = due.recv() {
        thread::sleep(arrival.saturating_duration_since(Instant::now()));
        if destination.write_all(&bytes).is_err() {
            break;
        }
    }
    // The other end may be gone already.
    let _ = destination.shutdown(Shutdown::Write);
}

/// Chunks that fill the network's delay twice, so that the relay's own bound never limits the bandwidth.
fn chunks_in_flight(profile: NetworkProfile) -> usize {
    let bytes = profile.bandwidth_bits_per_second / 8.0 * profile.round_trip_seconds;
    (2.0 * bytes / 4096.0).clamp(64.0, 16384.0) as usize
}

const CHUNK_LENGTH: usize = 1 << 14;
const PATIENCE: Duration = Duration::from_millis(50);
