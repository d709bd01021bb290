//! Plain tables, as the paper has them ([LMRWB22](https://arxiv.org/abs/2203.02833), section 3.2): in place of keys each party keeps all `2^k` words of its share of
//! a table that is turned by a mask s.
//!
//! ```text
//! offline   bits of s: b = b_C xor b_S, which each party draws
//!           the unit vector o of s, from products of bits by transfers of both directions: of one more bit each time, o and b o      demux
//!           o modulo 2^l, from products of both parties' bits by transfers
//!           T'[j] = sum over r of T[j - r] o_r,  s = sum over r of r o_r                                                            locally
//! online    e = x + s mod 2^k, opened;  T'[e]
//! ```
//!
//! Neither party learns s or an entry. What is dropped before is not counted: values have k bits.

use std::time::Instant;

use lanner_primitives::{Prg, Ring, Seed, Share};
use lanner_step::{Cost, CotSupply, OfflineCost, Party, ProtocolError, Transfers, transfer_sets};
use lanner_transfers::Layer;
use lanner_transfers::blocks::{Driver, Lanes, Program, Task};
use lanner_wire::{Channel, ChannelError, Kind, pack_bits, packed_len, unpack_bits};

use crate::Measured;
use crate::queue::{Failure, Queue, both, median};

/// Values of `kept` bits through a table, to the ring of `to` bits.
pub(crate) fn measure(
    [kept, to]: [u32; 2],
    values: usize,
    repeats: usize,
    secrets: &[i64],
    function: impl Fn(i64) -> i64 + Sync,
) -> Result<Measured, Failure> {
    let demux = Layer::of(Demux { bits: kept, to, values }, kept as usize * values, 1, to)?;
    let (from, ring) = (Ring::Pow2(kept), Ring::Pow2(to));
    let table: Vec<u64> = (0..1 << kept).map(|x| ring.embed(function(from.signed(x)))).collect();
    let transfers = [Party::Client, Party::Server].map(|party| demux.transfers(party));
    let play = |channel: &mut Queue, party: Party| -> Result<(Vec<Share>, [Vec<f64>; 2]), Failure> {
        let rng = &mut Prg::new(Seed::from_bytes([100 + party as u8; 16]));
        let mut source = Transfers::setup(channel, party, transfer_sets(transfers), rng)?;
        let (mut results, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
        for repeat in 0..repeats {
            let server = Share::random(from, values, &mut Prg::new(Seed::from_bytes([repeat as u8; 16])));
            let client = Share::embed(from, secrets).sub(&server)?;
            let share = if party == Party::Client { client } else { server };
            let start = Instant::now();
            let bits = Share::random(Ring::Pow2(1), kept as usize * values, rng);
            let request = demux.request(channel, &mut source)?;
            let material = demux.prepare(channel, &mut source, request, rng)?;
            let units = demux.online(channel, party, material, &[&bits])?;
            let turned = Turned::new(&table, units.values(), values);
            times[0].push(start.elapsed().as_secs_f64() * 1e6);
            let start = Instant::now();
            let result = turned.look_up(channel, from, share.values())?;
            times[1].push(start.elapsed().as_secs_f64() * 1e6);
            results.push(Share::new(ring, result.into_iter().map(|x| ring.embed(x as i64)).collect())?);
        }
        Ok((results, times))
    };
    let [(client, times), (server, _)] = both(play)?;
    let results = client.iter().zip(&server).map(|(client, server)| client.reveal(server));
    let OfflineCost { request, answer } = demux.offline_cost(&mut CotSupply::new(transfer_sets(transfers)));
    let opened = packed_len(values, kept);
    Ok(Measured {
        times: times.map(median),
        results: results.collect::<Result<_, _>>()?,
        offline: request.then(answer).then(demux.online_cost()),
        online: Cost::NONE.client(opened).server(opened),
        held: (packed_len(values << kept, to) + opened) as u64,
    })
}

/// The unit vectors of numbers whose bits are shared, one row of bits after the other; modulo `2^to`, row by row.
#[derive(Clone, Debug)]
struct Demux {
    bits: u32,
    to: u32,
    values: usize,
}

impl Program for Demux {
    fn run<D: Driver>(&self, driver: &mut D, x: &D::Values) -> Result<D::Values, ProtocolError> {
        let row = |bit: usize| x.range(bit * self.values..(bit + 1) * self.values);
        let ones = u64::from(driver.party() == Party::Client);
        let lowest = row(0);
        let mut units = D::Values::concat(&[&lowest.map(|bit| bit ^ ones), &lowest]);
        for bit in 1..self.bits as usize {
            let bits = D::Values::concat(&vec![&row(bit); 1 << bit]);
            let product = driver.turn(vec![Task::Bits(bits.words(), vec![units.words()])])?;
            let product = product.into_iter().flatten().next();
            let above = product.ok_or(ProtocolError::Missing("a product"))?.bits(units.count());
            units = D::Values::concat(&[&units.zip_map(&above, |unit, above| unit ^ above), &above]);
        }
        driver.bits_to_values(&units, self.to)
    }
}

/// One party's shares of turned tables and of what they are turned by.
struct Turned {
    tables: Vec<u64>,
    masks: Vec<u64>,
}

impl Turned {
    /// Of a table and shares of unit vectors, of each place those of all values.
    fn new(table: &[u64], units: &[u64], values: usize) -> Self {
        let rows = table.len();
        let (mut tables, mut masks) = (Vec::with_capacity(rows * values), Vec::with_capacity(values));
        // Twice, backwards: what is read for one place lies together.
        let reversed: Vec<u64> = table.iter().rev().chain(table.iter().rev()).copied().collect();
        for value in 0..values {
            let unit: Vec<u64> = (0..rows).map(|place| units[place * values + value]).collect();
            let dot = |entries: &[u64]| {
                let products = entries.iter().zip(&unit).map(|(entry, unit)| entry.wrapping_mul(*unit));
                products.fold(0, u64::wrapping_add)
            };
            // T[place - r] for all r.
            tables.extend((0..rows).map(|place| dot(&reversed[rows - 1 - place..][..rows])));
            let weighted = (0..).zip(&unit).map(|(place, unit): (u64, _)| place.wrapping_mul(*unit));
            masks.push(weighted.fold(0, u64::wrapping_add));
        }
        Self { tables, masks }
    }

    /// This party's shares of the entries at places of which it has shares; both send theirs.
    fn look_up(&self, channel: &mut Queue, ring: Ring, share: &[u64]) -> Result<Vec<u64>, Failure> {
        let bits = ring.bits();
        let mine = share.iter().zip(&self.masks).map(|(x, s)| ring.embed(x.wrapping_add(*s) as i64));
        let mine: Vec<u64> = mine.collect();
        channel.send(OPENED, &pack_bits(&mine, bits))?;
        channel.flush()?;
        let theirs = channel.receive(OPENED, packed_len(mine.len(), bits))?;
        let theirs = unpack_bits(&theirs, mine.len(), bits).map_err(ChannelError::from)?;
        let places = mine.iter().zip(theirs).map(|(mine, theirs)| ring.add(*mine, theirs) as usize);
        let tables = self.tables.chunks(1 << bits).zip(places);
        Ok(tables.map(|(table, place)| table[place]).collect())
    }
}

/// The message of both parties online.
const OPENED: Kind = Kind(1);
