//! What a journal asks of a file system, and the real one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where a journal lives. Implementors promise that at most one process has it open, and that a file which was synced
/// and put in place is found again after a crash.
pub trait JournalDisk {
    /// An open file.
    type File: JournalFile;

    /// The path, for messages.
    fn path(&self) -> &Path;
    /// Opens the journal; `None` if there is none. Fails with [`io::ErrorKind::WouldBlock`] if another process has it.
    fn open(&self) -> io::Result<Option<Self::File>>;
    /// Creates an empty file that is to become the journal. Fails with [`io::ErrorKind::WouldBlock`] if another process
    /// does the same.
    fn create_next(&self) -> io::Result<Self::File>;
    /// Makes that file the first journal; fails with [`io::ErrorKind::AlreadyExists`] if there is one.
    fn install(&self) -> io::Result<()>;
    /// Puts that file in the journal's place.
    fn replace(&self) -> io::Result<()>;
    /// Makes the last creation or replacement durable.
    fn sync_directory(&self) -> io::Result<()>;
}

/// An open file of a journal.
pub trait JournalFile {
    /// Reads at most `bytes.len()` bytes; 0 at the end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes; some may be written if it fails.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts off everything from `len` on.
    fn cut(&self, len: u64) -> io::Result<()>;
    /// Makes everything durable that was written.
    fn sync(&self) -> io::Result<()>;
}

/// A journal in a file that only its user can read.
#[derive(Clone, Debug)]
pub struct FileDisk {
    path: PathBuf,
}

impl FileDisk {
    /// The journal at `path`.
    pub fn new(path: PathBuf) -> FileDisk {
        FileDisk { path }
    }

    fn next(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        name.into()
    }

    fn options() -> OpenOptions {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600);
        options
    }
}

impl JournalDisk for FileDisk {
    type File = File;

    fn path(&self) -> &Path {
        &self.path
    }

    /// A file that was replaced between being opened and being locked is opened again.
    fn open(&self) -> io::Result<Option<File>> {
        loop {
            let file = match FileDisk::options().open(&self.path) {
                Ok(file) => lock(file)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            if fs::metadata(&self.path).is_ok_and(|there| file.metadata().is_ok_and(|own| own.ino() == there.ino())) {
                return Ok(Some(file));
            }
        }
    }

    /// The file of a rewrite that was cut short is emptied, but not before it is known that no process writes it.
    fn create_next(&self) -> io::Result<File> {
        let file = lock(FileDisk::options().create(true).open(self.next())?)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Unlike a rename, a link replaces nothing. The lock of the file goes with it.
    fn install(&self) -> io::Result<()> {
        let linked = fs::hard_link(self.next(), &self.path);
        fs::remove_file(self.next())?;
        linked
    }

    fn replace(&self) -> io::Result<()> {
        fs::rename(self.next(), &self.path)
    }

    fn sync_directory(&self) -> io::Result<()> {
        let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// The lock ends with the file, also when the process is killed.
fn lock(file: File) -> io::Result<File> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl JournalFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
