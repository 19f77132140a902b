//! A look into a shared store from outside of its fleet, with the secret that the nodes make their keys with.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use tollgate_rules::ruleset::CompileOptions;
use tollgate_store_redis::{BucketReader, Finding, RedisConfig};

use crate::secrets::SecretKeys;

/// A store that can be read, and how rules are compiled so that their keys are those of the nodes.
#[derive(Debug)]
pub struct Inspection {
    /// Reads buckets.
    pub reader: BucketReader,
    /// Has the secret.
    pub options: CompileOptions,
    /// Running nodes use another secret, so their keys differ from those that are looked at.
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
