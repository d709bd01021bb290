//! What a prediction will take, before anybody pays for it.
//!
//! Bytes, rounds and material follow from public parameters, exactly. Seconds are operations times what each takes on a machine, which a table
//! tells ([`Kernels`]), with bytes over the link's bandwidth and rounds over its round trip: parties compute, send and wait mostly in turn.

use std::collections::BTreeMap;

use lanner_step::{Cost, Memory, ValueType};
use serde::{Deserialize, Serialize};

use crate::built::layer;
use crate::{BuiltPlan, BuiltStep, PlanError, Visit};

/// Seconds of each operation, by its name.
pub type Rates = BTreeMap<String, f64>;

/// What operations take on a machine, both parties on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    /// The machine, in words.
    pub machine: String,
    /// Its cores, which either party had while it computed; none where the table does not tell.
    #[serde(default)]
    pub cores: Option<u32>,
    /// How the table was made; none of the one that comes with the build, and of those that earlier versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Of the set-up.
    pub setup: Rates,
    /// Of each protocol's steps.
    pub protocols: BTreeMap<String, StepRates>,
}

/// How a table was made, and on which machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// How it was measured.
    pub table: Measurement,
    /// When, for people.
    pub measured: String,
    /// The processor's name.
    pub processor: String,
    /// What of it kernels use.
    pub features: Vec<String>,
    /// The build that measured.
    pub build: String,
}

/// How kernel times were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measurement {
    /// In about a second, by a few small networks: the rates of the table that comes with the build, times a factor for each protocol.
    Quick,
    /// In some minutes, by benchmarks to which all rates were fitted.
    Calibrated,
}

/// What a protocol's operations take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRates {
    /// Before the input is known.
    pub offline: Rates,
    /// The rest.
    pub online: Rates,
    /// Whose time it is; none where the table does not tell.
    #[serde(default)]
    pub shares: Option<PhaseShares>,
}

/// Whose time a protocol's steps take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseShares {
    /// Before the input is known.
    pub offline: Shares,
    /// The rest.
    pub online: Shares,
}

/// Parts of the time of a phase, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// In which the client computes.
    pub client: f64,
    /// In which the server computes, without what both compute at once.
    pub server: f64,
    /// Of what either computes, the part that all cores share.
    pub parallel: f64,
}

/// How many cores each party has; none for as many as the table's machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// The client's.
    pub client: Option<u32>,
    /// The server's.
    pub server: Option<u32>,
}

/// The network between the parties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Seconds that a byte takes in either direction.
    pub seconds_per_byte: f64,
    /// Seconds from a send to its answer when the peer takes no time.
    pub round_trip_seconds: f64,
}

/// What one phase takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PhaseEstimate {
    /// Seconds that the client waits.
    pub seconds: f64,
    /// Bytes in both directions, without what a transport adds.
    pub bytes: u64,
    /// Rounds.
    pub rounds: u64,
}

/// What one step takes, in all its visits.
#[derive(Clone, Debug, PartialEq)]
pub struct StepEstimate {
    /// The step.
    pub name: String,
    /// Its protocol.
    pub protocol: &'static str,
    /// Why it is computed so, for people.
    pub reason: &'static str,
    /// Whether the table has times of the protocol; without, its computation counts as none.
    pub is_timed: bool,
    /// How often it is visited.
    pub visits: usize,
    /// What its time goes with, for one visit.
    pub operations: Vec<(&'static str, f64)>,
    /// Before the input is known.
    pub offline: PhaseEstimate,
    /// The rest.
    pub online: PhaseEstimate,
    /// What the parties keep for it.
    pub memory: Memory,
}

/// What a session with one prediction takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// What the set-up's time goes with.
    pub setup_operations: Vec<(&'static str, f64)>,
    /// Once a session.
    pub setup: PhaseEstimate,
    /// The steps in order.
    pub steps: Vec<StepEstimate>,
    /// What the parties keep, all steps together.
    pub memory: Memory,
}

impl Kernels {
    /// Reads a table.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let kernels: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let steps = kernels.protocols.values().flat_map(|rates| [&rates.offline, &rates.online]);
        let rates = steps.chain([&kernels.setup]).flat_map(BTreeMap::values);
        match rates.copied().find(|seconds| !(seconds.is_finite() && *seconds >= 0.0)) {
            Some(seconds) => Err(format!("an operation takes no {seconds} s")),
            None => Ok(()),
        }?;
        let shares = kernels.protocols.values().filter_map(|rates| rates.shares);
        let are_parts = |shares: Shares| {
            [shares.client, shares.server, shares.parallel, shares.client + shares.server]
                .iter()
                .all(|part| (0.0..=1.0 + ROUNDING).contains(part))
        };
        if kernels.cores == Some(0) || !shares.flat_map(|both| [both.offline, both.online]).all(are_parts) {
            return Err("parts of a time are from 0 to 1, and a machine has a core".to_owned());
        }
        Ok(kernels)
    }

    /// The table where parties have other cores: of what a party computes, the parallel part is divided among its cores, and all else stays
    /// (Amdahl's law). The set-up's times, and those of protocols whose shares are not known, stay too.
    #[must_use]
    pub fn on(mut self, cores: Cores) -> Self {
        let Some(own) = self.cores else { return self };
        for rates in self.protocols.values_mut() {
            let Some(shares) = rates.shares else { continue };
            for (rates, shares) in [(&mut rates.offline, shares.offline), (&mut rates.online, shares.online)]
            {
                let factor = shares.factor(own, cores);
                for seconds in rates.values_mut() {
                    *seconds *= factor;
                }
            }
        }
        self
    }

    /// The table that comes with the build, of the machine that it names.
    #[must_use]
    pub fn shipped() -> Self {
        Self::from_json(include_str!("kernels.json")).unwrap_or_else(|_| Self {
            machine: String::new(),
            cores: None,
            origin: None,
            setup: Rates::new(),
            protocols: BTreeMap::new(),
        })
    }

    /// The table's text, which [`Self::from_json`] reads again: the same for equal tables, on every machine.
    ///
    /// # Errors
    /// None for a table that was read.
    pub fn to_json(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }

    /// This table, with what it lacks from another one.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        for (name, rates) in other.protocols {
            self.protocols.entry(name).or_insert(rates);
        }
        self
    }
}

impl Shares {
    /// What a phase takes where parties have other cores than `own`, over what it took.
    fn factor(self, own: u32, cores: Cores) -> f64 {
        let saved = |share: f64, cores: Option<u32>| {
            let cores = cores.unwrap_or(own).max(1);
            share * self.parallel * (1.0 - f64::from(own) / f64::from(cores))
        };
        1.0 - saved(self.client, cores.client) - saved(self.server, cores.server)
    }
}

impl Link {
    /// No network at all.
    pub const LOOPBACK: Self = Self { seconds_per_byte: 0.0, round_trip_seconds: 0.0 };

    fn phase(self, computed: f64, cost: Cost) -> PhaseEstimate {
        let sent = cost.bytes() as f64 * self.seconds_per_byte;
        let waited = cost.rounds() as f64 * self.round_trip_seconds;
        PhaseEstimate { seconds: computed + sent + waited, bytes: cost.bytes(), rounds: cost.rounds() }
    }
}

impl std::ops::AddAssign for PhaseEstimate {
    fn add_assign(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.bytes += other.bytes;
        self.rounds += other.rounds;
    }
}

impl Estimate {
    /// All steps' offline phases.
    #[must_use]
    pub fn offline(&self) -> PhaseEstimate {
        sum(self.steps.iter().map(|step| step.offline))
    }

    /// All steps' online phases.
    #[must_use]
    pub fn online(&self) -> PhaseEstimate {
        sum(self.steps.iter().map(|step| step.online))
    }
}

impl BuiltPlan {
    /// What a session with one prediction takes over a link, where operations take what a table tells.
    ///
    /// # Errors
    /// As [`Self::cost`] and [`Self::memory`].
    pub fn estimate(&self, kernels: &Kernels, link: Link) -> Result<Estimate, PlanError> {
        let cost = self.cost()?;
        let setup_operations = self.setup_operations()?;
        let setup = link.phase(seconds(&setup_operations, &kernels.setup), cost.setup);
        let unknown = StepRates::default();
        let step = |(number, step): (usize, &BuiltStep)| {
            let visits = self.visits().iter().filter(|visit| Visit::step(visit) == Some(number)).count();
            let operations = step.operations();
            let known = kernels.protocols.get(step.protocol);
            let rates = known.unwrap_or(&unknown);
            let phase = |rates, cost| link.phase(visits as f64 * seconds(&operations, rates), cost);
            let memory = step.built.memory().map_err(|source| layer(&step.name, source))?;
            Ok(StepEstimate {
                name: step.name.clone(),
                protocol: step.protocol,
                reason: step.reason,
                is_timed: known.is_some(),
                visits,
                offline: phase(&rates.offline, cost.offline[number]),
                online: phase(&rates.online, cost.online[number]),
                operations,
                memory,
            })
        };
        let steps = self.steps().iter().enumerate().map(step).collect::<Result<_, PlanError>>()?;
        Ok(Estimate { setup_operations, setup, steps, memory: self.memory()? })
    }

    /// What the set-up's time goes with.
    fn setup_operations(&self) -> Result<Vec<(&'static str, f64)>, PlanError> {
        let setup = self.set_up()?;
        let keys = setup.key_bytes().map_err(|source| layer("evaluation keys", source))?;
        let is = |has: bool| f64::from(u8::from(has));
        Ok(vec![
            ("sessions", 1.0),
            ("key_bytes", keys as f64),
            ("garbling", is(setup.garbling)),
            ("transfers", is(setup.transfers.is_some())),
            ("comparison_keys", is(setup.comparison_keys)),
        ])
    }
}

impl BuiltStep {
    /// What the time of a visit goes with, for a table of rates: what it counts, times the size of what is counted.
    #[must_use]
    pub fn operations(&self) -> Vec<(&'static str, f64)> {
        let counts = self.built.counts();
        let size =
            |name: &str| counts.iter().find(|(own, _)| *own == name).map_or(1.0, |(_, size)| *size as f64);
        // Polynomials of so many coefficients; products of ciphertexts and key switches go with the square of their limbs.
        let scale = size("degree") * size("limbs").powi(2) * size("primes");
        let counted = counts.iter().filter(|(name, _)| !SIZES.contains(name));
        let counted = counted.map(|(name, count)| (*name, *count as f64 * scale));
        let elements = |value: &ValueType| match value {
            ValueType::Shared { len, .. } => *len as f64,
            ValueType::Encrypted(_) | ValueType::Revealed => 0.0,
        };
        let (inputs, made) = &self.types;
        let elements = inputs.iter().chain([made]).map(elements).sum();
        [("steps", 1.0), ("elements", elements)].into_iter().chain(counted).collect()
    }
}

/// Counts that are sizes of what others count.
const SIZES: [&str; 3] = ["degree", "limbs", "primes"];

/// What a sum of parts may exceed the whole by.
const ROUNDING: f64 = 1e-9;

fn seconds(operations: &[(&'static str, f64)], rates: &Rates) -> f64 {
    operations.iter().map(|(name, count)| count * rates.get(*name).copied().unwrap_or(0.0)).sum()
}

fn sum(phases: impl Iterator<Item = PhaseEstimate>) -> PhaseEstimate {
    phases.fold(PhaseEstimate::default(), |mut all, phase| {
        all += phase;
        all
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table(rate: &str) -> String {
        format!(
            r#"{{"machine":"m","setup":{{}},"protocols":{{"a":{{"offline":{{"steps":{rate}}},"online":{{}}}}}}}}"#
        )
    }

    #[test]
    fn only_tables_of_times_are_read() {
        assert!(Kernels::from_json(&table("0.5")).is_ok());
        for rate in ["-1", "1e999", "null"] {
            assert!(Kernels::from_json(&table(rate)).is_err(), "{rate}");
        }
    }

    #[test]
    fn a_table_tells_how_it_was_made_and_one_of_an_earlier_version_need_not() {
        let plain = Kernels::from_json(&table("0.5")).unwrap();
        assert_eq!(plain.origin, None);
        assert!(!plain.to_json().unwrap().contains("origin"));
        let origin = Origin {
            table: Measurement::Quick,
            measured: "2026-01-02".to_owned(),
            processor: "abacus".to_owned(),
            features: vec!["beads".to_owned()],
            build: "0".to_owned(),
        };
        let told = Kernels { origin: Some(origin), ..plain };
        let text = told.to_json().unwrap();
        assert!(text.contains(r#""table":"quick""#), "{text}");
        assert_eq!(Kernels::from_json(&text).unwrap(), told);
        assert!(Kernels::from_json(&text.replace("quick", "guessed")).is_err());
    }

    #[test]
    fn the_shipped_table_is_one_and_fills_what_another_lacks() {
        let shipped = Kernels::shipped();
        assert!(!shipped.machine.is_empty());
        let own = Kernels::from_json(&table("0.5")).unwrap();
        let both = own.clone().or(shipped.clone());
        assert_eq!(both.protocols["a"], own.protocols["a"]);
        assert_eq!(both.protocols.len(), shipped.protocols.len() + 1);
    }

    #[test]
    fn cores_divide_what_is_parallel_of_a_partys_time() {
        let text = |shares: &str| {
            format!(
                r#"{{"machine":"m","cores":2,"setup":{{"a":3}},"protocols":{{
                "a":{{"offline":{{"x":8}},"online":{{"x":10,"y":20}},"shares":{shares}}},
                "b":{{"offline":{{"x":5}},"online":{{}}}}}}}}"#
            )
        };
        let shares = r#"{"offline":{"client":0,"server":1,"parallel":1},"online":{"client":0.5,"server":0.25,"parallel":0.8}}"#;
        let table = Kernels::from_json(&text(shares)).unwrap();
        assert_eq!(table.clone().on(Cores::default()), table);
        assert_eq!(table.clone().on(Cores { client: Some(2), server: Some(2) }), table);
        let seconds = |cores: Cores| {
            let table = table.clone().on(cores);
            assert_eq!((table.setup["a"], table.protocols["b"].offline["x"]), (3.0, 5.0));
            let own = &table.protocols["a"];
            [own.offline["x"], own.online["x"], own.online["y"]]
        };
        // The server's 8 s on sixteen times two cores; of 10 s, 5 are the client's, of which 4 are parallel.
        let close = |found: [f64; 3], expected: [f64; 3]| {
            found
                .iter()
                .zip(expected)
                .for_each(|(found, due)| assert!((found - due).abs() < 1e-9, "{found} {due}"));
        };
        close(seconds(Cores { client: None, server: Some(32) }), [0.5, 8.125, 16.25]);
        close(seconds(Cores { client: Some(1), server: None }), [8.0, 14.0, 28.0]);
        close(seconds(Cores { client: Some(4), server: Some(4) }), [4.0, 7.0, 14.0]);
        for wrong in
            [shares.replace("0.8", "1.5"), shares.replace("0.25", "0.75"), shares.replace("0.5", "-1")]
        {
            assert!(Kernels::from_json(&text(&wrong)).is_err(), "{wrong}");
        }
        assert!(Kernels::from_json(&text(shares).replace("\"cores\":2", "\"cores\":0")).is_err());
    }

    #[test]
    fn a_link_adds_its_bytes_and_round_trips() {
        let link = Link { seconds_per_byte: 1e-3, round_trip_seconds: 10.0 };
        let cost = Cost::NONE.client(95).server(0);
        let phase = link.phase(1.0, cost);
        assert_eq!((phase.bytes, phase.rounds), (cost.bytes(), 1));
        assert!((phase.seconds - (11.0 + cost.bytes() as f64 * 1e-3)).abs() < 1e-9);
    }
}
