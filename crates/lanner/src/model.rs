//! A compiled model: the owner's half.

use std::path::Path;

use lanner_graph::{FloatExecutor, Graph};
use lanner_network::InputScale;
use lanner_network::{Accumulator, FixedExecutor, Network, NetworkManifest, Policy, Tensor, Tensors};
use lanner_primitives::Prg;
use lanner_quantize::{Calibration, outline};
use lanner_session::handshake::MANIFEST_LIMIT;
use lanner_yao::softmax::likeliest;
use serde::{Deserialize, Serialize};

use crate::auto::{Done, Job};
use crate::debug::base;
use crate::file::Contents;
use crate::manifest::{check_version, hash_weights, version_with};
use crate::refusals::{foresee, reasons};
use crate::report::report;
use crate::{
    CompileOptions, Error, ErrorKind, InputDescription, KernelTimes, LimitOptions, Manifest, NamedInput,
    Result,
};

/// A fixed-point network with its weights, its plan and its public half.
pub struct Model {
    manifest: Manifest,
    network: Network,
    graph: Graph,
    tensors: Tensors,
    salt: [u8; 32],
    kernel_times: Option<KernelTimes>,
}

/// What the fixed-point reference gives for a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The scores of each sample, as integers.
    pub scores: Vec<Vec<i128>>,
    /// Sums outside what their rings allow, over all samples: a private prediction would be wrong there.
    pub overflows: usize,
    /// For each sample, the nodes whose values were beyond what the network has room for, and how many: they saturated, or left their ring.
    pub saturated: Vec<Vec<(String, usize)>>,
}

/// The document in a model file: the public half, and what only the owner holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format_version: u32,
    public: Manifest,
    network: NetworkManifest,
    graph: Graph,
}

impl Model {
    /// Compiles a float graph. `calibration` holds samples one after the other, each of the input's shape.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if options do not go together; [`ErrorKind::Unsupported`] naming node and operator; [`ErrorKind::Model`]
    /// if a sum fits no ring, the precision demanded is missed or the graph is damaged.
    pub fn compile(
        graph: Graph,
        tensors: Tensors,
        calibration: &[f32],
        options: &CompileOptions,
    ) -> Result<Self> {
        Self::compile_telling(graph, tensors, calibration.into(), options)
    }

    /// As [`Self::compile`]; the calibration's `tell` hears the name of each stage as it begins, and what is tried in it.
    ///
    /// # Errors
    /// As [`Self::compile`]; [`ErrorKind::Transport`] if networks are not traced over the samples.
    pub fn compile_telling(
        graph: Graph,
        tensors: Tensors,
        calibration: Calibration<'_>,
        options: &CompileOptions,
    ) -> Result<Self> {
        options.check()?;
        let tell = calibration.tell;
        check_published(&options.inputs, &tensors)?;
        let (mode, policy) = (options.mode()?, options.policy()?);
        let kernel_times = options.kernel_times()?;
        tell("checking operators and sizes");
        let replaced = options.replaced(mode, &graph, &tensors, calibration.samples)?;
        let (computed, values) =
            replaced.as_ref().map_or((&graph, &tensors), |replaced| (&replaced.graph, &replaced.tensors));
        let mut outline = outline(computed, values, options.public_preprocessing)?;
        if let Some(first) = reasons(&mut outline, options)?.into_iter().next() {
            return Err(first);
        }
        foresee(&outline, computed, values, calibration.samples, options)?;
        let job = Job { graph: computed, tensors: values, calibration, options };
        let Done { network, plan, equalised } = job.run()?;
        let public = network.public().clone();
        let mut salt = [0; 32];
        Prg::from_entropy()
            .map_err(|error| Error::new(ErrorKind::Model, error.to_string()))?
            .fill_bytes(&mut salt);
        let described = options.title.is_some() || options.note.is_some() || options.columns.is_some();
        let (inputs, outputs) = (options.inputs.len(), options.outputs.len());
        let mut manifest = Manifest {
            format_version: version_with(inputs, outputs, options.text.is_some(), described),
            name: options.name.clone(),
            mode: plan.mode.name().to_owned(),
            output: options.output.clone(),
            policy,
            title: options.title.clone(),
            note: options.note.clone(),
            columns: options.columns.clone(),
            classes: options.names(policy, public.output_len()),
            image: options.image.clone(),
            text: options.text.clone(),
            input: InputDescription::of(&public),
            inputs: options.inputs.clone(),
            outputs: options.outputs.clone(),
            weights: String::new(),
            commitment: String::new(),
            network: public,
            plan,
        };
        let (_, weights) = network.to_parts()?;
        manifest.weights = hash_weights(&salt, &weights);
        let tensors = equalised.unwrap_or(tensors);
        let manifest = manifest.sealed()?;
        let length = manifest.to_json()?.len();
        if manifest.text.is_some() && length > MANIFEST_LIMIT {
            let what = format!(
                "the public half has {length} bytes, and at most {MANIFEST_LIMIT} are sent to a client"
            );
            return Err(Error::new(ErrorKind::Model, what).at("text").fix("take a smaller tokenizer"));
        }
        Ok(Self { manifest, network, graph, tensors, salt, kernel_times })
    }

    /// The same float graph compiled for mode `tabula` with lookups that keep so many bits: name, output and input as this model has them.
    /// `calibration` holds samples as for [`Self::compile`], since a model keeps none.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn keeping(&self, bits: u32, calibration: &[f32], limits: LimitOptions) -> Result<Self> {
        let (public, entry) = (&self.manifest, self.network.public().input());
        let (k, digits) = match public.policy {
            Policy::TopK { k } => (k, None),
            Policy::Probability { digits } => (1, Some(digits)),
            _ => (1, None),
        };
        let options = CompileOptions {
            name: public.name.clone(),
            mode: "tabula".to_owned(),
            output: public.output.clone(),
            k,
            digits,
            kept_bits: Some(bits),
            input_range: match entry.scale {
                InputScale::Stated { low, high, .. } => Some([low, high]),
                InputScale::Grid(_) => None,
            },
            public_preprocessing: entry.features.as_ref().is_some_and(|of| of.preprocessing.is_some()),
            title: public.title.clone(),
            note: public.note.clone(),
            columns: public.columns.clone(),
            classes: public.classes.clone(),
            image: public.image.clone(),
            text: public.text.clone(),
            inputs: public.inputs.clone(),
            outputs: public.outputs.clone(),
            limits,
            ..CompileOptions::default()
        };
        Self::compile(self.graph.clone(), self.tensors.clone(), calibration, &options)
    }

    /// Reads a file that [`Self::save`] wrote, if what a prediction takes is within the usual limits.
    ///
    /// # Errors
    /// As [`Self::load_within`].
    pub fn load(path: &Path) -> Result<Self> {
        Self::load_within(path, LimitOptions::default())
    }

    /// As [`Self::load`], within these limits.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the file is damaged, of another version, or a prediction takes more.
    pub fn load_within(path: &Path, limits: LimitOptions) -> Result<Self> {
        let place =
            |error: Error| if error.place.is_empty() { error.at(path.display().to_string()) } else { error };
        let contents = Contents::read(path)?;
        Self::from_contents(&contents, limits).map_err(place)
    }

    fn from_contents(contents: &Contents, limits: LimitOptions) -> Result<Self> {
        check_version(&contents.manifest)?;
        let damaged = |what: String| Error::new(ErrorKind::Model, what).fix("compile the model again");
        let document: Document = serde_json::from_str(&contents.manifest)
            .map_err(|error| damaged(format!("the manifest is damaged: {error}")))?;
        let manifest = Manifest::within(&document.public.to_json()?, limits)?;
        let network = Network::from_parts(document.network, &contents.fixed)?;
        let (_, weights) = network.to_parts()?;
        let consistent = *network.public() == manifest.network;
        if !consistent || hash_weights(&contents.salt, &weights) != manifest.weights {
            return Err(damaged("the weights are not those that the manifest commits to".to_owned()));
        }
        document.graph.check_version()?;
        let tensors = Tensors::from_safetensors(&contents.float)?;
        check_published(&manifest.inputs, &tensors)?;
        let (graph, salt, kernel_times) = (document.graph, contents.salt, contents.kernel_times.clone());
        Ok(Self { manifest, network, graph, tensors, salt, kernel_times })
    }

    /// Writes the model, weights included: the file stays with its owner.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let (network, fixed) = self.network.to_parts()?;
        let document = Document {
            format_version: self.manifest.format_version,
            public: self.manifest.clone(),
            network,
            graph: self.graph.clone(),
        };
        let manifest = serde_json::to_string(&document)
            .map_err(|error| Error::new(ErrorKind::Model, error.to_string()))?;
        let (fixed, float) = (fixed.into(), self.tensors.to_safetensors()?.into());
        let (salt, kernel_times) = (self.salt, self.kernel_times.clone());
        Contents { manifest, fixed, float, salt, kernel_times }.write(path)
    }

    /// Writes the public half, without the tables that it names: [`Self::published`] has those.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the file cannot be written.
    pub fn export_public(&self, path: &Path) -> Result<()> {
        let written = std::fs::write(path, self.manifest.to_json()?);
        written.map_err(|error| {
            Error::new(ErrorKind::Model, format!("the file cannot be written: {error}"))
                .at(path.display().to_string())
        })
    }

    /// The public half.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The table that the owner publishes for the indices of an input, shape (rows, width).
    #[must_use]
    pub fn published(&self, input: &str) -> Option<&Tensor> {
        let of = self.manifest.inputs.iter().find(|each| each.name == input)?;
        of.embeddings.as_ref()?.find(input, &self.tensors)
    }

    /// The integer network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// By which table of kernel times its plan was chosen; none where nothing was, and in files of versions that did not keep it. Only the owner's
    /// half has it.
    #[must_use]
    pub const fn kernel_times(&self) -> Option<&KernelTimes> {
        self.kernel_times.as_ref()
    }

    /// The float graph.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The float graph's tensors.
    pub(crate) fn tensors(&self) -> &Tensors {
        &self.tensors
    }

    /// The exact fixed-point reference on samples that follow one another.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if a sample does not fit or is beyond the calibrated range.
    pub fn fixed(&self, samples: &[f32]) -> Result<Fixed> {
        let executor = FixedExecutor::new(&self.network)?;
        let nodes = self.network.public().nodes();
        let mut fixed = Fixed { scores: Vec::new(), overflows: 0, saturated: Vec::new() };
        for sample in self.samples(samples)? {
            let run = executor.run_real(sample)?;
            fixed.overflows += run.overflow_count();
            let counts =
                run.overflows.iter().zip(&run.saturated).map(|(overflows, saturated)| overflows + saturated);
            let beyond = nodes.iter().zip(counts).filter(|(_, count)| *count > 0);
            fixed.saturated.push(beyond.map(|(node, count)| (base(&node.name).to_owned(), count)).collect());
            fixed.scores.push(run.output);
        }
        Ok(fixed)
    }

    /// The probability that every prediction with these integer scores gives; none where the policy gives none.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] unless there is one score for each class.
    pub fn probability(&self, scores: &[i128]) -> Result<Option<f64>> {
        let network = &self.manifest.network;
        let Policy::Probability { digits } = self.manifest.policy else { return Ok(None) };
        if scores.len() != network.output_len() {
            let what = format!("{} scores are not the model's {}", scores.len(), network.output_len());
            return Err(Error::new(ErrorKind::Input, what));
        }
        let bits = network.accumulator(network.nodes().len()).bits();
        Ok(Some(likeliest(scores, digits, self.network.output_scale(), bits)?.probability()))
    }

    /// How far a secure score may be from [`Self::fixed`]'s integer: 0 unless the model rounds faithfully or stochastically, then what `docs/numerics.md`
    /// proves for its network.
    #[must_use]
    pub fn secure_error(&self) -> i64 {
        let errors = self.manifest.plan.mode.inexact().map(|rounding| (rounding.errors)(&self.network));
        errors.and_then(|errors| errors.last().copied()).unwrap_or(0)
    }

    /// The float graph on samples that follow one another: the scores before any final softmax or arg-max.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if a sample does not fit.
    pub fn float(&self, samples: &[f32]) -> Result<Vec<Vec<f32>>> {
        let executor = FloatExecutor::new(&self.graph, &self.tensors)?;
        self.samples(samples)?.map(|sample| Ok(executor.run(sample)?)).collect()
    }

    /// Ranges, bits, circuits and leakage, for people and for `--json`.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if a layer has no circuit; never for a compiled model.
    pub fn report(&self) -> Result<serde_json::Value> {
        let mut report = report(&self.manifest, &self.network)?;
        if let Some(used) = &self.kernel_times {
            report["kernel_times"] = serde_json::json!(used);
        }
        Ok(report)
    }

    fn samples<'s>(&self, samples: &'s [f32]) -> Result<impl Iterator<Item = &'s [f32]>> {
        let length = self.network.public().input().len();
        if length == 0 || !samples.len().is_multiple_of(length) {
            let what = format!("{} values are not samples of {length}", samples.len());
            return Err(Error::new(ErrorKind::Input, what));
        }
        Ok(samples.chunks(length))
    }
}

/// Checks that the tables that inputs name are there.
fn check_published(inputs: &[NamedInput], tensors: &Tensors) -> Result<()> {
    let named = |input: &&NamedInput| {
        input.embeddings.as_ref().is_some_and(|embeddings| embeddings.find(&input.name, tensors).is_none())
    };
    inputs.iter().find(named).map_or(Ok(()), |input| {
        let what =
            format!("the table of embeddings for {} is not the one that the model publishes", input.name);
        Err(Error::new(ErrorKind::Model, what).fix("compile the model again"))
    })
}

/// The moduli of the rings, for diagnostics.
pub(crate) fn rings() -> Vec<u128> {
    Accumulator::PRIMES.into_iter().chain(Accumulator::powers_of_two()).map(Accumulator::modulus).collect()
}
