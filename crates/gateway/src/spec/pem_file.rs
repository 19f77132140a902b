//! Certificates and keys of connections to servers, in files.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What the gateway proves itself with to `https` servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, and those up to its authority.
    pub chain: PemFile,
    /// Its private key.
    pub key: PemFile,
}

/// A PEM file. What is in it is part of the upstream: other authorities, or another certificate, are another upstream.
#[derive(Clone, PartialEq, Eq)]
pub struct PemFile {
    /// As named in the routes file.
    pub path: PathBuf,
    /// What [`load_tls_files`](super::GatewaySpec::load_tls_files) read.
    pub pem: Vec<u8>,
}

impl PemFile {
    pub(super) fn named(path: &str) -> PemFile {
        PemFile { path: PathBuf::from(path), pem: Vec::new() }
    }

    /// Reads it, relative to a folder.
    pub(crate) fn load(&mut self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.path);
        self.pem = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(())
    }
}

/// Without the content, which may be a private key.
impl fmt::Debug for PemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PemFile").field("path", &self.path).finish_non_exhaustive()
    }
}
