//! Systems whose files have no modes. On Windows a user's folders, of which the state directory is one by default, are closed to other
//! users by what they inherit; on a browser's page there are no files.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Nothing: a new file has the rights of the folder that it is in.
pub(crate) const fn make_file_private(_: &mut OpenOptions) {}

/// Nothing: a new directory has the rights of the one that it is in.
pub(crate) const fn make_directory_private(_: &mut DirBuilder) {}

/// Nothing is left to give.
#[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) const fn settle_rights(_: &File) -> io::Result<()> {
    Ok(())
}

/// The system does not say.
pub(crate) const fn is_of_another_user(_: &Metadata) -> bool {
    false
}

/// The system does not say.
pub(crate) const fn is_shared(_: &Metadata) -> bool {
    false
}

/// Nothing: the file system writes names down by itself, and a directory cannot be opened.
#[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) const fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
