//! What the host does for the module.

#![allow(unsafe_code, reason = "a host's functions are called by pointer and length")]

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Opens a connection, in place of the one that is open: one, or zero if it cannot.
    fn open() -> i32;
    /// Sends bytes: one, or zero if the connection is gone.
    fn send(bytes: *const u8, length: usize) -> i32;
    /// Waits for bytes: how many are there now, zero at the end, -1 if none came in time.
    fn receive(bytes: *mut u8, length: usize, milliseconds: f64) -> i32;
    /// Closes the connection.
    fn close();
    /// Takes a text that says how far the work has come.
    fn tell(text: *const u8, length: usize);
}

/// Tells how far the work has come.
pub(crate) fn say(text: &str) {
    // SAFETY: the host reads these bytes and keeps none of them.
    unsafe { tell(text.as_ptr(), text.len()) }
}

/// Opens the connection; whether it is open.
pub(crate) fn open_connection() -> bool {
    // SAFETY: it returns a number.
    (unsafe { open() }) == 1
}

/// Closes the connection.
pub(crate) fn close_connection() {
    // SAFETY: it takes nothing.
    unsafe { close() }
}

/// Sends bytes; whether the connection is there.
pub(crate) fn send_bytes(bytes: &[u8]) -> bool {
    // SAFETY: the host reads these bytes and keeps none of them.
    (unsafe { send(bytes.as_ptr(), bytes.len()) }) == 1
}

/// Waits for bytes: how many of `buffer` are filled; zero at the end, -1 if none came in time.
pub(crate) fn receive_bytes(buffer: &mut [u8], milliseconds: f64) -> i32 {
    // SAFETY: the host writes at most so many bytes.
    unsafe { receive(buffer.as_mut_ptr(), buffer.len(), milliseconds) }
}
