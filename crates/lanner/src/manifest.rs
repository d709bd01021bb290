//! The half of a model that both parties know.

use lanner_network::{Policy, PublicNetwork};
use lanner_plan::{Plan, plan_within};
use lanner_text::TextInput;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::hex::hex;
use crate::named::{make_input, make_output, name_columns, takes_text};
use crate::{Error, ErrorKind, LimitOptions, NamedInput, NamedOutput, Result};

/// The version of model files and manifests that this build reads and writes.
pub(crate) const FORMAT_VERSION: u32 = 4;
/// That of those whose inputs or outputs go by name.
const NAMED_VERSION: u32 = 5;

/// That of those whose inputs may be texts.
const TEXT_VERSION: u32 = 6;

/// That of those whose owner gives a title, a note or names of columns, whatever else they have.
const DESCRIBED_VERSION: u32 = 7;

/// The most characters of a title.
const LONGEST_TITLE: usize = 80;
/// The most characters of a note.
const LONGEST_NOTE: usize = 500;

/// The version of a document with so many inputs and outputs by name, and perhaps texts, a title, a note or names of columns.
pub(crate) const fn version_with(inputs: usize, outputs: usize, text: bool, described: bool) -> u32 {
    if described {
        DESCRIBED_VERSION
    } else if text {
        TEXT_VERSION
    } else if inputs + outputs == 0 {
        FORMAT_VERSION
    } else {
        NAMED_VERSION
    }
}

/// A model's public half: what a client sees, may pin, and computes with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of this document.
    pub format_version: u32,
    /// The name under which the model is served.
    pub name: String,
    /// The mode it was compiled for.
    pub mode: String,
    /// The output policy's name.
    pub output: String,
    /// The output policy.
    pub policy: Policy,
    /// What the owner calls the model before people, such as `chest X-ray`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the owner lets people know of the results, such as their unit, or `not for clinical use`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The names of an input's elements, where they are the columns of a table that trees do not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// The names of the classes, in the order of the scores.
    pub classes: Option<Vec<String>>,
    /// How a picture becomes an input.
    pub image: Option<serde_json::Value>,
    /// How a text becomes the inputs, if it may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextInput>,
    /// What an input looks like.
    pub input: InputDescription,
    /// The original model's inputs, of which the input is made, where it is not the only one itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<NamedInput>,
    /// The original model's outputs, of which the value is made, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<NamedOutput>,
    /// A hash of the weights under a salt that stays secret, so that nobody can confirm guessed weights.
    pub weights: String,
    /// The model's identity, which a client pins: a hash of this document, the weights' hash included. In hexadecimal.
    pub commitment: String,
    /// The integer network without its weights.
    pub network: PublicNetwork,
    /// The protocol of every layer.
    pub plan: Plan,
}

/// What an input looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputDescription {
    /// The input's name in the original model.
    pub name: String,
    /// The shape of one sample, without a batch axis.
    pub shape: Vec<usize>,
    /// The largest magnitude accepted.
    pub limit: f64,
}

impl InputDescription {
    /// The description of a network's input.
    pub(crate) fn of(network: &PublicNetwork) -> Self {
        let input = network.input();
        let [low, high] = input.limits();
        Self { name: input.name.clone(), shape: input.shape.clone(), limit: high.max(-low) }
    }
}

impl Manifest {
    /// Reads the JSON form; checks its commitment, that its plan is the one that this build makes for its network, and that
    /// what it says to people is said of them. What a prediction takes must be within the usual limits.
    ///
    /// # Errors
    /// As [`Self::within`].
    pub fn from_json(json: &str) -> Result<Self> {
        Self::within(json, LimitOptions::default())
    }

    /// As [`Self::from_json`], within these limits.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the document is damaged, of another version, or describes what takes more.
    pub fn within(json: &str, limits: LimitOptions) -> Result<Self> {
        let damaged = |what: String| Error::new(ErrorKind::Model, what).fix("compile the model again");
        check_version(json)?;
        let manifest: Self = serde_json::from_str(json)
            .map_err(|error| damaged(format!("the manifest is damaged: {error}")))?;
        if hex(&manifest.identity()?) != manifest.commitment {
            return Err(damaged("the commitment in the manifest is not that of its content".to_owned()));
        }
        // Every step follows from the network, the policy and what was chosen, on whatever machine: so types, security, limits and policy are
        // checked as when it was planned, and no step is taken on the document's word.
        let choices = manifest.plan.choices();
        let expected = plan_within(&manifest.network, manifest.policy, &choices, &limits.limits())?;
        if expected != manifest.plan || manifest.mode != expected.mode.name() {
            let what = "another version of lanner compiled this model, and this version plans its network differently";
            return Err(damaged(what.to_owned()).fix("compile the model again with this version"));
        }
        if !manifest.describes_itself() {
            return Err(damaged("the description in the manifest is not that of its network".to_owned()));
        }
        Ok(manifest)
    }

    /// Whether what people are shown agrees with what is computed, and scores are worth something to whoever gets them.
    fn describes_itself(&self) -> bool {
        let named =
            |classes: &Vec<String>| self.policy.classes(self.network.output_len()) == Some(classes.len());
        self.output == self.policy.name()
            && self.places_are_the_networks()
            && self.policy.needs_scale() == self.network.output_scale().is_some()
            && self.input == InputDescription::of(&self.network)
            && self.classes.as_ref().is_none_or(named)
            && (self.inputs.is_empty() || make_input(&self.inputs, self.network.input().len()))
            && (self.outputs.is_empty() || make_output(&self.outputs, self.network.output_len()))
            && self.text.as_ref().is_none_or(|text| takes_text(&self.inputs, text))
            && self.columns.as_ref().is_none_or(|columns| {
                self.inputs.is_empty()
                    && self.network.input().shape == [columns.len()]
                    && name_columns(columns)
            })
            && check_described(self.title.as_deref(), self.note.as_deref()).is_ok()
    }

    /// Whether labels of places, where these are told, are one for each place of the network's output, whose last axis has the classes.
    fn places_are_the_networks(&self) -> bool {
        let Policy::LabelMap { places } = self.policy else { return true };
        let last = self.network.nodes().last().and_then(|node| node.shape.split_last());
        places > 1 && last.is_some_and(|(_, sides)| sides.iter().product::<usize>() == places as usize)
    }

    /// Writes the JSON form; the same manifest always gives the same bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if the document cannot be written; never for a checked manifest.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::new(ErrorKind::Model, error.to_string()))
    }

    /// The integers of a request for these samples, whose spare places are zero.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if it holds no so many; [`ErrorKind::Input`] if a sample does not fit.
    pub(crate) fn request(&self, samples: &[&[f32]]) -> Result<Zeroizing<Vec<i64>>> {
        let (input, most) = (self.network.input(), self.plan.samples.count());
        if samples.is_empty() || samples.len() > most {
            let what =
                format!("{} samples are not 1 to {most}, which a request of this model holds", samples.len());
            return Err(Error::new(ErrorKind::Misuse, what).fix("give fewer at a time"));
        }
        let mut integers = Zeroizing::new(Vec::with_capacity(most * input.len()));
        for sample in samples {
            integers.extend_from_slice(&Zeroizing::new(input.quantize(sample)?));
        }
        integers.resize(most * input.len(), 0);
        Ok(integers)
    }

    /// The name of a class.
    #[must_use]
    pub fn class_name(&self, label: usize) -> Option<&str> {
        self.classes.as_ref()?.get(label).map(String::as_str)
    }

    /// The commitment's bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Model`] if it is not 64 hexadecimal digits.
    pub fn commitment_bytes(&self) -> Result<[u8; 32]> {
        parse_commitment(&self.commitment)
    }

    /// The document under the commitment that its content has. Whoever writes one can do so: it says nothing of the rest.
    ///
    /// # Errors
    /// As [`Self::to_json`].
    pub fn sealed(self) -> Result<Self> {
        Ok(Self { commitment: hex(&self.identity()?), ..self })
    }

    /// The identity that this document should have.
    ///
    /// # Errors
    /// As [`Self::to_json`].
    pub(crate) fn identity(&self) -> Result<[u8; 32]> {
        let document = Self { commitment: String::new(), ..self.clone() };
        Ok(Sha256::new_with_prefix("lanner model v1").chain_update(document.to_json()?).finalize().into())
    }
}

/// Checks that a title and a note can be shown: not empty, of bounded length, and on one line.
///
/// # Errors
/// [`ErrorKind::Misuse`] naming the one that cannot.
pub(crate) fn check_described(title: Option<&str>, note: Option<&str>) -> Result<()> {
    for (name, text, longest) in [("title", title, LONGEST_TITLE), ("note", note, LONGEST_NOTE)] {
        let Some(text) = text else { continue };
        let length = text.chars().count();
        let found = if text.trim().is_empty() {
            format!("the {name} is empty")
        } else if length > longest {
            format!("the {name} has {length} characters")
        } else if text.contains(char::is_control) {
            format!("the {name} has a line break or another control character")
        } else {
            continue;
        };
        let fix = format!("give 1 to {longest} characters on one line, or leave it out");
        return Err(Error::new(ErrorKind::Misuse, found).at(name).fix(fix));
    }
    Ok(())
}

/// The weights' hash under a salt.
pub(crate) fn hash_weights(salt: &[u8; 32], weights: &[u8]) -> String {
    hex(&Sha256::new_with_prefix("lanner weights v1").chain_update(salt).chain_update(weights).finalize())
}

/// Reads a commitment of 64 hexadecimal digits.
///
/// # Errors
/// [`ErrorKind::Misuse`] if the text is anything else.
pub(crate) fn parse_commitment(text: &str) -> Result<[u8; 32]> {
    let wrong = || {
        let error = Error::new(ErrorKind::Misuse, format!("{text:?} is not a model's commitment"));
        error.fix("give the 64 hexadecimal digits that lanner inspect prints")
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(wrong);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Ok((digit(*high)? * 16 + digit(*low)?) as u8));
    let bytes = bytes.collect::<Result<Vec<u8>>>()?;
    if rest.is_empty() { bytes.try_into().map_err(|_| wrong()) } else { Err(wrong()) }
}

/// Names a version mismatch before the fields of another version fail to parse.
pub(crate) fn check_version(json: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Head {
        format_version: u32,
        #[serde(flatten)]
        named: Named,
        public: Option<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        inputs: Vec<IgnoredAny>,
        #[serde(default)]
        outputs: Vec<IgnoredAny>,
        text: Option<IgnoredAny>,
        title: Option<IgnoredAny>,
        note: Option<IgnoredAny>,
        columns: Option<IgnoredAny>,
    }
    let head = serde_json::from_str::<Head>(json);
    match head {
        Ok(Head { format_version, named, public }) => {
            let Named { inputs, outputs, text, title, note, columns } = public.unwrap_or(named);
            let described = title.is_some() || note.is_some() || columns.is_some();
            let ours = version_with(inputs.len(), outputs.len(), text.is_some(), described);
            if format_version == ours {
                return Ok(());
            }
            let what = format!("the model has format version {format_version}; this build reads {ours}");
            Err(Error::new(ErrorKind::Model, what).fix("compile the model again with this version"))
        }
        Err(error) => {
            let error = Error::new(ErrorKind::Model, format!("this is not a model's manifest: {error}"));
            Err(error.fix("compile the model again"))
        }
    }
}
