//! Reads a shared store from outside its fleet, with the secret of the nodes' keys.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use tollgate_ruleset::CompileOptions;
use tollgate_store_redis::{BucketReader, Finding, RedisConfig};

use crate::secrets::SecretKeys;

/// A store opened for reading, and the compile options that yield the keys of the nodes.
#[derive(Debug)]
pub struct Inspection {
    /// Reads buckets.
    pub reader: BucketReader,
    /// Compile options with the secret of the nodes.
    pub options: CompileOptions,
    /// True if running nodes use another secret, so that their keys differ.
    pub other_secret: bool,
}

/// Opens the store for reading. The secret is that of `secret_file`, or the one that the nodes keep in the store.
pub async fn inspect(config: &RedisConfig, secret_file: Option<&Path>) -> Result<Inspection> {
    let mut reader = BucketReader::open(config).await.map_err(fault)?;
    let keys = match secret_file {
        Some(_) => SecretKeys::read(secret_file)?,
        None => match reader.secret().await.map_err(fault)? {
            Some(secret) => SecretKeys::of(&secret),
            None => bail!(
                "the store holds no secret, so the keys of the nodes are unknown: either no node has used this store, or \
                 they have a secret_file; then name it: --secret-file FILE"
            ),
        },
    };
    let other_secret = reader.fingerprint().await.map_err(fault)?.is_some_and(|seen| seen != keys.fingerprint());
    Ok(Inspection { reader, options: keys.compile_options(), other_secret })
}

fn fault(Finding { what, help, .. }: Finding) -> anyhow::Error {
    anyhow!("{what}; {help}")
}
