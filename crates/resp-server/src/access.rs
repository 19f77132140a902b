//! Who may ask, and under which names their keys are kept: what all connections share.

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
use tollgate_service::auth_throttle::AuthThrottle;
use tollgate_telemetry::LogThrottle;

/// Shortest password.
const BYTES_MIN: usize = 8;
/// Longest password; longer ones are not even hashed.
const BYTES_MAX: usize = 512;

/// The only user.
pub(super) const USER: &[u8] = b"default";

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthFailure {
    /// A wrong user or password.
    Wrong,
    /// Too many of these came from there; the next is looked at after this time.
    Wait(Span),
}

/// What all connections share beside what all transports share.
#[derive(Debug)]
pub struct RespAccess {
    /// The hash of the password, if there is one.
    password: ArcSwapOption<Digest>,
    failures: AuthThrottle,
    quiet: LogThrottle,
    pub(super) buckets: Buckets,
    connections: AtomicU64,
}

impl RespAccess {
    /// Reads the password, if there is to be one. Keys are named under `secret`.
    pub fn read(
        password_file: Option<&Path>,
        secret: Secret,
        shared: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<RespAccess> {
        let password = ArcSwapOption::from_pointee(password_file.map(hash).transpose()?);
        let failures = AuthThrottle::new(clock, secret);
        let (buckets, quiet) = (Buckets::new(secret, shared), LogThrottle::by_the_minute());
        Ok(RespAccess { password, failures, quiet, buckets, connections: AtomicU64::new(0) })
    }

    /// Reads it again; a file that cannot be used leaves the old one in place.
    pub fn reload(&self, password_file: &Path) -> Result<()> {
        self.password.store(Some(hash(password_file)?.into()));
        Ok(())
    }

    /// Whether callers have to give one.
    pub(super) fn is_guarded(&self) -> bool {
        self.password.load().is_some()
    }

    /// Whether somebody gave the right user and password. Where too many wrong ones came from, they are not looked at.
    pub(super) fn admits(&self, user: &[u8], password: &[u8], from: Option<IpAddr>) -> Result<(), AuthFailure> {
        if !self.is_guarded() {
            return if user == USER { Ok(()) } else { Err(AuthFailure::Wrong) };
        }
        if let Some(wait) = self.failures.wait(from) {
            return Err(AuthFailure::Wait(wait));
        }
        if user == USER && self.opens(password) {
            return Ok(());
        }
        self.failures.note(from);
        if let Some(unsaid) = self.quiet.admit("password") {
            warn!(network = %masked_network(from), unsaid, "a wrong password was given over RESP");
        }
        Err(AuthFailure::Wrong)
    }

    /// True for the password. Takes as long for one that is nearly right as for any other.
    fn opens(&self, given: &[u8]) -> bool {
        let password = self.password.load();
        let Some(password) = &*password else { return true };
        given.len() <= BYTES_MAX
            && verify_slices_are_equal(password.as_ref().as_ref(), digest(&SHA256, given).as_ref()).is_ok()
    }

    /// A number for the next connection.
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
