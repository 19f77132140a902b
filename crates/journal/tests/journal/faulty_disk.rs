//! A disk that runs full, fails to sync and tears writes, over real files.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;

use tollgate_journal::{FileDisk, JournalDisk, JournalFile};

/// The faults of a disk, shared with its files.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Bytes until the disk is full; a write that does not fit is torn.
    pub room: Rc<Cell<Option<u64>>>,
    pub fails_to_sync: Rc<Cell<bool>>,
    pub fails_to_sync_directory: Rc<Cell<bool>>,
    pub syncs: Rc<Cell<u64>>,
}

pub struct FaultyDisk {
    pub disk: FileDisk,
    pub faults: Faults,
}

pub struct FaultyFile {
    file: File,
    faults: Faults,
}

impl FaultyDisk {
    pub fn new(path: &Path, faults: &Faults) -> FaultyDisk {
        FaultyDisk { disk: FileDisk::new(path.to_owned()), faults: faults.clone() }
    }

    fn wrap(&self, file: File) -> FaultyFile {
        FaultyFile { file, faults: self.faults.clone() }
    }
}

impl JournalDisk for FaultyDisk {
    type File = FaultyFile;

    fn path(&self) -> &Path {
        self.disk.path()
    }

    fn open(&self) -> io::Result<Option<FaultyFile>> {
        Ok(self.disk.open()?.map(|file| self.wrap(file)))
    }

    fn create_next(&self) -> io::Result<FaultyFile> {
        Ok(self.wrap(self.disk.create_next()?))
    }

    fn install(&self) -> io::Result<()> {
        self.disk.install()
    }

    fn replace(&self) -> io::Result<()> {
        self.disk.replace()
    }

    fn sync_directory(&self) -> io::Result<()> {
        match self.faults.fails_to_sync_directory.get() {
            true => Err(io::Error::other("the directory is not durable")),
            false => self.disk.sync_directory(),
        }
    }
}

impl JournalFile for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        JournalFile::read_at(&self.file, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Some(room) = self.faults.room.get() else {
            return JournalFile::write_all_at(&self.file, bytes, offset);
        };
        let fits = bytes.len().min(usize::try_from(room).unwrap());
        self.faults.room.set(Some(room - fits as u64));
        JournalFile::write_all_at(&self.file, &bytes[..fits], offset)?;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.syncs.set(self.faults.syncs.get() + 1);
        if self.faults.fails_to_sync.get() { Err(io::Error::other("not written")) } else { self.file.sync() }
    }
}
