//! The functions that the host calls. Arguments and answers are texts in JSON, or samples as 32-bit floats, in memory that the module lends.

#![allow(unsafe_code, reason = "functions that a host calls by name")]

use std::cell::RefCell;

use lanner::{Error, ErrorKind, Line, SetUpWatch};
use lanner_net::TunnelChannel;
use zeroize::{Zeroize, Zeroizing};

use crate::pipe::HostPipe;
use crate::session::{Answer, Link, Session};
use crate::telling::watch;

thread_local! {
    static ARGUMENT: RefCell<Zeroizing<Vec<u8>>> = RefCell::default();
    static ANSWER: RefCell<Zeroizing<Vec<u8>>> = RefCell::default();
    static SESSION: RefCell<Session> = RefCell::default();
}

/// Room for the next argument.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_room(length: usize) -> *mut u8 {
    ARGUMENT.with_borrow_mut(|argument| {
        argument.zeroize();
        argument.resize(length, 0);
        argument.as_mut_ptr()
    })
}

/// Where the last answer is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// How long it is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_answer_length() -> usize {
    ANSWER.with_borrow(|answer| answer.len())
}

/// Looks at a model: the argument is a [`Link`], the answer its public half.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_look() -> i32 {
    asked(|session, argument| {
        let link = Link::read(argument)?;
        session.look(&mut || open(&link), &link)
    })
}

/// Opens a session: the argument is a [`Link`], the answer the model's public half.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_connect() -> i32 {
    asked(|session, argument| {
        let link = Link::read(argument)?;
        let set_up = SetUpWatch::default();
        watch(&set_up, None);
        let answer = session.connect(&mut || open(&link), &link, &set_up)?;
        watch(&set_up, session.watch());
        Ok(answer)
    })
}

/// Makes the material of so many predictions.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_prepare(count: usize) -> i32 {
    asked(|session, _| session.prepare(count))
}

/// Predicts a sample: the argument is its values, as 32-bit floats, the least significant byte first.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_predict() -> i32 {
    asked(|session, argument| session.predict(argument))
}

/// Makes numbers of a text: the argument is the text, the answer has the values of a sample.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_encode(truncate: i32) -> i32 {
    asked(|session, argument| session.encode(argument, truncate != 0))
}

/// Ends the session.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lanner_close() -> i32 {
    asked(|session, _| session.close())
}

/// Does what is asked; one if it succeeded, and zero if the answer is an error.
fn asked(work: impl FnOnce(&mut Session, &[u8]) -> Answer) -> i32 {
    let argument = ARGUMENT.take();
    let answer = SESSION.with_borrow_mut(|session| work(session, &argument));
    let (succeeded, text) = match answer {
        Ok(text) => (1, text),
        Err(error) => (0, crate::session::written(&error)),
    };
    ANSWER.with_borrow_mut(|answer| {
        answer.zeroize();
        answer.extend_from_slice(text.as_bytes());
    });
    succeeded
}

/// A connection to the server, if it is the one that is trusted.
fn open(link: &Link) -> lanner::Result<Box<dyn Line>> {
    let pipe = HostPipe::open().ok_or_else(|| {
        Error::new(ErrorKind::Transport, "the WebSocket cannot be opened")
            .fix("check the address, that the server was started with its option `web`, and that it lets this page's origin in")
    })?;
    let limits = link.wanted.connection()?;
    Ok(match link.tls()? {
        Some(tls) => Box::new(TunnelChannel::connect(pipe, &link.address()?, &tls, limits)?),
        None => Box::new(TunnelChannel::insecure_plaintext(pipe, limits)),
    })
}
