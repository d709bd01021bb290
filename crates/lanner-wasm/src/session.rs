//! What a page asks of the client, whatever carries its bytes.

use lanner::{Client, Encoder, Error, ErrorKind, Line, Manifest, SetUpWatch, Wanted, Watch};
use lanner_net::{Address, ClientTls, Identity, Trust};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use zeroize::Zeroizing;

/// An answer in JSON.
pub type Answer = lanner::Result<String>;

/// To which server, whom to trust, who this client is, and which model is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The server's host, for TLS.
    pub host: String,
    /// The fingerprint of the server's certificate.
    #[serde(default)]
    pub pin: Option<String>,
    /// The client's own certificate in PEM, for servers that ask for one.
    #[serde(default)]
    pub certificate: Option<String>,
    /// Its key in PEM.
    #[serde(default, deserialize_with = "secret")]
    pub key: Option<Zeroizing<String>>,
    /// No TLS inside the connection: both sides must say so.
    #[serde(default)]
    pub insecure_plaintext: bool,
    /// Which model.
    #[serde(default)]
    pub wanted: Wanted,
}

impl Link {
    /// Reads it.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if it is none.
    pub fn read(json: &[u8]) -> lanner::Result<Self> {
        serde_json::from_slice(json)
            .map_err(|error| Error::new(ErrorKind::Misuse, format!("what is wanted cannot be read: {error}")))
    }

    /// The server's name in TLS.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the host is none.
    pub fn address(&self) -> lanner::Result<Address> {
        Ok(self.host.parse()?)
    }

    /// Whom TLS trusts, and what it shows of this client; none where there is no TLS.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if nothing says whom to trust, or two things do; [`ErrorKind::Transport`] if the certificate and its key cannot be used.
    pub fn tls(&self) -> lanner::Result<Option<ClientTls>> {
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some(Identity::from_pem(certificate, key)?),
            (None, None) => None,
            _ => {
                let error = Error::new(ErrorKind::Misuse, "a certificate and its key belong together");
                return Err(error.fix("give both"));
            }
        };
        match (&self.pin, self.insecure_plaintext) {
            (Some(pin), false) => Ok(Some(ClientTls::new(&Trust::Pin(pin.parse()?), identity)?)),
            (None, true) if identity.is_none() => Ok(None),
            (_, true) => {
                Err(Error::new(ErrorKind::Misuse, "a pin and a certificate mean nothing without TLS"))
            }
            (None, false) => Err(Error::new(ErrorKind::Misuse, "nothing says which server to trust")
                .fix("give the fingerprint that the server printed, as pin")),
        }
    }
}

/// A session, once there is one, and the model that was looked at.
#[derive(Default)]
pub struct Session {
    client: Option<Client>,
    encoder: Option<Encoder>,
}

impl Session {
    /// Looks at a model's public half, which is the answer.
    ///
    /// # Errors
    /// Those of `open`; as [`Client::look`].
    pub fn look(&mut self, open: &mut dyn FnMut() -> lanner::Result<Box<dyn Line>>, link: &Link) -> Answer {
        let manifest = Client::look(open, &link.wanted)?;
        self.know(&manifest)?;
        described(&manifest)
    }

    /// Opens a session, in place of one that is open. The answer is the model's public half.
    ///
    /// # Errors
    /// Those of `open`; as [`Client::over`].
    pub fn connect(
        &mut self,
        open: &mut dyn FnMut() -> lanner::Result<Box<dyn Line>>,
        link: &Link,
        watch: &SetUpWatch,
    ) -> Answer {
        self.client = None;
        let client = Client::over(open, &link.wanted, watch)?;
        self.know(client.manifest())?;
        let answer = described(client.manifest());
        self.client = Some(client);
        answer
    }

    fn know(&mut self, manifest: &Manifest) -> lanner::Result<()> {
        let unusable = |error| Error::new(ErrorKind::Model, format!("texts: {error}"));
        self.encoder = manifest.text.as_ref().map(Encoder::new).transpose().map_err(unusable)?;
        Ok(())
    }

    /// What tells how far predictions have come.
    #[must_use]
    pub fn watch(&self) -> Option<Watch> {
        self.client.as_ref().map(Client::watch)
    }

    /// Makes the material of some predictions.
    ///
    /// # Errors
    /// As [`Client::prepare`].
    pub fn prepare(&mut self, count: usize) -> Answer {
        self.exchange(|client| client.prepare(count))?;
        Ok("null".to_owned())
    }

    /// Predicts one sample, whose values are 32-bit floats, the least significant byte first.
    ///
    /// # Errors
    /// As [`Client::predict`].
    pub fn predict(&mut self, bytes: &[u8]) -> Answer {
        let (values, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(Error::new(ErrorKind::Input, "these are no 32-bit floats"));
        }
        let sample: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let sample = Zeroizing::new(sample);
        let (predicted, longest) = self.exchange(|client| {
            let predicted = client.predict(&sample)?;
            Ok((predicted, client.longest_sent().clone()))
        })?;
        let digit = |value: u8| char::from_digit(value.into(), 16);
        let digits = longest.beginning.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        let beginning: String = digits.flatten().collect();
        to_text(&json!({
            "prediction": predicted,
            "longestSent": { "length": longest.length, "beginning": beginning },
        }))
    }

    /// Makes numbers of a text, by the model's own rules.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] if the model reads none; [`ErrorKind::Input`] if it is too long.
    pub fn encode(&self, text: &[u8], truncate: bool) -> Answer {
        let encoder = self.encoder.as_ref();
        let encoder = encoder.ok_or_else(|| Error::new(ErrorKind::Misuse, "this model reads no texts"))?;
        let refused = |what: String| Error::new(ErrorKind::Input, what);
        let text = std::str::from_utf8(text).map_err(|error| refused(error.to_string()))?;
        let made = encoder.encode(text, truncate).map_err(|error| refused(error.to_string()))?;
        to_text(&json!({ "ids": *made.ids, "mask": *made.mask, "types": *made.types, "cut": made.cut }))
    }

    /// Ends the session, if there is one.
    ///
    /// # Errors
    /// As [`Client::close`].
    pub fn close(&mut self) -> Answer {
        self.client.take().map_or(Ok(()), Client::close)?;
        Ok("null".to_owned())
    }

    /// Works with the open session. A session that failed is out of step with its peer: it is closed.
    fn exchange<T>(&mut self, work: impl FnOnce(&mut Client) -> lanner::Result<T>) -> lanner::Result<T> {
        let client = self.client.as_mut();
        let client = client.ok_or_else(|| Error::new(ErrorKind::Misuse, "there is no open session"))?;
        let done = work(client);
        let out_of_step =
            |error: &Error| matches!(error.kind, ErrorKind::Peer | ErrorKind::Busy | ErrorKind::Transport);
        if done.as_ref().is_err_and(out_of_step) {
            self.client = None;
        }
        done
    }
}

/// A text that is erased when it is dropped.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Zeroizing<String>>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Zeroizing::new))
}

/// What a page needs to know of a model. Its network and plan were checked, and are no page's concern.
fn described(manifest: &Manifest) -> Answer {
    let text = manifest.text.as_ref();
    to_text(&json!({
        "name": manifest.name,
        "mode": manifest.mode,
        "output": manifest.output,
        "commitment": manifest.commitment,
        "title": manifest.title,
        "note": manifest.note,
        "classes": manifest.classes,
        "image": manifest.image,
        "input": manifest.input,
        "inputs": manifest.inputs,
        "outputs": manifest.outputs,
        "text": text.map(|text| json!({ "length": text.length, "ids": text.ids, "mask": text.mask, "types": text.types })),
    }))
}

/// An error as the caller gets it.
#[must_use]
pub fn written(error: &Error) -> String {
    let told = Error::new(error.kind, spelled(&error.what)).at(error.place.clone()).fix(spelled(&error.fix));
    json!({ "kind": error.kind.name(), "message": told.to_string() }).to_string()
}

fn to_text(document: &serde_json::Value) -> Answer {
    serde_json::to_string(document).map_err(|error| Error::new(ErrorKind::Model, error.to_string()))
}

/// A sentence that names options as the scripts of this client do: `maxMemory` for `max_memory`.
fn spelled(sentence: &str) -> String {
    let mut parts = sentence.split('⟦');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (option, rest) = part.split_once('⟧').unwrap_or((part, ""));
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let mut words = name.split('_');
        text.push('`');
        text.push_str(match words.next().unwrap_or_default() {
            "cert" => "certificate",
            word => word,
        });
        for word in words {
            let mut letters = word.chars();
            text.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            text.push_str(letters.as_str());
        }
        text.extend(value.map(|value| format!(": {value}")));
        text.extend(["`", rest]);
    }
    text
}
