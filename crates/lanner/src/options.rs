//! What the owner of a model chooses when compiling it.

mod checks;
mod written;

use lanner_graph::{Graph, Op};
use lanner_net::NetworkProfile;
use lanner_network::{Field, Policy, Precision, Tensors};
use lanner_plan::{Limits, MODES, Mode, Objective, Prices, Rings, Samples};
use lanner_quantize::{Aim, QuantizationOptions, Replaced, Told, replace_relu};
use lanner_text::TextInput;
use serde::Deserialize;

use crate::estimate::link;
use crate::named::choice_rows;
use crate::{Error, ErrorKind, KernelTimes, NamedInput, NamedOutput, Result, kernel_times};

/// Digits of a probability where none are asked for.
const USUAL_DIGITS: u32 = 2;
/// The fewest bits of inputs and weights where only those of lookups are asked for.
const USUAL_BITS: u32 = 8;

/// What scores may be off by where nothing is rescaled and nothing is asked: half a per cent takes more bits there than there are behind two squares.
const WITHOUT_RESCALES: f64 = 0.2;

/// What the owner of a model chooses when compiling it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own, named as the owner names it")]
#[serde(default, deny_unknown_fields)]
pub struct CompileOptions {
    /// The name under which a server offers the model.
    pub name: String,
    /// `gazelle`, `falcon`, `cheetah`, `tabula`, `spectral`, or `auto`: for the whole and for each layer what comes out best by the estimate, for
    /// what `auto` says. Every result is the reference's then.
    pub mode: String,
    /// `cheating-clients` where the mode must check what clients do, so that they may send what they like; any mode where it is `None`. Mode `auto` has such modes to choose from alone then.
    pub against: Option<String>,
    /// `exact`, also where it is `None`, or with output `label` alone `faithful`, for mode `cheetah`, or `stochastic`, for mode `tabula`. Exact
    /// results equal the reference's in every integer. Faithful ones depend on random shares, which the client knows its own of, stochastic ones on
    /// numbers that it does not: asked again, either tell more of the weights than the results of the reference do.
    pub rounding: Option<String>,
    /// `label`, `label-map`, `labels`, `probability`, `top-k`, `logits` or `value`.
    pub output: String,
    /// Places of a map, for `label-map`: the network's outputs are the scores of one after another.
    pub places: u32,
    /// How many classes `top-k` reveals.
    pub k: u32,
    /// Decimal digits that `probability` reveals, two where it is `None`, and those to which `value` rounds sums, which it tells whole where it
    /// is `None`.
    pub digits: Option<u32>,
    /// The precision asked for; half a per cent where it is `None`, 20% for the logits of mode `spectral`, or with `kept_bits` as many bits, 8 at least,
    /// of inputs and weights.
    pub precision: Option<Precision>,
    /// For mode `tabula`, the bits that each of its lookups keeps, 3 to 16; as many as the precision takes where it is `None`.
    pub kept_bits: Option<u32>,
    /// Whether a network that misses the precision asked for is taken, too.
    pub allow_imprecise: bool,
    /// For mode `spectral`, whether every `Relu` gives way to the quadratic that is the least squares' fit to it on the calibration samples.
    pub replace_relu: bool,
    /// For outputs `logits` and `value`, whether the client learns beside them, in one bit, whether any activation reached an upper bound of the
    /// compiler's own: where none did, the result is that of the network without bounds.
    pub reveal_saturation: bool,
    /// Whether no accepted input may take a value out of its ring, in any mode: activations saturate, rings are as large as proofs ask, and what has no
    /// proof is refused. Otherwise that holds as far as rings have room in modes `gazelle`, `falcon` and `tabula`, and elsewhere of what calibration saw.
    pub proved_ranges: bool,
    /// How many samples a request holds, packed into the same ciphertexts: a power of two, and one alone but in modes `gazelle`, `cheetah`,
    /// `auto` and `spectral`.
    pub batch: usize,
    /// The smallest and the largest value that an input may have, with 0 between them. The calibration samples decide where it is `None`,
    /// and the public half then tells of theirs.
    pub input_range: Option<[f64; 2]>,
    /// Whether the constants in front of the first layer, such as the means and scales of a scaler, are published, for the client to
    /// apply in floating point. Not together with `input_range`.
    pub public_preprocessing: bool,
    /// What people are shown as the model's title, 1 to 80 characters; nothing where it is `None`.
    pub title: Option<String>,
    /// What people are shown beside each result, 1 to 500 characters; nothing where it is `None`.
    pub note: Option<String>,
    /// The names of the input's elements, where it is one row of a table that trees do not read: for the client, which finds columns by them.
    pub columns: Option<Vec<String>>,
    /// The names of the classes, in the order of the scores.
    pub classes: Option<Vec<String>>,
    /// The names that the network's file gives them, which count where the owner gives none and there is one for each.
    pub named: Option<Vec<String>>,
    /// How a picture becomes an input: for the client, which applies it.
    pub image: Option<serde_json::Value>,
    /// How a text becomes the original model's inputs: for the client, which applies it.
    pub text: Option<TextInput>,
    /// The original model's inputs, of which the graph's is made: for the client, which makes it.
    pub inputs: Vec<NamedInput>,
    /// The original model's outputs, of which the graph's is made: for the client, which takes it apart.
    pub outputs: Vec<NamedOutput>,
    /// What a prediction may take. Clients have limits of their own.
    pub limits: LimitOptions,
    /// By what mode `auto` chooses.
    pub auto: AutoOptions,
}

impl Default for CompileOptions {
    /// Mode `auto` and output `label`, as where an owner chooses nothing; the name is empty.
    fn default() -> Self {
        Self {
            name: String::new(),
            mode: "auto".to_owned(),
            against: None,
            rounding: None,
            output: "label".to_owned(),
            places: 1,
            k: 1,
            digits: None,
            precision: None,
            kept_bits: None,
            allow_imprecise: false,
            replace_relu: false,
            reveal_saturation: false,
            proved_ranges: false,
            batch: 1,
            input_range: None,
            public_preprocessing: false,
            title: None,
            note: None,
            columns: None,
            classes: None,
            named: None,
            image: None,
            text: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            limits: LimitOptions::default(),
            auto: AutoOptions::default(),
        }
    }
}

/// By what mode `auto` chooses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AutoOptions {
    /// `latency`, which it is where it is `None`, `online`, `bytes` or `memory`: see [`Objective`].
    pub optimize: Option<String>,
    /// Bits per second in each direction and seconds of a round trip between the parties; nothing is between them where they are `None`.
    pub network: Option<[f64; 2]>,
    /// A table of what operations take, as JSON; the one that comes with the build where it is `None`.
    pub kernels: Option<String>,
}

/// What a prediction may take, as far as that is not left to the usual limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOptions {
    /// Bytes that either party holds for a session with one prediction, the server's model included; 8 GiB where it is `None`.
    pub memory: Option<u64>,
    /// Seconds that both parties together compute on one core, very roughly; 1800 where it is `None`.
    pub seconds: Option<u64>,
}

impl LimitOptions {
    /// The limits.
    pub(crate) fn limits(self) -> Limits {
        let usual = Limits::default();
        Limits { memory: self.memory.unwrap_or(usual.memory), seconds: self.seconds.unwrap_or(usual.seconds) }
    }
}

impl CompileOptions {
    /// The mode, which must be one that the rounding and the output go with.
    pub(crate) fn mode(&self) -> Result<Mode> {
        let rounding = self.rounding.as_deref().unwrap_or("exact");
        let misuse =
            |what: String, fix: &str| Err(Error::new(ErrorKind::Misuse, what).at("rounding").fix(fix));
        let name = |mode: &Mode| mode.inexact().map_or("exact", |rounding| rounding.name);
        let mut rounded = MODES.into_iter().filter(|mode| name(mode) == rounding);
        let Some(mode) = rounded.clone().find(|mode| mode.name() == self.mode) else {
            let alone = rounded.next().map_or("none", Mode::name);
            let what = format!("{rounding} rounding goes with mode {alone} alone, and this is {}", self.mode);
            return misuse(what, &format!("compile with mode {alone}, or with rounding exact"));
        };
        if mode.is_exact() || self.output == "label" {
            return Ok(mode);
        }
        let what = format!(
            "{rounding} rounding goes with output label alone: from {} a client that repeats one query can compute weights",
            self.output
        );
        misuse(what, "compile with rounding exact, or with output label")
    }

    /// Whether the planner chooses.
    pub(crate) fn is_auto(&self) -> bool {
        self.mode == "auto"
    }

    /// Whether clients must be checked.
    pub(crate) const fn checks_clients(&self) -> bool {
        self.against.is_some()
    }

    /// Checks that scores or quantities are told where the client is to learn whether activations saturate.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] otherwise, or in mode `spectral`.
    pub(crate) fn check_saturation(&self, mode: Mode, policy: Policy) -> Result<()> {
        if !self.reveal_saturation {
            return Ok(());
        }
        let misuse = |what: String, with: &str| {
            let fix = format!("compile with {with}, or without {}", Field::REVEAL_SATURATION);
            Err(Error::new(ErrorKind::Misuse, what).at("reveal_saturation").fix(fix))
        };
        if !mode.design().is_interactive() {
            let mode = mode.name();
            let what =
                format!("mode {mode} computes on ciphertexts, where no activation is compared with a bound");
            return misuse(what, "another mode");
        }
        if !matches!(policy, Policy::Logits | Policy::Value) {
            let what = format!(
                "whether activations saturate is revealed beside logits or values alone, and the output is {}",
                policy.name()
            );
            return misuse(what, &format!("{} or value", Field::OUTPUT.set_to("logits")));
        }
        Ok(())
    }

    /// By what plans are compared.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if there is no such objective, or the table is damaged.
    pub(crate) fn prices(&self) -> Result<Prices> {
        let AutoOptions { optimize, network, kernels } = &self.auto;
        let objective = match optimize.as_deref() {
            None | Some("latency") => Objective::Latency,
            Some("online") => Objective::Online,
            Some("bytes") => Objective::Bytes,
            Some("memory") => Objective::Memory,
            Some(other) => {
                let error = Error::new(ErrorKind::Misuse, format!("nothing is optimized for {other}"));
                return Err(error.fix("give latency, online, bytes or memory"));
            }
        };
        let profile = |[bandwidth_bits_per_second, round_trip_seconds]: [f64; 2]| NetworkProfile {
            bandwidth_bits_per_second,
            round_trip_seconds,
        };
        let link = link(network.map(profile));
        Ok(Prices { kernels: kernel_times::read(kernels.as_deref())?.0, link, objective })
    }

    /// Which table of kernel times plans are compared by; none where none are compared.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the table is damaged.
    pub(crate) fn kernel_times(&self) -> Result<Option<KernelTimes>> {
        let used = || Ok(kernel_times::read(self.auto.kernels.as_deref())?.1);
        self.is_auto().then(used).transpose()
    }

    /// How many samples a request holds.
    pub(crate) fn samples(&self, mode: Mode) -> Result<Samples> {
        let most = mode.design().most_samples;
        let samples = Samples::try_from(self.batch).ok().filter(|_| self.batch <= most);
        samples.ok_or_else(|| {
            let what =
                format!("a request of mode {} holds at most {most} samples, not {}", self.mode, self.batch);
            Error::new(ErrorKind::Misuse, what).at("batch").fix(format!("give {most} or fewer"))
        })
    }

    /// The quadratics in the place of a graph's `ReLUs`, where they are to be replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] naming the first `Relu` of a graph for mode `spectral` that keeps them, and what quadratics would make of the
    /// samples.
    pub(crate) fn replaced(
        &self,
        mode: Mode,
        graph: &Graph,
        tensors: &Tensors,
        calibration: &[f32],
    ) -> Result<Option<Replaced>> {
        if mode.design().rings != Rings::Products || graph.nodes.iter().all(|node| node.op != Op::Relu) {
            return Ok(None);
        }
        let replaced = replace_relu(graph, tensors, calibration)?;
        let Some(first) = replaced.relus.first() else { return Ok(None) };
        if self.replace_relu {
            return Ok(Some(replaced));
        }
        let Replaced { labels_kept, samples, .. } = replaced;
        let what = format!(
            "node `{first}`: mode spectral cannot compute Relu; quadratics fitted to the calibration samples in place of every Relu keep \
             the label of {labels_kept} of {samples} samples"
        );
        let fix = format!(
            "compile with {}, train the network again with squares, or choose another mode, such as auto",
            Field::REPLACE_RELU
        );
        Err(Error::new(ErrorKind::Unsupported, what).at(first.clone()).fix(fix))
    }

    /// What the network's precision is to be.
    pub(crate) fn aim(&self, mode: Mode, policy: Policy) -> Aim {
        let usual = || match (self.kept_bits, mode.design().rings, policy) {
            (Some(bits), ..) => Precision::Bits(bits.clamp(USUAL_BITS, Precision::MOST_BITS)),
            (None, Rings::Products, Policy::Logits) if !self.is_auto() => Precision::Error(WITHOUT_RESCALES),
            (None, ..) => Precision::default(),
        };
        Aim {
            precision: self.precision.unwrap_or_else(usual),
            demanded: !self.allow_imprecise,
            told: match policy {
                // Labels, their order and their probabilities are the same whatever is added to all scores.
                Policy::Label | Policy::TopK { .. } => Told::Order,
                Policy::LabelMap { places } => Told::OrderAt { places: places as usize },
                Policy::Probability { .. } => Told::Probability,
                Policy::Labels => Told::Signs,
                Policy::Logits => Told::Scores,
                Policy::Value => Told::Values,
            },
        }
    }

    /// The rings of a mode, the bits of its lookups, and the input's range.
    pub(crate) fn quantization(&self, mode: Mode) -> Result<QuantizationOptions> {
        let (design, kept_bits) = (mode.design(), self.kept_bits);
        let options = match design.rings {
            Rings::Primes => QuantizationOptions::default(),
            Rings::OnePrime => QuantizationOptions::one_prime(),
            Rings::PowersOfTwo => {
                let narrow = design.looks_up();
                // A number of bits that lookups keep leaves no room for proofs.
                let saturates = narrow && kept_bits.is_none();
                QuantizationOptions { narrow, kept_bits, saturates, ..QuantizationOptions::powers_of_two() }
            }
            Rings::Products => QuantizationOptions::without_rescales(),
        };
        let without = match design.rings {
            Rings::Products => Some("values that stay encrypted"),
            _ => kept_bits.map(|_| "bits that lookups keep"),
        };
        if let Some(what) = without.filter(|_| self.proved_ranges) {
            let error =
                Error::new(ErrorKind::Misuse, format!("{what} leave no room for proofs of all ranges"));
            return Err(error.at("proved_ranges").fix("leave it out, or compile with mode cheetah"));
        }
        let (input_range, public_preprocessing) = (self.input_range, self.public_preprocessing);
        // The range of published tables is theirs, and nothing else in it is ever an input.
        let widens = self.inputs.iter().all(|input| input.embeddings.is_none());
        let output_unit =
            self.digits.filter(|_| self.output == "value").map(|digits| 0.1_f64.powi(digits as i32));
        let (proves, saturates) =
            (options.proves || self.proved_ranges, options.saturates || self.proved_ranges);
        Ok(QuantizationOptions {
            input_range,
            choices: choice_rows(&self.inputs),
            widens,
            public_preprocessing,
            output_unit,
            proves,
            saturates,
            ..options
        })
    }

    /// The output policy.
    pub(crate) fn policy(&self) -> Result<Policy> {
        match self.output.as_str() {
            "label" => Ok(Policy::Label),
            "label-map" => Ok(Policy::LabelMap { places: self.places }),
            "labels" => Ok(Policy::Labels),
            "logits" => Ok(Policy::Logits),
            "value" => Ok(Policy::Value),
            "probability" => Ok(Policy::Probability { digits: self.digits.unwrap_or(USUAL_DIGITS) }),
            "top-k" => Ok(Policy::TopK { k: self.k }),
            other => {
                let error = Error::new(ErrorKind::Misuse, format!("there is no output policy {other}"));
                Err(error.fix("give label, label-map, labels, probability, top-k, logits or value"))
            }
        }
    }
}
