//! What a client hears when the server does not serve the model that it asked for.

use lanner_network::Field;
use lanner_primitives::Prg;
use lanner_session::handshake::{Greeting, HandshakeError, ModelEntry, ModelRequest};

use crate::line::Line;
use crate::{Error, ErrorKind, Result};

/// The error of a request that a server refused: it names the models that the server lists on a second connection. Whether it lists any
/// is the server's choice.
pub(crate) fn not_served(channel: Result<Box<dyn Line>>, rng: &mut Prg, request: &ModelRequest) -> Error {
    let listed = channel.and_then(|mut channel| Ok(Greeting::send(&mut *channel, rng)?.list(&mut *channel)?));
    match listed {
        Ok(models) if !models.is_empty() => choose(&models, request),
        _ => {
            Error::new(ErrorKind::Peer, format!("{}, and it does not tell which it serves", refused(request)))
                .fix(format!("ask its operator for the name, and give it with {}", Field::MODEL))
        }
    }
}

fn choose(models: &[ModelEntry], request: &ModelRequest) -> Error {
    let wanted = match &models {
        [only] if request.name.is_empty() => Some(only),
        _ => models.iter().find(|model| model.name == request.name),
    };
    if let (Some(model), Some(pin)) = (wanted, request.pin) {
        return HandshakeError::wrong_model(&pin, &model.commitment).into();
    }
    Error::new(ErrorKind::Peer, format!("{}; it has {}", refused(request), names(models)))
        .fix(format!("name one of these with {}", Field::MODEL))
}

fn refused(request: &ModelRequest) -> String {
    if request.name.is_empty() {
        return "the server has several models, and none was named".to_owned();
    }
    format!("the server has no model {}", request.name.escape_debug())
}

/// The names as a list for people; the server chose them, so that nothing unprintable among them is.
fn names(models: &[ModelEntry]) -> String {
    let shown = models.iter().take(SHOWN).map(|model| model.name.escape_debug().to_string());
    let names = shown.collect::<Vec<_>>().join(", ");
    match models.len().saturating_sub(SHOWN) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// Names in a sentence.
const SHOWN: usize = 32;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn models(count: u8) -> Vec<ModelEntry> {
        (0..count).map(|i| ModelEntry { name: format!("m{i}"), commitment: [i; 32] }).collect()
    }

    fn request(name: &str, pin: Option<[u8; 32]>) -> ModelRequest {
        ModelRequest { name: name.to_owned(), pin }
    }

    #[test]
    fn the_names_are_told() {
        let error = choose(&models(3), &request("digits", None));
        assert_eq!(error.what, "the server has no model digits; it has m0, m1, m2");
        let error = choose(&models(2), &request("", None));
        assert_eq!(error.what, "the server has several models, and none was named; it has m0, m1");
        assert!(error.fix.contains("⟦model⟧"));
        assert!(choose(&models(40), &request("x", None)).what.ends_with("m31 and 8 more"));
    }

    #[test]
    fn another_commitment_than_the_pinned_one_is_told_as_such() {
        for name in ["m1", ""] {
            let listed = if name.is_empty() { &models(2)[1..] } else { &models(2)[..] };
            let error = choose(listed, &request(name, Some([9; 32])));
            assert!(error.what.contains("not the pinned"), "{}", error.what);
        }
    }

    #[test]
    fn a_server_that_lists_nothing_is_told_as_such() {
        let mut rng = Prg::from_entropy().unwrap();
        let silent = Err(Error::new(ErrorKind::Peer, "the server refused the session"));
        let error = not_served(silent, &mut rng, &request("digits", None));
        assert_eq!(error.what, "the server has no model digits, and it does not tell which it serves");
        assert_eq!(error.kind, ErrorKind::Peer);
    }

    #[test]
    fn names_do_not_command_a_terminal() {
        let hostile = [ModelEntry { name: "\u{1b}[2J".to_owned(), commitment: [0; 32] }];
        assert!(!choose(&hostile, &request("x", None)).what.contains('\u{1b}'));
    }
}
