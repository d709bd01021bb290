//! Linux, macOS and their relatives: files have modes, and a directory is written like a file.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Has a file that is about to be made belong to its owner alone.
pub(crate) fn make_file_private(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// Has a directory that is about to be made belong to its owner alone.
pub(crate) fn make_directory_private(builder: &mut DirBuilder) {
    builder.mode(0o700);
}

/// Gives the owner of a new file its rights: a umask may have taken more away than others' rights.
pub(crate) fn settle_rights(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Whether a file or directory belongs to another user than this process runs as.
pub(crate) fn is_of_another_user(metadata: &Metadata) -> bool {
    metadata.uid() != rustix::process::geteuid().as_raw()
}

/// Whether others than the owner may use a file or directory.
pub(crate) fn is_shared(metadata: &Metadata) -> bool {
    metadata.mode() & 0o077 != 0
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// What a thread that waits is woken by: a byte that is written to one end of a pair comes out of the other.
pub(crate) type Wire = UnixStream;

/// The two ends.
pub(crate) fn wires() -> io::Result<[Wire; 2]> {
    UnixStream::pair().map(<[_; 2]>::from)
}

/// Lets this thread's sleeps end when they should: by default Linux adds 50 us.
pub(crate) fn sleep_precisely() {
    // Where it cannot be had, sleeps are a little longer.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
