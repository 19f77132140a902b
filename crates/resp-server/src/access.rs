//! Authentication and bucket keys, shared by all connections.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use arc_swap::ArcSwapOption;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};
use tollgate_core::{Clock, Secret, Span};
use tracing::warn;

use super::throttle::Buckets;
use tollgate_net::masked_network;
use tollgate_resp::ReplyWriter;
use tollgate_service::auth_throttle::AuthThrottle;
use tollgate_telemetry::LogThrottle;

/// Shortest password.
const BYTES_MIN: usize = 8;
/// Longest password; longer ones are rejected without hashing.
const BYTES_MAX: usize = 512;

/// Name of the only user.
pub(super) const USER: &[u8] = b"default";

/// Why authentication failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthFailure {
    /// Wrong user or password.
    WrongCredentials,
    /// Too many failures from this network; the next attempt is checked after this time.
    Throttled(Span),
}

impl AuthFailure {
    /// Writes the error reply.
    pub(super) fn write(self, out: &mut ReplyWriter<'_>) {
        match self {
            AuthFailure::WrongCredentials => {
                out.error(&[b"WRONGPASS invalid username-password pair or user is disabled."]);
            }
            AuthFailure::Throttled(wait) => {
                let seconds = wait.secs_ceil().to_string();
                out.error(&[b"ERR too many wrong passwords came from this address; wait ", seconds.as_bytes(), b" s"]);
            }
        }
    }
}

/// RESP state shared by all connections.
#[derive(Debug)]
pub struct RespAccess {
    /// SHA-256 of the password, if one is configured.
    password: ArcSwapOption<Digest>,
    failures: AuthThrottle,
    log_throttle: LogThrottle,
    pub(super) buckets: Buckets,
    connections: AtomicU64,
}

impl RespAccess {
    /// Reads the password file, if one is configured. `secret` keys the hashes of bucket keys.
    pub fn read(
        password_file: Option<&Path>,
        secret: Secret,
        shared: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<RespAccess> {
        let password = ArcSwapOption::from_pointee(password_file.map(hash).transpose()?);
        let failures = AuthThrottle::new(clock, secret);
        let (buckets, log_throttle) = (Buckets::new(secret, shared), LogThrottle::by_the_minute());
        Ok(RespAccess { password, failures, log_throttle, buckets, connections: AtomicU64::new(0) })
    }

    /// Reads the password file again; keeps the old password if the file is unusable.
    pub fn reload(&self, password_file: &Path) -> Result<()> {
        self.password.store(Some(hash(password_file)?.into()));
        Ok(())
    }

    /// Whether clients must authenticate.
    pub(super) fn requires_password(&self) -> bool {
        self.password.load().is_some()
    }

    /// Checks user and password. Networks with too many failures are rejected without a check.
    pub(super) fn authenticate(&self, user: &[u8], password: &[u8], from: Option<IpAddr>) -> Result<(), AuthFailure> {
        if !self.requires_password() {
            return if user == USER { Ok(()) } else { Err(AuthFailure::WrongCredentials) };
        }
        if let Some(wait) = self.failures.wait(from) {
            return Err(AuthFailure::Throttled(wait));
        }
        if user == USER && self.is_password(password) {
            return Ok(());
        }
        self.failures.note(from);
        if let Some(unsaid) = self.log_throttle.admit("password") {
            warn!(network = %masked_network(from), unsaid, "a wrong password was given over RESP");
        }
        Err(AuthFailure::WrongCredentials)
    }

    /// True for the right password. Compares in constant time.
    fn is_password(&self, given: &[u8]) -> bool {
        let password = self.password.load();
        let Some(password) = &*password else { return true };
        given.len() <= BYTES_MAX
            && verify_slices_are_equal(password.as_ref().as_ref(), digest(&SHA256, given).as_ref()).is_ok()
    }

    /// Id of the next connection.
    pub(super) fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn hash(path: &Path) -> Result<Digest> {
    let name = path.display();
    let unreadable = || format!("cannot read resp_password_file {name}");
    let mut bytes = Vec::new();
    File::open(path)
        .with_context(unreadable)?
        .take(BYTES_MAX as u64 + 2)
        .read_to_end(&mut bytes)
        .with_context(unreadable)?;
    let password = bytes.trim_ascii();
    match password.len() {
        BYTES_MIN..=BYTES_MAX => Ok(digest(&SHA256, password)),
        _ => bail!(
            "resp_password_file {name}: a password has {BYTES_MIN} to {BYTES_MAX} bytes; make one with: openssl rand -hex 20"
        ),
    }
}
