//! Atomic replacement of files: a reader sees the old content or the new one.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Replaces a file atomically, or creates it with mode 0600. A symbolic link stays a link.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.display();
    let target = match fs::symlink_metadata(path) {
        Ok(_) => fs::canonicalize(path).with_context(|| format!("cannot find {name}"))?,
        Err(_) => path.to_owned(), // it does not exist, or the next step reports why it cannot be reached
    };
    if fs::metadata(&target).is_ok_and(|facts| !facts.is_file()) {
        bail!("{name} is not a regular file: it would not be what it was"); // a device would be replaced by a file
    }
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".tollgate-{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write_new(&beside, &target, bytes).and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        let _ = fs::remove_file(&beside); // the error below is the one to report
    }
    written.with_context(|| format!("cannot write {name}"))
}

fn write_new(beside: &Path, target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Renaming a file over `/dev/null` would remove the device for the whole machine.
    #[test]
    fn only_regular_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, socket) = (dir.path().join("file"), dir.path().join("socket"));
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [&socket, &dir.path().to_owned()] {
            let error = replace(path, b"text").unwrap_err().to_string();
            assert!(error.ends_with("is not a regular file: it would not be what it was"), "{error}");
        }
        for text in ["one", "two"] {
            replace(&file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside them");
    }
}
