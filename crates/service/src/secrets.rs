//! The secret of a server or fleet, and the keys derived from it: digests, the random seed of soft limits, receipt
//! signatures. Each key is derived under its own name, so that none reveals another.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use aws_lc_rs::rand;
use tollgate_core::Secret;
use tollgate_ruleset::CompileOptions;

/// Shortest secret, in bytes.
const BYTES_MIN: usize = 16;
/// Longest secret that is read.
const BYTES_MAX: u64 = 4096;

/// An unpredictable number.
pub fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    rand::fill(&mut bytes).context("the system gives no random numbers")?;
    Ok(u64::from_le_bytes(bytes))
}

/// The secret; never printed.
pub struct SecretKeys {
    secret: Vec<u8>,
}

impl SecretKeys {
    /// Reads the secret, or makes one that lasts as long as this process.
    pub fn read(path: Option<&Path>) -> Result<SecretKeys> {
        let Some(path) = path else { return SecretKeys::made() };
        let name = path.display();
        let unreadable = || format!("cannot read secret_file {name}");
        let mut secret = Vec::new();
        File::open(path).with_context(unreadable)?.take(BYTES_MAX).read_to_end(&mut secret).with_context(unreadable)?;
        let secret = secret.trim_ascii().to_vec();
        if secret.len() < BYTES_MIN {
            bail!("secret_file {name} holds less than {BYTES_MIN} bytes; make one with: openssl rand -hex 32");
        }
        Ok(SecretKeys { secret })
    }

    /// A new secret, as text that a file can hold.
    fn made() -> Result<SecretKeys> {
        let words = [random()?, random()?, random()?, random()?];
        Ok(SecretKeys { secret: words.map(|word| format!("{word:016x}")).concat().into_bytes() })
    }

    /// Reads the secret that an earlier process kept, or makes one; the boolean says whether it is new, and therefore
    /// to be [kept](SecretKeys::keep) before anything that depends on it.
    pub fn kept(path: &Path) -> Result<(SecretKeys, bool)> {
        match path.try_exists() {
            Ok(false) => Ok((SecretKeys::made()?, true)),
            _ => Ok((SecretKeys::read(Some(path))?, false)),
        }
    }

    /// Keeps the secret in a file that only this user can read; fails if there is another. A crash leaves the whole file
    /// or none.
    pub fn keep(&self, path: &Path) -> io::Result<()> {
        let mut unfinished = path.to_owned().into_os_string();
        unfinished.push(".new");
        let mut file = File::options().create(true).write(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(&self.secret)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        let linked = fs::hard_link(&unfinished, path); // unlike a rename, it replaces nothing
        fs::remove_file(&unfinished)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.is_in(path) => {}
            linked => linked?,
        }
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn is_in(&self, path: &Path) -> bool {
        SecretKeys::read(Some(path)).is_ok_and(|kept| kept.secret == self.secret)
    }

    /// The secret that nodes share through their store.
    pub fn of(secret: &[u8; 16]) -> SecretKeys {
        SecretKeys { secret: secret.to_vec() }
    }

    /// The options that rules are compiled with.
    pub fn compile_options(&self) -> CompileOptions {
        let [seed, ..] = self.derive("soft limits");
        CompileOptions { secret: self.digests("buckets"), seed }
    }

    /// The key of the digests in the decision log.
    pub fn decision_log(&self) -> Secret {
        self.digests("decision log")
    }

    /// The key of the digests of keys that callers of RESP name.
    pub fn resp(&self) -> Secret {
        self.digests("resp")
    }

    /// The key of the digests and cursors of the admin API.
    pub fn admin(&self) -> [u8; 32] {
        self.bytes("admin")
    }

    /// The key that client keys are hashed with at rest.
    pub fn clients_at_rest(&self) -> [u8; 32] {
        self.bytes("clients at rest")
    }

    /// The key that messages between the nodes of a fleet are sealed with.
    pub fn node_messages(&self) -> [u8; 32] {
        self.bytes("node messages")
    }

    /// The secret behind receipts.
    pub fn receipts(&self) -> &[u8] {
        &self.secret // the sealer derives its own
    }

    /// Identifies the secret in the journal of quotas, whose digests are useless under another.
    pub fn journal_fingerprint(&self) -> [u8; 16] {
        self.bytes("quota journal").first_chunk().copied().unwrap_or_default()
    }

    /// 128 bits of a digest: equal for equal secrets, and nothing else can be learned from it.
    pub fn fingerprint(&self) -> String {
        let [a, b, ..] = self.derive("fingerprint");
        format!("{a:016x}{b:016x}")
    }

    fn digests(&self, name: &str) -> Secret {
        let [a, b, ..] = self.derive(name);
        Secret::new((u128::from(a) | u128::from(b) << 64).to_le_bytes())
    }

    fn bytes(&self, name: &str) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_mut(8).zip(self.derive(name)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn derive(&self, name: &str) -> [u64; 4] {
        let tag = sign(&Key::new(HMAC_SHA256, &self.secret), name.as_bytes());
        let mut words =
            tag.as_ref().chunks(8).map(|chunk| chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        std::array::from_fn(|_| words.next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_derived_differs_by_name_and_by_secret() {
        let (one, other) = (SecretKeys { secret: vec![1; 32] }, SecretKeys { secret: vec![2; 32] });
        assert_eq!(one.derive("a"), SecretKeys { secret: vec![1; 32] }.derive("a"));
        assert_ne!(one.derive("a"), one.derive("b"));
        assert_ne!(one.derive("a"), other.derive("a"));
        assert_ne!(SecretKeys::read(None).unwrap().derive("a"), SecretKeys::read(None).unwrap().derive("a"));
    }

    #[test]
    fn a_kept_secret_is_the_same_in_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tollgate.secret");
        let (first, is_new) = SecretKeys::kept(&path).unwrap();
        assert!(is_new && !path.exists());
        first.keep(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (second, is_new) = SecretKeys::kept(&path).unwrap();
        assert!(!is_new && first.derive("a") == second.derive("a"));
        first.keep(&path).unwrap();
        let other = SecretKeys::read(None).unwrap().keep(&path).unwrap_err();
        assert_eq!(other.kind(), io::ErrorKind::AlreadyExists, "a secret is never replaced");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn a_short_secret_is_rejected() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "too short   \n").unwrap();
        let error = SecretKeys::read(Some(file.path())).err().unwrap().to_string();
        assert!(error.contains("less than 16 bytes"), "{error}");
    }
}
